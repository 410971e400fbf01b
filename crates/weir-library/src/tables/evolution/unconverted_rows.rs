//! Rows that a migration has not converted: their number, and the failures of those that cannot be.

use weir::{Failure, FailureKind, Value};

use super::existing_rows::counted;
use crate::tables::constraint;
use crate::tables::row::fields;
use crate::tables::schema::{Schema, TableMigration};

/// The number of the rows of a migration.
pub(in crate::tables) struct RowsToConvert {
    /// The number of those that are left.
    pub(in crate::tables) left: i64,
    /// The number of those that are converted; `None` if the migration has not begun.
    pub(in crate::tables) converted: Option<i64>,
}

impl RowsToConvert {
    /// Returns how to go on with a table of which only some rows are converted.
    pub(in crate::tables) fn how_to_go_on(&self) -> Option<String> {
        let converted = counted(self.converted?, "row", ("is", "are"));
        Some(format!(
            "{converted} converted, so that no other version starts: start this one again, or with a corrected `fn`, which converts the \
             others; the way back is a backup from before"
        ))
    }
}

/// Returns the failure of the `fn` of a migration for a row of the old record, with the key of the row.
pub(super) fn not_converted(schema: &Schema, row: &Value, mut failure: Failure) -> Failure {
    let Some(migration) = &schema.migration else { return failure };
    let known: Vec<Option<&Value>> = fields(row).iter().map(Some).collect();
    let message = format!("{} cannot be converted: {}", shown_key(schema, migration, &known), failure.message);
    failure.message = message.into();
    failure
}

/// Returns the words for a row of the old record, with those of the columns of its key that can be read.
fn shown_key(schema: &Schema, migration: &TableMigration, row: &[Option<&Value>]) -> String {
    let known = schema.key.iter().filter_map(|at| {
        let name = &schema.columns[*at].name;
        let place = migration.columns.iter().position(|column| column.name == *name)?;
        Some(format!("the {name} {}", constraint::shown(&migration.columns[place], row[place]?)))
    });
    let known: Vec<String> = known.collect();
    if known.is_empty() { "a row".to_owned() } else { format!("the row with {}", known.join(" and ")) }
}

/// Returns the failure of a row of the old record that has no value in the column at this place.
pub(super) fn lacks_value(
    (schema, migration): (&Schema, &TableMigration),
    row: &[Option<Value>],
    at: usize,
) -> Failure {
    let known: Vec<Option<&Value>> = row.iter().map(Option::as_ref).collect();
    let (row, column) = (shown_key(schema, migration, &known), &migration.columns[at]);
    let (kind, name) = (column.shown_type(), &column.name);
    let is_kept = schema.columns.iter().any(|new| new.name == *name);
    let advice = match (column.optional, is_kept) {
        (true, _) => "correct it with `sqlite3` or `psql`".to_owned(),
        (false, false) => format!(
            "if a program has inserted it that did not declare `{name}`, give the old record `{name}: Option({kind})`"
        ),
        (false, true) => format!(
            "if a program has inserted it that did not declare `{name}`, first start a version of the program whose rows have `{name}: \
             Option({kind})`, and then this one, with an old record that has it like that"
        ),
    };
    Failure::function(format!("{row} has no `{kind}` in the column `{name}`, and cannot be converted; {advice}"))
}

/// Returns the failure of rows that were written while they were converted.
pub(super) fn written_meanwhile(schema: &Schema) -> Failure {
    let message = format!("another program has written `{}` while its rows were converted; start again", schema.name);
    Failure::new(FailureKind::Conflict, message)
}
