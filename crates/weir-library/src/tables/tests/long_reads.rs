//! Reads that leave the threads of their flows.

use std::sync::Arc;
use std::time::Duration;

use weir::Value;

use super::test_database::TestDatabase;
use super::users;
use crate::tables::program_end::ProgramEnd;
use crate::tables::rows::{ReadSize, TableRows};
use crate::tables::schema::{TableCondition, TableQuery, TableSearch};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::stored::StoredTable;
use crate::tables::storage::TableStorage;

#[test]
fn reads_by_keys_leave_the_threads_of_their_flows_while_the_disk_is_slow() {
    let file = TestDatabase::sqlite("disk-waits");
    let database = Arc::new(Database::open(&file.file(), None, ProgramEnd::default()).unwrap());
    let table = StoredTable::open(users(), Arc::clone(&database)).unwrap();
    assert!(!table.takes_long(ReadSize::Rows(1)));
    let waited = Duration::from_millis(1);
    (0..3).for_each(|_| database.disk_waits.note(waited, || true));
    assert!(table.takes_long(ReadSize::Rows(1)));
    (0..1_000).for_each(|_| database.disk_waits.note(waited, || false));
    assert!(!table.takes_long(ReadSize::Rows(1)));
}

#[test]
fn a_long_search_of_a_table_in_memory_leaves_the_thread_of_its_flow_the_next_time() {
    let table = TableStorage::default().open(users()).unwrap();
    for number in 0..3_000 {
        let row = [Value::text(&format!("{number:04}")), Value::Int(number % 10)];
        table.rows.insert(0, Value::Record(row.into())).unwrap();
    }
    let takes_long = |search: &TableSearch| table.rows.takes_long(ReadSize::Search(&search.query));
    let by = |column: usize| {
        let conditions = vec![TableCondition { column, comparison: "==".to_owned() }];
        let value = if column == 0 { Value::text("0007") } else { Value::Int(7) };
        let arguments = Value::Record([Value::Int(i64::MAX), Value::Unit, value].into());
        TableSearch::new(TableQuery { conditions, order: Vec::new() }, arguments)
    };
    let (by_key, by_place) = (by(0), by(1));
    assert!(!takes_long(&by_key) && !takes_long(&by_place), "nobody knows");
    assert_eq!(table.rows.count(0, &by_key).unwrap(), 1);
    assert_eq!(table.rows.count(0, &by_place).unwrap(), 300);
    assert!(!takes_long(&by_key) && takes_long(&by_place));
}
