//! Items: the declarations at the top level of a file.

use super::Parser;
use crate::ast::{
    Block, Config, Entry, Enum, ExternalName, FieldDeclaration, Function, Item, ItemKind, LibraryFolder, NamedConstant,
    NodeCounts, Parameter, PayloadField, Record, Shared, Test, TextPart, Tree, TypeAlias, Use, UsedModule, Variant,
};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};
use std::sync::Arc;

impl Parser<'_> {
    /// `item*`
    pub(super) fn file(&mut self) -> Tree {
        let docs = self.file_docs();
        let mut items = Vec::new();
        while !self.at(T::End) {
            let before = self.at;
            self.begun_at = before;
            let reported = self.diagnostics.len();
            match self.item() {
                Some(item) => items.push(Arc::new(item)),
                None => self.advise_end(items.last().map(|item| &**item), reported),
            }
            if self.at == before {
                self.skip_to_item();
            } else if !self.at(T::End) && !self.at_new_line() && self.eat(T::Semicolon).is_none() {
                self.unexpected("a new line");
                self.skip_to_item();
            }
        }
        let span = Span::new(self.source, self.place.offset, self.text.len() as u32);
        let counts = NodeCounts { exprs: self.heights.len() as u32, patterns: self.pattern_count };
        Tree { docs, items, span, node_counts: vec![counts] }
    }

    /// Skips to a line that begins an item.
    pub(super) fn skip_to_item(&mut self) {
        self.skip_token();
        while !self.at(T::End) && (!self.token().first_on_line || !self.at_item()) {
            self.skip_token();
        }
    }

    /// Returns true if an item begins here.
    pub(super) fn at_item(&self) -> bool {
        match self.peek() {
            T::For => true,
            T::Word => {
                let is_value = self.at_constraint() || self.at_table() || self.at_config();
                is_value
                    || self.at_constant()
                    || self.at_alias()
                    || self.at_library()
                    || self.at_public()
                    || self.at_handler()
                    || self.at_test()
            }
            _ => self.at_declaration(),
        }
    }

    /// Returns true if an item begins here with a keyword that begins nothing else.
    pub(super) fn at_declaration(&self) -> bool {
        matches!(self.peek(), T::Use | T::Shared | T::Record | T::Enum | T::Fn | T::Service)
    }

    fn at_constraint(&self) -> bool {
        self.at_pair("constraint", T::Word)
    }

    fn at_config(&self) -> bool {
        self.at_named("config") || self.at_named("secret")
    }

    fn at_constant(&self) -> bool {
        self.at_named("const")
    }

    /// Returns true at a word and the name that it declares, also if that is a reserved word.
    pub(super) fn at_named(&self, word: &str) -> bool {
        let is_reserved = self.nth_kind(1).is_reserved() && matches!(self.nth_kind(2), T::Colon | T::Equal);
        self.at_pair(word, T::Word) || (is_reserved && self.at_pair(word, self.nth_kind(1)))
    }

    fn at_alias(&self) -> bool {
        self.at_pair("type", T::Word)
    }

    fn at_library(&self) -> bool {
        self.at_pair("library", T::Word) && self.nth_kind(2) == T::Equal && self.nth_kind(3).opens_text()
    }

    /// Returns true if an item comes next that other modules may use.
    fn at_public(&self) -> bool {
        let is_word = self.at_pair("pub", T::Word)
            && ["const", "type", "constraint", "table"].contains(&self.text_of(self.nth(1)));
        is_word || [T::Fn, T::Record, T::Enum].into_iter().any(|kind| self.at_pair("pub", kind))
    }

    fn at_test(&self) -> bool {
        self.at_pair("test", T::TextOpen) || self.at_pair("test", T::BlockTextOpen)
    }

    /// `docs pub? [use | library | shared | constraint | table | config | secret | const | type | record | enum | fn | service |
    /// for | on failure | test] …`
    pub(super) fn item(&mut self) -> Option<Item> {
        let docs = self.docs();
        self.modifiers();
        let start = self.span();
        if let Some(kind) = self.imported() {
            return Some(Item { file: self.place.file, docs, public: None, kind, span: self.since(start) });
        }
        let public = self.at_public().then(|| self.bump());
        let kind = match self.item_word() {
            T::Use => ItemKind::Use(self.use_item()),
            T::Shared => ItemKind::Shared(self.shared()),
            T::Record => ItemKind::Record(self.record()),
            T::Enum => ItemKind::Enum(self.enumeration()),
            T::Fn => ItemKind::Function(self.function()),
            T::Service => ItemKind::Service(self.service()),
            T::For => ItemKind::Entry(self.entry()),
            _ if self.at_constraint() => ItemKind::Constraint(self.constraint()),
            _ if self.at_constant() => ItemKind::Constant(self.constant()),
            _ if self.at_alias() => ItemKind::Alias(self.alias()),
            _ if self.at_library() => ItemKind::Library(self.library()),
            _ if self.at_table() => ItemKind::Table(self.table()),
            _ if self.at_config() => ItemKind::Config(self.config()),
            _ if self.at_handler() => ItemKind::FailureHandler(self.failure_handler()),
            _ if self.at_test() => ItemKind::Test(self.test()),
            _ => {
                self.no_item(&docs);
                return None;
            }
        };
        Some(Item { file: self.place.file, docs, public, kind, span: self.since(start) })
    }

    /// `library name = text`
    fn library(&mut self) -> LibraryFolder {
        self.bump();
        let name = self.lower_name("the name of a library");
        self.expect(T::Equal, "`=`");
        let (path, path_span) = self.plain_text("the path of a library");
        LibraryFolder { name, path, path_span }
    }

    /// Reads a text without interpolations. `what` says what it is, and where an interpolation would have to go.
    fn plain_text(&mut self, what: &str) -> (Arc<str>, Span) {
        let text = self.text_literal();
        if let Some(TextPart::Expr(expr)) = text.parts.iter().find(|part| plain(part).is_none()) {
            let span = expr.span;
            let diagnostic = Diagnostic::new(Code::MisplacedClause, format!("{what} cannot contain a value"));
            self.report(diagnostic.at(span, "an interpolation").hint("write the text itself"));
        }
        let value: String = text.parts.iter().filter_map(plain).collect();
        (value.into(), text.span)
    }

    /// `use [name [. name]* [as name]?],*`
    fn use_item(&mut self) -> Use {
        self.bump();
        if let Some(modules) = self.bracketed_modules() {
            return Use { modules };
        }
        let mut modules = vec![self.used_module()];
        while self.eat(T::Comma).is_some() {
            modules.push(self.used_module());
        }
        Use { modules }
    }

    pub(super) fn used_module(&mut self) -> UsedModule {
        let start = self.span();
        let mut name = self.quoted_module().unwrap_or_else(|| self.lower_name("a module name"));
        let mut folders = Vec::new();
        while self.at_part_of_module() {
            self.bump();
            folders.push(std::mem::replace(&mut name, self.lower_name("a module name")));
        }
        self.parts_of_module(name.span);
        let alias = self.eat(T::As).map(|_| self.lower_name("a module name"));
        UsedModule { folders, name, alias, span: self.since(start) }
    }

    /// `shared name [: type]? = expression [per session]?`
    fn shared(&mut self) -> Shared {
        self.bump();
        let name = self.lower_name("the name of a shared value");
        let ty = self.eat(T::Colon).map(|_| self.ty());
        self.expect(T::Equal, "`=`");
        let value = self.expression();
        Shared { name, ty, value, per_session: self.per_session() }
    }

    /// `[config | secret] name : type [= expression]?`
    fn config(&mut self) -> Config {
        let secret = self.at_word("secret");
        self.bump();
        let name = self.lower_name("the name of a configured value");
        self.expect(T::Colon, "`:` and a type");
        let ty = self.ty();
        let default = self.eat(T::Equal).map(|_| self.expression());
        Config { secret, name, ty, default }
    }

    /// `const name [: type]? = expression`
    fn constant(&mut self) -> NamedConstant {
        self.bump();
        let name = self.lower_name("the name of a constant");
        let ty = self.eat(T::Colon).map(|_| self.ty());
        self.expect(T::Equal, "`=` and a value");
        NamedConstant { name, ty, value: self.expression() }
    }

    /// `type Name = type`
    fn alias(&mut self) -> TypeAlias {
        self.bump();
        let name = self.upper_name("a type name");
        self.expect(T::Equal, "`=` and a type");
        let ty = self.ty();
        TypeAlias { name, ty: self.union(ty) }
    }

    /// `record Name { field,* }`
    fn record(&mut self) -> Record {
        self.bump();
        let name = self.upper_name("a type name");
        self.word_before_fields();
        let fields = self.fields_in_parentheses(Self::field_declaration);
        Record { name, fields: fields.unwrap_or_else(|| self.braces_of(Self::field_declaration)) }
    }

    /// `docs name : type [as text]? [= expression]?`
    fn field_declaration(&mut self) -> FieldDeclaration {
        let docs = self.docs();
        if let Some(method) = self.method_of_record() {
            return method;
        }
        let start = self.span();
        let name = self.lower_name("a field name");
        let ty = self.typed();
        let external = self.external_name();
        let default = self.eat(T::Equal).map(|_| self.expression());
        FieldDeclaration { docs, name, ty, external, default, span: self.since(start) }
    }

    /// `as text`
    fn external_name(&mut self) -> Option<ExternalName> {
        self.eat(T::As)?;
        if !self.peek().opens_text() {
            self.unexpected("the name in quotes");
            return None;
        }
        let (text, span) = self.plain_text("a name outside the program");
        Some(ExternalName { text, span })
    }

    /// `: type`
    pub(super) fn typed(&mut self) -> crate::ast::Type {
        self.expect(T::Colon, "`:` and a type");
        let ty = self.ty();
        self.union(ty)
    }

    /// `enum Name { variant,* }`
    fn enumeration(&mut self) -> Enum {
        self.bump();
        let name = self.upper_name("a type name");
        self.word_before_fields();
        let variants = self.variants_with_bars();
        Enum { name, variants: variants.unwrap_or_else(|| self.braces_of(Self::variant)) }
    }

    /// `docs Name [( [[name :]? type],* )]? [as text]?`
    pub(super) fn variant(&mut self) -> Variant {
        let docs = self.docs();
        let start = self.span();
        let name = self.upper_name("a variant name");
        let open = self.span();
        let payload = match self.peek() {
            T::ParenOpen if !self.token().first_on_line => self.delimited(T::ParenOpen, Self::payload_field),
            T::BraceOpen if !self.token().first_on_line => {
                let payload = self.braced(Self::payload_field);
                self.payload_in_braces(open);
                payload
            }
            _ => Vec::new(),
        };
        let external = self.external_name();
        Variant { docs, name, payload, external, span: self.since(start) }
    }

    fn payload_field(&mut self) -> PayloadField {
        let start = self.span();
        let name = self.label();
        let ty = self.ty();
        PayloadField { name, ty, span: self.since(start) }
    }

    /// `{ element,* }`; reports a missing brace.
    pub(super) fn braces_of<E>(&mut self, element: impl FnMut(&mut Self) -> E) -> Vec<E> {
        if !self.at(T::BraceOpen) {
            self.unexpected("`{`");
        }
        self.braced(element)
    }

    /// `fn name ( parameter,* ) [-> type]? block`
    fn function(&mut self) -> Function {
        self.bump();
        let name = self.lower_name("a function name");
        self.type_parameters();
        let parameters = self.parameters(Self::parameter);
        let returns = self.result_type();
        Function { name, parameters, returns, body: self.body() }
    }

    /// `( parameter,* )`
    pub(super) fn parameters<E>(&mut self, parameter: impl FnMut(&mut Self) -> E) -> Vec<E> {
        if !self.at(T::ParenOpen) {
            self.unexpected("`(`");
        }
        self.delimited(T::ParenOpen, parameter)
    }

    /// `name : type [= expression]?`
    pub(super) fn parameter(&mut self) -> Parameter {
        self.parameter_words();
        if let Some(parameter) = self.parameter_without_colon() {
            return parameter;
        }
        let start = self.span();
        let name = self.lower_name("a parameter name");
        let before = self.diagnostics.len();
        let ty = self.typed();
        self.advise_type(before, &name);
        let default = self.eat(T::Equal).map(|_| self.expression());
        Parameter { name, ty, default, span: self.since(start) }
    }

    /// `for pattern in head { [session = expression]? statement* } [at end block]?`
    fn entry(&mut self) -> Entry {
        self.bump();
        let pattern = self.pattern();
        self.expect(T::In, "`in`");
        let source = self.head();
        let (session, body) = self.flow_body();
        Entry { pattern, source, session, body, end: self.end_of_entry() }
    }

    /// `at end block`, which may begin a line: no item begins with it.
    fn end_of_entry(&mut self) -> Option<Block> {
        self.at_end_of_entry().then(|| {
            self.bump();
            self.bump();
            self.body()
        })
    }

    pub(super) fn at_end_of_entry(&self) -> bool {
        self.at_pair("at", T::Word) && self.text_of(self.nth(1)) == "end"
    }

    /// `test text block`
    fn test(&mut self) -> Test {
        self.bump();
        let text = self.text_literal();
        let value: String = text.parts.iter().filter_map(plain).collect();
        if let Some(TextPart::Expr(expr)) = text.parts.iter().find(|part| plain(part).is_none()) {
            let span = expr.span;
            self.misplaced(span, "an interpolation", "into an `expect` of the test");
        }
        Test { name: Arc::from(value), name_span: text.span, body: self.body() }
    }
}

fn plain(part: &TextPart) -> Option<&str> {
    match part {
        TextPart::Literal { value, .. } => Some(value),
        TextPart::Expr(_) => None,
    }
}
