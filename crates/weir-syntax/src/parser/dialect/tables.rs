//! Dialect recovery for tables and queries, whose clauses have other words and another order in SQL.

use super::{Parser, begins_operand};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// Returns true if `where` comes next with a condition, and reports it as `if`.
    pub(in crate::parser) fn where_word(&mut self) -> bool {
        let behind = |kind: T| begins_operand(kind) || matches!(kind, T::ParenOpen | T::Bang | T::Minus | T::Match);
        let found = self.at_word_before(&["where"], behind);
        if found {
            self.report_substitution(self.span(), "if");
        }
        found
    }

    /// Drops `asc` behind a column of an order.
    pub(in crate::parser) fn direction_word(&mut self) {
        if self.at(T::Word) && ["asc", "ascending"].contains(&self.token_text()) {
            self.report_superfluous(1, "the order is ascending unless `desc` follows");
        }
    }

    /// Drops `desc` before a column of an order.
    pub(in crate::parser) fn direction_before_key(&mut self) {
        if self.at_word_before(&["asc", "ascending", "desc", "descending"], |kind| kind == T::Word) {
            let word = self.token_text().to_owned();
            let advice = match word.starts_with("desc") {
                true => "put `desc` behind the value: `order by row.column desc`",
                false => "remove it: the order is ascending unless `desc` follows",
            };
            self.report_with_advice(self.span(), "the direction of an order comes behind its value", advice);
            self.bump();
        }
    }

    /// Reads `descending` as `desc`.
    pub(in crate::parser) fn descending_word(&mut self) -> bool {
        let found = self.at(T::Word) && self.token_text() == "descending";
        if found {
            self.report_substitution(self.span(), "desc");
            self.bump();
        }
        found
    }

    /// Reports a clause of a query that stands behind a later one.
    pub(in crate::parser) fn misplaced_clause(&mut self, clause: Span) {
        let diagnostic = Diagnostic::new(Code::MisplacedClause, "this clause of the `for` stands too late");
        let order = "write the clauses in this order, each once: `if`, `order by`, `limit`, `after`";
        self.report(diagnostic.at(clause, "misplaced").hint(order));
    }

    /// Reports several columns that are not in parentheses.
    pub(in crate::parser) fn columns_without_parentheses(&mut self, columns: Span) {
        let mended = format!("({})", &self.text[columns.range()]);
        self.report(
            Diagnostic::new(Code::UnexpectedToken, "several columns are written in parentheses")
                .at(columns, "expected one column, or `(` and several")
                .fix(format!("write `{mended}`"), columns, mended),
        );
    }
}
