//! The keys of the rows that a transaction is about to read.

use weir::Value;

use super::row::fields;

/// Maximum number of rows that a transaction asks for beforehand.
pub(super) const EXPECTED_MAX: usize = 1_024;

/// A part of the keys of rows that are read for the elements of a list.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.ExpectedKeyPart")]
pub struct ExpectedKeyPart {
    /// The number of the value outside of the list; `None` if the part belongs to the element.
    pub outside: Option<usize>,
    /// The field of the element, of that field, and so on.
    pub path: Vec<usize>,
}

/// Returns the key for an element.
pub(super) fn key_of(element: &Value, key: &[ExpectedKeyPart], outside: &Value) -> Option<Value> {
    let mut parts = key.iter().map(|part| match part.outside {
        Some(at) => fields(outside).get(at).cloned(),
        None => part.path.iter().try_fold(element.clone(), |of, field| fields(&of).get(*field).cloned()),
    });
    match key.len() {
        1 => parts.next()?,
        _ => parts.collect::<Option<Vec<Value>>>().map(|parts| Value::Record(parts.into())),
    }
}
