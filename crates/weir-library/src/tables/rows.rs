//! The statements of a table, wherever it is kept.

use std::fmt::Debug;
use std::num::{NonZeroU64, NonZeroUsize};
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use weir::{Failure, Value};

use super::database_threads::DatabaseThread;
use super::failure_site::FailureSite;
use super::group_commit::GroupCommit;
use super::grouping::TableGrouping;
use super::join::KeyPart;
use super::memory::MemoryTable;
use super::query_site::QuerySite;
use super::read_notes::ReadNotes;
use super::row::fields;
pub(super) use super::row_change::RowChange;
use super::schema::{Schema, TableSearch};
pub(super) use super::table_read::{TableRead, TableSnapshot};

/// The size of a read, as far as it is known before.
#[derive(Clone, Copy)]
pub(super) enum ReadSize<'s> {
    /// It reads so many rows by their keys.
    Rows(usize),
    /// It is a search.
    Search(&'s QuerySite),
}

/// The answer of a statement that needs no thread.
pub(super) type LaterAnswer = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// A statement that reads and needs no thread.
pub(super) struct SentRead {
    /// The number of the connection on which it is sent when the answer is first polled.
    pub(super) connection: NonZeroU64,
    pub(super) answer: LaterAnswer,
}

/// The end of a transaction that needs no thread.
pub(super) type LaterEnd = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Is called with the answer of a change, before anybody else learns of it.
pub(super) type ChangeAnswered = Box<dyn FnOnce(&Result<Value, Failure>) + Send>;

/// Is called with the end of a commit, before anybody else learns of it.
pub(super) type CommitEnded = Box<dyn FnOnce(&Result<(), Failure>) + Send>;

/// The answer of a change, and the number of its commit, if it may not be durable yet.
pub(super) type LaterChange = Pin<Box<dyn Future<Output = (Result<Value, Failure>, Option<u64>)> + Send>>;

/// Statements that belong together.
pub(super) type TogetherStatements<'s> = &'s mut dyn FnMut() -> Result<(), Failure>;

