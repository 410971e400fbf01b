//! The rows that the `fn` of a migration has made, and the check of their `unique`s before they are stored.

use std::collections::BTreeMap;

use weir::{Failure, FailureKind, Value};

use crate::tables::constraint::named;
use crate::tables::row::fields;
use crate::tables::schema::Schema;
use crate::tables::sql::list;

/// All rows of a table, before and behind their conversion; none if there was nothing to convert.
#[derive(Debug)]
pub(in crate::tables) struct ConvertedRows {
    pub(in crate::tables) old: Vec<Value>,
    pub(in crate::tables) new: Vec<Value>,
}

/// Fails if two converted rows agree in all columns of a `unique`.
pub(in crate::tables) fn check_unique(schema: &Schema, rows: &[Value]) -> Result<(), Failure> {
    for index in schema.indexes.iter().filter(|index| index.unique) {
        let mut seen: BTreeMap<Vec<&Value>, &[Value]> = BTreeMap::new();
        for row in rows.iter().map(fields).filter(|row| !schema.has_absent(&index.columns, row)) {
            let values = index.columns.iter().map(|at| &row[*at]).collect();
            if let Some(other) = seen.insert(values, row) {
                return Err(equal(schema, &index.columns, [other, row]));
            }
        }
    }
    Ok(())
}

/// Returns the failure of two new rows that agree in all columns of a `unique`.
fn equal(schema: &Schema, columns: &[usize], rows: [&[Value]; 2]) -> Failure {
    let names = list(columns.iter().map(|at| schema.columns[*at].name.clone()), ", ");
    let [first, second] = rows.map(|row| named(schema, &schema.key, row));
    let values = named(schema, columns, rows[0]);
    Failure::new(
        FailureKind::Constraint,
        format!(
            "`unique ({names})` does not hold: the `fn` of `migrate` gives the rows with {first} and with {second} the same values, {values}; \
             correct it"
        ),
    )
}

/// Returns the failure of the last of several transactions that convert rows, if a rule does not hold that the program declares.
pub(super) fn of_batches(failure: Failure) -> Failure {
    if failure.kind != FailureKind::Constraint {
        return failure;
    }
    Failure::function(format!(
        "{failure}. The `fn` of `migrate` has made these values, and a corrected one converts only rows that are not converted yet: start \
         the program without this `unique` or `references`, correct the rows by it, and declare it again; the way back is a backup from before"
    ))
}
