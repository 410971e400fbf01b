//! Parts of the constants that describe tables and queries.

use weir_host::Value;

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
