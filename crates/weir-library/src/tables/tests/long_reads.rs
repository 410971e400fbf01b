//! Reads that leave the threads of their flows.

use std::sync::Arc;
use std::time::Duration;

use super::test_database::TestDatabase;
use super::users;
use crate::tables::database::Database;
use crate::tables::rows::{ReadSize, TableRows};
use crate::tables::stored::StoredTable;

#[test]
fn reads_by_keys_leave_the_threads_of_their_flows_while_the_disk_is_slow() {
    let file = TestDatabase::sqlite("disk-waits");
    let database = Arc::new(Database::open(&file.file()).unwrap());
    let table = StoredTable::open(users(), Arc::clone(&database)).unwrap();
    assert!(!table.takes_long(ReadSize::Rows(1)));
    let waited = Duration::from_millis(1);
    (0..3).for_each(|_| database.disk_waits.note(waited, || true));
    assert!(table.takes_long(ReadSize::Rows(1)));
    (0..1_000).for_each(|_| database.disk_waits.note(waited, || false));
    assert!(!table.takes_long(ReadSize::Rows(1)));
}
