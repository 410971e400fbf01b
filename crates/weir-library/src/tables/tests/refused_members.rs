//! Groups in SQLite of which triggers, or a full disk, refuse a statement.

use weir::SeenCommits;

use super::group_members::Numbers;
use super::statement_groups::wait;
use crate::tables::sqlite::partial_failures::whole;

#[test]
fn a_trigger_that_takes_back_the_group_fails_only_the_flow_that_it_refuses() {
    let numbers = Numbers::new("refused");
    numbers.insert(0, 0).unwrap();
    numbers.end_group().unwrap();
    numbers.refuse();
    let (mut flow, mut guilty) = <(SeenCommits, SeenCommits)>::default();
    let no = |refused: rusqlite::Result<()>| assert_eq!(refused.unwrap_err().to_string(), "no");
    let is_lost = |refused: rusqlite::Result<()>| {
        let message = refused.unwrap_err().to_string();
        assert!(message.ends_with("has rolled back the whole transaction: no"), "{message}");
    };
    {
        let _entered = flow.enter();
        numbers.insert(0, 1).unwrap();
        numbers.insert(1, 2).unwrap();
        numbers.writer.commit(1).unwrap();
    }
    {
        let _entered = guilty.enter();
        numbers.insert(2, 3).unwrap();
        no(numbers.insert(2, 8));
        no(numbers.insert(2, 7));
        is_lost(numbers.insert(2, 4));
        is_lost(numbers.writer.lock().enter_to_read(2).map(|_| ()));
        is_lost(numbers.writer.commit(2));
        is_lost(numbers.writer.commit_at_once(2));
        numbers.writer.roll_back(2).unwrap();
    }
    // The others were executed again, and committed, so that they are executed again once at most.
    assert_eq!(numbers.seen(), [0, 1, 2]);
    {
        let _entered = flow.enter();
        numbers.insert(0, 5).unwrap();
        no(numbers.insert(0, 48));
        numbers.insert(0, 6).unwrap();
    }
    no(numbers.insert(0, 7));
    assert_eq!(numbers.seen(), [0, 1, 2, 5, 6]);
    // One that is set apart is alone.
    numbers.insert(3, 10).unwrap();
    numbers.end_group().unwrap();
    no(numbers.insert(3, 7));
    is_lost(numbers.writer.commit(3));
    numbers.insert(0, 11).unwrap();
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [0, 1, 2, 5, 6, 11]);
    assert_eq!(numbers.commits().executed_count(), 6);
    for commits in [flow, guilty] {
        wait(numbers.commits().settled_to(SeenCommits { last: u64::MAX, ..commits })).unwrap();
    }
}

/// Such as one of an `update_all`.
#[test]
fn a_full_disk_is_named_also_behind_a_savepoint() {
    let numbers = Numbers::new("full");
    for (transaction, is_apart) in [(0, false), (1, false), (2, true)] {
        numbers.insert(transaction, 100 + transaction).unwrap();
        let mut writer = numbers.writer.lock();
        if is_apart {
            writer.end_group().unwrap();
        }
        let pages: i64 = writer.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        writer.connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")).unwrap();
        let large = || writer.connection.execute("INSERT INTO plain VALUES (zeroblob(100000))", []);
        let full = whole(&writer.connection, large).unwrap_err();
        assert_eq!(full.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull), "{full}");
        writer.refused(transaction, &full);
        writer.connection.execute_batch("PRAGMA max_page_count = 1000").unwrap();
        drop(writer);
        if transaction != 0 {
            let lost = numbers.writer.commit(transaction).unwrap_err();
            assert_eq!(lost.to_string(), "the transaction was rolled back after a failure of the disk");
        }
    }
    assert_eq!(numbers.seen(), [0_i64; 0]);
}
