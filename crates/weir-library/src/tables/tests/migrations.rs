//! Versions of a program with migrations, which start one after the other and come back: no row is converted twice.

use weir::{Closing, Value};

use super::{TestDatabase, column, declared, everything};
use crate::tables::row::fields;
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};

/// Returns the row of the new type for one of the old type.
pub(super) type Conversion = fn(&[Value]) -> Vec<Value>;

/// A version of a program. Columns are `name: Type`, behind the key `id: Int`.
pub(super) struct Version {
    pub(super) columns: &'static str,
    /// The old columns, and the conversion of a row.
    pub(super) migration: Option<(&'static str, Conversion)>,
}

pub(super) const FIRST: Version = Version { columns: "price: Int", migration: None };
/// Counts cents, and adds the currency.
pub(super) const SECOND: Version =
    Version { columns: "price: Int, currency: Text", migration: Some(("price: Int", in_cents)) };
pub(super) fn in_cents(old: &[Value]) -> Vec<Value> {
    vec![old[0].clone(), number(&old[1], |price| price * 100), Value::text("EUR")]
}

pub(super) fn number(value: &Value, change: impl Fn(i64) -> i64) -> Value {
    if let Value::Int(number) = value { Value::Int(change(*number)) } else { Value::Absent }
}

fn columns(text: &str) -> Vec<ColumnSchema> {
    let column = |text: &str| {
        let (name, kind) = text.split_once(": ").unwrap();
        let held = kind.strip_prefix("Option(").and_then(|kind| kind.strip_suffix(')'));
        column(name, held.unwrap_or(kind), held.is_some())
    };
    std::iter::once("id: Int").chain(text.split(", ")).map(column).collect()
}

impl Version {
    fn schema(&self, batched: bool) -> Schema {
        let migration = self.migration.map(|(old, _)| TableMigration { columns: columns(old), batched });
        Schema { migration, ..declared("items", columns(self.columns)) }
    }

    /// Starts the program, and stores this row if it starts. Returns the rows, or why it does not start.
    pub(super) fn start(
        &self,
        database: &TestDatabase,
        batched: bool,
        row: Option<Vec<Value>>,
    ) -> Result<String, String> {
        let (schema, storage) = (self.schema(batched), database.storage());
        let promised = database.report(&schema).unwrap();
        let opened = (|| {
            while let Some((_, convert)) = self.migration {
                let old = storage.old_rows(&schema)?;
                let new = old.iter().map(|row| Value::Record(convert(fields(row)).into())).collect();
                if !storage.store_converted(&schema, &old, new)? {
                    break;
                }
            }
            storage.open(schema)
        })();
        let opened = opened.map_err(|failure| failure.message.to_string());
        let fails = promised.lines().find_map(|line| line.strip_prefix("  a start fails: "));
        assert_eq!(fails, opened.as_ref().err().map(String::as_str), "{promised}");
        let rows = &opened?.rows;
        if let Some(row) = row {
            rows.insert(0, Value::Record(row.into())).unwrap();
        }
        let rows = rows.select(0, &everything()).unwrap();
        storage.close().unwrap();
        Ok(rows.iter().map(shown).collect::<Vec<_>>().join(", "))
    }

