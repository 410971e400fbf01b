//! Statements that read a table.

use std::sync::Arc;

use weir::{Failure, Value};

use super::grouping::TableGrouping;
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

/// A table as it was at one moment, from which any thread reads once.
pub(super) trait TableSnapshot: Send {
    /// Returns what a statement reads.
    fn read(self: Box<Self>, read: &TableRead) -> Result<Value, Failure>;
    /// Returns the sum of a column of whole numbers.
    fn sum(self: Box<Self>, search: &TableSearch, column: usize) -> Result<i128, Failure>;
    /// Returns the groups of the rows that the search accepts.
    fn group(self: Box<Self>, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure>;
}
