//! Write sets: what the commits of every store tell.

use std::time::Duration;

use weir::Value;

use super::{column, schema, test_database::TestDatabase};
use crate::tables::schema::Schema;
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;
use crate::tables::write_sets::{TableWrite, WriteSet};

fn notes() -> Schema {
    let columns = vec![column("id", "Int", false), column("text", "Text", false), column("done", "Bool", false)];
    Schema { name: "notes".to_owned(), columns, key: vec![0], auto: true, indexes: Vec::new(), ..schema() }
}

fn note(id: i64, text: &str) -> Value {
    Value::Record([Value::Int(id), Value::text(text), Value::Bool(false)].into())
}

fn written(key: &str, columns: &[&str]) -> TableWrite {
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    TableWrite { table: "notes".to_owned(), key: Some(key.to_owned()), columns }
}

#[test]
fn who_begins_to_listen_misses_no_commit_behind_that() {
    for database in
        TestDatabase::each("write_sets_of_several").iter().filter(|of| matches!(of, TestDatabase::Postgres(_)))
    {
        let (writing, listening) = (database.storage(), database.storage());
        let rows = writing.open(notes()).unwrap();
        listening.open(notes()).unwrap();
        // The transaction finds that nobody listens, and is not at its end.
        rows.rows.upsert(7, note(5, "tea")).unwrap();
        let mut sets = std::thread::scope(|scope| {
            let begins = scope.spawn(|| listening.write_sets().unwrap());
            std::thread::sleep(Duration::from_millis(300));
            assert!(!begins.is_finished(), "it listens while a transaction does not know it");
            rows.rows.upsert(7, note(6, "milk")).unwrap();
            rows.rows.commit(7, true).unwrap();
            begins.join().unwrap()
        });
        rows.rows.upsert(0, note(7, "bread")).unwrap();
        let told = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(sets.recv()).unwrap();
        assert_eq!(told, WriteSet::Rows(vec![written("7", &["id", "text", "done"])]));
        weir::Closing::close(&writing).unwrap();
    }
}

#[test]
fn each_commit_tells_its_rows_and_columns() {
    let databases = TestDatabase::each("write_sets_of_one");
    for place in databases.iter().map(TestDatabase::place).chain([TableLocation::Memory]) {
        let storage = TableStorage::at(place.clone());
        let rows = storage.open(notes()).unwrap();
        let rows = &rows.rows;
        rows.insert(0, note(0, "before anybody asks")).unwrap();
        let mut sets = storage.write_sets().unwrap();
        let mut told = || match sets.try_recv() {
            Ok(WriteSet::Rows(writes)) => writes,
            other => panic!("{other:?} in {place:?}"),
        };
        let all = &["id", "text", "done"][..];
        rows.insert(0, note(0, "milk")).unwrap();
        assert_eq!(told(), [written("2", all)]);
        rows.replace(0, &Value::Int(2), note(2, "bread")).unwrap();
        assert_eq!(told(), [written("2", &["text", "done"])]);
        rows.replace_rows(0, &[note(2, "bread")], vec![note(2, "cheese")]).unwrap();
        assert_eq!(told(), [written("2", &["text"])]);
        // A transaction tells everything at its end, and nothing if it is taken back.
        rows.upsert(7, note(5, "tea")).unwrap();
        rows.delete(7, &Value::Int(2)).unwrap();
        rows.roll_back(7);
        rows.upsert(8, note(6, "tea")).unwrap();
        rows.delete(8, &Value::Int(9)).unwrap();
        rows.delete_rows(8, &[note(2, "cheese")]).unwrap();
        rows.commit(8, true).unwrap();
        assert_eq!(told(), [written("6", all), written("2", all)]);
        rows.insert(9, note(6, "a number that is given")).unwrap();
        rows.commit(9, true).unwrap();
        assert_eq!(told().len(), 1);
        assert!(sets.try_recv().is_err(), "nothing else in {place:?}");
        weir::Closing::close(&storage).unwrap();
    }
}
