//! Tables of the program in PostgreSQL to which somebody has added triggers, by which the database keeps or changes rows.

use std::thread;

use test_support::postgres::PostgresServer;
use weir::{Failure, FailureKind, Value};

use super::test_database::wait_for;
use super::without_threads::{WAITING, answers, hold, queue, release};
use super::{TestDatabase, column, declared, everything, reference};
use crate::tables::open_table::OpenTable;
use crate::tables::postgres::PostgresAddress;
use crate::tables::row::fields;
use crate::tables::rows::RowChange;
use crate::tables::schema::{IndexSchema, Schema};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;

/// Adds a trigger to a table that runs before its rows are written.
fn trigger(table: &str, when: &str, body: &str) -> String {
    let name = format!("{table}_{}", when.split(' ').next().unwrap_or_default());
    format!(
        "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;
         CREATE TRIGGER {name} BEFORE {when} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    )
}

/// Keeps the second row as it is, and adds 100 to the place of others.
fn seats_are_changed() -> String {
    let body = "IF new.id = 2 THEN RETURN NULL; END IF; new.place = new.place + 100; RETURN new;";
    trigger("seats", "INSERT OR UPDATE", body)
}

/// Keeps the third row.
fn seats_stay() -> String {
    trigger("seats", "DELETE", "IF old.id = 3 THEN RETURN NULL; END IF; RETURN old;")
}

/// Places that no two rows share, and numbers of rows that may go along with others.
fn seats() -> Schema {
    let columns = vec![column("id", "Int", false), column("place", "Int", false), column("beside", "Int", true)];
    Schema { indexes: vec![IndexSchema { columns: vec![1], unique: true }], ..declared("seats", columns) }
}

fn seat(id: i64, place: i64) -> Value {
    Value::Record([Value::Int(id), Value::Int(place), Value::none()].into())
}

fn filled(storage: &TableStorage) -> std::sync::Arc<OpenTable> {
    let table = storage.open(seats()).unwrap();
    (1..=4).for_each(|id| _ = table.rows.insert(0, seat(id, id)).unwrap());
    table
}

fn rows(table: &OpenTable) -> Vec<(i64, i64)> {
    let number = |value: &Value| if let Value::Int(number) = value { *number } else { panic!("{value}") };
    let rows = table.rows.select(0, &everything()).unwrap();
    rows.iter().map(|row| (number(&fields(row)[0]), number(&fields(row)[1]))).collect()
}

fn message<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    let failure = answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Constraint);
    failure.message.to_string()
}

/// The rows are deleted and inserted, because unique values move. Nobody has told the program of the trigger.
#[test]
fn rows_between_which_a_unique_value_moves_are_all_there_if_the_database_keeps_one() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("moved_and_kept");
    let storage = TestDatabase::Postgres("moved_and_kept".to_owned()).storage();
    let table = filled(&storage);
    server.execute("moved_and_kept", &seats_are_changed());
    let (before, old) = (rows(&table), table.rows.select(0, &everything()).unwrap());
    let turned = || (1..=4).map(|id| seat(id, 5 - id)).collect::<Vec<_>>();
    let kept_out = "the database has not written the row of `seats` with the id 2: a trigger or rule of the database has kept it out";
    assert_eq!(message(table.rows.replace_rows(0, &old, turned())), kept_out);
    assert_eq!(rows(&table), before);
    let transaction = storage.next_transaction();
    assert_eq!(message(table.rows.replace_rows(transaction, &old, turned())), kept_out);
    table.rows.insert(transaction, seat(5, 5)).unwrap();
    table.rows.commit(transaction, true).unwrap();
    assert_eq!(rows(&table), [before, vec![(5, 105)]].concat());
    server.execute("moved_and_kept", &seats_stay());
    let gone = |id: i64| {
        format!(
            "the row of `seats` with the id {id} cannot be updated: what writes the new row has deleted it before, or a foreign key of the database has. Or a policy, trigger or rule of the database has kept it"
        )
    };
    assert_eq!(message(table.rows.replace_rows(0, &old, turned())), gone(3));
    server.execute(
        "moved_and_kept",
        "DROP FUNCTION seats_DELETE, seats_INSERT CASCADE; UPDATE seats SET beside = 1 WHERE id = 4;
         ALTER TABLE seats ADD FOREIGN KEY (beside) REFERENCES seats ON DELETE CASCADE",
    );
    assert_eq!(message(table.rows.replace_rows(0, &old, turned())), gone(4));
    assert_eq!(rows(&table).len(), 5);
}

