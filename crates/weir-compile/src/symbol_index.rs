//! The symbol index, for editors and documentation: definitions, references, types, signatures.

use weir_host::{Library, Mode, Parameter, Passing, Resource, Signature, Text, TypeShape, Value};
use weir_syntax::Span;
use weir_syntax::ast::ItemKind;

use crate::checked::Checked;
use crate::declarations::DeclaredFn;
use crate::symbol::{Reference, Symbol};
use crate::table_statements;
use crate::types::Ty;
use crate::weir_modules::{WeirModule, WeirModules};

/// The description of a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolInfo {
    /// One or a few lines of Weir: `fn area(shape: Shape) -> Float`.
    pub signature: String,
    /// The documentation, as Markdown; may be empty.
    pub doc: String,
    /// The effects, in one line; only for functions.
    pub effects: Option<String>,
}

/// A local name that is visible at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalName {
    /// The name.
    pub name: String,
    /// Its type.
    pub ty: String,
    /// The span of its declaration.
    pub span: Span,
}

impl Checked {
    /// Returns every reference to a symbol, in no particular order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.typed.references()
    }

    /// Returns the innermost reference at an offset.
    #[must_use]
    pub fn reference_at(&self, offset: u32) -> Option<&Reference> {
        self.typed.references().filter(|found| found.span.touches(offset)).min_by_key(|found| found.span.len())
    }

    /// Returns all references to a symbol, including its declaration.
    pub fn references_to<'c>(&'c self, symbol: &'c Symbol) -> impl Iterator<Item = &'c Reference> {
        self.typed.references().filter(move |found| found.symbol == *symbol)
    }

    /// Returns the span of the symbol's declaration; `None` if it is declared in the library.
    #[must_use]
    pub fn definition_of(&self, symbol: &Symbol) -> Option<Span> {
        self.references_to(symbol).find(|found| found.defines).map(|found| found.span)
    }

    /// Returns the innermost expression at an offset, and its type.
    #[must_use]
    pub fn type_at(&self, offset: u32) -> Option<(Span, String)> {
        let file = self.typed.file_at(offset);
        let spans = file.expr_spans.iter().zip(&file.expr_types);
        let touched = spans.filter(|(span, ty)| span.touches(offset) && **ty != Ty::Error);
        let narrowest = touched.min_by_key(|(span, _)| span.len());
        narrowest.map(|(span, ty)| (*span, ty.to_string()))
    }

    /// Returns the local names that are visible at an offset; inner names shadow outer ones. An `at end` block sees
    /// only its own names.
    #[must_use]
    pub fn locals_at(&self, offset: u32) -> Vec<LocalName> {
        let locals = self.typed.locals_at(&self.parsed.tree, offset).into_iter();
        locals
            .map(|local| LocalName { name: local.name.to_string(), ty: local.ty.to_string(), span: local.span })
            .collect()
    }

    /// Returns the locals of the whole program whose types are known.
    pub fn locals(&self) -> impl Iterator<Item = LocalName> {
        let known = self.typed.files.iter().flat_map(|file| &file.locals).filter(|local| local.ty != Ty::Error);
        known.map(|local| LocalName { name: local.name.to_string(), ty: local.ty.to_string(), span: local.span })
    }

    /// Describes the statements on a table of the program, each with its name; none if there is no such table.
    #[must_use]
    pub fn table_statements(&self, table: &str) -> Vec<(&'static str, SymbolInfo)> {
        let statements = self.typed.declarations.tables.get(table).map_or_else(Vec::new, table_statements::described);
        let described = statements
            .into_iter()
            .map(|(name, signature, doc)| (name, SymbolInfo { signature, doc: doc.to_owned(), effects: None }));
        described.collect()
    }

    /// Describes a symbol.
    #[must_use]
    pub fn describe(&self, symbol: &Symbol, library: &Library) -> Option<SymbolInfo> {
        let plain = |signature: String| Some(SymbolInfo { signature, doc: String::new(), effects: None });
        match symbol {
            Symbol::Local(id) => {
                let local = self.typed.local(*id);
                plain(format!("{}: {}", local.name, local.ty))
            }
            Symbol::Function(name) => self.describe_fn(name),
            Symbol::Shared(name) => {
                let declared = self.typed.declarations.shared.get(name.as_str())?;
                let doc = self.item_doc(declared.item);
                if let Some(table) = self.typed.declarations.tables.get(name.as_str()) {
                    return Some(SymbolInfo { signature: table.signature(name), doc, effects: None });
                }
                let scope = if declared.per_session { " per session" } else { "" };
                Some(SymbolInfo { signature: format!("shared {name}: {}{scope}", declared.ty), doc, effects: None })
            }
            Symbol::Constraint(name) => {
                let declared = self.typed.declarations.constraints.get(name.as_str())?;
                let (scope, doc) =
                    (if declared.per_session { " per session" } else { "" }, self.item_doc(declared.item));
                Some(SymbolInfo { signature: format!("constraint {name}{scope}"), doc, effects: None })
            }
            Symbol::Config(name) => {
                let declared = self.typed.declarations.config.get(name.as_str())?;
                let word = if declared.secret { "secret" } else { "config" };
                let doc = self.item_doc(declared.item);
                Some(SymbolInfo { signature: format!("{word} {name}: {}", declared.ty), doc, effects: None })
            }
            Symbol::Constant(name) => self.describe_constant(name),
            Symbol::Service(name) => plain(format!("service {name}")),
            Symbol::Type(name) => self.describe_type(name, library),
            Symbol::TypeParameter(of, name) => plain(format!("type parameter {name} of {of}")),
            Symbol::Variant(of, name) => {
                let definition = self.typed.declarations.definition(library, of)?;
                let TypeShape::Enum(variants) = &definition.shape else { return None };
                let variant = variants.iter().find(|variant| variant.name == *name)?;
                plain(format!("{of}.{}", variant_signature(variant)))
            }
            Symbol::Field(of, name) => {
                let definition = self.typed.declarations.definition(library, of)?;
                let TypeShape::Record(fields) = &definition.shape else { return None };
                let field = fields.iter().find(|field| field.name == *name)?;
                plain(format!("{of}.{name}: {}", field.ty))
            }
            Symbol::HostFunction(path) => match library.function(path) {
                Some(function) => Some(describe_host(&function.signature)),
                None => self.modules.describe(path, library),
            },
            Symbol::Source(path) => describe_source(path, library),
            Symbol::Module(name) => {
                let module = library.modules.get(name)?;
                Some(SymbolInfo { signature: format!("module {name}"), doc: module.doc.to_string(), effects: None })
            }
        }
    }

    fn describe_constant(&self, name: &Text) -> Option<SymbolInfo> {
        let declared = self.typed.declarations.constants.get(name.as_str())?;
        let ty = &declared.ty;
        let value = declared.value.as_ref().map_or_else(String::new, shown_default);
        let doc = self.item_doc(declared.item);
        Some(SymbolInfo { signature: format!("const {name}: {ty}{value}"), doc, effects: None })
    }

    fn describe_type(&self, name: &Text, library: &Library) -> Option<SymbolInfo> {
        if let Some(alias) = self.typed.declarations.aliases.get(name) {
            let signature = format!("type {name} = {}", alias.ty);
            return Some(SymbolInfo { signature, doc: self.item_doc(alias.item), effects: None });
        }
        let definition = self.typed.declarations.definition(library, name)?;
        let signature = type_signature(name, &definition.shape);
        Some(SymbolInfo { signature, doc: definition.doc.to_string(), effects: None })
    }

    fn item_doc(&self, item: usize) -> String {
        self.parsed.tree.items.get(item).map(|item| item.docs.text()).unwrap_or_default()
    }

    fn describe_fn(&self, name: &Text) -> Option<SymbolInfo> {
        let declared = self.typed.declarations.functions.get(name.as_str())?;
        let signature = fn_signature(name, declared);
        let effects = self.typed.effects_of(name).map(ToString::to_string);
        let doc = match self.parsed.tree.items.get(declared.item).map(|item| &item.kind) {
            Some(ItemKind::Function(_)) => self.item_doc(declared.item),
            _ => String::new(),
        };
        Some(SymbolInfo { signature, doc, effects })
    }
}

