//! Tables, and the clauses of queries.

use super::comments::{CommentedElement, lines, range};
use super::doc::Doc;
use super::parentheses::Tightness;
use super::{SourcePrinter, joined};
use crate::ast::{Name, QueryClauses, QueryOrder, TableClause, TableClauseKind, TableDeclaration};

impl SourcePrinter<'_> {
    /// Prints a table on one line, or each clause on a line of its own.
    pub(super) fn table(&mut self, table: &TableDeclaration) -> Doc {
        let head = Doc::text(format!("table {}: ", table.name)).then(self.ty(&table.row));
        let (Some(first), Some(last)) = (table.clauses.first(), table.clauses.last()) else { return head };
        let place = |clause: &TableClause| range(clause.span);
        let mut cursor = table.row.span.end;
        let behind = self.take_behind(&mut cursor, place(first).start);
        let mut clauses = self.attach_comments(&table.clauses, cursor..last.span.end, place, Self::table_clause);
        clauses.elements.insert(0, CommentedElement { before: Vec::new(), doc: head, behind, blank_before: false });
        lines(clauses, &Doc::line(" ")).nest().group()
    }

    fn table_clause(&mut self, clause: &TableClause) -> Doc {
        let word = clause.kind.word();
        if let TableClauseKind::Migrate { old, change, batched } = &clause.kind {
            let batched = if batched.is_some() { " batched" } else { "" };
            return Doc::text(format!("{word} ")).then(self.ty(old)).then_text(format!(": {change}{batched}"));
        }
        match &clause.kind {
            TableClauseKind::Key { columns, auto } => {
                let auto = if auto.is_some() { " auto" } else { "" };
                Doc::text(format!("{word} {}{auto}", columns_of(columns)))
            }
            TableClauseKind::Index(columns) | TableClauseKind::Unique(columns) => {
                Doc::text(format!("{word} {}", columns_of(columns)))
            }
            TableClauseKind::References { columns, table, cascade } => {
                let cascade = if cascade.is_some() { " cascade" } else { "" };
                Doc::text(format!("{word} {}: {table}{cascade}", columns_of(columns)))
            }
            TableClauseKind::Default(arguments) | TableClauseKind::Existing(arguments) => {
                Doc::text(word).then(self.arguments(arguments, range(clause.span)))
            }
            TableClauseKind::Soft(arguments) if arguments.is_empty() => Doc::text(word),
            TableClauseKind::Migrate { .. } => Doc::text(word),
            TableClauseKind::Soft(arguments) => Doc::text(word).then(self.arguments(arguments, range(clause.span))),
        }
    }

    /// Prints the clauses of a query behind the collection.
    pub(super) fn query_clauses(&mut self, query: &QueryClauses) -> Doc {
        let clause = |word: &str, doc: Doc| Doc::line(" ").then_text(word).then(doc);
        let condition = query.condition.as_ref();
        let condition = condition.map(|condition| clause("if ", self.head(condition)));
        let order = (!query.order.is_empty()).then(|| {
            let keys: Vec<Doc> = query.order.iter().map(|key| self.order_key(key)).collect();
            clause("order by ", joined(keys, &Doc::text(", ")))
        });
        let limit = query.limit.as_ref().map(|limit| clause("limit ", self.head(limit)));
        let after = query.after.as_ref().map(|after| clause("after ", self.head(after)));
        Doc::concat(condition.into_iter().chain(order).chain(limit).chain(after)).nest().group()
    }

    fn order_key(&mut self, key: &QueryOrder) -> Doc {
        let value = self.head_of(&key.value, Tightness::OPERATORS);
        if key.descending { value.then_text(" desc") } else { value }
    }
}

/// Returns the columns of a clause: a single one needs no parentheses.
fn columns_of(columns: &[Name]) -> String {
    match columns {
        [only] => only.to_string(),
        several => format!("({})", several.iter().map(Name::to_string).collect::<Vec<_>>().join(", ")),
    }
}
