//! The writes that may not be durable yet, so that a flow which has read knows whether its answer has to wait for them.
//!
//! Commits are visible before they are durable. A read depends on the last commit that has written a row which it has found, or
//! which its conditions accept: it would give the same answer if a crash took back all later ones. So a flow that only reads waits
//! for the commits that its reads depend on ([`weir::SeenCommits`]), and mostly for none.
//!
//! Nor does a read need to see a commit that it does not depend on: a group of commits stays open until one does.
//!
//! A read takes no lock of its table, so that it may see a write before this is noted. In the process, [`GroupCommit::noted`] tells that
//! there is such a write; of another process, the writes are in flight until they are noted (`in_flight_writes`). So a read looks here
//! before it begins, for what others have seen, and behind its end, for what it has seen itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use parking_lot::{Mutex, MutexGuard};
use weir::{Value, memory};

use super::group_commit::GroupCommit;
use super::in_flight_writes::{InFlightWrite, InFlightWrites, WrittenRow};
use super::program_owned::{text_bytes, unshared_copy};
use super::row::fields;
use super::schema::TableSearch;
use super::table_read::TableRead;

/// Maximum number of rows that are noted for a table; if more are not durable, it counts as written as a whole.
pub(super) const ROWS_MAX: usize = 4_096;
/// Number of rows below which those that have become durable are not looked for.
const ROWS_MIN: usize = 64;
/// Maximum number of values that are noted for a row; of more, nobody knows which conditions they fulfil.
const VALUES_MAX: usize = 4;

/// Maximum number of bytes of the texts in a value that is noted: it is a copy, and many may be kept. A larger row, or key, counts as
/// unknown.
const NOTED_BYTES_MAX: usize = 1_000;

/// The writes of the transaction that is open in the database of the program. There is at most one, as there is one writer. Nothing is
/// noted of those in other databases, in which each commit is durable when it is executed.
#[derive(Debug, Default)]
pub(super) struct OpenWrites(Mutex<TransactionWrites>);

/// The writes of a transaction whose commit was sent and is not answered. Those are in flight until this value is dropped.
#[derive(Debug)]
pub(super) struct PlacedWrites {
    writes: Vec<(Arc<RecentWrites>, RowWrite)>,
    in_flight: Vec<InFlightWrite>,
}

#[derive(Debug, Default)]
struct TransactionWrites {
    transaction: i64,
    writes: Vec<(Arc<RecentWrites>, RowWrite)>,
}

/// The writes of a table that may not be durable yet.
#[derive(Debug, Default)]
pub(super) struct RecentWrites {
    /// The number of the last commit that has written the table.
    last: AtomicU64,
    rows: Mutex<RecentRows>,
    /// The writes whose commits have no numbers yet.
    pub(super) in_flight: Arc<InFlightWrites>,
}

#[derive(Debug, Default)]
struct RecentRows {
    /// The writes that no read has asked for yet, each with its commit. Mostly they are durable before one does.
    unsorted: Vec<(u64, RowWrite)>,
    /// The number of the last commit that may have written any row.
    any: u64,
    /// The rows that were written, by their keys. Some may be durable.
    by_key: IndexMap<Value, RecentRow, RandomState>,
    /// Number of rows from which the durable ones are forgotten: twice those that were not durable the last time, so that a search
    /// looks at few others.
    forget_at: usize,
}

#[derive(Debug)]
struct RecentRow {
    /// The number of the last commit that has written the row.
    commit: u64,
    /// The values before and after each write.
    values: RowValues,
}

/// The values that a row had and then has.
#[derive(Debug)]
enum RowValues {
    /// One of them is unknown.
    Unknown,
    /// There was no row before, or there is none after.
    One(Value),
    Several(Vec<Value>),
}

impl PlacedWrites {
    /// Adds that any rows of a table may be written.
    pub(super) fn and_any_of(mut self, table: &RecentWrites) -> PlacedWrites {
        memory::of_program(|| self.in_flight.push(table.in_flight.begin(WrittenRow::Any)));
        self
    }

    /// Notes that the transaction was committed.
    pub(super) fn committed(self, commits: &GroupCommit) {
        let commit = commits.executed_count();
        memory::of_program(|| self.writes.into_iter().for_each(|(table, write)| table.note(commits, commit, write)));
    }
}

/// A write.
#[derive(Debug)]
pub(super) struct RowWrite {
    /// The key of the row; `None` if any rows may be written.
    key: Option<Value>,
    /// The values of the row before and after.
    values: RowValues,
}

impl RowWrite {
    /// A write of any rows.
    pub(super) fn of_any() -> RowWrite {
        RowWrite { key: None, values: RowValues::Unknown }
    }

