//! Dialect recovery for items.

use super::Parser;
use crate::ast::{Docs, FieldDeclaration, Item, ItemKind, Name, Type, TypeKind, Use, UsedModule, Variant};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};
use std::sync::Arc;

/// Modifiers before an item that have no equivalent in Weir.
const MODIFIERS: &[&str] =
    &["abstract", "async", "export", "extern", "final", "inline", "private", "protected", "public", "static", "unsafe"];

/// Keywords of items in other languages, with the Weir keyword.
const WORDS: &[(&str, T, &str)] = &[
    ("class", T::Record, "record"),
    ("data", T::Record, "record"),
    ("def", T::Fn, "fn"),
    ("defn", T::Fn, "fn"),
    ("fun", T::Fn, "fn"),
    ("func", T::Fn, "fn"),
    ("function", T::Fn, "fn"),
    ("import", T::Use, "use"),
    ("interface", T::Record, "record"),
    ("proc", T::Fn, "fn"),
    ("require", T::Use, "use"),
    ("struct", T::Record, "record"),
    ("using", T::Use, "use"),
];

/// Keywords without an equivalent, with advice.
const WITHOUT: &[(&str, &str)] = &[
    ("extends", "repeat the fields in the record, or hold the other record in a field"),
    ("interface", "pass a function as an argument: `fn shown(f: fn(Int) -> Text) -> Text { … }`"),
    ("impl", "write a top-level function that takes the value: `fn area(shape: Shape) -> Float { … }`"),
    ("let", "write `const limit = 10`, or `shared limit = 10` if flows change it"),
    ("macro", "write a `fn`, or a host function in Rust"),
    ("mod", "each file is a module: put the items into a file of their own, and import it with `use`"),
    ("module", "each file is a module: remove `module`"),
    ("namespace", "each file is a module: remove `namespace` and the braces"),
    ("package", "each file is a module: remove the line"),
    ("trait", "pass a function as an argument: `fn shown(f: fn(Int) -> Text) -> Text { … }`"),
    ("typedef", "write `type Name = …`, or declare a `record` or an `enum`"),
    ("val", "write `const limit = 10`, or `shared limit = 10` if flows change it"),
    (
        "var",
        "write `shared limit = 10` for a value that flows change, or `const limit = 10` for one that never changes",
    ),
];

/// Advice for a statement at the top level.
const INTO_A_BODY: &str =
    "move it into the body of a `fn`, a route or a `test`; execution begins at a `service` or a `for`";

/// Advice for a statement after a `for` at the top level.
const AT_END: &str = "code that runs after the last element follows the `for`: `for … { … } at end { … }`";

/// Words of items that are never public.
const PRIVATE_ITEMS: [&str; 4] = ["config", "secret", "library", "test"];

