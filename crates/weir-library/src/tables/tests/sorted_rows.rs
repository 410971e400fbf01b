//! Queries for which SQLite sorts long rows.

use std::sync::Arc;

use test_support::is_run_alone;
use weir::{FailureKind, Value, memory};

use super::test_database::TestDatabase;
use super::{column, declared};
use crate::tables::grouping::TableGrouping;
use crate::tables::program_end::ProgramEnd;
use crate::tables::rows::{ReadSize, TableRows};
use crate::tables::schema::{TableQuery, TableSearch};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::stored::StoredTable;

const ROW_BYTES: usize = 1_000_000;
const ROWS: i64 = 40;
/// The bytes that the flow may hold beside what it has: less than SQLite needs to sort the rows, and more than it needs for one.
const ROOM: u64 = 8 << 20;

/// SQLite is told to count its memory before it is used first, so that this test has a process of its own.
#[test]
fn what_sqlite_needs_to_sort_counts_for_the_flow() {
    if is_run_alone((module_path!(), "what_sqlite_needs_to_sort_counts_for_the_flow"), "true") {
        return;
    }
    let file = TestDatabase::sqlite("sorted-rows");
    let database = Arc::new(Database::open(&file.file(), None, ProgramEnd::default()).unwrap());
    let schema = declared("documents", vec![column("number", "Int", false), column("content", "Text", false)]);
    let table = StoredTable::open(schema, Arc::clone(&database)).unwrap();
    for number in 0..ROWS {
        let content = format!("{number:06}").repeat(ROW_BYTES / 6);
        table.insert(0, Value::Record([Value::Int(number), Value::text(&content)].into())).unwrap();
    }
    database.end_group();
    let of_all = |limit: i64| {
        let arguments = Value::Record([Value::Int(limit), Value::Unit].into());
        TableSearch::new(TableQuery { conditions: Vec::new(), order: Vec::new() }, arguments)
    };
    let by_content =
        TableGrouping { columns: vec![1], aggregates: Vec::new(), conditions: Vec::new(), order: Vec::new() };
    let search = of_all(i64::MAX);
    let held = memory::MemoryLimits::FLOW_BYTES_MAX - ROOM;
    let flow = memory::enter(held.cast_signed());
    let refused = table.group(0, &search, &by_content).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Memory, "{refused:?}");
    assert!(refused.message.contains("`memory_per_flow`"), "{refused:?}");
    // All of it was released, and the database goes on; a statement that copies so much leaves the thread of its flow.
    assert_eq!(flow.balance(), held.cast_signed());
    assert!(table.takes_long(ReadSize::Search(&search.query)));
    assert_eq!(table.count(0, &of_all(i64::MAX)).unwrap(), ROWS);
    drop(flow);
    let flow = memory::enter(0);
    assert_eq!(table.group(0, &search, &by_content).unwrap().len(), ROWS as usize);
    assert_eq!(flow.leave(), 0);
}