    /// A write of a row whose values before are unknown.
    pub(super) fn of_key(key: &Value) -> RowWrite {
        RowWrite { key: noted(key), values: RowValues::Unknown }
    }

    /// A write of a row that was inserted or deleted.
    pub(super) fn of_value(key: &Value, value: &Value) -> RowWrite {
        RowWrite { key: noted(key), values: noted(value).map_or(RowValues::Unknown, RowValues::One) }
    }

    /// A write of a row that had, and then has, one of these values.
    pub(super) fn of_values(key: &Value, values: [&Value; 2]) -> RowWrite {
        let values = memory::of_program(|| values.into_iter().map(noted).collect::<Option<Vec<Value>>>());
        RowWrite { key: noted(key), values: values.map_or(RowValues::Unknown, RowValues::Several) }
    }
}

/// Returns the value as it is noted, which belongs to the memory of the program: another flow may release it.
fn noted(value: &Value) -> Option<Value> {
    (text_bytes(value) <= NOTED_BYTES_MAX).then(|| memory::of_program(|| unshared_copy(value)))
}

impl RowValues {
    fn known(&self) -> Option<&[Value]> {
        match self {
            RowValues::Unknown => None,
            RowValues::One(value) => Some(std::slice::from_ref(value)),
            RowValues::Several(values) => Some(values),
        }
    }
}

impl RecentWrites {
    /// Notes a write: of a transaction, or one that was committed, if the number is 0.
    pub(super) fn wrote(self: &Arc<Self>, commits: &GroupCommit, open: &OpenWrites, transaction: i64, write: RowWrite) {
        memory::of_program(|| {
            if transaction == 0 {
                return self.note(commits, commits.executed_count(), write);
            }
            let mut open = open.0.lock();
            if open.transaction != transaction {
                // Another one that has ended without a word.
                *open = TransactionWrites { transaction, writes: Vec::new() };
            }
            open.writes.push((Arc::clone(self), write));
        });
    }

    fn note(&self, commits: &GroupCommit, commit: u64, write: RowWrite) {
        let durable = commits.durable();
        if commit <= durable {
            return;
        }
        let mut rows = self.rows.lock();
        if self.last.load(Ordering::Relaxed) <= durable {
            rows.unsorted.clear();
            rows.by_key.clear();
        } else if rows.unsorted.len() >= ROWS_MAX {
            rows.sort(durable);
        }
        self.last.store(commit, Ordering::Release);
        rows.unsorted.push((commit, write));
    }

    /// Returns the number of the last commit that has written the table and may not be durable.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Returns the last commit on which a read of the row with the key depends; 0 if all are durable.
    pub(super) fn commit_of_row(&self, commits: &GroupCommit, key: &Value) -> u64 {
        if self.are_durable(commits) {
            return 0;
        }
        let rows = self.sorted(commits);
        rows.by_key.get(key).map_or(rows.any, |row| row.commit.max(rows.any))
    }

    /// Returns the last commit on which a search depends; 0 if all are durable.
    pub(super) fn commit_of_search(&self, commits: &GroupCommit, search: &TableSearch) -> u64 {
        if self.are_durable(commits) {
            return 0;
        }
        let (rows, durable) = (self.sorted(commits), commits.durable());
        let open = rows.by_key.values().filter(|row| row.commit > durable);
        open.filter(|row| row.is_accepted(search)).map(|row| row.commit).fold(rows.any, u64::max)
    }

    /// Returns the last commit on which a read depends; 0 if all are durable.
    pub(super) fn commit_of(&self, commits: &GroupCommit, read: &TableRead) -> u64 {
        match read {
            TableRead::Row(key) => self.commit_of_row(commits, key),
            TableRead::Rows(keys) => keys.iter().map(|key| self.commit_of_row(commits, key)).max().unwrap_or(0),
            TableRead::Search(search) | TableRead::Count(search) => self.commit_of_search(commits, search),
        }
    }

    /// Returns the last commit that has written the table; 0 if all are durable.
    pub(super) fn commit_of_any(&self, commits: &GroupCommit) -> u64 {
        if self.are_durable(commits) { 0 } else { self.last.load(Ordering::Acquire) }
    }

    /// Returns the writes by the keys of their rows.
    fn sorted(&self, commits: &GroupCommit) -> MutexGuard<'_, RecentRows> {
        let mut rows = self.rows.lock();
        if !rows.unsorted.is_empty() {
            memory::of_program(|| rows.sort(commits.durable()));
        }
        rows
    }

    fn are_durable(&self, commits: &GroupCommit) -> bool {
        self.last.load(Ordering::Acquire) <= commits.durable()
    }
}

