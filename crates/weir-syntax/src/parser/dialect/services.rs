//! Dialect recovery for services and routes.

use super::Parser;
use crate::ast::{PathPart, RoutePath};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};
use std::sync::Arc;

impl Parser<'_> {
    /// Reports a service without a transport. Returns true if it is missing; consumes nothing.
    pub(in crate::parser) fn served_on_nothing(&mut self) -> bool {
        let found = matches!(self.peek(), T::BraceOpen | T::ParenOpen) && !self.at_new_line();
        if found {
            let place = self.previous_span().at_end();
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, "missing transport of the service");
            let on = if self.at(T::BraceOpen) { " on http(port: 8080)" } else { " on http" };
            self.report(diagnostic.at(self.visible_span(), "expected `on` before this").fix(
                format!("write `{}`", on.trim_start()),
                place,
                on,
            ));
        }
        found
    }

    /// Consumes the parenthesis of `get("/")`, after its method.
    pub(in crate::parser) fn path_in_parentheses(&mut self) -> Option<Span> {
        self.at(T::ParenOpen).then(|| self.bump())
    }

    /// Skips the rest of a path in parentheses, up to the body.
    pub(in crate::parser) fn end_of_parentheses(&mut self, open: Span, path: &RoutePath) {
        while !matches!(self.peek(), T::ParenClose | T::BraceOpen | T::End) && !self.at_new_line() {
            self.skip_token();
        }
        self.eat(T::ParenClose);
        let span = self.since(open);
        let weir_form = format!(" {}", &self.text[path.span.range()]);
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "the path of a route is written without parentheses");
        let advice = format!("write `get{weir_form} {{ … }}`");
        self.report(diagnostic.at(span, "syntax of another language").fix(advice, span, weir_form));
        if self.at(T::FatArrow) {
            self.bump();
        }
    }

    /// Drops `async` after the head of a route.
    pub(in crate::parser) fn word_before_body(&mut self) {
        if self.at_word_before(&["async"], |kind| matches!(kind, T::BraceOpen | T::ParenOpen)) {
            self.report_superfluous(1, "calls are awaited automatically, and independent ones overlap");
        }
    }

    /// Reports `:id`, `<id>` and `*` in a path.
    pub(in crate::parser) fn dialect_path_parameters(&mut self, path: &RoutePath) {
        let text = &self.text[path.span.range()];
        let literals: Vec<&Arc<str>> = path.parts.iter().filter_map(literal).collect();
        let segments = literals.iter().flat_map(|text| text.split('/')).map(str::to_owned);
        let found = segments.filter_map(|segment| Some((named(&segment)?, segment))).next();
        let Some((name, segment)) = found else { return };
        let Some(at) = text.find(&segment) else { return };
        let start = path.span.start + at as u32;
        let span = Span { start, end: start + segment.len() as u32, ..path.span };
        self.report(
            Diagnostic::new(Code::DialectSyntax, "path parameters are written in braces")
                .at(span, "syntax of another language")
                .fix(
                    format!("write `{{{name}}}`, and declare it after the path: `({name}: Text)`"),
                    span,
                    format!("{{{name}}}"),
                ),
        );
    }
}

fn literal(part: &PathPart) -> Option<&Arc<str>> {
    match part {
        PathPart::Literal(text) => Some(text),
        _ => None,
    }
}

/// Returns the name of a path parameter in the syntax of other frameworks.
fn named(segment: &str) -> Option<String> {
    let inner = segment.strip_prefix(':').or_else(|| segment.strip_prefix('<')?.strip_suffix('>'))?;
    let name = inner.rsplit(':').next().unwrap_or(inner);
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then(|| name.to_owned())
}