impl WeirModules {
    /// Returns the names of the functions of a module that are written in Weir.
    #[must_use]
    pub fn names(&self, module: &str, library: &Library) -> Vec<String> {
        let module = self.module(module, library, crate::check::check_module);
        module.into_iter().flat_map(WeirModule::functions).map(|function| function.name().to_owned()).collect()
    }

    /// Describes a function that is written in Weir, by its path: `list.sort_by`.
    #[must_use]
    pub fn describe(&self, path: &str, library: &Library) -> Option<SymbolInfo> {
        let function = self.function(path, library, crate::check::check_module)?;
        let effects = function.module.typed.fn_effects.get(function.at).map(ToString::to_string);
        Some(SymbolInfo { signature: fn_signature(path, function.declared()), doc: function.doc(), effects })
    }
}

fn fn_signature(name: &str, declared: &DeclaredFn) -> String {
    let parameters = declared.parameters.iter().map(|parameter| {
        let default = parameter.default.as_ref().map_or_else(String::new, |default| format!(" = {default}"));
        format!("{}: {}{default}", parameter.name, parameter.ty)
    });
    let result = if declared.result == Ty::UNIT { String::new() } else { format!(" -> {}", declared.result) };
    format!("fn {name}({}){result}", parameters.collect::<Vec<_>>().join(", "))
}

