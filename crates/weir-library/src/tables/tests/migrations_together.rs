//! Tables whose rows are converted by one start: all of them, or none.

use weir::{Closing, Failure, HostType, Starting, Value};

use super::{TestDatabase, column, declared, everything, reference};
use crate::tables::row::fields;
use crate::tables::schema::{ColumnSchema, IndexSchema, Schema, TableMigration};
use crate::tables::storage::TableStorage;

fn columns(name: &str, kind: &str, optional: bool) -> Vec<ColumnSchema> {
    vec![column("id", "Int", false), column(name, kind, optional)]
}

fn migrated(table: &str, old: Vec<ColumnSchema>, new: Vec<ColumnSchema>) -> Schema {
    Schema { migration: Some(TableMigration { columns: old, batched: false }), ..declared(table, new) }
}

fn row(id: i64, value: Value) -> Value {
    Value::Record([Value::Int(id), value].into())
}

/// Starts a program with these tables, and stores these rows.
fn filled(database: &TestDatabase, tables: &[(&Schema, &[Value])]) {
    let storage = database.storage();
    for (schema, rows) in tables {
        let table = storage.prepare((*schema).clone()).unwrap();
        storage.complete_start().unwrap();
        rows.iter().for_each(|row| _ = table.rows.insert(0, row.clone()).unwrap());
    }
    storage.close().unwrap();
}

/// Converts the rows of a table in a start, and opens it.
fn convert(
    storage: &TableStorage,
    schema: &Schema,
    convert: impl Fn(&[Value]) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    let old = storage.old_rows(schema)?;
    let new = old.iter().map(|row| convert(fields(row))).collect::<Result<_, _>>()?;
    assert!(!storage.store_converted(schema, &old, new)?);
    storage.prepare(schema.clone()).map(|_| ())
}

fn rows(database: &TestDatabase, schema: &Schema) -> Vec<Value> {
    let storage = database.storage();
    let rows = storage.open(schema.clone()).unwrap().rows.select(0, &everything()).unwrap();
    storage.close().unwrap();
    rows
}

#[test]
fn a_failure_in_one_table_leaves_the_rows_of_those_before_as_they_are() {
    let (old_a, old_b) = (declared("aa", columns("x", "Int", false)), declared("bb", columns("y", "Text", false)));
    let new_a = migrated("aa", old_a.columns.clone(), columns("x2", "Int", false));
    let unique = vec![IndexSchema { columns: vec![1], unique: true }];
    let new_b = Schema { indexes: unique, ..migrated("bb", old_b.columns.clone(), columns("y2", "Int", false)) };
    for database in TestDatabase::each("two_migrations") {
        let of_a = [row(1, Value::Int(5))];
        let of_b = [row(1, Value::text("7")), row(2, Value::text("seven"))];
        filled(&database, &[(&old_a, &of_a), (&old_b, &of_b)]);
        let a = |old: &[Value]| Ok(row(1, old[1].clone()));
        // The `fn` fails.
        let storage = database.storage();
        convert(&storage, &new_a, a).unwrap();
        let refused = convert(&storage, &new_b, |_| Err(Failure::function("not yet"))).unwrap_err();
        assert_eq!(refused.message.as_str(), "not yet");
        drop(storage);
        assert_eq!((rows(&database, &old_a), rows(&database, &old_b)), (of_a.to_vec(), of_b.to_vec()));
        // It changes a key.
        let storage = database.storage();
        convert(&storage, &new_a, |old| Ok(row(2, old[1].clone()))).unwrap();
        let (_, refused) = storage.complete_start().unwrap_err();
        let wanted =
            "the row with the id 1 cannot be converted: the `fn` of `migrate` changes the key, which a migration keeps";
        assert_eq!(refused.message.as_str(), wanted);
        drop(storage);
        // What it makes breaks a rule.
        let storage = database.storage();
        convert(&storage, &new_a, a).unwrap();
        let same = |old: &[Value]| Ok(Value::Record([old[0].clone(), Value::Int(3)].into()));
        let refused = convert(&storage, &new_b, same).unwrap_err();
        assert_eq!(
            refused.message.as_str(),
            "`unique (y2)` does not hold: the `fn` of `migrate` gives the rows with the id 1 and with the id 2 the same values, the y2 3; \
             correct it"
        );
        drop(storage);
        assert_eq!((rows(&database, &old_a), rows(&database, &old_b)), (of_a.to_vec(), of_b.to_vec()));
        // A start that succeeds.
        let storage = database.storage();
        convert(&storage, &new_a, a).unwrap();
        convert(&storage, &new_b, |old| Ok(Value::Record([old[0].clone(), old[0].clone()].into()))).unwrap();
        storage.complete_start().unwrap();
        storage.close().unwrap();
        drop(storage);
        let of_b: Vec<Value> = [1, 2].map(|id| row(id, Value::Int(id))).into();
        assert_eq!((rows(&database, &new_a), rows(&database, &new_b)), (of_a.to_vec(), of_b));
    }
}

