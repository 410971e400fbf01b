//! Dialect recovery for lists and maps.

use super::Parser;
use crate::ast::{Expr, ExprKind};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

/// The beginning of the message about a range that is no pattern.
pub(super) const RANGE: &str = "ranges are allowed only in patterns";

const PART_OF_A_LIST: &str = "use `list.skip(1).take(2)`, or `text.slice(1, 3)`";

impl Parser<'_> {
    /// Reads `[value for x in xs if condition]`, after its value.
    pub(in crate::parser) fn comprehension(&mut self, value: &mut Expr) {
        if !self.at(T::For) || self.at_new_line() {
            return;
        }
        self.bump();
        let pattern = self.pattern();
        self.expect(T::In, "`in`");
        let list = self.nested(Self::operators).unwrap_or_else(|| self.error_expr());
        let condition = self.eat(T::If).map(|_| self.operators());
        let text = |span: Span| &self.text[span.range()];
        let (element, of, made) = (text(pattern.span), text(list.span), text(value.span));
        let weir_form = match condition.map(|condition| text(condition.span)) {
            None => format!("for {element} in {of} {{ {made} }}"),
            Some(when) => {
                format!("fold made = [] for {element} in {of} {{ if {when} {{ made + [{made}] }} else {{ made }} }}")
            }
        };
        let message = "Weir has no list comprehensions; use `for`, or `fold` to filter";
        self.report(
            Diagnostic::new(Code::DialectSyntax, message)
                .at(self.since(value.span), "syntax of another language")
                .hint(format!("write `{weir_form}`, without the brackets")),
        );
        value.kind = ExprKind::Error;
    }

    /// Reads `1:2` as an index, after its beginning.
    pub(in crate::parser) fn part_as_index(&mut self) {
        if self.at(T::Colon) {
            self.report_with_advice(self.span(), "an index is a single number", PART_OF_A_LIST);
            while !self.at_block_end() {
                self.skip_token();
            }
        }
    }

    /// Replaces the report of `1..2` where it is an index.
    pub(in crate::parser) fn range_as_index(&mut self, before: usize) {
        let is_range = self.diagnostics.get(before).is_some_and(|last| last.message.starts_with(RANGE));
        if is_range && let Some(range) = self.diagnostics.get(before).and_then(|last| Some(last.labels.first()?.span)) {
            self.diagnostics.truncate(before);
            self.report_with_advice(range, "an index is a single number", PART_OF_A_LIST);
        }
    }

    /// Reads `..xs` or `...xs` as an element of a list.
    pub(in crate::parser) fn spread_element(&mut self) -> Option<Expr> {
        let start = self.span();
        self.eat(T::DotDot)?;
        let list = self.nested(Self::operators).unwrap_or_else(|| self.error_expr());
        let list = &self.text[list.span.range()];
        let advice = format!("write `{list} + […]` or `[…] + {list}`, with the other elements in the brackets");
        self.report_with_advice(self.since(start), "lists are joined with `+`", &advice);
        Some(self.expr(start, ExprKind::Error))
    }

    /// Consumes the colon behind a key, or the `=>` that stands for it; returns true if there is one.
    pub(in crate::parser) fn at_colon_of_entry(&mut self) -> bool {
        if self.at(T::FatArrow) && !self.at_new_line() {
            self.report_substitution(self.span(), ":");
            return true;
        }
        self.at(T::Colon)
    }

    /// Reads `{ "key": value }`, after its key.
    pub(in crate::parser) fn map_in_braces(&mut self, key: &mut Expr) {
        if !self.at(T::Colon) || self.at_new_line() || !matches!(key.kind, ExprKind::Text(_) | ExprKind::Literal(_)) {
            return;
        }
        self.report_with_advice(self.span(), "maps are written in brackets", "write `[\"key\": value]`");
        key.kind = ExprKind::Error;
        while !self.at_block_end() {
            self.skip_token();
        }
    }
}
