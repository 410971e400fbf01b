//! Transactions of the program as members of groups in SQLite.

use std::sync::Arc;

use rusqlite::Connection;
use weir::{SeenCommits, Value};

use super::agreement::RandomRows;
use super::statement_groups::{NoLog, wait};
use super::test_database::TestDatabase;
use super::{everything, users};
use crate::tables::group_commit::GroupCommit;
use crate::tables::rows::RowChange;
use crate::tables::sqlite::connection::read_write;
use crate::tables::sqlite::database_error::is_hindered;
use crate::tables::sqlite::group_log::Redo;
use crate::tables::sqlite::row_statement::{RowChanged, RowStatement};
use crate::tables::sqlite::shared_writer::SharedWriter;
use crate::tables::sqlite::sql_table::SqlTable;
use crate::tables::sqlite::writer::Writer;

/// Maximum number of rows that a member writes.
const MEMBER_ROWS: i64 = 256;

/// The numbers that triggers refuse, divided by 40, and how.
const REFUSED: [(&str, i64); 3] = [("ROLLBACK", 7), ("FAIL", 8), ("ABORT", 9)];

/// A table of numbers, whose groups end only when a test says so.
pub(super) struct Numbers {
    /// Removed at the end.
    _database: TestDatabase,
    pub(super) writer: SharedWriter,
    /// Sees what other connections see.
    reader: Connection,
}

impl Numbers {
    pub(super) fn new(name: &str) -> Numbers {
        let database = TestDatabase::sqlite(name);
        Connection::open(database.file())
            .unwrap()
            .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE numbers (number UNIQUE); CREATE TABLE plain (data)")
            .unwrap();
        let mut writer = Writer::new(read_write(&database.file()).unwrap());
        writer.commits = Some(GroupCommit::begin(NoLog).unwrap());
        let reader = Connection::open(database.file()).unwrap();
        Numbers { _database: database, writer: SharedWriter::new(writer), reader }
    }

    pub(super) fn insert(&self, transaction: i64, number: i64) -> rusqlite::Result<()> {
        let mut writer = self.writer.lock();
        writer.enter(transaction)?;
        writer.bound_member(1)?;
        let statement =
            move |connection: &Connection| connection.execute("INSERT INTO numbers VALUES (?1)", [number]).map(|_| ());
        let written = writer.run("numbers", statement);
        match &written {
            Ok(()) => writer.executed(transaction, 1, || Redo::Other(Box::new(statement))),
            Err(error) => writer.refused(transaction, error),
        }
        written
    }

    pub(super) fn end_group(&self) -> rusqlite::Result<()> {
        self.writer.lock().end_group()
    }

    pub(super) fn commits(&self) -> Arc<GroupCommit> {
        self.writer.lock().commits.clone().unwrap()
    }

    /// Adds triggers that refuse some numbers, each in another way. Another program adds them while this one writes.
    pub(super) fn refuse(&self) {
        for (kind, number) in REFUSED {
            let trigger = format!(
                "CREATE TRIGGER refuse_{kind} AFTER INSERT ON Numbers WHEN new.number % 40 = {number}
                 BEGIN SELECT RAISE({kind}, 'no'); END"
            );
            self.reader.execute_batch(&trigger).unwrap();
        }
    }

    /// Returns what another connection sees.
    pub(super) fn seen(&self) -> Vec<i64> {
        let mut statement = self.reader.prepare_cached("SELECT number FROM numbers ORDER BY rowid").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.commits().end();
    }
}

#[test]
fn transactions_and_statements_are_one_transaction_of_the_database() {
    let numbers = Numbers::new("members");
    for (transaction, number) in [(1, 1), (1, 2), (0, 3), (2, 4)] {
        if transaction == 0 {
            numbers.writer.commit(1).unwrap();
        }
        numbers.insert(transaction, number).unwrap();
    }
    numbers.writer.commit(2).unwrap();
    // One is taken back by its flow, one is left unfinished, and a statement of one fails.
    numbers.insert(3, 5).unwrap();
    numbers.writer.roll_back(3).unwrap();
    // The others were executed again without it.
    assert_eq!(numbers.seen(), [1, 2, 3, 4]);
    numbers.insert(4, 6).unwrap();
    numbers.insert(5, 7).unwrap();
    numbers.insert(5, 1).unwrap_err();
    numbers.insert(5, 8).unwrap();
    numbers.writer.commit(5).unwrap();
    assert_eq!(numbers.seen(), [1, 2, 3, 4]);
    assert_eq!(numbers.commits().executed_count(), 4);
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1, 2, 3, 4, 7, 8]);
    assert!(numbers.commits().is_visible(4));
}