    /// Converts one batch, as a start that is killed then.
    fn convert_batch(&self, database: &TestDatabase) {
        let (schema, storage) = (self.schema(true), database.storage());
        let (_, convert) = self.migration.unwrap();
        let old = storage.old_rows(&schema).unwrap();
        let new = old.iter().map(|row| Value::Record(convert(fields(row)).into())).collect();
        assert!(storage.store_converted(&schema, &old, new).unwrap(), "rows are left");
        storage.close().unwrap();
    }
}

/// Returns the fields of a row: `1 EUR 5`.
fn shown(row: &Value) -> String {
    let field = |value: &Value| match value {
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.as_str().to_owned(),
        Value::Variant(_, Some(held)) => format!("{held:?}"),
        _ => "-".to_owned(),
    };
    fields(row).iter().map(field).collect::<Vec<_>>().join(" ")
}

pub(super) fn row(id: i64, price: i64, currency: Option<&str>) -> Option<Vec<Value>> {
    Some([Value::Int(id), Value::Int(price)].into_iter().chain(currency.map(Value::text)).collect())
}

#[test]
fn the_version_before_a_migration_that_adds_a_column_is_refused_and_no_row_is_converted_twice() {
    for (name, batched) in [("cents", false), ("cents_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            assert_eq!(start(&FIRST, row(1, 5, None)), Ok("1 5".to_owned()));
            assert_eq!(start(&SECOND, row(2, 777, Some("USD"))), Ok("1 500 EUR, 2 777 USD".to_owned()));
            let refused = start(&FIRST, None).unwrap_err();
            assert!(
                refused.contains("has converted the rows to other columns (id: Int, price: Int, currency: Text)"),
                "{refused}"
            );
            assert!(refused.contains("no `currency`; start that version, or restore a backup"), "{refused}");
            // Also one that evolved in another direction.
            let noted = Version { columns: "price: Int, note: Option(Text)", migration: None };
            assert!(start(&noted, None).unwrap_err().contains("no `currency`"));
            assert_eq!(start(&SECOND, None), Ok("1 500 EUR, 2 777 USD".to_owned()));
            // Later versions, with the clause and without it, and the way back from them.
            let later = Version {
                columns: "price: Int, currency: Text, note: Option(Text)",
                migration: Some(("price: Int", in_cents)),
            };
            assert_eq!(start(&later, None), Ok("1 500 EUR -, 2 777 USD -".to_owned()));
            let plain = Version { migration: None, ..SECOND };
            assert_eq!(start(&plain, row(3, 1, Some("GBP"))), Ok("1 500 EUR, 2 777 USD, 3 1 GBP".to_owned()));
        }
    }
}

/// Rows that a program has inserted which did not declare it have no value there.
#[test]
fn an_optional_column_of_the_old_record_has_the_values_of_a_required_one() {
    const WHY: &str = "the row with the id 0 has no `Text` in the column `name`, and cannot be converted; if a program has inserted it that \
                       did not declare `name`, ";
    let named = Version { columns: "name: Text", migration: None };
    let without = Version { columns: "note: Option(Int)", migration: None };
    for (name, batched) in [("optional_old", false), ("optional_old_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            for id in 1..=4 {
                start(&named, Some(vec![Value::Int(id), Value::text("ada")])).unwrap();
            }
            start(&without, Some(vec![Value::Int(0), Value::none()])).unwrap();
            let required = Version { columns: "full: Text", migration: Some(("name: Text", |old| old.to_vec())) };
            let refused = start(&required, None).unwrap_err();
            assert_eq!(refused, format!("{WHY}give the old record `name: Option(Text)`"));
            let full = |old: &[Value]| {
                let name = if old[1] == Value::none() { Value::text("nobody") } else { Value::text("ada") };
                vec![old[0].clone(), name]
            };
            let optional = Version { columns: "full: Text", migration: Some(("name: Option(Text)", full)) };
            let converted = Ok("0 nobody, 1 ada, 2 ada, 3 ada, 4 ada".to_owned());
            assert_eq!(start(&optional, None), converted);
            assert_eq!(start(&optional, None), converted);
            assert!(start(&named, None).unwrap_err().contains("has converted the rows"));
        }
    }
    // One that the program has with another type is a step of its own.
    for database in TestDatabase::each("optional_old_type") {
        let start = |version: &Version, row| version.start(&database, false, row);
        start(&named, Some(vec![Value::Int(1), Value::text("ada")])).unwrap();
        start(&without, Some(vec![Value::Int(0), Value::none()])).unwrap();
        let length = |old: &[Value]| vec![old[0].clone(), Value::Int(3)];
        let required = Version { columns: "name: Int", migration: Some(("name: Text", length)) };
        let refused = start(&required, None).unwrap_err();
        let first = "first start a version of the program whose rows have `name: Option(Text)`, and then this one, with an old record that has \
                     it like that";
        assert_eq!(refused, format!("{WHY}{first}"));
        let between = Version { columns: "name: Option(Text)", migration: None };
        assert_eq!(start(&between, None), Ok("0 -, 1 [ada]".to_owned()));
        let optional = Version { columns: "name: Int", migration: Some(("name: Option(Text)", length)) };
        assert_eq!(start(&optional, None), Ok("0 3, 1 3".to_owned()));
    }
}