/// Checks the answers of a table whose triggers the program knows.
fn answers_are_those_of_the_database(storage: &TableStorage) {
    let table = storage.table("seats").unwrap();
    for transaction in [0, storage.next_transaction()] {
        let place = if transaction == 0 { 11 } else { 12 };
        let updated = table.rows.replace(transaction, &Value::Int(1), seat(1, place));
        assert_eq!(updated, Ok(seat(1, place + 100)), "in {transaction}");
        let kept = message(table.rows.replace(transaction, &Value::Int(2), seat(2, 12)));
        assert!(kept.ends_with("a policy, trigger or rule of the database has kept it"), "{kept}");
        assert_eq!(table.rows.delete(transaction, &Value::Int(3)), Ok(false));
    }
    let queued = |change: RowChange| answers(vec![queue(&table, &change)]).remove(0);
    assert_eq!(queued(RowChange::Replace(Value::Int(1), seat(1, 20))), Ok(seat(1, 120)));
    assert_eq!(queued(RowChange::Delete(Value::Int(3))), Ok(Value::Bool(false)));
    assert!(queued(RowChange::Upsert(seat(2, 30))).is_err());
    assert_eq!(rows(&table)[1..3], [(2, 2), (3, 3)]);
    assert_eq!(table.rows.delete_all(0, &everything()), Ok(3));
    assert_eq!(rows(&table), [(3, 3)]);
}

#[test]
fn a_start_notices_triggers_and_answers_what_the_database_has_stored() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("noticed_triggers");
    let database = TestDatabase::Postgres("noticed_triggers".to_owned());
    drop(filled(&database.storage()));
    server.execute("noticed_triggers", &[seats_are_changed(), seats_stay()].join(";"));
    let storage = database.storage();
    storage.open(seats()).unwrap();
    answers_are_those_of_the_database(&storage);
    // PostgreSQL does not return the rows that a rule may keep.
    server.execute("noticed_triggers", "CREATE RULE kept AS ON UPDATE TO seats WHERE new.id = 3 DO INSTEAD NOTHING");
    let table = database.storage().open(seats()).unwrap();
    assert!(message(table.rows.replace(0, &Value::Int(3), seat(3, 4))).ends_with("rule of the database has kept it"));
    table.rows.insert(0, seat(4, 4)).unwrap();
    assert!(table.rows.replace(0, &Value::Int(4), seat(4, 5)).is_ok());
    assert_eq!(rows(&table), [(3, 3), (4, 105)]);
    let refused = table.rows.upsert(0, seat(4, 6)).expect_err("a rule rewrites it");
    assert_eq!(refused.kind, FailureKind::Function);
    let advice = "PostgreSQL does not execute this one then: write a trigger instead of the rule";
    assert!(refused.message.ends_with(advice), "{refused}");
}

#[test]
fn a_program_that_joins_again_notices_triggers() {
    let Some(server) = PostgresServer::start() else { return };
    let address = PostgresAddress::parse(&server.schema("joined"), None).unwrap();
    let storage = TableStorage::at(TableLocation::Postgres(address));
    let table = filled(&storage);
    let declaring =
        || server.execute("joined", "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1466263924");
    server.execute("joined", &[seats_are_changed(), seats_stay()].join(";"));
    assert_eq!(table.rows.replace(0, &Value::Int(1), seat(1, 7)), Ok(seat(1, 7)), "it is not noticed yet");
    let before = declaring();
    server.cut();
    while [&before, ""].contains(&&*declaring()) {
        thread::yield_now();
    }
    drop(storage.postgres().hold_writer());
    answers_are_those_of_the_database(&storage);
}

