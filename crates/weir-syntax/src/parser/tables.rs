//! Tables, and the clauses of queries.

use super::{BraceRole, Parser};
use crate::ast::{Name, QueryClauses, QueryOrder, TableClause, TableClauseKind, TableDeclaration};
use crate::token::TokenKind as T;

impl Parser<'_> {
    pub(super) fn at_table(&self) -> bool {
        self.at_pair("table", T::Word)
    }

    /// `table name : type clause*`; a clause may begin a line.
    pub(super) fn table(&mut self) -> TableDeclaration {
        self.bump();
        let name = self.lower_name("the name of a table");
        self.expect(T::Colon, "`:` and the type of the rows");
        let row = self.ty();
        let mut clauses = Vec::new();
        while let Some(clause) = self.table_clause() {
            clauses.push(clause);
        }
        TableDeclaration { name, row, clauses }
    }

    /// `key columns [auto]? | [index | unique] columns | references columns : path [cascade]? | [default | soft | existing] arguments
    /// | migrate type : name [batched]?`
    fn table_clause(&mut self) -> Option<TableClause> {
        let start = self.span();
        let word = self.token_text();
        if !self.at(T::Word) || !TableClauseKind::WORDS.contains(&word) {
            return None;
        }
        self.bump();
        let kind = match word {
            "key" => TableClauseKind::Key { columns: self.columns(), auto: self.eat_word("auto") },
            "index" => TableClauseKind::Index(self.columns()),
            "unique" => TableClauseKind::Unique(self.columns()),
            "references" => {
                let columns = self.columns();
                self.expect(T::Colon, "`:` and the table whose rows the columns name");
                let table = self.path("the name of a table");
                TableClauseKind::References { columns, table, cascade: self.eat_word("cascade") }
            }
            "migrate" => {
                let old = self.ty();
                self.expect(T::Colon, "`:` and the `fn` that converts a row");
                let change = self.lower_name("the name of a `fn`");
                TableClauseKind::Migrate { old, change, batched: self.eat_word("batched") }
            }
            "default" => TableClauseKind::Default(self.arguments()),
            "existing" => TableClauseKind::Existing(self.arguments()),
            _ => TableClauseKind::Soft(self.arguments()),
        };
        Some(TableClause { kind, span: self.since(start) })
    }

    /// `name | ( name,* )`
    fn columns(&mut self) -> Vec<Name> {
        if self.at(T::ParenOpen) {
            return self.delimited(T::ParenOpen, |parser| parser.lower_name("a column"));
        }
        vec![self.lower_name("a column")]
    }

    /// `[if head]? [order by order_key,+]? [limit head]? [after head]?`
    pub(super) fn query_clauses(&mut self) -> QueryClauses {
        let condition = self.eat(T::If).map(|_| self.head());
        let mut order = Vec::new();
        if self.at_pair("order", T::Word) && self.text_of(self.nth(1)) == "by" {
            self.bump();
            self.bump();
            order.push(self.order_key());
            while self.eat(T::Comma).is_some() {
                order.push(self.order_key());
            }
        }
        let limit = self.eat_word("limit").map(|_| self.head());
        let after = self.eat_word("after").map(|_| self.head());
        QueryClauses { condition, order, limit, after }
    }

    /// `operators [asc | desc]?`
    fn order_key(&mut self) -> QueryOrder {
        let ignored = self.line_ends_ignored;
        let value = self.within_mode(BraceRole::Body, ignored, Self::operators);
        let descending = self.eat_word("desc").is_some();
        QueryOrder { value, descending }
    }
}