impl RecentRows {
    /// Sorts the writes by the keys of their rows.
    fn sort(&mut self, durable: u64) {
        if self.by_key.len() >= self.forget_at.max(ROWS_MIN) {
            self.by_key.retain(|_, row| row.commit > durable);
            self.forget_at = 2 * self.by_key.len();
        }
        let mut unsorted = std::mem::take(&mut self.unsorted);
        for (commit, write) in unsorted.drain(..).filter(|(commit, _)| *commit > durable) {
            self.add(commit, write, durable);
        }
        self.unsorted = unsorted;
    }

    fn add(&mut self, commit: u64, write: RowWrite, durable: u64) {
        if self.by_key.len() >= ROWS_MAX {
            self.forget(durable);
        }
        let Some(key) = write.key.filter(|_| self.by_key.len() < ROWS_MAX) else {
            self.any = commit;
            return;
        };
        match self.by_key.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(RecentRow { commit, values: write.values });
            }
            Entry::Occupied(mut entry) => entry.get_mut().add(commit, &write.values),
        }
    }

    /// Forgets the rows that are durable; if many are not, the table counts as written as a whole.
    fn forget(&mut self, durable: u64) {
        self.by_key.retain(|_, row| row.commit > durable);
        if self.by_key.len() > ROWS_MAX / 2 {
            self.any = self.by_key.values().map(|row| row.commit).fold(self.any, u64::max);
            self.by_key.clear();
        }
    }
}

impl RecentRow {
    fn add(&mut self, commit: u64, further: &RowValues) {
        self.commit = commit;
        let all = self.values.known().zip(further.known()).map(|(values, further)| [values, further].concat());
        self.values = all.filter(|all| all.len() <= VALUES_MAX).map_or(RowValues::Unknown, RowValues::Several);
    }

    /// Returns whether a search may accept the row as it is or was.
    fn is_accepted(&self, search: &TableSearch) -> bool {
        self.values.known().is_none_or(|values| values.iter().any(|row| search.accepts(fields(row))))
    }
}

impl OpenWrites {
    /// Notes that the transaction was committed.
    pub(super) fn committed(&self, commits: &GroupCommit, transaction: i64) {
        let mut open = self.0.lock();
        if open.transaction == transaction {
            let commit = commits.executed_count();
            memory::of_program(|| open.writes.drain(..).for_each(|(table, write)| table.note(commits, commit, write)));
        }
    }

    /// Takes the writes of a transaction whose commit is about to be sent. They are in flight from now on.
    pub(super) fn place(&self, transaction: i64) -> PlacedWrites {
        let mut open = self.0.lock();
        let is_open = open.transaction == transaction;
        let writes = if is_open { std::mem::take(&mut open.writes) } else { Vec::new() };
        let row = |write: &RowWrite| write.key.clone().map_or(WrittenRow::Any, WrittenRow::Key);
        let in_flight =
            memory::of_program(|| writes.iter().map(|(table, write)| table.in_flight.begin(row(write))).collect());
        PlacedWrites { writes, in_flight }
    }

    /// Gives the writes back to a transaction whose commit was not sent.
    pub(super) fn unplace(&self, transaction: i64, placed: PlacedWrites) {
        let mut open = self.0.lock();
        // It has none if it is one of another database, beside which another transaction may be open.
        if open.transaction == transaction {
            open.writes = placed.writes;
        }
    }

    /// Notes that the transaction was taken back.
    pub(super) fn rolled_back(&self, transaction: i64) {
        let mut open = self.0.lock();
        if open.transaction == transaction {
            memory::of_program(|| open.writes.clear());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_durable_are_forgotten() {
        let mut rows = RecentRows::default();
        for commit in 1..1_000 {
            rows.unsorted.push((commit, RowWrite::of_key(&Value::Int(commit as i64))));
            let durable = commit.saturating_sub(100);
            rows.sort(durable);
            assert!(rows.by_key.len() <= 202, "{} rows are kept for 100", rows.by_key.len());
            assert!((durable + 1..=commit).all(|open| rows.by_key.contains_key(&Value::Int(open as i64))));
        }
    }

    #[test]
    fn values_of_a_row_are_known_unless_a_write_hides_them() {
        let (mut rows, value) = (RecentRows::default(), |number| Value::Record([Value::Int(number)].into()));
        let key = || Value::Int(1);
        rows.unsorted.push((1, RowWrite::of_value(&key(), &value(1))));
        rows.unsorted.push((2, RowWrite::of_values(&key(), [&value(1), &value(2)])));
        rows.sort(0);
        assert_eq!(rows.by_key[&key()].values.known().map(<[Value]>::len), Some(3));
        rows.unsorted.push((3, RowWrite::of_key(&key())));
        rows.sort(0);
        assert!(rows.by_key[&key()].values.known().is_none() && rows.by_key[&key()].commit == 3);
    }
}