/// The answer to a statement for several rows does not tell which ones the database has kept out.
#[test]
fn rows_that_are_inserted_together_are_answered_one_by_one_if_the_database_may_keep_some_out() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("kept_out");
    let database = TestDatabase::Postgres("kept_out".to_owned());
    let columns = vec![column("id", "Int", false), column("place", "Int", false)];
    let notes = || Schema { auto: true, ..declared("notes", columns.clone()) };
    drop(database.storage().open(notes()).unwrap());
    let odd = "IF new.place % 2 = 0 THEN RETURN NULL; END IF; RETURN new;";
    for is_known in [false, true] {
        let storage = database.storage();
        let table = storage.open(notes()).unwrap();
        if !is_known {
            server.execute("kept_out", &trigger("notes", "INSERT", odd));
        }
        for round in 0..2 {
            server.execute("kept_out", "DELETE FROM notes");
            let row = |place| RowChange::Insert(Value::Record([Value::Int(0), Value::Int(place)].into()));
            let held = hold(server, "kept_out");
            let mut changes = vec![queue(&table, &row(1))];
            wait_for(server, "kept_out", WAITING, "1");
            changes.extend((2..=9).map(|place| queue(&table, &row(place))));
            release(server, "kept_out");
            held.join().unwrap();
            let answered = answers(changes);
            let stored = "SELECT count(*), count(DISTINCT place) FROM notes";
            assert_eq!(server.execute("kept_out", stored).trim(), "5|5", "each is written once");
            let is_kept_out = |answer: &Result<Value, Failure>| match answer {
                Ok(_) => false,
                Err(failure) => failure.message.contains("a trigger or rule of the database has kept"),
            };
            let kept_out: Vec<bool> = answered.iter().map(is_kept_out).collect();
            let expected = |place| if is_known || round > 0 { place % 2 == 0 } else { place > 1 };
            assert_eq!(kept_out, (1..=9).map(expected).collect::<Vec<_>>(), "{answered:?}");
        }
    }
}

/// The rows of a table of seats, some of which go along with others.
#[test]
fn rows_that_reference_each_other_are_deleted_together_or_not_at_all() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("kept_references");
    let beside = reference("seats", &[(2, "beside", true)], ("seats", "id"), true);
    let index = IndexSchema { columns: vec![2], unique: false };
    let schema =
        Schema { references: vec![beside.clone()], referenced_by: vec![beside], indexes: vec![index], ..seats() };
    let database = TestDatabase::Postgres("kept_references".to_owned());
    for is_known in [false, true] {
        let storage = database.storage();
        let table = storage.open(schema.clone()).unwrap();
        let row = |id: i64, beside: Option<i64>| {
            let beside = beside.map_or_else(Value::none, |id| Value::some(Value::Int(id)));
            Value::Record([Value::Int(id), Value::Int(id), beside].into())
        };
        for (id, beside) in [(1, None), (2, Some(1)), (3, None), (4, Some(3)), (5, None)] {
            table.rows.upsert(0, row(id, beside)).unwrap();
        }
        if !is_known {
            server.execute(
                "kept_references",
                &trigger("seats", "DELETE", "IF old.id IN (3, 5) THEN RETURN NULL; END IF; RETURN old;"),
            );
        }
        let delete = |transaction, id| table.delete(&storage, transaction, &Value::Int(id));
        assert_eq!(delete(0, 5), Ok(false));
        let kept = "the database has not deleted the row of `seats` with the id 3: a policy, trigger or rule of the database has kept it, \
            and rows that reference each other are deleted together or not at all";
        assert_eq!(message(delete(0, 3)), kept);
        let ids = || rows(&table).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(ids(), [1, 2, 3, 4, 5]);
        if is_known {
            let transaction = storage.next_transaction();
            assert_eq!(message(delete(transaction, 3)), kept);
            assert_eq!(delete(transaction, 2), Ok(true));
            table.rows.commit(transaction, true).unwrap();
            assert_eq!(ids(), [1, 3, 4, 5]);
        }
        // Others go along with neither of them.
        let of = |ids: [i64; 2]| ids.into_iter().map(|id| row(id, None)).collect();
        assert_eq!(table.delete_rows(&storage, 0, of([4, 5])), Ok(1));
    }
}