/// The column that it is about has other values before, or none.
#[test]
fn a_reference_by_a_column_whose_type_a_migration_changes_is_checked_behind_it() {
    let reference = reference("parts", &[(1, "owner", true)], ("owners", "id"), false);
    let old_owners = declared("owners", columns("note", "Text", true));
    let old = declared("parts", columns("owner", "Text", false));
    let owners = Schema { referenced_by: vec![reference.clone()], ..old_owners.clone() };
    let migrated = migrated("parts", old.columns.clone(), columns("owner", "Int", true));
    let new = Schema { references: vec![reference], ..migrated };
    for database in TestDatabase::each("migrated_reference") {
        let parts = [row(1, Value::text("1")), row(2, Value::text(""))];
        filled(&database, &[(&old_owners, &[row(1, Value::none())]), (&old, &parts)]);
        let reported = database.report_all(&[owners.clone(), new.clone()]);
        assert!(!reported.contains("a start fails"), "{reported}");
        let start = |of_second: Value| {
            let storage = database.storage();
            storage.prepare(owners.clone()).unwrap();
            convert(&storage, &new, |old| {
                let owner = if old[1] == Value::text("1") { Value::some(Value::Int(1)) } else { of_second.clone() };
                Ok(Value::Record([old[0].clone(), owner].into()))
            })
            .unwrap();
            let started = storage.complete_start();
            storage.close().unwrap();
            started
        };
        let (table, refused) = start(Value::some(Value::Int(9))).unwrap_err();
        assert_eq!(table.as_str(), "parts");
        assert!(
            refused.message.contains(
                "`references owner: owners` of `parts` does not hold: 1 row names no row of `owners`, such as 9; the `fn` of `migrate` makes \
                 these values: correct it"
            ),
            "{refused}"
        );
        start(Value::none()).unwrap();
        let wanted = vec![row(1, Value::some(Value::Int(1))), row(2, Value::none())];
        assert_eq!(rows(&database, &new), wanted);
    }
}

/// Rows that are converted in batches stay so if the start fails.
#[test]
fn a_start_checks_all_tables_before_rows_are_converted_in_batches() {
    let (old_a, old_b) = (declared("aa", columns("x", "Int", false)), declared("bb", columns("y", "Int", false)));
    let migration = Some(TableMigration { columns: old_a.columns.clone(), batched: true });
    let new_a = Schema { migration, ..declared("aa", columns("x2", "Int", false)) };
    let unique = Schema { indexes: vec![IndexSchema { columns: vec![1], unique: true }], ..old_b.clone() };
    let other_type = declared("bb", columns("y", "Text", false));
    let mut required = old_b.clone();
    required.columns.push(column("z", "Int", false));
    for database in TestDatabase::each("batches_behind_checks") {
        let of_a: Vec<Value> = (1..=7).map(|id| row(id, Value::Int(5))).collect();
        let of_b = [row(1, Value::Int(7)), row(2, Value::Int(7))];
        filled(&database, &[(&old_a, &of_a), (&old_b, &of_b)]);
        let check = |b: &Schema| {
            let storage = database.storage();
            let checked = storage.check_start(&[new_a.clone().into_value().unwrap(), b.clone().into_value().unwrap()]);
            storage.close().unwrap();
            checked.map_err(|(table, failure)| (table.as_str().to_owned(), failure.message.to_string()))
        };
        for (b, why) in [
            (&unique, "`unique (y)` does not hold"),
            (&other_type, "the column `y` is `Int` in the database"),
            (&required, "2 rows have no value for the column `z`"),
        ] {
            let (table, refused) = check(b).unwrap_err();
            assert!(table == "bb" && refused.starts_with(why), "{table}: {refused}");
        }
        assert_eq!(check(&old_b), Ok(()));
        assert_eq!(rows(&database, &old_a), of_a);
    }
}

