//! Tables that number their rows, beside other programs.

use std::sync::Arc;

use test_support::postgres::PostgresServer;
use weir::{FailureKind, Value};

use super::{TestDatabase, column, declared};
use crate::tables::open_table::OpenTable;
use crate::tables::schema::Schema;
use crate::tables::storage::TableStorage;

fn items() -> Schema {
    Schema { auto: true, ..declared("items", vec![column("id", "Int", false), column("count", "Int", false)]) }
}

fn open(name: &str) -> (TestDatabase, TableStorage, Arc<OpenTable>) {
    let database = TestDatabase::sqlite(name);
    let storage = database.storage();
    let table = storage.open(items()).unwrap();
    (database, storage, table)
}

fn insert(table: &OpenTable) -> Result<Value, weir::Failure> {
    insert_in(0, table)
}

fn insert_in(transaction: i64, table: &OpenTable) -> Result<Value, weir::Failure> {
    table.rows.insert(transaction, Value::Record([Value::Int(0), Value::Int(1)].into()))
}

fn settle(storage: &TableStorage) -> Result<(), weir::Failure> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true))
}

/// As the documentation of SQLite says for a change that `ALTER TABLE` does not make.
#[test]
fn a_table_that_another_program_has_made_anew_numbers_its_rows_however_it_writes_the_word() {
    let (database, storage, table) = open("made-anew");
    assert_eq!(insert(&table), Ok(Value::Int(1)));
    weir::Closing::close(&storage).unwrap();
    drop((table, storage));
    database.execute(
        "CREATE TABLE others (id integer primary key autoincrement, count integer not null) strict;
         INSERT INTO others SELECT id, count FROM items; DROP TABLE items; ALTER TABLE others RENAME TO items",
    );
    let table = database.storage().open(items()).unwrap();
    assert_eq!(insert(&table), Ok(Value::Int(2)));
}

#[test]
fn the_last_number_that_another_program_has_given_is_told_like_that_of_the_program() {
    let (database, storage, table) = open("used-up");
    assert_eq!(insert(&table), Ok(Value::Int(1)));
    settle(&storage).unwrap();
    database.execute("INSERT INTO items VALUES (9223372036854775807, 1)");
    for _ in 0..2 {
        let failure = insert(&table).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Constraint);
        assert_eq!(failure.message.as_str(), "`items` has used all numbers for its rows");
    }
    let row = Value::Record([Value::Int(1), Value::Int(2)].into());
    table.rows.upsert(0, row.clone()).unwrap();
    settle(&storage).unwrap();
    assert_eq!(table.rows.get(0, &Value::Int(1)).unwrap(), Some(row));
}

#[test]
fn a_row_that_a_trigger_takes_away_has_no_number() {
    let (database, _storage, table) = open("taken-away");
    database.execute("CREATE TRIGGER away BEFORE INSERT ON items BEGIN SELECT RAISE(IGNORE); END");
    let failure = insert(&table).unwrap_err();
    assert_eq!(
        failure.message.as_str(),
        "the database has not written a row of `items`: a trigger or rule of the database has kept it out"
    );
}

#[test]
fn a_transaction_whose_number_another_program_takes_is_executed_again() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("taken_numbers");
    let storage = TestDatabase::Postgres("taken_numbers".to_owned()).storage();
    let table = storage.open(items()).unwrap();
    let (repeated, last) = (2, 3);
    for (transaction, first) in [(repeated, 1), (last, 3)] {
        assert_eq!(insert_in(transaction, &table), Ok(Value::Int(first)));
        server.execute("taken_numbers", &format!("INSERT INTO items VALUES ({}, 1)", first + 1));
        let failure = insert_in(transaction, &table).unwrap_err();
        assert_eq!(failure.is_refusal(), transaction == repeated, "{failure}");
        assert_eq!(failure.message.as_str(), format!("a row of `items` with the id {} exists already", first + 1));
        assert_eq!(table.rows.commit(transaction, true).is_err(), transaction == repeated);
    }
    assert_eq!(insert_in(5, &table), Ok(Value::Int(5)));
}