#[test]
fn a_migration_behind_another_one_keeps_out_all_versions_before() {
    for database in TestDatabase::each("cents_chain") {
        let start = |version: &Version, row| version.start(&database, false, row);
        let third = Version {
            columns: "price: Int, unit: Text",
            migration: Some(("price: Int, currency: Text", |old| old.to_vec())),
        };
        let fourth = Version { migration: None, ..third };
        assert_eq!(start(&FIRST, row(1, 5, None)), Ok("1 5".to_owned()));
        assert_eq!(start(&SECOND, None), Ok("1 500 EUR".to_owned()));
        for version in [&third, &fourth, &third] {
            assert_eq!(start(version, None), Ok("1 500 EUR".to_owned()));
            for before in [&FIRST, &SECOND] {
                assert!(start(before, None).unwrap_err().contains("no `unit`"));
            }
        }
    }
}

#[test]
fn a_later_version_may_give_up_a_column_that_a_migration_has_added() {
    for database in TestDatabase::each("cents_given_up") {
        let start = |version: &Version, row| version.start(&database, false, row);
        let noted = Version {
            columns: "price: Int, currency: Text, note: Text",
            migration: Some(("price: Int", |old| [&in_cents(old)[..], &[Value::text("new")]].concat())),
        };
        let plain = Version { migration: None, ..SECOND };
        assert_eq!(start(&FIRST, row(1, 5, None)), Ok("1 5".to_owned()));
        assert_eq!(start(&noted, None), Ok("1 500 EUR new".to_owned()));
        assert_eq!(start(&plain, None), Ok("1 500 EUR".to_owned()));
        assert!(start(&FIRST, None).unwrap_err().contains("no `currency`"));
    }
}

#[test]
fn a_migration_leaves_the_values_of_a_column_that_a_version_before_has_given_up() {
    for (name, batched) in [("kept_column", false), ("kept_column_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            let lived = Version { columns: "name: Int, city: Text", migration: None };
            let moved = Version { columns: "name: Int", migration: None };
            let born = Version {
                columns: "city: Text",
                migration: Some(("name: Int", |old| vec![old[0].clone(), Value::text("born")])),
            };
            for id in 1..=4 {
                start(&lived, row(id, 7, Some("London"))).unwrap();
            }
            start(&moved, row(5, 8, None)).unwrap();
            let all = "1 born, 2 born, 3 born, 4 born, 5 born";
            assert_eq!(start(&born, None), Ok(all.to_owned()));
            assert_eq!(start(&Version { migration: None, ..born }, None), Ok(all.to_owned()));
            let both = Version { columns: "city: Text, city as Text: Option(Text)", migration: None };
            let kept = "1 born [London], 2 born [London], 3 born [London], 4 born [London], 5 born -";
            assert_eq!(start(&both, None), Ok(kept.to_owned()));
            // The name is taken.
            let again =
                Version { columns: "name: Int, city: Text", migration: Some(("name: Int", |old| old.to_vec())) };
            let back = Version {
                columns: "name: Int",
                migration: Some(("city: Text", |old| vec![old[0].clone(), Value::Int(9)])),
            };
            assert_eq!(start(&back, None), Ok("1 9, 2 9, 3 9, 4 9, 5 9".to_owned()));
            let refused_again = start(&again, None).unwrap_err();
            assert!(
                refused_again.contains("an earlier migration has left the column `city as Text`"),
                "{refused_again}"
            );
        }
    }
}

