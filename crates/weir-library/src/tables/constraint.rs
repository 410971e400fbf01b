//! Failures of statements that would break a rule of the table.

use weir::{Failure, FailureKind, Value};

use super::dialect::{Dialect, OWN_INDEXES};
use super::schema::{ColumnSchema, Schema, TableReference};
use super::sql::{list, quoted};

/// Returns the failure of a row whose values in these columns another row has.
pub(super) fn taken(schema: &Schema, columns: &[usize], row: &[Value]) -> Failure {
    broken(format!("a row of `{}` with {} exists already", schema.name, named(schema, columns, row)))
}

/// Returns the failure of a row whose values in these columns another row has, by a unique index that the program does not declare: it
/// belongs to another version of the program, which is running or was when this one started, or no program of Weir has made it.
pub(super) fn taken_in_undeclared(schema: &Schema, (index, columns): (&str, &[&str]), row: &[Value]) -> Failure {
    let place = |name: &&str| schema.columns.iter().position(|column| column.name == **name);
    let places: Option<Vec<usize>> = columns.iter().map(place).collect();
    let names = columns.join(", ");
    let which = places.map_or_else(|| format!("the same ({names})"), |places| named(schema, &places, row));
    let why = if index.starts_with(OWN_INDEXES) {
        format!(
            "another version of the program declares `unique ({names})`, which holds for all versions while that one runs; if it has \
             ended, start this one again, which drops it"
        )
    } else if schema.existing.is_some() {
        format!("its unique index `{index}` allows only one")
    } else {
        format!(
            "the unique index `{index}` of the database, which no program of Weir has made, allows only one: drop it with `psql`, or \
             declare `unique ({names})`"
        )
    };
    broken(format!("a row of `{}` with {which} exists already, and {why}", schema.name))
}

/// Returns the names and values of these columns of a row: `the owner "ada" and the state Open`.
pub(super) fn named(schema: &Schema, columns: &[usize], row: &[Value]) -> String {
    let named = columns.iter().map(|at| {
        let column = &schema.columns[*at];
        format!("the {} {}", column.name, shown(column, &row[*at]))
    });
    list(named, " and ")
}

/// Returns the failure of a row that references a row which does not exist.
pub(super) fn no_referenced_row(schema: &Schema, reference: &TableReference, row: &[Value]) -> Failure {
    let values = named(schema, &reference.columns, row);
    broken(format!(
        "a row of `{}` cannot reference `{}` by {values}: there is no such row",
        schema.name, reference.target
    ))
}

/// Returns the failure of a deletion of a row that a row references. `schema` is that of the latter.
pub(super) fn referenced(schema: &Schema, reference: &TableReference, row: &[Value]) -> Failure {
    let (key, values) = (named(schema, &schema.key, row), named(schema, &reference.columns, row));
    broken(format!(
        "the row of `{}` cannot be deleted: a row of `{}` with {key} references it by {values}",
        reference.target, schema.name
    ))
}

/// Returns the failure of a row that has no value of a column's type in the database. `known` are the values that it has.
pub(super) fn unreadable(schema: &Schema, known: Vec<Option<Value>>, dialect: Dialect) -> Failure {
    let column = known.iter().position(Option::is_none).map_or(&schema.columns[0], |at| &schema.columns[at]);
    let has_key = schema.key.iter().all(|at| known[*at].is_some());
    let values: Vec<Value> = known.into_iter().map(|value| value.unwrap_or(Value::Absent)).collect();
    let key = named(schema, &schema.key, &values);
    let which = if has_key { format!("the row with {key}") } else { "a row".to_owned() };
    unreadable_value(schema, (&which, column), dialect)
}

/// Returns the failure of a group, or a sum, of values of a column of which one has another type in the database.
pub(super) fn unreadable_in_group(schema: &Schema, column: usize, dialect: Dialect) -> Failure {
    unreadable_value(schema, ("a row", &schema.columns[column]), dialect)
}

fn unreadable_value(schema: &Schema, (row, column): (&str, &ColumnSchema), dialect: Dialect) -> Failure {
    Failure::function(format!(
        "{row} in the table `{}` of the database has a value of the column `{}` that is no `{}`; correct it with `{}`",
        schema.name,
        column.name,
        column.shown_type(),
        dialect.shell()
    ))
}

/// Returns the failure of a write that breaks a rule of another program, which the database names.
pub(super) fn refused(schema: &Schema, why: &str) -> Failure {
    broken(format!("the database refuses the write of `{}`: {why}", schema.name))
}

