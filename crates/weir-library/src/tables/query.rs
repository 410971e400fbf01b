//! Descriptions of queries: the conditions that rows must fulfil, and their order.

/// A query.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Query")]
pub struct TableQuery {
    /// The conditions, all of which a row must fulfil.
    pub conditions: Vec<TableCondition>,
    /// The columns by which rows are ordered; the key decides among equal rows.
    pub order: Vec<RowOrder>,
}

/// A comparison of a column with a value.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Condition")]
pub struct TableCondition {
    /// The column.
    pub column: usize,
    /// `==`, `!=`, `<`, `<=`, `>` or `>=`.
    pub comparison: String,
}

/// A column by which rows are ordered.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.RowOrder")]
pub struct RowOrder {
    /// The column.
    pub column: usize,
    /// True if the largest value comes first.
    pub descending: bool,
}

impl TableQuery {
    /// Returns the query for all rows, in the order of their keys.
    pub(super) fn of_all() -> TableQuery {
        TableQuery { conditions: Vec::new(), order: Vec::new() }
    }
}