#[test]
fn a_column_that_a_migration_has_replaced_is_converted_again_behind_a_program_that_declares_neither() {
    for (name, batched) in [("replaced_twice", false), ("replaced_twice_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            let city = Version { columns: "city: Text, note: Option(Int)", migration: None };
            let keep = |old: &[Value]| vec![old[0].clone(), Value::text("Paris"), Value::none()];
            let place = Version { columns: "place: Text, note: Option(Int)", migration: Some(("city: Text", keep)) };
            let reads = Version { columns: "note: Option(Int)", migration: None };
            let back = Version {
                columns: "city: Text, note: Option(Int)",
                migration: Some(("place: Text", |old| vec![old[0].clone(), old[1].clone(), Value::none()])),
            };
            start(&city, Some(vec![Value::Int(1), Value::text("London"), Value::none()])).unwrap();
            start(&place, Some(vec![Value::Int(2), Value::text("Rome"), Value::none()])).unwrap();
            assert_eq!(start(&reads, None), Ok("1 -, 2 -".to_owned()));
            for version in [&back, &back, &Version { migration: None, ..back }] {
                assert_eq!(start(version, None), Ok("1 Paris -, 2 Rome -".to_owned()));
            }
        }
    }
}

/// The type of a column is old, too, if the database would accept it.
#[test]
fn the_version_before_a_column_became_required_is_refused() {
    for database in TestDatabase::each("required_later") {
        let before = Version { columns: "place: Option(Text)", migration: None };
        let behind = Version {
            columns: "place: Text",
            migration: Some(("place: Option(Text)", |old| vec![old[0].clone(), Value::text("Ulm")])),
        };
        let start = |version: &Version, row| version.start(&database, false, row);
        assert_eq!(start(&before, Some(vec![Value::Int(1), Value::none()])), Ok("1 -".to_owned()));
        assert_eq!(start(&behind, None), Ok("1 Ulm".to_owned()));
        assert!(start(&before, None).unwrap_err().contains("a newer version of the program has converted the rows"));
        assert_eq!(start(&behind, None), Ok("1 Ulm".to_owned()));
    }
}

#[test]
fn a_start_that_lacks_a_value_says_why_its_migration_does_not_give_it() {
    for database in TestDatabase::each("not_converted") {
        let start = |version: &Version, row| version.start(&database, false, row);
        assert_eq!(start(&FIRST, row(1, 5, None)), Ok("1 5".to_owned()));
        // A version was skipped.
        let skipped = Version { columns: "full: Text", migration: Some(("cost: Int", |_| Vec::new())) };
        let refused = start(&skipped, None).unwrap_err();
        assert!(refused.contains("1 row has no value for the column `full`; give it a default"), "{refused}");
        assert!(
            refused.contains(
                "`migrate` converts nothing, because its old record has `cost: Int`, and the database does not"
            ),
            "{refused}"
        );
        assert_eq!(start(&SECOND, None), Ok("1 500 EUR".to_owned()));
        let later = "price: Int, currency: Text, note: Text";
        for old in ["price: Int", "price: Int, note: Int"] {
            let wrong = Version { columns: later, migration: Some((old, |_| Vec::new())) };
            let refused = start(&wrong, None).unwrap_err();
            assert!(refused.contains("1 row has no value for the column `note`; give it a default"), "{refused}");
            assert!(refused.contains("were converted from (id: Int, price: Int) before"), "{refused}");
            assert!(refused.contains("lacks `currency`, which they have since"), "{refused}");
            assert!(refused.contains("the last program declared (id: Int, price: Int, currency: Text)"), "{refused}");
        }
        let right = Version {
            columns: later,
            migration: Some(("price: Int, currency: Text", |old| [old, &[Value::text("new")]].concat())),
        };
        assert_eq!(start(&right, None), Ok("1 500 EUR new".to_owned()));
    }
}