/// Returns the failure of an update whose row is there no longer.
pub(super) fn not_replaced(schema: &Schema, row: &[Value]) -> Failure {
    let row = format!("the row of `{}` with {}", schema.name, named(schema, &schema.key, row));
    let own = format!("{row} cannot be updated: what writes the new row has deleted it before");
    broken(match (&schema.existing, &schema.soft) {
        (Some(_), _) => format!(
            "the database has not updated {row}: it is gone, or a policy, trigger or rule of the database has kept it"
        ),
        (None, Some(_)) => own,
        (None, None) => format!(
            "{own}, or a foreign key of the database has. Or a policy, trigger or rule of the database has kept it"
        ),
    })
}

/// Returns the failure of a deletion that deletes rows together, because of their references, of which the database has kept one.
pub(super) fn not_deleted(schema: &Schema, row: &[Value]) -> Failure {
    let key = named(schema, &schema.key, row);
    broken(format!(
        "the database has not deleted the row of `{}` with {key}: a policy, trigger or rule of the database has kept it, and rows that \
         reference each other are deleted together or not at all",
        schema.name
    ))
}

/// Returns the failure of an insertion that the database has left out.
pub(super) fn not_inserted(schema: &Schema, row: &[Value]) -> Failure {
    let key = named(schema, &schema.key, row);
    broken(format!(
        "the database has not written the row of `{}` with {key}: a trigger or rule of the database has kept it out",
        schema.name
    ))
}

/// Returns the failure of an insertion that a trigger of SQLite has left out, into a table that numbers its rows.
pub(super) fn not_numbered(schema: &Schema) -> Failure {
    broken(format!(
        "the database has not written a row of `{}`: a trigger or rule of the database has kept it out",
        schema.name
    ))
}

/// Returns the same failure of a database that does not tell whether a number is left.
pub(super) fn kept_out(schema: &Schema) -> Failure {
    broken(format!(
        "the database has not written a row of `{}`: a trigger or rule of the database has kept it out, or all numbers are used",
        schema.name
    ))
}

/// Returns the failure of insertions that were executed together, of which the database has left out some.
pub(super) fn some_kept_out(schema: &Schema, (inserted, of): (u64, usize)) -> Failure {
    broken(format!(
        "the database has written only {inserted} of {of} rows of `{}` that were inserted together, of which this is one: a trigger or \
         rule of the database has kept the others out",
        schema.name
    ))
}

/// Returns the failure of an update of the row with this key that would give it the key of a new row.
pub(super) fn changed_key(schema: &Schema, key: &Value, new: &[Value]) -> Failure {
    let mut old = new.to_vec();
    match (&schema.key[..], key) {
        ([only], key) => old[*only] = key.clone(),
        (several, Value::Record(values)) => {
            several.iter().zip(values.iter()).for_each(|(at, value)| old[*at] = value.clone());
        }
        _ => {}
    }
    let (table, [old, new]) = (&schema.name, [&old, new].map(|row| named(schema, &schema.key, row)));
    broken(format!(
        "an update of `{table}` cannot change the key of a row, from {old} to {new}: delete the row and insert the new one, in one \
         `atomic {table}`"
    ))
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
    broken(format!("`{}` of `{}` is a size of 2^63 - 1 bytes or more", schema.columns[column].name, schema.name))
}

/// Returns the failure of a row that takes more bytes than the whole table may.
pub(super) fn larger_than_table(schema: &Schema, bytes: u64, capacity: u64) -> Failure {
    let (row, capacity) = (Value::Size(bytes), Value::Size(capacity));
    broken(format!("a row of {row} is larger than `{}`, whose capacity is {capacity}", schema.name))
}

/// Returns the failure of a row that takes more bytes than a row of SQLite may.
pub(super) fn longer_than_a_row(schema: &Schema, (database, bytes): (&str, &str)) -> Failure {
    broken(format!(
        "a row of `{}` has more than {bytes} bytes, or a value of it: {database} takes no longer ones",
        schema.name
    ))
}

/// Returns the failure of a table whose numbers are used up.
pub(super) fn no_number_left(schema: &Schema) -> Failure {
    broken(format!("`{}` has used all numbers for its rows", schema.name))
}

