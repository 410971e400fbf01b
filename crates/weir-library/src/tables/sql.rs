//! Parts of statements in SQL.

use super::schema::Schema;

/// Returns the name of a column in SQL.
pub(super) fn name(schema: &Schema, column: usize) -> String {
    quoted(&schema.columns[column].name)
}

/// Returns a name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) fn list(parts: impl Iterator<Item = String>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}
