//! Unique indexes of other programs for which texts are equal that are different keys of the table.

use weir::{FailureKind, Value};

use super::evolution::user;
use super::{TestDatabase, users};
use crate::tables::rows::TableRows;
use crate::tables::schema::{ExistingTable, Schema};

fn ada(name: &str, place: i64) -> Value {
    user(name, [Value::Int(place)])
}

/// Creates such an index as another program.
fn fold(database: &TestDatabase) {
    let collation = match database {
        TestDatabase::Sqlite(_) => "NOCASE",
        TestDatabase::Postgres(_) => {
            database
                .execute("CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
            "folded"
        }
    };
    database.execute(&format!("CREATE UNIQUE INDEX users_name ON users (name COLLATE {collation})"));
}

fn check(table: &dyn TableRows, database: &TestDatabase) {
    table.insert(0, ada("ada", 1)).unwrap();
    fold(database);
    for failure in [table.upsert(0, ada("Ada", 9)).unwrap_err(), table.insert(0, ada("ADA", 5)).unwrap_err()] {
        assert_eq!(failure.kind, FailureKind::Constraint, "{database:?}: {failure}");
        if matches!(database, TestDatabase::Sqlite(_)) {
            assert_eq!(
                failure.message.as_str(),
                "the database refuses the write of `users`: UNIQUE constraint failed: users.name, by an index for which other values \
                 are equal, such as one with `COLLATE NOCASE`"
            );
        } else {
            assert!(failure.message.contains("`users_name`"), "{failure}");
        }
    }
    for name in ["Ada", "ADA"] {
        assert_eq!(table.get(0, &Value::text(name)).unwrap(), None, "{database:?}");
    }
    assert_eq!(table.get(0, &Value::text("ada")).unwrap(), Some(ada("ada", 1)), "{database:?}");
    table.upsert(0, ada("ada", 2)).unwrap();
    table.replace(0, &Value::text("ada"), ada("ada", 3)).unwrap();
    assert_eq!(table.get(0, &Value::text("ada")).unwrap(), Some(ada("ada", 3)), "{database:?}");
    let taken = table.insert(0, ada("ada", 4)).unwrap_err();
    assert!(taken.message.ends_with("with the name \"ada\" exists already"), "{taken}");
}

#[test]
fn an_upsert_does_not_replace_a_row_that_only_an_index_of_another_program_takes_for_the_same() {
    for database in TestDatabase::each("folding_index") {
        let storage = database.storage();
        let table = storage.open(users()).unwrap();
        check(&*table.rows, &database);
    }
}

#[test]
fn an_index_by_which_texts_are_the_same_key_is_named_by_the_start_of_a_program_that_writes_an_existing_table() {
    let database = TestDatabase::sqlite("folding-existing");
    database.execute("CREATE TABLE users (name TEXT NOT NULL PRIMARY KEY, place INTEGER NOT NULL)");
    let existing = ExistingTable {
        database: database.file().display().to_string(),
        writable: true,
        constraint: "tables.users".to_owned(),
    };
    let schema = Schema { existing: Some(existing), ..users() };
    let storage = database.storage();
    let table = storage.open(schema.clone()).unwrap();
    check(&*table.rows, &database);
    let refused = database.storage().open(schema).map(|_| ()).unwrap_err();
    let why = "its key `name` has the collation `NOCASE` in the unique index `users_name`, by which different texts are the same key, and a \
               program compares them by their bytes: make that without it, or declare another key";
    assert!(refused.message.ends_with(why), "{refused}");
}