impl Parser<'_> {
    /// Drops modifiers before an item.
    pub(in crate::parser) fn modifiers(&mut self) {
        if self.at_private_item() {
            let span = Span { end: self.nth(1).start, ..self.span() };
            let item = self.text_of(self.nth(1));
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, format!("a `{item}` is never public"))
                .at(self.span(), "before a `fn`, `record`, `enum`, `type`, `const`, `constraint` or `table` only")
                .fix("remove it", span, "");
            self.report(diagnostic);
            self.bump();
        }
        let mut count = 0;
        while self.nth_kind(count) == T::Word && MODIFIERS.contains(&self.text_of(self.nth(count))) {
            count += 1;
            if self.nth_kind(count) == T::ParenOpen && self.nth_kind(count + 2) == T::ParenClose {
                count += 3;
            }
        }
        let next = self.nth(count);
        let begins =
            next.kind == T::Word || matches!(next.kind, T::Fn | T::Record | T::Enum | T::Shared | T::Use | T::Service);
        if count > 0 && begins && !next.first_on_line {
            self.report_superfluous(count, "every item is visible in its file, and waiting is automatic");
        }
    }

    /// Returns true if `pub` stands before an item that is never public.
    fn at_private_item(&self) -> bool {
        let by_word = self.at_pair("pub", T::Word) && PRIVATE_ITEMS.contains(&self.text_of(self.nth(1)));
        by_word || [T::Shared, T::Service, T::Use].into_iter().any(|kind| self.at_pair("pub", kind))
    }

    /// Returns the Weir keyword of the next item.
    pub(in crate::parser) fn item_word(&mut self) -> T {
        if self.interface() {
            return self.peek();
        }
        let name_follows = |kind: T| kind == T::Word;
        let known = WORDS
            .iter()
            .find(|(word, ..)| self.at_word_before(&[word], |kind| name_follows(kind) || kind.opens_text()));
        if let Some((_, kind, weir_form)) = known {
            self.report_substitution(self.span(), weir_form);
            return *kind;
        }
        if self.at_word_before(&["type"], name_follows) && self.fields_follow(2) {
            self.report_substitution(self.span(), "record");
            return T::Record;
        }
        let is_word = |ahead: usize| self.nth_kind(ahead) == T::Word && !self.nth(ahead).first_on_line;
        let behind_name = self.nth_kind(2) == T::ParenOpen && !self.nth(2).first_on_line;
        if self.at(T::Word) && is_word(1) && behind_name && !self.is_without() && !self.at_table() {
            self.report_substitution(self.span(), "fn");
            return T::Fn;
        }
        self.peek()
    }

    /// Returns true if the fields of a record stand there: `{`, `= {` as in TypeScript, or `struct {` as in Go.
    fn fields_follow(&self, ahead: usize) -> bool {
        let is_filler = self.nth_kind(ahead) == T::Equal || self.text_of(self.nth(ahead)) == "struct";
        self.nth_kind(ahead + usize::from(is_filler)) == T::BraceOpen
    }

    /// Returns true if an interface with methods comes next, which no record can replace.
    fn interface(&self) -> bool {
        let methods = self.nth_kind(3) == T::Word && self.nth_kind(4) == T::ParenOpen;
        self.at_word("interface") && self.nth_kind(2) == T::BraceOpen && methods
    }

    /// Reads a `fn` among the fields of a record.
    pub(in crate::parser) fn method_of_record(&mut self) -> Option<FieldDeclaration> {
        const WORDS: &[&str] = &["def", "fun", "func", "function"];
        if !self.at(T::Fn) && !self.at_word_before(WORDS, |kind| kind == T::Word) {
            return None;
        }
        let start = self.span();
        let advice = "move it after the record and pass a value: `fn total(order: Order) -> Int { … }`";
        self.report_with_advice(start, "a `fn` must be at the top level", advice);
        self.reported_at = Some(self.at);
        while !matches!(self.peek(), T::BraceOpen | T::End) && !self.ends_behind(0) {
            self.skip_token();
        }
        self.skip_token();
        let (name, span) = (self.missing_name(), self.since(start));
        let ty = Type { kind: TypeKind::Error, span };
        Some(FieldDeclaration { docs: Docs::default(), name, ty, external: None, default: None, span })
    }

    fn is_without(&self) -> bool {
        WITHOUT.iter().any(|(word, _)| *word == self.token_text())
    }

    /// Reads `from name import …` as a `use`.
    pub(in crate::parser) fn imported(&mut self) -> Option<ItemKind> {
        let imports = self.nth_kind(1) == T::Word && self.text_of(self.nth(2)) == "import";
        if !(self.at_word("from") && imports) {
            return None;
        }
        let start = self.bump();
        let module = self.nth(0).span(self.source);
        let name = self.word();
        self.skip_line();
        self.report_rewrite(self.since(start), "modules are imported as a whole", format!("use {name}"));
        Some(ItemKind::Use(Use { modules: vec![UsedModule { folders: Vec::new(), name, alias: None, span: module }] }))
    }

    /// Reports a token that begins no item.
    pub(in crate::parser) fn no_item(&mut self, docs: &Docs) {
        self.release_docs(docs);
        let word = self.token_text();
        if let Some((_, advice)) = WITHOUT.iter().find(|(dialect_form, _)| *dialect_form == word) {
            self.reported_at = Some(self.at);
            let message = format!("Weir has no `{word}` at the top level");
            let diagnostic = Diagnostic::new(Code::DialectSyntax, message).at(self.span(), "not the start of an item");
            return self.report(diagnostic.hint(*advice));
        }
        if self.at_word_before(&["test"], |kind| kind == T::BraceOpen) {
            self.reported_at = Some(self.at);
            let place = self.span();
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, "missing name of the test");
            return self.report(diagnostic.at(place, "expected a text literal after `test`").fix(
                "add a name",
                place.at_end(),
                " \"it works\"",
            ));
        }
        if self.at_end_of_entry() {
            self.reported_at = Some(self.at);
            let diagnostic = Diagnostic::new(Code::MisplacedClause, "`at end` must follow a `for` at the top level")
                .at(self.span(), "no `for` before it, or one that already has `at end`")
                .hint("move it after the closing `}` of its `for`: `for … { … } at end { … }`");
            return self.report(diagnostic);
        }
        let before = self.diagnostics.len();
        self.unexpected("an item, such as `fn` or `service`");
        let begins_statement =
            self.at(T::Word) || matches!(self.peek(), T::If | T::Match | T::Return | T::Expect | T::Loop);
        if let Some(last) = self.diagnostics.get_mut(before).filter(|last| begins_statement && last.help.is_empty()) {
            *last = last.clone().hint(INTO_A_BODY);
        }
    }

    /// Adds a hint that shows how a statement after a `for` can run after the last element.
    pub(in crate::parser) fn advise_end(&mut self, before: Option<&Item>, reported: usize) {
        let behind_entry = matches!(before, Some(Item { kind: ItemKind::Entry(entry), .. }) if entry.end.is_none());
        let Some(last) = self.diagnostics.get_mut(reported).filter(|_| behind_entry) else { return };
        if let [hint] = &mut last.help[..]
            && hint.text == INTO_A_BODY
        {
            AT_END.clone_into(&mut hint.text);
        }
    }

    /// Reads a quoted module name.
    pub(in crate::parser) fn quoted_module(&mut self) -> Option<Name> {
        if !self.peek().opens_text() {
            return None;
        }
        let text = self.text_literal();
        let name = self.text[text.span.range()].trim_matches('"').to_owned();
        self.report_rewrite(text.span, "module names are written without quotes", name.clone());
        Some(Name { text: Arc::from(name), span: text.span })
    }

    /// Reads `{ module,* }` after `use`.
    pub(in crate::parser) fn bracketed_modules(&mut self) -> Option<Vec<UsedModule>> {
        if !matches!(self.peek(), T::BraceOpen | T::ParenOpen) || self.at_new_line() {
            return None;
        }
        let start = self.span();
        let modules = match self.peek() {
            T::BraceOpen => self.braced(Self::used_module),
            _ => self.delimited(T::ParenOpen, Self::used_module),
        };
        let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        self.report_rewrite(self.since(start), "imported modules are written without brackets", names.join(", "));
        Some(modules)
    }

    /// Returns true if `.name` comes next, which may be a module in a folder.
    pub(in crate::parser) fn at_part_of_module(&self) -> bool {
        let is_lower = self.text_of(self.nth(1)).starts_with(char::is_lowercase);
        self.at(T::Dot) && !self.at_new_line() && self.nth_kind(1) == T::Word && is_lower
    }

    /// Reports and skips members after a module name.
    pub(in crate::parser) fn parts_of_module(&mut self, start: Span) {
        if self.at(T::Dot) && !self.at_new_line() {
            let behind = self.span();
            self.skip_line();
            let parts = self.since(behind);
            let diagnostic = Diagnostic::new(Code::DialectSyntax, "modules are imported as a whole")
                .at(parts, "a member of the module")
                .because(start, "the module")
                .fix("remove it", parts, "");
            self.report(diagnostic);
        }
    }

    /// Drops `=` or `struct` after the name of a record.
    pub(in crate::parser) fn word_before_fields(&mut self) {
        if !self.at(T::BraceOpen) && self.fields_follow(0) {
            self.report_superfluous(1, "the `{` follows the name directly");
        }
    }

    /// Reads `( field,* )` after the name of a record.
    pub(in crate::parser) fn fields_in_parentheses<E>(&mut self, field: impl FnMut(&mut Self) -> E) -> Option<Vec<E>> {
        if !self.at(T::ParenOpen) {
            return None;
        }
        let start = self.span();
        let fields = self.delimited(T::ParenOpen, field);
        let span = self.since(start);
        let inner = self.text[span.range()].trim_matches(['(', ')']).trim();
        let weir_form = format!(" {{ {inner} }}");
        self.report(
            Diagnostic::new(Code::DialectSyntax, "record fields are written in braces").at(span, "in parentheses").fix(
                "write `{ … }`",
                span,
                weir_form,
            ),
        );
        Some(fields)
    }

    /// Reads `= A | B` after the name of an enum.
    pub(in crate::parser) fn variants_with_bars(&mut self) -> Option<Vec<Variant>> {
        let start = self.eat(T::Equal)?;
        self.eat(T::Bar);
        let mut variants = vec![self.variant()];
        while self.eat(T::Bar).is_some() {
            variants.push(self.variant());
        }
        let span = self.since(start);
        let inner =
            self.text[span.range()].trim_start_matches(['=', ' ', '|', '\n']).replace(" |", ",").replace('|', ",");
        self.report_rewrite(span, "enum variants are written in braces", format!("{{ {inner} }}"));
        Some(variants)
    }

    /// Reports braces around the payload of a variant, which has been parsed.
    pub(in crate::parser) fn payload_in_braces(&mut self, start: Span) {
        let span = self.since(start);
        let inner = self.text[span.range()].trim_matches(['{', '}']).trim().to_owned();
        let span = Span { start: self.text[..start.start as usize].trim_end().len() as u32, ..span };
        self.report_rewrite(span, "the payload of a variant is written in parentheses", format!("({inner})"));
    }
}