#[test]
fn an_open_member_is_set_apart() {
    let numbers = Numbers::new("apart");
    numbers.insert(1, 1).unwrap();
    numbers.writer.commit(1).unwrap();
    numbers.insert(2, 2).unwrap();
    numbers.insert(2, 1).unwrap_err();
    numbers.insert(2, 3).unwrap();
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1]);
    // It goes on with what it has written, and nothing of it is committed with others.
    numbers.insert(2, 2).unwrap_err();
    numbers.insert(2, 4).unwrap();
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1]);
    numbers.writer.commit(2).unwrap();
    assert_eq!(numbers.seen(), [1, 2, 3, 4]);
    assert_eq!(numbers.commits().executed_count(), 2);
    // The next one is a member again.
    numbers.insert(3, 5).unwrap();
    numbers.writer.commit(3).unwrap();
    assert_eq!(numbers.seen(), [1, 2, 3, 4]);
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_member_that_is_set_apart_can_be_taken_back() {
    let numbers = Numbers::new("apart-back");
    numbers.insert(1, 1).unwrap();
    numbers.writer.commit(1).unwrap();
    for transaction in [2, 3] {
        numbers.insert(transaction, 2).unwrap();
        numbers.end_group().unwrap();
        // One by its flow, the other one by who comes next.
        if transaction == 2 {
            numbers.writer.roll_back(2).unwrap();
        }
    }
    numbers.insert(0, 4).unwrap();
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1, 4]);
}

#[test]
fn a_member_that_writes_much_holds_up_nobody() {
    let numbers = Numbers::new("large");
    numbers.insert(0, 0).unwrap();
    for number in 1..=MEMBER_ROWS {
        numbers.insert(1, number).unwrap();
    }
    assert_eq!(numbers.seen(), [0_i64; 0]);
    numbers.insert(1, MEMBER_ROWS + 1).unwrap();
    assert_eq!(numbers.seen(), [0]);
    numbers.writer.commit(1).unwrap();
    assert_eq!(numbers.seen().len() as i64, MEMBER_ROWS + 2);
}

#[test]
fn a_member_whose_statements_cannot_be_executed_again_is_lost() {
    let numbers = Numbers::new("not-again");
    numbers.insert(1, 1).unwrap();
    numbers.writer.commit(1).unwrap();
    {
        let mut writer = numbers.writer.lock();
        writer.enter(2).unwrap();
        writer.executed(2, 1, || Redo::Other(Box::new(|_| Err(rusqlite::Error::InvalidQuery))));
    }
    numbers.end_group().unwrap_err();
    assert_eq!(numbers.seen(), [1]);
    numbers.insert(2, 3).unwrap_err();
    numbers.writer.commit(2).unwrap_err();
    numbers.insert(3, 4).unwrap();
    numbers.writer.commit(3).unwrap();
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1, 4]);
    wait(numbers.commits().settled()).unwrap();
}

#[test]
fn a_commit_at_once_is_seen_or_fails() {
    let numbers = Numbers::new("at-once");
    let refuse_commits = |refuses: bool| {
        numbers.writer.lock().connection.commit_hook(refuses.then_some(|| true)).unwrap();
    };
    let mut flow = SeenCommits::default();
    {
        let _entered = flow.enter();
        numbers.insert(0, 1).unwrap();
        numbers.insert(1, 2).unwrap();
        numbers.writer.commit_at_once(1).unwrap();
    }
    assert_eq!(numbers.seen(), [1, 2]);
    refuse_commits(true);
    numbers.insert(2, 3).unwrap();
    numbers.writer.commit_at_once(2).unwrap_err();
    refuse_commits(false);
    assert_eq!(numbers.commits().executed_count(), 2);
    numbers.insert(3, 4).unwrap();
    numbers.writer.commit_at_once(3).unwrap();
    assert_eq!(numbers.seen(), [1, 2, 4]);
    // Neither the flows before nor those behind have lost anything.
    wait(numbers.commits().settled_to(SeenCommits { last: u64::MAX, ..flow })).unwrap();
    // One that has its own transaction is committed as always.
    numbers.insert(4, 5).unwrap();
    numbers.end_group().unwrap();
    numbers.writer.commit_at_once(4).unwrap();
    assert_eq!(numbers.seen(), [1, 2, 4, 5]);
}

