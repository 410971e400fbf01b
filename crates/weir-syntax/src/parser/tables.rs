//! Tables, and the clauses of queries.

use super::{BraceRole, Parser};
use crate::ast::{Name, QueryClauses, QueryOrder, TableClause, TableClauseKind, TableDeclaration};
use crate::token::TokenKind as T;

/// The clauses of a query, in their order.
#[derive(Clone, Copy)]
enum Clause {
    Condition = 1,
    Order,
    Limit,
    After,
}

impl Parser<'_> {
    pub(super) fn at_table(&self) -> bool {
        self.at_named("table")
    }

    /// `table name : type clause*`; a clause may begin a line.
    pub(super) fn table(&mut self) -> TableDeclaration {
        self.bump();
        let name = self.lower_name("the name of a table");
        self.expect(T::Colon, "`:` and the type of the rows");
        let row = self.ty();
        let mut clauses = Vec::new();
        loop {
            match self.table_clause() {
                Some(clause) => {
                    clauses.push(clause);
                    self.comma_behind_clause();
                }
                None if self.unknown_table_clause() => {}
                None => break,
            }
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
                self.columns_of_referenced_table();
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
            return self.delimited(T::ParenOpen, |parser| {
                let column = parser.lower_name("a column");
                parser.direction_of_index();
                column
            });
        }
        let start = self.span();
        let mut columns = vec![self.lower_name("a column")];
        while self.at(T::Comma) && self.nth_kind(1) == T::Word && !self.clause_follows_comma() {
            self.bump();
            columns.push(self.lower_name("a column"));
        }
        if columns.len() > 1 {
            self.columns_without_parentheses(self.since(start));
        }
        columns
    }

    /// `[if head]? [order by order_key,+]? [limit head]? [after head]?`
    pub(super) fn query_clauses(&mut self) -> QueryClauses {
        let mut clauses = QueryClauses { condition: None, order: Vec::new(), limit: None, after: None };
        let mut last = 0;
        while let Some(clause) = self.query_clause() {
            let (place, start) = (clause as u32, self.span());
            match clause {
                Clause::Condition => {
                    self.bump();
                    let start = self.span();
                    let condition = self.head();
                    clauses.condition = Some(self.equals_in_condition(start, condition));
                }
                Clause::Order => {
                    self.bump();
                    self.bump();
                    clauses.order.push(self.order_key());
                    while self.eat(T::Comma).is_some() {
                        clauses.order.push(self.order_key());
                    }
                }
                Clause::Limit => {
                    self.bump();
                    clauses.limit = Some(self.head());
                }
                Clause::After => {
                    self.bump();
                    clauses.after = Some(self.head());
                }
            }
            if place <= last {
                self.misplaced_clause(self.since(start));
            }
            last = last.max(place);
        }
        clauses
    }

    /// Returns the clause that begins here.
    fn query_clause(&mut self) -> Option<Clause> {
        let is_pair = |parser: &Self, word: &str| parser.text_of(parser.nth(1)) == word;
        match self.token_text() {
            _ if self.at(T::If) || self.where_word() => Some(Clause::Condition),
            "order" if self.at_pair("order", T::Word) && is_pair(self, "by") => Some(Clause::Order),
            "limit" if self.at(T::Word) => Some(Clause::Limit),
            "after" if self.at(T::Word) => Some(Clause::After),
            _ => None,
        }
    }

    /// `operators [asc | desc]?`
    fn order_key(&mut self) -> QueryOrder {
        let ignored = self.line_ends_ignored;
        self.direction_before_key();
        let value = self.within_mode(BraceRole::Body, ignored, Self::operators);
        self.direction_word();
        let descending = self.eat_word("desc").is_some() || self.descending_word();
        QueryOrder { value, descending }
    }
}