/// Returns the failure of an insertion into an existing table of PostgreSQL, to whose row the database has given the number of another row:
/// rows were inserted with numbers of their own, as by the copy of a table.
pub(super) fn number_taken(schema: &Schema, number: &str) -> Failure {
    let (table, key) = (&schema.name, &schema.columns[schema.key[0]].name);
    let (table_text, key_text) = (Dialect::Postgres.text(&quoted(table)), Dialect::Postgres.text(key));
    broken(format!(
        "the database has given a new row of `{table}` the {key} {number}, which another row has: its sequence is behind the rows; SELECT \
         setval(pg_get_serial_sequence({table_text}, {key_text}), (SELECT max({}) FROM {})) sets it to the greatest number",
        quoted(key),
        quoted(table)
    ))
}

/// Returns the failure of a table to whose row the database has given no number.
pub(super) fn no_number_given(schema: &Schema) -> Failure {
    let failure = no_number_left(schema);
    let table = Dialect::Postgres.text(&schema.name);
    broken(format!(
        "{}, or a trigger or rule of the database has kept the row out, or the row of the table in `weir_numbers` is missing: INSERT INTO \
         \"weir_numbers\" VALUES ({table}, 0) ON CONFLICT DO NOTHING gives it one, and the next number is greater than those of all rows",
        failure.message
    ))
}

/// Maximum number of characters of a text in a message; they usually suffice to find the value.
const TEXT_SHOWN_MAX: usize = 100;

/// Returns a value as programs write it, for a message: of a long one, the beginning.
pub(super) fn shown(column: &ColumnSchema, value: &Value) -> String {
    written(column, value, |text| match text.char_indices().nth(TEXT_SHOWN_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    })
}

/// Returns a value as programs write it, with all of its text.
pub(super) fn whole(column: &ColumnSchema, value: &Value) -> String {
    written(column, value, |text| format!("{text:?}"))
}

fn written(column: &ColumnSchema, value: &Value, quoted: impl Fn(&str) -> String) -> String {
    match value {
        Value::Variant(Value::SOME, Some(held)) if column.optional => {
            held.first().map_or_else(String::new, |held| held_value(column, held, quoted))
        }
        Value::Variant(Value::NONE, None) if column.optional => "None".to_owned(),
        other => held_value(column, other, quoted),
    }
}

/// Returns a value that is present. Bytes, which have no literal, have hexadecimal digits.
fn held_value(column: &ColumnSchema, value: &Value, quoted: impl Fn(&str) -> String) -> String {
    /// Bytes that are shown; they usually suffice to find the value.
    const BYTES_SHOWN_MAX: usize = 16;
    match value {
        Value::Text(text) => quoted(text.as_str()),
        Value::Variant(tag, None) => column.variants.get(*tag as usize).cloned().unwrap_or_default(),
        Value::Bytes(bytes) => {
            let digits = list(bytes.iter().take(BYTES_SHOWN_MAX).map(|byte| format!("{byte:02x}")), "");
            let rest =
                if bytes.len() > BYTES_SHOWN_MAX { format!("… ({} bytes)", bytes.len()) } else { String::new() };
            format!("0x{digits}{rest}")
        }
        other => other.to_string(),
    }
}

fn broken(message: String) -> Failure {
    Failure::new(FailureKind::Constraint, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::tests::{column, declared};

    #[test]
    fn a_unique_of_another_version_is_kept_while_that_one_runs() {
        let users = declared("users", vec![column("id", "Int", false), column("place", "Text", false)]);
        let of_other = ("weir unique users (place)", &["place"][..]);
        let refused = taken_in_undeclared(&users, of_other, &[Value::Int(1), Value::text("Ulm")]);
        assert_eq!(
            refused.message.as_str(),
            "a row of `users` with the place \"Ulm\" exists already, and another version of the program declares `unique (place)`, which \
             holds for all versions while that one runs; if it has ended, start this one again, which drops it"
        );
    }

    #[test]
    fn a_message_has_the_beginning_of_a_long_value() {
        let columns = vec![column("name", "Text", false), column("mail", "Text", true)];
        let schema = Schema { key: vec![0], ..declared("users", columns) };
        let (long, beginning) = ("€".repeat(1_000_000), "€".repeat(TEXT_SHOWN_MAX));
        let row = [Value::text(&long), Value::some(Value::text(&long))];
        let expected =
            format!("a row of `users` with the name \"{beginning}…\" and the mail \"{beginning}…\" exists already");
        assert_eq!(taken(&schema, &[0, 1], &row).message.as_str(), expected);
        assert_eq!(shown(&schema.columns[0], &Value::text(&beginning)), format!("{beginning:?}"));
        assert_eq!(whole(&schema.columns[0], &Value::text(&long)).len(), long.len() + 2);
    }
}
