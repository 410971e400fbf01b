//! Parts of the constants that describe tables and queries.

use weir_host::{Text, Type, Value};

/// An aggregate that a table computes for each group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct GroupAggregate {
    /// `count`, `distinct`, `max`, `min` or `sum`, as in `tables.Aggregate`.
    pub(super) kind: &'static str,
    pub(super) column: usize,
}

/// The number of rows, which uses no column.
pub(super) const COUNT: GroupAggregate = GroupAggregate { kind: "count", column: 0 };

/// The aggregates that a name of rows stands for.
#[derive(Debug)]
pub(super) struct GroupedRows {
    pub(super) table: Text,
    pub(super) aggregates: Vec<GroupAggregate>,
    /// The types of their values.
    pub(super) types: Vec<Type>,
}

/// Returns a record, or a tuple, of these parts.
pub(super) fn record<const N: usize>(parts: [Value; N]) -> Value {
    Value::Record(parts.into())
}

/// Returns a list of indices.
pub(super) fn numbers(of: &[usize]) -> Value {
    Value::list(of.iter().map(|at| Value::Int(*at as i64)).collect())
}

/// Returns an `Option`.
pub(super) fn option(value: Option<Value>) -> Value {
    value.map_or_else(Value::none, Value::some)
}
