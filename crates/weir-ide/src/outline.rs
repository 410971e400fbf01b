//! The outline of a document: its items and their members.

use weir_syntax::Span;
use weir_syntax::ast::{Item, ItemKind, Route, Service, ServiceMemberKind};

use crate::document::Document;

/// An entry of the outline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentSymbol {
    /// The name.
    pub name: String,
    /// The kind of the symbol.
    pub kind: SymbolKind,
    /// The span of the whole symbol.
    pub span: Span,
    /// The span of its name.
    pub name_span: Span,
    /// Its members.
    pub children: Vec<DocumentSymbol>,
}

/// The kind of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolKind {
    /// A shared value.
    Shared,
    /// A constraint.
    Constraint,
    /// A `config` or `secret`.
    Config,
    /// A record.
    Record,
    /// A field of a record.
    Field,
    /// An enum.
    Enum,
    /// A variant of an enum.
    Variant,
    /// A `fn`.
    Function,
    /// A service.
    Service,
    /// A route of a service.
    Route,
    /// An entry point: `for x in source`.
    Entry,
    /// A failure handler.
    Handler,
    /// A test.
    Test,
}

impl Document {
    /// Returns the named items, in source order.
    #[must_use]
    pub fn outline(&self) -> Vec<DocumentSymbol> {
        self.items().filter_map(|item| self.symbol(item)).collect()
    }

    fn symbol(&self, item: &Item) -> Option<DocumentSymbol> {
        let leaf = |name: String, kind, name_span| DocumentSymbol {
            name,
            kind,
            span: item.span,
            name_span,
            children: Vec::new(),
        };
        let named = |name: &weir_syntax::ast::Name, kind| leaf(name.to_string(), kind, name.span);
        Some(match &item.kind {
            ItemKind::Use(_) | ItemKind::Library(_) => return None,
            ItemKind::Shared(shared) => named(&shared.name, SymbolKind::Shared),
            ItemKind::Table(table) => named(&table.name, SymbolKind::Shared),
            ItemKind::Constraint(constraint) => named(&constraint.name, SymbolKind::Constraint),
            ItemKind::Config(config) => named(&config.name, SymbolKind::Config),
            ItemKind::Constant(constant) => named(&constant.name, SymbolKind::Config),
            ItemKind::Alias(alias) => named(&alias.name, SymbolKind::Record),
            ItemKind::Function(function) => named(&function.name, SymbolKind::Function),
            ItemKind::Record(record) => {
                let fields = record.fields.iter().map(|field| child(&field.name, SymbolKind::Field, field.span));
                DocumentSymbol { children: fields.collect(), ..named(&record.name, SymbolKind::Record) }
            }
            ItemKind::Enum(declaration) => {
                let variants = declaration.variants.iter();
                let variants = variants.map(|variant| child(&variant.name, SymbolKind::Variant, variant.span));
                DocumentSymbol { children: variants.collect(), ..named(&declaration.name, SymbolKind::Enum) }
            }
            ItemKind::Service(service) => {
                DocumentSymbol { children: self.routes(service), ..named(&service.name, SymbolKind::Service) }
            }
            ItemKind::Entry(entry) => {
                let name = format!("for {}", self.file().slice(entry.source.span));
                leaf(name, SymbolKind::Entry, entry.source.span)
            }
            ItemKind::FailureHandler(handler) => {
                leaf(format!("on failure of {}", handler.function), SymbolKind::Handler, handler.function.span)
            }
            ItemKind::Test(test) => leaf(test.name.to_string(), SymbolKind::Test, test.name_span),
        })
    }

    fn routes(&self, service: &Service) -> Vec<DocumentSymbol> {
        let routes = service.members.iter().filter_map(|member| match &member.kind {
            ServiceMemberKind::Route(route) => Some(self.route(route, member.span)),
            _ => None,
        });
        routes.collect()
    }

    fn route(&self, route: &Route, span: Span) -> DocumentSymbol {
        let path = self.file().slice(route.path.span).trim_matches('"');
        let name = format!("{} {path}", route.method.word());
        DocumentSymbol { name, kind: SymbolKind::Route, span, name_span: route.path.span, children: Vec::new() }
    }
}

fn child(name: &weir_syntax::ast::Name, kind: SymbolKind, span: Span) -> DocumentSymbol {
    DocumentSymbol { name: name.to_string(), kind, span, name_span: name.span, children: Vec::new() }
}
