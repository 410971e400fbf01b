//! Dialect recovery for lists and maps.

use super::Parser;
use crate::ast::{Expr, ExprKind};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

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
            let advice = "use `list.skip(1).take(2)`, or `text.slice(1, 3)`";
            self.report_with_advice(self.span(), "an index is a single number", advice);
            while !self.at_block_end() {
                self.skip_token();
            }
        }
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