#[test]
fn random_members_leave_what_a_model_keeps() {
    for has_triggers in [false, true] {
        let numbers = Numbers::new(&format!("random-{has_triggers}"));
        if has_triggers {
            numbers.refuse();
        }
        leaves_what_a_model_keeps(&numbers, has_triggers);
    }
}

/// Executes random statements and transactions of numbers, some of which triggers may refuse.
fn leaves_what_a_model_keeps(numbers: &Numbers, has_triggers: bool) {
    let mut random = RandomRows::new(5);
    let (mut kept, mut open, mut transaction) = (Vec::new(), Vec::new(), 1);
    // The last transaction that was taken back by a trigger.
    let mut lost = 0;
    let is_refused = |number: i64| has_triggers && REFUSED.iter().any(|(_, refused)| number % 40 == *refused);
    for _ in 0..3_000 {
        let number = random.below(2_000) as i64;
        match random.below(20) {
            0..=8 => {
                let is_new = !kept.contains(&number) && !open.contains(&number);
                let is_written = is_new && lost != transaction && !is_refused(number);
                assert_eq!(numbers.insert(transaction, number).is_ok(), is_written);
                open.extend(is_written.then_some(number));
                if is_new && is_refused(number) && number % 40 == REFUSED[0].1 {
                    lost = transaction;
                    open.clear();
                }
            }
            9..=12 => {
                assert_eq!(numbers.writer.commit(transaction).is_ok(), lost != transaction);
                kept.append(&mut open);
                transaction += 1;
            }
            13 | 14 => {
                numbers.writer.roll_back(transaction).unwrap();
                open.clear();
                transaction += 1;
            }
            15 => {
                // Its flow ends without a word, and the next statement takes it back.
                open.clear();
                transaction += 1;
            }
            16 | 17 => {
                let is_written = !kept.contains(&number) && !is_refused(number);
                open.clear();
                transaction += 1;
                assert_eq!(numbers.insert(0, number).is_ok(), is_written);
                kept.extend(is_written.then_some(number));
            }
            18 => assert!(kept.starts_with(&numbers.seen())),
            _ => {
                numbers.end_group().unwrap();
                assert_eq!(numbers.seen(), kept);
            }
        }
    }
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), kept);
    assert!(kept.len() > 200);
}

#[test]
fn a_group_that_gives_other_results_is_lost() {
    let database = TestDatabase::sqlite("other-results");
    let _storage = database.storage().open(users()).unwrap();
    let mut writer = Writer::new(read_write(&database.file()).unwrap());
    writer.commits = Some(GroupCommit::begin(NoLog).unwrap());
    let row = Value::Record([Value::text("one"), Value::Int(1)].into());
    let statement = RowStatement { table: Arc::new(SqlTable::new(users())), change: RowChange::Upsert(row) };
    writer.enter(0).unwrap();
    let mut flow = SeenCommits::default();
    {
        let _entered = flow.enter();
        writer.executed(0, 1, || Redo::Row(statement, RowChanged::Rows(2)));
    }
    writer.enter(2).unwrap();
    writer.executed(2, 1, || Redo::Other(Box::new(|_| Ok(()))));
    writer.roll_back().unwrap_err();
    let commits = writer.commits.clone().unwrap();
    let failure = wait(commits.settled_to(SeenCommits { last: u64::MAX, ..flow })).unwrap_err();
    assert!(failure.message.contains("another program"), "{failure}");
    commits.end();
}

#[test]
fn a_long_group_is_committed() {
    let numbers = Numbers::new("long");
    for number in 0..5_000 {
        numbers.insert(0, number).unwrap();
    }
    assert_eq!(numbers.seen().len(), 4_096);
}

