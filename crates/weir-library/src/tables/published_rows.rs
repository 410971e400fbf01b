//! The rows of a table whose commits are published, and whose writes are noted until they are durable. Its reads note what they have seen
//! (`seen_reads`), and its writes what they have written (`noted_writes`).

use std::num::NonZeroUsize;
use std::sync::Arc;

use parking_lot::Mutex;
use weir::{Failure, SeenCommits, Value, memory};

use super::change_notes::inserted;
use super::database_threads::DatabaseThread;
use super::failure_site::FailureSite;
use super::group_commit::GroupCommit;
use super::grouping::TableGrouping;
use super::in_flight_writes::WrittenRow;
use super::join::KeyPart;
use super::own_commits::OwnCommits;
use super::program_owned::ProgramOwned;
use super::read_notes::ReadNotes;
use super::recent_writes::{OpenWrites, ROWS_MAX, RecentWrites, RowWrite};
use super::row::fields;
use super::rows::{
    ChangeAnswered, CommitEnded, LaterAnswer, LaterChange, LaterEnd, ReadSize, RowChange, SentRead, TableRead,
    TableRows, TableSnapshot, TogetherStatements,
};
use super::schema::{Schema, TableSearch};
use super::write_sets::{TableWrite, WriteSets};

/// The rows of a table, and the write sets of their program.
#[derive(Debug)]
pub(super) struct PublishedRows {
    pub(super) schema: Arc<Schema>,
    pub(super) rows: Box<dyn TableRows>,
    /// The commits of its database; `None` if each is durable when it is visible.
    pub(super) commits: Option<Arc<GroupCommit>>,
    /// The commits of the program's own database, if the table is in that; also if the program reads it as one of another program.
    pub(super) own: Option<Arc<OwnCommits>>,
    pub(super) recent: Arc<RecentWrites>,
    pub(super) open_writes: Arc<OpenWrites>,
    pub(super) write_sets: Arc<WriteSets>,
}

impl PublishedRows {
    /// Returns the rows of a table of the program's own database, or of another one if there are no commits of that.
    pub(super) fn new(
        (schema, rows): (Schema, Box<dyn TableRows>),
        own: Option<Arc<OwnCommits>>,
        open_writes: Arc<OpenWrites>,
        write_sets: Arc<WriteSets>,
    ) -> PublishedRows {
        let (commits, recent) = (rows.commits().cloned(), Arc::<RecentWrites>::default());
        if let Some((own, commits)) = own.as_ref().zip(commits.as_ref()) {
            own.add(commits, &recent.in_flight);
        }
        PublishedRows { schema: Arc::new(schema), rows, commits, own, recent, open_writes, write_sets }
    }
}