/// The last program may have been a report, or a version to which somebody has gone back.
#[test]
fn rows_are_converted_if_the_database_has_the_old_columns_that_the_last_program_did_not_declare() {
    let lived = Version { columns: "name: Int, city: Text, mail: Text", migration: None };
    let report = Version { columns: "name: Int", migration: None };
    let moved = Version {
        columns: "name: Int, place: Option(Text), mail: Text",
        migration: Some(("name: Int, city: Text, mail: Text", |old| {
            vec![old[0].clone(), old[1].clone(), Value::some(old[2].clone()), old[3].clone()]
        })),
    };
    for (name, batched) in [("undeclared_old", false), ("undeclared_old_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            for id in 1..=4 {
                let row = vec![Value::Int(id), Value::Int(7), Value::text("Ulm"), Value::text("m")];
                start(&lived, Some(row)).unwrap();
            }
            start(&report, Some(vec![Value::Int(0), Value::Int(8)])).unwrap();
            let refused = start(&moved, None).unwrap_err();
            let why = "the row with the id 0 has no `Text` in the column `city`, and cannot be converted; if a program has inserted it";
            assert!(refused.starts_with(why), "{refused}");
            database.execute("DELETE FROM items WHERE id = 0");
            let converted = "1 7 [Ulm] m, 2 7 [Ulm] m, 3 7 [Ulm] m, 4 7 [Ulm] m";
            assert_eq!(start(&moved, None), Ok(converted.to_owned()));
            assert!(start(&lived, None).unwrap_err().contains("has converted the rows"));
            start(&report, None).unwrap();
            assert_eq!(start(&moved, None), Ok(converted.to_owned()));
        }
    }
}

/// The columns of the new record are there, but no program has converted the rows.
#[test]
fn a_start_that_does_not_know_which_columns_have_the_values_is_refused() {
    let removed = |last: &'static str, database: &TestDatabase| {
        let start = |version: &Version, row| version.start(database, false, row);
        let both = Version { columns: "a: Text, b: Option(Text)", migration: None };
        start(&both, Some(vec![Value::Int(1), Value::text("old"), Value::none()])).unwrap();
        start(&Version { columns: "a: Text", migration: None }, None).unwrap();
        start(&Version { columns: last, migration: None }, None).unwrap();
    };
    let into: Conversion = |old| vec![old[0].clone(), Value::some(old[1].clone())];
    let moved = Version { columns: "b: Option(Text)", migration: Some(("a: Text", into)) };
    for database in TestDatabase::each("values_in_either") {
        for last in ["note: Option(Int)", "b: Option(Text)"] {
            removed(last, &database);
            let start = |version: &Version, row| version.start(&database, false, row);
            let refused = start(&moved, None).unwrap_err();
            assert!(
                refused.starts_with(
                    "`migrate` converts nothing, because its old record has `a: Text`, and the last program does not; start a version \
                     that has it before, or, "
                ),
                "{refused}"
            );
            assert!(refused.ends_with("; remove the clause if no rows are to be converted"), "{refused}");
            start(&Version { columns: "a: Text", migration: None }, None).unwrap();
            for _ in 0..2 {
                assert_eq!(start(&moved, None), Ok("1 [old]".to_owned()));
            }
            database.execute("DROP TABLE items");
        }
    }
}

