//! Dialect recovery for types.

use super::Parser;
use crate::ast::{Name, Parameter, Path, Type, TypeKind};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};
use std::sync::Arc;

/// Words before a parameter that Weir does not need.
const PARAMETER_WORDS: &[&str] = &["const", "final", "let", "mut", "val", "var"];

/// Lower-case types of other languages; they tell `int x` from `x int`.
const LOWER_TYPES: &[&str] =
    &["bool", "boolean", "bytes", "char", "double", "float", "int", "long", "number", "str", "string", "usize"];

/// Names of the absent value in a union.
const NOTHING: &[&str] = &["()", "None", "nil", "null", "undefined", "Null", "Nothing", "Unit"];

/// Returns a type as a name, for a variant that holds it.
fn plain(ty: &str) -> String {
    ty.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

impl Parser<'_> {
    /// Parses a return type after `->`, or after another symbol or none, which is reported.
    pub(in crate::parser) fn result_type(&mut self) -> Option<Type> {
        if self.eat(T::Arrow).is_some() {
            let ty = self.ty();
            return Some(self.union(ty));
        }
        match self.peek() {
            T::Colon if self.nth(1).first_on_line => {
                let sign = self.span();
                self.report_with_advice(
                    sign,
                    "a body is written in braces",
                    "put `{` here, and `}` after its last line",
                );
                self.skip_to_item();
                self.reported_at = Some(self.at);
                return None;
            }
            T::Colon | T::FatArrow => {
                let sign = self.span();
                let dialect_form = self.token_text();
                let weir_form = if self.at(T::Colon) { " ->" } else { "->" };
                self.report(
                    Diagnostic::new(Code::DialectSyntax, "the return type follows `->`")
                        .at(sign, format!("found `{dialect_form}`"))
                        .fix("write `->`", sign, weir_form),
                );
                self.bump();
            }
            T::Word if !self.token().first_on_line => {
                let place = self.span();
                self.report(
                    Diagnostic::new(Code::DialectSyntax, "the return type follows `->`")
                        .at(place, "expected `->` before this type")
                        .fix("write `->` before it", place.at_start(), "-> "),
                );
            }
            _ => return None,
        }
        Some(self.ty())
    }

    /// Reads `| type` after a type, where no closure parameters can end.
    pub(in crate::parser) fn union(&mut self, first: Type) -> Type {
        if !self.at(T::Bar) || self.at_new_line() {
            return first;
        }
        let mut texts = vec![&self.text[first.span.range()]];
        while !self.at_new_line() && self.eat(T::Bar).is_some() {
            let next = self.ty();
            texts.push(&self.text[next.span.range()]);
        }
        let span = self.since(first.span);
        let some: Vec<&str> = texts.into_iter().filter(|text| !NOTHING.contains(text)).collect();
        match some[..] {
            [some] => self.report_rewrite(span, "an optional value has the type `Option`", format!("Option({some})")),
            _ => self.report_with_advice(
                span,
                "Weir has no union types",
                &format!(
                    "declare an `enum` and `match` it: `enum Either {{ {} }}`",
                    some.iter().map(|ty| format!("A{}({ty})", plain(ty))).collect::<Vec<_>>().join(", ")
                ),
            ),
        }
        Type { kind: TypeKind::Error, span }
    }

    /// Reads `< name,* >` after the name of a `fn`.
    pub(in crate::parser) fn type_parameters(&mut self) {
        if !self.at(T::Less) {
            return;
        }
        let start = self.span();
        while !self.at(T::Greater) && !self.at(T::ParenOpen) && !self.ends_behind(0) {
            self.bump();
        }
        self.eat(T::Greater);
        let span = self.since(start);
        self.report_with_advice(
            span,
            "a `fn` has no list of type parameters",
            "remove this: a type in lower case stands for any type, as in `fn first_of(items: List(a), other: a) -> a`",
        );
    }

    /// Drops `mut` and similar words before a parameter.
    pub(in crate::parser) fn parameter_words(&mut self) {
        if self.at_word_before(PARAMETER_WORDS, |kind| kind == T::Word) && self.nth_kind(2) == T::Colon {
            self.report_superfluous(1, "values never change");
        }
    }

    /// Reads `type name` or `name type` without a colon.
    pub(in crate::parser) fn parameter_without_colon(&mut self) -> Option<Parameter> {
        let follows = matches!(self.nth_kind(2), T::Comma | T::ParenClose | T::Equal | T::ParenOpen);
        if !(self.at(T::Word) && self.nth_kind(1) == T::Word && follows) {
            return None;
        }
        let start = self.span();
        let upper = self.token_text().starts_with(char::is_uppercase);
        let type_first = upper || LOWER_TYPES.contains(&self.token_text());
        let (name, ty) = match type_first {
            true => {
                let ty = self.ty();
                (self.lower_name("a parameter name"), ty)
            }
            false => (self.lower_name("a parameter name"), self.ty()),
        };
        let span = self.since(start);
        let weir_form = format!("{name}: {}", &self.text[ty.span.range()]);
        self.report_rewrite(span, "a parameter is written as name, colon and type", weir_form);
        let default = self.eat(T::Equal).map(|_| self.expression());
        Some(Parameter { name, ty, default, span: self.since(start) })
    }

    /// Reads `[type]` and `[]type`.
    pub(in crate::parser) fn type_in_brackets(&mut self) -> TypeKind {
        let start = self.span();
        let mut elements = self.delimited(T::BracketOpen, Self::ty);
        let element = match elements.len() {
            0 if !self.at_new_line() && self.at(T::Word) => self.ty(),
            1 => elements.remove(0),
            _ => {
                self.unexpected("a type");
                return TypeKind::Error;
            }
        };
        self.wrapped(start, "List", element)
    }

    /// Reads `[]` or `?` after a type.
    pub(in crate::parser) fn type_suffix(&mut self, start: Span, kind: TypeKind) -> TypeKind {
        let touches = self.previous_span().end == self.span().start && !self.at_new_line();
        let wrapper = match self.peek() {
            T::Question if touches => "Option",
            T::BracketOpen if touches && self.nth_kind(1) == T::BracketClose => "List",
            _ => return kind,
        };
        let inner = Type { kind, span: self.since(start) };
        self.bump();
        if wrapper == "List" {
            self.bump();
        }
        self.wrapped(start, wrapper, inner)
    }

    /// Reports another form of `List(…)` or `Option(…)` from `start` to here, and returns the Weir form.
    fn wrapped(&mut self, start: Span, wrapper: &str, inner: Type) -> TypeKind {
        let span = self.since(start);
        self.report_substitution(span, &format!("{wrapper}({})", &self.text[inner.span.range()]));
        let name = Name { text: Arc::from(wrapper), span };
        TypeKind::Named { path: Path { names: vec![name], span }, arguments: vec![inner] }
    }

    /// Reads `< type,* >` or `[ type,* ]` after the name of a type.
    pub(in crate::parser) fn types_in_angles(&mut self, path: &Path) -> Vec<Type> {
        let close = if self.at(T::BracketOpen) { T::BracketClose } else { T::Greater };
        self.bump();
        let mut arguments = Vec::new();
        while !self.at(close) && (close == T::BracketClose || !self.ends_behind(0)) {
            arguments.push(self.ty());
            if self.eat(T::Comma).is_none() {
                break;
            }
        }
        self.eat(close);
        let span = self.since(path.span);
        let texts: Vec<&str> = arguments.iter().map(|ty| &self.text[ty.span.range()]).collect();
        self.report_substitution(span, &format!("{path}({})", texts.join(", ")));
        arguments
    }
}
