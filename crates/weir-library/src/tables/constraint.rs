//! Failures of statements that would break a rule of the table.

use weir::{Failure, FailureKind, Value};

use super::schema::Schema;

/// Returns the failure of a row whose values in these columns another row has.
pub(super) fn taken(schema: &Schema, columns: &[usize], row: &[Value]) -> Failure {
    let named: Vec<String> = columns.iter().map(|at| shown(&schema.columns[*at].name, &row[*at])).collect();
    broken(format!("a row of `{}` with {} exists already", schema.name, named.join(" and ")))
}

/// Returns the failure of an update that would change the key.
pub(super) fn changed_key(schema: &Schema) -> Failure {
    broken(format!("an update of `{}` cannot change the key: delete the row, and insert another one", schema.name))
}

/// Returns the failure of a value that cannot be stored.
pub(super) fn not_a_number(schema: &Schema, column: usize) -> Failure {
    broken(format!(
        "`{}` of `{}` is not a number (NaN), which cannot be stored",
        schema.columns[column].name, schema.name
    ))
}

/// Returns the failure of a size that the database cannot store.
pub(super) fn too_large(schema: &Schema, column: usize) -> Failure {
    broken(format!("`{}` of `{}` is a size of 2^63 bytes or more", schema.columns[column].name, schema.name))
}

/// Returns the failure of a table whose numbers are used up.
pub(super) fn no_number_left(schema: &Schema) -> Failure {
    broken(format!("`{}` has used all numbers for its rows", schema.name))
}

fn shown(column: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => format!("the {column} {:?}", text.as_str()),
        other => format!("the {column} {other}"),
    }
}

fn broken(message: String) -> Failure {
    Failure::new(FailureKind::Constraint, message)
}
