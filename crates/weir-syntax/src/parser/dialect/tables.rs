//! Dialect recovery for tables and queries, whose clauses have other words and another order in SQL.

use super::{Parser, begins_operand};
use crate::ast::TableClauseKind;
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

/// Words that begin clauses of tables in SQL, also on a line of their own, with advice.
const CLAUSES_OF_SQL: &[(&str, &str)] = &[
    ("check", "no clause tests rows: test the values in the `fn` that writes them"),
    ("foreign", "write `references column: table`"),
    ("indexes", "write `index column`"),
    ("not_null", "leave it out: only a column whose type is an `Option` may lack a value"),
    ("primary", "write `key column`"),
];

/// Words behind a clause of a table which it does not have, with advice.
const WORDS_OF_CLAUSES: &[(&str, &str)] = &[
    ("asc", "leave it out: queries read an index in either direction"),
    ("at_most", "put it into the parentheses of `soft`: `soft(at_most: 1_000)`"),
    ("auto", "write it behind the column of the key: `key id auto`"),
    ("auto_increment", "write `auto` behind the column of the key: `key id auto`"),
    ("autoincrement", "write `auto` behind the column of the key: `key id auto`"),
    ("batched", "write it behind the `fn` of a migration: `migrate Old: converted batched`"),
    ("capacity", "put it into the parentheses of `soft`: `soft(capacity: 64mb)`"),
    ("cascade", "write it behind the table of a reference: `references column: table cascade`"),
    ("desc", "leave it out: queries read an index in either direction"),
    ("not", "leave it out: only a column whose type is an `Option` may lack a value"),
    ("on", "a row that is referenced is not deleted, unless `cascade` follows: `references column: table cascade`"),
    ("ttl", "put it into the parentheses of `soft`: `soft(ttl: 30m)`"),
];

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

    /// Reports a word that begins no clause of a table, and skips it with what belongs to it. Returns false if there is none.
    pub(in crate::parser) fn unknown_table_clause(&mut self) -> bool {
        let word = self.token_text().to_owned();
        let advice_of = |words: &[(&str, &'static str)]| {
            words.iter().find(|(theirs, _)| *theirs == word).map(|(_, advice)| (*advice).to_owned())
        };
        let of_sql = advice_of(CLAUSES_OF_SQL);
        let is_clause = self.at(T::Word) && (of_sql.is_some() || !self.at_new_line());
        if !is_clause || self.reported_at.replace(self.at) == Some(self.at) {
            return false;
        }
        let all = || format!("the clauses are `{}`", TableClauseKind::WORDS.join("`, `"));
        let advice = of_sql.or_else(|| advice_of(WORDS_OF_CLAUSES)).unwrap_or_else(all);
        let message = format!("`{word}` begins no clause of a table");
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, message).at(self.span(), "not a clause");
        self.report(diagnostic.hint(advice));
        self.bump();
        // `primary key` behind the clauses names no column.
        let is_clause = TableClauseKind::WORDS.contains(&self.token_text()) && !self.ends_behind(0);
        if !is_clause {
            self.skip_line();
        }
        true
    }

    /// Reports a comma behind a clause of a table, and skips it.
    pub(in crate::parser) fn comma_behind_clause(&mut self) {
        if !self.at(T::Comma) {
            return;
        }
        let comma = self.span();
        let diagnostic =
            Diagnostic::new(Code::UnexpectedToken, "the clauses of a table are separated by spaces or new lines")
                .at(comma, "no comma stands between them");
        self.report(diagnostic.fix("remove the comma", comma, ""));
        self.bump();
    }

    /// Returns true if another clause follows a comma, or the next line does, and not a further column.
    pub(in crate::parser) fn clause_follows_comma(&self) -> bool {
        let word = self.nth(1);
        let is_word_of_clause = TableClauseKind::WORDS.contains(&self.text_of(word));
        word.first_on_line || (is_word_of_clause && !self.ends_behind(1) && self.nth_kind(2) != T::Comma)
    }

    /// Drops `asc` and `desc` behind a column of an index.
    pub(in crate::parser) fn direction_of_index(&mut self) {
        if self.at(T::Word) && ["asc", "desc"].contains(&self.token_text()) {
            self.report_superfluous(1, "queries read an index in either direction");
        }
    }

    /// Drops the columns behind the table of a reference.
    pub(in crate::parser) fn columns_of_referenced_table(&mut self) {
        if !self.at(T::ParenOpen) || self.at_new_line() {
            return;
        }
        let start = self.span();
        self.delimited(T::ParenOpen, |parser| parser.lower_name("a column"));
        let columns = self.since(start);
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, "a reference names a table without columns")
            .at(columns, "it always holds the key of the row");
        self.report(diagnostic.fix("leave out the columns", columns, ""));
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