impl TableRows for PublishedRows {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        let depends_on = |recent: &RecentWrites, commits: &_| recent.commit_of_row(commits, key);
        self.reading(transaction, depends_on, || self.rows.get(transaction, key))
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        let depends_on = |recent: &RecentWrites, commits: &_| {
            keys.iter().map(|key| recent.commit_of_row(commits, key)).max().unwrap_or(0)
        };
        self.reading(transaction, depends_on, || self.rows.get_all(transaction, keys))
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        self.searching(transaction, search, || self.rows.select(transaction, search))
    }

    fn rows_with(
        &self,
        transaction: i64,
        columns: &[usize],
        parts: &[Vec<Value>],
    ) -> Option<Result<Vec<Value>, Failure>> {
        // A transaction sees all commits, and waits for them at its end.
        if transaction == 0 { None } else { self.rows.rows_with(transaction, columns, parts) }
    }

    fn column(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<Vec<Value>, Failure> {
        self.searching(transaction, search, || self.rows.column(transaction, search, column))
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        self.searching(transaction, search, || self.rows.select_joined(transaction, search, joined))
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        self.searching(transaction, search, || self.rows.count(transaction, search))
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        self.searching(transaction, search, || self.rows.sum(transaction, search, column))
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        self.searching(transaction, search, || self.rows.group(transaction, search, grouping))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let given = self.commits.as_ref().map(|_| row.clone());
        let _in_flight = self.in_flight(transaction, || self.written_row(&RowChange::Insert(row.clone())));
        self.writing(|| {
            let key = self.rows.insert(transaction, row)?;
            self.note(transaction, || {
                given.map(|given| RowWrite::of_value(&key, &inserted(&self.schema, &given, &key)))
            });
            self.wrote(transaction, || vec![TableWrite::of_row(&self.schema, &key)]);
            Ok(key)
        })
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let _in_flight = self.in_flight(transaction, || self.written_row(&RowChange::Upsert(row.clone())));
        self.writing(|| {
            let key = self.rows.upsert(transaction, row)?;
            self.note(transaction, || [RowWrite::of_key(&key)]);
            self.wrote(transaction, || vec![TableWrite::of_row(&self.schema, &key)]);
            Ok(key)
        })
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure> {
        let _in_flight = self.in_flight(transaction, || WrittenRow::Key(key.clone()));
        self.writing(|| {
            let stored = self.rows.replace(transaction, key, row)?;
            self.note(transaction, || [RowWrite::of_key(key)]);
            self.wrote(transaction, || vec![TableWrite::of_replaced(&self.schema, key)]);
            Ok(stored)
        })
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let written = TableWrite::of_changed(&self.schema, old, &new);
        let changed: Vec<RowWrite> = match self.commits {
            Some(_) if old.len() > ROWS_MAX => vec![RowWrite::of_any()],
            Some(_) => old.iter().zip(&new).map(|(old, new)| self.changed(old, new)).collect(),
            None => Vec::new(),
        };
        let _in_flight = self.in_flight(transaction, || WrittenRow::Any);
        self.writing(|| {
            let replaced = self.rows.replace_rows(transaction, old, new)?;
            self.note(transaction, || changed);
            self.wrote(transaction, || written);
            Ok(replaced)
        })
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        let _in_flight = self.in_flight(transaction, || WrittenRow::Key(key.clone()));
        self.writing(|| {
            let deleted = self.rows.delete(transaction, key)?;
            self.note(transaction, || deleted.then(|| RowWrite::of_key(key)));
            self.wrote(transaction, || if deleted { vec![TableWrite::of_row(&self.schema, key)] } else { Vec::new() });
            Ok(deleted)
        })
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let _in_flight = self.in_flight(transaction, || WrittenRow::Any);
        self.writing(|| {
            let deleted = self.rows.delete_all(transaction, search)?;
            self.note(transaction, || (deleted > 0).then(RowWrite::of_any));
            self.wrote(transaction, || if deleted > 0 { vec![TableWrite::of_any(&self.schema)] } else { Vec::new() });
            Ok(deleted)
        })
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        let _in_flight = self.in_flight(transaction, || WrittenRow::Any);
        self.writing(|| {
            let deleted = self.rows.delete_rows(transaction, rows)?;
            let each = || rows.iter().map(|row| RowWrite::of_value(&self.schema.key_of(fields(row)), row));
            match rows.len() > ROWS_MAX {
                true => self.note(transaction, || [RowWrite::of_any()]),
                false => self.note(transaction, each),
            }
            self.wrote(transaction, || TableWrite::of_deleted(&self.schema, rows));
            Ok(deleted)
        })
    }

    fn together(&self, transaction: i64, statements: TogetherStatements<'_>) -> Result<(), Failure> {
        self.rows.together(transaction, statements)
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        self.writing(|| {
            let writes = if last { self.committing(transaction) } else { None };
            let committed = self.rows.commit(transaction, last);
            // The tables in memory follow the last stored one, and add nothing to what was published.
            if committed.is_err() || last || !self.is_stored() {
                self.noting().ended(transaction, writes, committed.is_ok());
            }
            committed
        })
    }

    fn commit_at_once(&self, transaction: i64) -> Result<(), Failure> {
        self.writing(|| {
            let writes = self.committing(transaction);
            let committed = self.rows.commit_at_once(transaction);
            self.noting().ended(transaction, writes, committed.is_ok());
            committed
        })
    }

    fn roll_back(&self, transaction: i64) {
        self.rows.roll_back(transaction);
        self.noting().ended(transaction, None, false);
    }

    fn read_in_transaction(&self, transaction: i64, read: &TableRead) -> Option<LaterAnswer> {
        // A transaction sees all commits, and waits for them at its end.
        self.rows.read_in_transaction(transaction, read)
    }

    fn expect(&self, transaction: i64, keys: &mut dyn Iterator<Item = Value>) -> bool {
        self.rows.expect(transaction, keys)
    }

    fn expect_found(&self, transaction: i64, read: &TableRead) -> bool {
        self.rows.expect_found(transaction, read)
    }

    fn has_row(&self, transaction: i64, key: &Value) -> bool {
        self.rows.has_row(transaction, key)
    }

    fn knows_row(&self, transaction: i64, key: &Value) -> bool {
        self.rows.knows_row(transaction, key)
    }

    fn change_in_transaction(&self, transaction: i64, change: &RowChange) -> Option<LaterAnswer> {
        let answer = self.rows.change_in_transaction(transaction, change)?;
        let (note, change) = (self.noting(), change.clone());
        Some(Box::pin(async move {
            let answer = answer.await?;
            note.changed(transaction, &change, &answer);
            Ok(answer)
        }))
    }

    fn may_place(&self, transaction: i64, change: &RowChange) -> bool {
        self.rows.may_place(transaction, change)
    }

    fn place(
        &self,
        transaction: i64,
        change: &RowChange,
        site: Option<&FailureSite>,
    ) -> Option<Result<Value, Failure>> {
        let placed = self.rows.place(transaction, change, site)?;
        if let Ok(answer) = &placed {
            self.noting().changed(transaction, change, answer);
        }
        Some(placed)
    }

    fn commit_later(&self, transaction: i64) -> Option<LaterEnd> {
        let writes = self.committing(transaction);
        let Some(committing) = self.rows.commit_later(transaction) else {
            writes.into_iter().for_each(|writes| self.open_writes.unplace(transaction, writes));
            return None;
        };
        let note = self.noting();
        Some(Box::pin(async move {
            let committed = committing.await;
            note.ended(transaction, writes, committed.is_ok());
            committed
        }))
    }

    fn may_place_commit(&self, transaction: i64) -> bool {
        self.rows.may_place_commit(transaction)
    }

    fn place_commit(&self, transaction: i64, ended: CommitEnded) -> bool {
        if !self.rows.may_place_commit(transaction) {
            return false;
        }
        let (note, placed) = (self.noting(), Arc::new(Mutex::new(Some(self.placed(transaction)))));
        let writes = Arc::clone(&placed);
        let noted: CommitEnded = Box::new(move |committed| {
            note.ended(transaction, writes.lock().take(), committed.is_ok());
            ended(committed);
        });
        let is_sent = self.rows.place_commit(transaction, noted);
        if !is_sent && let Some(placed) = placed.lock().take() {
            self.open_writes.unplace(transaction, placed);
        }
        is_sent
    }

    fn has_placed(&self, transaction: i64) -> bool {
        self.rows.has_placed(transaction)
    }

    fn roll_back_later(&self, transaction: i64) -> Option<LaterEnd> {
        let taking_back = self.rows.roll_back_later(transaction)?;
        let note = self.noting();
        Some(Box::pin(async move {
            let taken_back = taking_back.await;
            note.ended(transaction, None, false);
            taken_back
        }))
    }

    fn refused(&self, transaction: i64) -> Option<Failure> {
        self.rows.refused(transaction)
    }

    fn read_later(&self, read: &TableRead, _notes: Option<ReadNotes>) -> Option<SentRead> {
        self.rows.read_later(read, self.read_notes())
    }

    fn thread(&self) -> Option<DatabaseThread> {
        self.rows.thread()
    }

    fn change_later(&self, change: &RowChange, answered: ChangeAnswered) -> Option<LaterChange> {
        // The task that answers the change may release it behind the end of the flow.
        let change = &*ProgramOwned::new(|| change.unshared_copy());
        let in_flight = memory::of_program(|| self.recent.in_flight.begin(self.written_row(change)));
        let (note, change_noted) = (self.noting(), change.clone());
        let answered = move |answer: &Result<Value, Failure>| {
            if let Ok(value) = answer {
                note.changed(0, &change_noted, value);
                if let (RowChange::Insert(_), true) = (&change_noted, note.schema.auto) {
                    in_flight.given(value);
                }
            }
            // The reads that wait for it look for its commit now.
            drop(in_flight);
            answered(answer);
        };
        self.rows.change_later(change, memory::of_program(|| Box::new(answered)))
    }

    fn takes_long(&self, read: ReadSize<'_>) -> bool {
        self.rows.takes_long(read)
    }

    fn waits_to_write(&self) -> bool {
        self.rows.waits_to_write()
    }

    fn waits_to_begin(&self, transaction: i64) -> bool {
        self.rows.waits_to_begin(transaction)
    }

    fn snapshot(&self, read: &TableRead) -> Option<Box<dyn TableSnapshot>> {
        let Some(commits) = &self.commits else { return self.rows.snapshot(read) };
        let depends_on = |recent: &RecentWrites, commits: &GroupCommit| recent.commit_of(commits, read);
        let dependence = self.dependence(commits, &depends_on);
        if !self.rows.shows(dependence.commit) {
            return None;
        }
        let snapshot = self.rows.snapshot(read);
        SeenCommits::note(dependence.commit);
        self.note_later(commits, &dependence, &depends_on);
        snapshot
    }

    fn saw_all_meanwhile(&self) {
        let Some(commits) = &self.commits else { return self.saw_all_of_own() };
        if self.is_shared() {
            self.wait_for_changes(commits);
        }
        SeenCommits::note(self.dependence(commits, &RecentWrites::commit_of_any).commit);
    }

    fn snapshots(&self) -> Option<NonZeroUsize> {
        self.rows.snapshots()
    }

    fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.commits.as_ref()
    }

    fn show(&self, commit: u64) {
        self.rows.show(commit);
    }

    fn shows(&self, commit: u64) -> bool {
        self.rows.shows(commit)
    }

    fn waits_to_see(&self, read: &dyn Fn() -> Option<TableRead>) -> bool {
        let Some(commits) = &self.commits else { return false };
        let is_visible = |commit| commits.is_visible(commit);
        let executed = commits.executed_count();
        if is_visible(executed) || commits.are_noted_to(executed) && is_visible(self.recent.last()) {
            return false;
        }
        let Some(read) = read() else { return false };
        let dependence = self.dependence(commits, &|recent, commits| recent.commit_of(commits, &read));
        !self.rows.shows(dependence.commit)
    }

    fn saw_all(&self) {
        if let Some(commits) = &self.commits {
            let commit = self.dependence(commits, &RecentWrites::commit_of_any).commit;
            self.rows.show(commit);
            SeenCommits::note(commit);
        }
    }

    fn is_stored(&self) -> bool {
        self.rows.is_stored()
    }

    fn is_shared(&self) -> bool {
        self.rows.is_shared()
    }
}
