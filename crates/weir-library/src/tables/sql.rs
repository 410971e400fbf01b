//! Parts of statements in SQL.

use super::schema::{ColumnSchema, Schema};

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

/// Returns the default of a column in SQL.
pub(super) fn literal(column: &ColumnSchema) -> Option<String> {
    let text = column.default.as_ref()?;
    Some(match &*column.kind {
        // A statement ends at its first NUL.
        "Text" if text.contains('\0') => {
            let bytes = list(text.bytes().map(|byte| format!("{byte:02X}")), "");
            format!("(CAST(X'{bytes}' AS TEXT))")
        }
        "Text" | "Enum" => format!("'{}'", text.replace('\'', "''")),
        _ => format!("({text})"),
    })
}