fn type_signature(name: &str, shape: &TypeShape) -> String {
    match shape {
        TypeShape::Record(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
            format!("record {name} {{ {} }}", fields.join(", "))
        }
        TypeShape::Enum(variants) => {
            let variants: Vec<String> = variants.iter().map(variant_signature).collect();
            format!("enum {name} {{ {} }}", variants.join(", "))
        }
        TypeShape::Opaque { shareable: true } => format!("type {name}"),
        TypeShape::Opaque { shareable: false } => format!("type {name}, move-only"),
    }
}

fn variant_signature(variant: &weir_host::Variant) -> String {
    if variant.fields.is_empty() {
        return variant.name.to_string();
    }
    let fields = variant.fields.iter().map(|field| match field.name.parse::<u32>() {
        Ok(_) => field.ty.to_string(),
        Err(_) => format!("{}: {}", field.name, field.ty),
    });
    format!("{}({})", variant.name, fields.collect::<Vec<_>>().join(", "))
}

fn shown_default(value: &Value) -> String {
    match value {
        Value::Text(text) => format!(" = \"{text}\""),
        other => format!(" = {other}"),
    }
}

/// Describes a function of the library.
fn describe_host(signature: &Signature) -> SymbolInfo {
    let parameters: Vec<String> = signature.written().iter().map(Parameter::shown).collect();
    let mut effects = crate::EffectSummary::default();
    effects.call(signature, &signature.path());
    for parameter in signature.parameters.iter().filter(|parameter| parameter.passing == Passing::Change) {
        effects.touch(Resource::Shared(parameter.name.clone()), Mode::Write);
    }
    SymbolInfo {
        signature: format!("fn {}({}) -> {}", signature.path(), parameters.join(", "), signature.call_type()),
        doc: signature.doc.to_string(),
        effects: Some(effects.to_string()),
    }
}

fn describe_source(path: &str, library: &Library) -> Option<SymbolInfo> {
    let (module, name) = path.rsplit_once('.')?;
    let (signature, _) = library.modules.get(module)?.sources.get(name)?;
    let parameters: Vec<String> =
        signature.parameters.iter().map(|parameter| format!("{}: {}", parameter.name, parameter.ty)).collect();
    let of = signature.element.as_ref().map_or_else(String::new, |element| format!(" of {element}"));
    let signature_text = format!("source {path}({}){of}", parameters.join(", "));
    Some(SymbolInfo { signature: signature_text, doc: signature.doc.to_string(), effects: None })
}