/// A start that follows would take it for one that holds.
#[test]
fn a_reference_of_before_is_checked_with_the_values_of_several_batches() {
    let reference = reference("parts", &[(1, "owner", false)], ("owners", "id"), false);
    let owners = Schema { referenced_by: vec![reference.clone()], ..declared("owners", columns("note", "Text", true)) };
    let mut of_old = columns("owner", "Int", false);
    of_old.push(column("size", "Int", false));
    let old = Schema { references: vec![reference.clone()], ..declared("parts", of_old.clone()) };
    let migration = Some(TableMigration { columns: of_old, batched: true });
    let new = Schema { migration, references: vec![reference], ..declared("parts", columns("owner", "Int", false)) };
    for database in TestDatabase::each("batches_break_reference") {
        let part = |id| Value::Record([Value::Int(id), Value::Int(1), Value::Int(id)].into());
        let parts: Vec<Value> = (1..=4).map(part).collect();
        filled(&database, &[(&owners, &[row(1, Value::none())]), (&old, &parts)]);
        for _ in 0..2 {
            let storage = database.storage();
            storage.prepare(owners.clone()).unwrap();
            let refused = loop {
                let old = storage.old_rows(&new).unwrap();
                let into =
                    old.iter().map(|old| row(if let Value::Int(id) = fields(old)[0] { id } else { 0 }, Value::Int(9)));
                match storage.store_converted(&new, &old, into.collect()) {
                    Ok(more) => assert!(more, "it starts"),
                    Err(refused) => break refused,
                }
            };
            let wanted =
                "`references owner: owners` of `parts` does not hold: 4 rows name no row of `owners`, such as 9";
            assert!(refused.message.contains(wanted), "{refused}");
            assert!(refused.message.contains("start the program without this `unique` or `references`"), "{refused}");
            storage.close().unwrap();
        }
    }
}

/// The rows before are converted already.
#[test]
fn values_of_several_batches_that_break_a_rule_say_how_to_go_on() {
    let old = declared("items", columns("x", "Int", false));
    let migration = Some(TableMigration { columns: old.columns.clone(), batched: true });
    let without = Schema { migration, ..declared("items", columns("x2", "Int", false)) };
    let unique = vec![IndexSchema { columns: vec![1], unique: true }];
    let new = Schema { indexes: unique, ..without.clone() };
    for database in TestDatabase::each("batches_break_rule") {
        let of_old: Vec<Value> = (1..=4).map(|id| row(id, Value::Int(id % 3))).collect();
        filled(&database, &[(&old, &of_old)]);
        let start = |schema: &Schema| {
            let storage = database.storage();
            loop {
                let old = storage.old_rows(schema)?;
                if !storage.store_converted(schema, &old, old.clone())? {
                    return storage.open(schema.clone()).map(|_| ());
                }
            }
        };
        for _ in 0..2 {
            let refused = start(&new).unwrap_err();
            assert!(refused.message.contains("1 value occurs in more than one row, such as 1"), "{refused}");
            assert!(refused.message.contains("start the program without this `unique`"), "{refused}");
        }
        start(&without).unwrap();
        database.execute("UPDATE items SET x2 = 7 WHERE id = 4");
        start(&new).unwrap();
    }
}