#[test]
fn a_start_that_would_leave_rows_without_the_values_of_its_migration_is_refused() {
    let first = Version { columns: "name: Text, tag: Text", migration: None };
    let second =
        Version { columns: "full: Text, tag: Text", migration: Some(("name: Text, tag: Text", |old| old.to_vec())) };
    let third = Version {
        columns: "first: Option(Text), tag: Text",
        migration: Some(("full: Text", |old| vec![old[0].clone(), Value::some(old[1].clone()), Value::text("-")])),
    };
    for database in TestDatabase::each("skipped_version") {
        let start = |version: &Version, row| version.start(&database, false, row);
        let row = || Some(vec![Value::Int(1), Value::text("ada"), Value::text("a")]);
        // An empty table has nothing to convert, and nobody has converted anything.
        assert_eq!(start(&first, None), Ok(String::new()));
        assert_eq!(start(&third, None), Ok(String::new()));
        let refused = start(&second, None).unwrap_err();
        assert!(
            refused.contains("a newer version of the program declares other columns (id: Int, first: "),
            "{refused}"
        );
        database.execute("DROP TABLE items");
        assert_eq!(start(&first, row()), Ok("1 ada a".to_owned()));
        let refused = start(&third, None).unwrap_err();
        assert!(
            refused.starts_with(
                "`migrate` converts nothing, because its old record has `full: Text`, and the database does not; start a version \
                 that has it before, or, to convert the rows, give `migrate` a record of the columns that the last program declared \
                 (id: Int, name: Text, tag: Text)"
            ),
            "{refused}"
        );
        assert_eq!(start(&first, None), Ok("1 ada a".to_owned()));
        assert_eq!(start(&second, None), Ok("1 ada a".to_owned()));
        assert_eq!(start(&third, None), Ok("1 [ada] -".to_owned()));
    }
}

/// Also one that has the new columns: the rest would be converted over what it writes.
#[test]
fn every_other_program_is_refused_while_a_batched_migration_is_not_done() {
    const COLUMNS: &str = "cents: Option(Int), rate: Option(Int)";
    let first = Version { columns: "price: Int, rate: Option(Int)", migration: None };
    let second = Version {
        columns: COLUMNS,
        migration: Some(("price: Int", |old| {
            vec![old[0].clone(), Value::some(number(&old[1], |price| price * 100)), Value::none()]
        })),
    };
    let without_clause = Version { migration: None, ..second };
    let from_others = Version { columns: COLUMNS, migration: Some(("rate: Option(Int)", |_| Vec::new())) };
    let elsewhere = Version { columns: "cents: Option(Int)", migration: None };
    for database in TestDatabase::each("half_converted") {
        let start = |version: &Version, row| version.start(&database, true, row);
        for id in 1..=4 {
            start(&first, Some(vec![Value::Int(id), Value::Int(id), Value::none()])).unwrap();
        }
        second.convert_batch(&database);
        for version in [&first, &without_clause, &from_others, &elsewhere] {
            let refused = start(version, None).unwrap_err();
            let begun = "a migration to other columns (id: Int, cents: Option(Int), rate: Option(Int)) has begun and is not done; \
                         start the program that has begun it";
            assert!(refused.starts_with(begun), "{refused}");
        }
        let converted = start(&second, None).unwrap();
        assert_eq!(converted, "1 [100] -, 2 [200] -, 3 [300] -, 4 [400] -");
        assert_eq!(start(&without_clause, None), Ok(converted));
    }
}

#[test]
fn a_table_that_was_dropped_within_a_batched_migration_is_created_by_any_program() {
    for database in TestDatabase::each("half_converted_and_dropped") {
        for id in 1..=4 {
            FIRST.start(&database, true, row(id, id, None)).unwrap();
        }
        SECOND.convert_batch(&database);
        assert!(FIRST.start(&database, true, None).unwrap_err().contains("has begun and is not done"));
        database.execute("DROP TABLE items");
        assert_eq!(FIRST.start(&database, true, row(1, 7, None)), Ok("1 7".to_owned()));
        assert_eq!(SECOND.start(&database, true, None), Ok("1 700 EUR".to_owned()));
    }
}
