//! The place of the last statement on tables, for the failures of the waits behind it.

use weir_host::Text;
use weir_syntax::Span;

use crate::lang_items::TABLES;

/// The functions of the module `tables` that only read.
pub(super) const READS: [&str; 21] = [
    "get",
    "get_to_change",
    "row",
    "get_all",
    "get_each",
    "select",
    "select_to_change",
    "column",
    "joined_table",
    "join",
    "count",
    "sum",
    "average",
    "distinct",
    "group",
    "check_cursor",
    "next_page",
    "whole_sum",
    "whole_average",
    "settle",
    "open",
];

/// The place of the statement that a wait is for, as its failure shows it.
#[derive(Clone, Copy, Default)]
pub(super) struct StatementPlace {
    pub(super) write: Option<Span>,
    pub(super) read: Option<Span>,
}

impl StatementPlace {
    /// Notes a call, if it is a statement on tables. The end of a transaction is one, at the place of the `atomic`.
    pub(super) fn see(&mut self, function: &Text, span: Span) {
        match function.strip_prefix(TABLES).and_then(|rest| rest.strip_prefix('.')) {
            Some("settle" | "begin" | "roll_back") | None => {}
            Some(statement) if READS.contains(&statement) => self.read = Some(span),
            Some(_) => self.write = Some(span),
        }
    }
}
