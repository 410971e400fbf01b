//! Statements that read a table.

use std::sync::Arc;

use weir::Value;

use super::schema::TableSearch;

/// A statement that reads, and owns what it needs.
#[derive(Clone)]
pub(super) enum TableRead {
    /// The row with the key, as an `Option`.
    Row(Value),
    /// The row of each key, as a list of `Option`s, all as they are at one moment.
    Rows(Vec<Value>),
    /// The rows that fulfil the conditions, as a list.
    Search(Arc<TableSearch>),
    /// The number of rows that fulfil the conditions.
    Count(Arc<TableSearch>),
}