/// The statements of a table. Each takes the number of its transaction, or 0.
pub(super) trait TableRows: Debug + Send + Sync {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure>;
    /// Returns the row of each key, all as they are at one moment.
    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure>;
    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure>;
    /// Returns the rows with one of several values in some columns, in any order; `None` if each value needs a statement. Each column
    /// has a list of its parts of the values.
    fn rows_with(
        &self,
        _transaction: i64,
        _columns: &[usize],
        _parts: &[Vec<Value>],
    ) -> Option<Result<Vec<Value>, Failure>> {
        None
    }
    /// Returns the values of a column of the rows that the search accepts.
    fn column(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<Vec<Value>, Failure> {
        Ok(self.select(transaction, search)?.iter().map(|row| fields(row)[column].clone()).collect())
    }
    /// Returns the rows that the search accepts, each followed by the row of each joined table of the same database, which are
    /// `Option`s; all as they are at one moment.
    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure>;
    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure>;
    /// Returns the sum of a column of whole numbers.
    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure>;
    /// Returns the groups of the rows that the search accepts.
    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure>;
    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure>;
    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure>;
    /// Returns the row as it is stored.
    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure>;
    /// Replaces rows by new ones with the same keys, all or none. Constraints hold when all are replaced.
    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure>;
    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure>;
    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure>;
    /// Deletes these rows, all or none.
    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure>;
    /// Runs statements of a transaction, also on other tables of the database, which take effect together or not at all. A table in
    /// memory refuses none of them.
    fn together(&self, _transaction: i64, statements: TogetherStatements<'_>) -> Result<(), Failure> {
        statements()
    }
    /// Commits a transaction; `last` if this is the last stored table of it.
    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure>;
    /// Commits a transaction in all stored tables, so that others cannot fail it later: tables in memory follow.
    fn commit_at_once(&self, transaction: i64) -> Result<(), Failure> {
        self.commit(transaction, true)
    }
    /// Takes back a transaction, if it is open.
    fn roll_back(&self, transaction: i64);
    /// Returns whether the table is one of a database, whose tables have one transaction.
    fn is_stored(&self) -> bool {
        true
    }
    /// Begins a statement of no transaction that reads, and goes on without a thread; `None` if it needs one. The notes are made when
    /// it is answered.
    fn read_later(&self, _read: &TableRead, _notes: Option<ReadNotes>) -> Option<SentRead> {
        None
    }
    /// Returns a thread of the database for a statement of no transaction that reads; `None` if a thread of the program has to execute it.
    fn thread(&self) -> Option<DatabaseThread> {
        None
    }
    /// Orders a change that is no part of a transaction before what others begin from now on; it goes on without a thread. `None`
    /// if it needs one. Then nothing has happened.
    fn change_later(&self, _change: &RowChange, _answered: ChangeAnswered) -> Option<LaterChange> {
        None
    }
    /// Returns whether a read would hold up the thread of its flow.
    fn takes_long(&self, _read: ReadSize<'_>) -> bool {
        false
    }
    /// Returns whether a change would hold up the thread of its flow, because it has to wait for another program or for the disk.
    fn waits_to_write(&self) -> bool {
        false
    }
    /// Returns whether a read would hold up the thread of its flow, because its transaction begins with it, and has to wait for another
    /// program or for the disk.
    fn waits_to_begin(&self, _transaction: i64) -> bool {
        false
    }
    /// Returns the table as it is now for a read of no transaction, which another thread executes; `None` if it has to read the table
    /// itself. The flow has then seen the commits on which the read depends.
    fn snapshot(&self, _read: &TableRead) -> Option<Box<dyn TableSnapshot>> {
        None
    }
    /// Begins a statement of a transaction that reads, and goes on without a thread; `None` if it needs one.
    fn read_in_transaction(&self, _transaction: i64, _read: &TableRead) -> Option<LaterAnswer> {
        None
    }
    /// Asks for the rows with these keys, which a transaction is about to read. Returns whether all are asked for.
    fn expect(&self, _transaction: i64, _keys: &mut dyn Iterator<Item = Value>) -> bool {
        false
    }
    /// Asks for the answer of a search or count, which a transaction is about to execute. Returns whether it is asked for.
    fn expect_found(&self, _transaction: i64, _read: &TableRead) -> bool {
        false
    }
    /// Returns whether a transaction has the row with a key, so that its read needs not wait.
    fn has_row(&self, _transaction: i64, _key: &Value) -> bool {
        false
    }
    /// Returns whether a transaction knows that the row with a key exists, so that it needs not look for it.
    fn knows_row(&self, _transaction: i64, _key: &Value) -> bool {
        false
    }
    /// Begins a change in a transaction, which goes on without a thread; `None` if it needs one.
    fn change_in_transaction(&self, _transaction: i64, _change: &RowChange) -> Option<LaterAnswer> {
        None
    }
    /// Returns whether a change in a transaction can be placed now. Otherwise it has to be waited for.
    fn may_place(&self, _transaction: i64, _change: &RowChange) -> bool {
        false
    }
    /// Places a change in a transaction: its answer is known before the database has executed it. If that refuses it, the next
    /// statement of the transaction fails. `None` if the change has to be waited for; then nothing has happened.
    fn place(
        &self,
        _transaction: i64,
        _change: &RowChange,
        _site: Option<&FailureSite>,
    ) -> Option<Result<Value, Failure>> {
        None
    }
    /// Begins to commit a transaction, and goes on without a thread; `None` if it needs one.
    fn commit_later(&self, _transaction: i64) -> Option<LaterEnd> {
        None
    }
    /// Returns whether the commit of a transaction can be placed now.
    fn may_place_commit(&self, _transaction: i64) -> bool {
        false
    }
    /// Sends the commit of a transaction, behind which others begin. Returns whether it is sent; then the storage knows its end, and
    /// `ended` is called before anybody else learns of it.
    fn place_commit(&self, _transaction: i64, _ended: CommitEnded) -> bool {
        false
    }
    /// Returns whether a transaction has placed changes that are not answered.
    fn has_placed(&self, _transaction: i64) -> bool {
        false
    }
    /// Takes back a transaction when its placed changes are answered. Fails if one was refused.
    fn roll_back_later(&self, _transaction: i64) -> Option<LaterEnd> {
        None
    }
    /// Returns the failure of a placed change for which a transaction was taken back.
    fn refused(&self, _transaction: i64) -> Option<Failure> {
        None
    }
    /// Notes that the flow has read rows of the table beside those of a statement, while others may have written it.
    fn saw_all_meanwhile(&self) {}
    /// Returns the commits of its database; `None` if each is durable when it is visible.
    fn commits(&self) -> Option<&Arc<GroupCommit>> {
        None
    }
    /// Has reads see a commit, and those before it.
    fn show(&self, _commit: u64) {}
    /// Has reads see a commit, and those before it, unless they have to wait for a transaction. Returns whether they see it.
    fn shows(&self, _commit: u64) -> bool {
        true
    }
    /// Returns whether a read of no transaction depends on a commit that it does not see before a transaction has ended.
    fn waits_to_see(&self, _read: &dyn Fn() -> Option<TableRead>) -> bool {
        false
    }
    /// Notes that the flow reads rows of the table beside those of a statement.
    fn saw_all(&self) {}
    /// Returns the number of the database, if a statement of no transaction that reads sees its tables as they are at one moment, also while
    /// others write them.
    fn snapshots(&self) -> Option<NonZeroUsize> {
        None
    }
    /// Returns whether other programs may write the table, so that statements which rely on each other have to be a transaction.
    fn is_shared(&self) -> bool {
        false
    }
}

impl TableRows for Mutex<MemoryTable> {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        Ok(self.lock().get(transaction, key))
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        let mut table = self.lock();
        Ok(keys.iter().map(|key| table.get(transaction, key)).collect())
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        Ok(self.lock().select(transaction, search))
    }

    fn column(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<Vec<Value>, Failure> {
        Ok(self.lock().column(transaction, search, column))
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        _joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        // Tables in memory are no database that joins them: their rows are read by keys.
        Ok(self.lock().select(transaction, search).into_iter().map(|row| vec![row]).collect())
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        Ok(self.lock().count(transaction, search))
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        Ok(self.lock().sum(transaction, search, column))
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        Ok(self.lock().group(transaction, search, grouping))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.lock().insert(transaction, row)
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.lock().upsert(transaction, row)
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure> {
        self.lock().replace(transaction, key, row)
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        self.lock().replace_rows(transaction, old, new)
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        Ok(self.lock().delete(transaction, key))
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        Ok(self.lock().delete_all(transaction, search))
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        Ok(self.lock().delete_rows(transaction, rows))
    }

    fn commit(&self, transaction: i64, _last: bool) -> Result<(), Failure> {
        self.lock().commit(transaction);
        Ok(())
    }

    fn roll_back(&self, transaction: i64) {
        self.lock().roll_back(transaction);
    }

    fn is_stored(&self) -> bool {
        false
    }

    fn takes_long(&self, read: ReadSize<'_>) -> bool {
        // Most tables in memory are small, so that a query is tried here first.
        matches!(read, ReadSize::Search(site) if site.work.is_known_as_long())
    }
}