#[test]
fn a_transaction_reads_what_its_group_has_written() {
    let numbers = Numbers::new("reads");
    numbers.writer.lock().enter_to_read(1).unwrap();
    numbers.writer.commit(1).unwrap();
    assert_eq!(numbers.commits().executed_count(), 0, "it depends on nothing that can be lost");
    numbers.insert(0, 1).unwrap();
    numbers.insert(2, 2).unwrap();
    let mut writer = numbers.writer.lock();
    // The one before is left unfinished.
    writer.enter_to_read(3).unwrap();
    let sum = |writer: &Writer| {
        writer.connection.query_row("SELECT sum(number) FROM numbers", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(sum(&writer), Ok(1));
    writer.end_group().unwrap();
    // It has its own transaction now, and goes on to read there.
    writer.enter_to_read(3).unwrap();
    assert_eq!(sum(&writer), Ok(1));
    assert!(!writer.connection.is_autocommit());
    drop(writer);
    numbers.writer.commit(3).unwrap();
    assert_eq!(numbers.seen(), [1]);
}

/// Has another program insert a number when the writer gives up its lock next, by a commit or because it takes back a transaction.
fn insert_beside(numbers: &Numbers, other: i64) {
    let path = numbers.reader.path().unwrap().to_owned();
    let insert = move || {
        let beside = Connection::open(&path).unwrap();
        beside.execute("INSERT OR IGNORE INTO numbers VALUES (?1)", [other]).unwrap();
    };
    let mut writer = numbers.writer.lock();
    writer.connection.rollback_hook(Some(insert.clone())).unwrap();
    let committed = move |_: &mut rusqlite::hooks::Wal, _| {
        insert();
        Ok(())
    };
    writer.connection.wal_hook(Some(committed)).unwrap();
}

#[test]
fn a_member_that_has_read_before_another_program_writes_is_lost() {
    let numbers = Numbers::new("read-before");
    numbers.insert(1, 1).unwrap();
    numbers.writer.commit(1).unwrap();
    numbers.writer.lock().enter_to_read(3).unwrap();
    insert_beside(&numbers, 7);
    numbers.end_group().unwrap_err();
    assert_eq!(numbers.seen(), [1, 7]);
    let lost = numbers.insert(3, 2).unwrap_err();
    assert!(is_hindered(&lost), "{lost}");
    assert!(is_hindered(&numbers.writer.commit(3).unwrap_err()));
    // The next attempt has read what the other program has written.
    numbers.writer.lock().enter_to_read(5).unwrap();
    numbers.insert(5, 2).unwrap();
    numbers.writer.commit(5).unwrap();
    numbers.end_group().unwrap();
    assert_eq!(numbers.seen(), [1, 7, 2]);
}

#[test]
fn a_group_that_is_executed_again_behind_a_write_of_another_program_is_lost() {
    let numbers = Numbers::new("again-behind");
    let mut flow = SeenCommits::default();
    {
        let _entered = flow.enter();
        numbers.insert(1, 1).unwrap();
        numbers.writer.commit(1).unwrap();
    }
    numbers.insert(3, 2).unwrap();
    insert_beside(&numbers, 7);
    numbers.writer.roll_back(3).unwrap_err();
    assert_eq!(numbers.seen(), [7]);
    let failure = wait(numbers.commits().settled_to(SeenCommits { last: u64::MAX, ..flow })).unwrap_err();
    assert!(failure.message.contains("another program"), "{failure}");
}

#[test]
fn answers_do_not_wait_for_a_member_that_stays_open() {
    let database = TestDatabase::sqlite("stays-open");
    let storage = database.storage();
    let table = storage.open(users()).unwrap();
    let row = |name: &str| Value::Record([Value::text(name), Value::Int(1)].into());
    for round in 0..20_i64 {
        let mut flow = SeenCommits::default();
        let entered = flow.enter();
        table.rows.upsert(3 * round + 1, row(&format!("first {round}"))).unwrap();
        table.rows.commit(3 * round + 1, true).unwrap();
        table.rows.upsert(3 * round + 2, row(&format!("second {round}"))).unwrap();
        wait(storage.settled(false)).unwrap();
        drop(entered);
        let committed = Connection::open(database.file()).unwrap();
        let second = format!("SELECT count(*) FROM users WHERE name IN ('first {round}', 'second {round}')");
        assert_eq!(committed.query_row(&second, [], |row| row.get(0)), Ok(1));
        if round % 2 == 0 {
            // Left unfinished, and then taken back.
            continue;
        }
        table.rows.upsert(3 * round + 2, row(&format!("third {round}"))).unwrap();
        table.rows.commit(3 * round + 2, true).unwrap();
        assert_eq!(table.rows.count(0, &everything()).unwrap(), (round + 1) / 2 * 4);
    }
    weir::Closing::close(&storage).unwrap();
}
