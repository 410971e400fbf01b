//! The notes of what is written to a table: for reads until it is durable, and for those who keep something that depends on the table.

use std::sync::Arc;

use weir::{Failure, Value};

use super::change_notes::ChangeNotes;
use super::in_flight_writes::{InFlightWrite, WrittenRow};
use super::published_rows::PublishedRows;
use super::recent_writes::{PlacedWrites, RowWrite};
use super::row::fields;
use super::rows::{RowChange, TableRows};
use super::write_sets::TableWrite;

impl PublishedRows {
    /// Publishes writes when they are committed.
    pub(super) fn wrote(&self, transaction: i64, writes: impl FnOnce() -> Vec<TableWrite>) {
        self.write_sets.wrote(transaction, writes);
    }

    /// Notes writes until they are durable.
    pub(super) fn note<W: IntoIterator<Item = RowWrite>>(&self, transaction: i64, writes: impl FnOnce() -> W) {
        if let Some(commits) = &self.commits {
            for write in writes() {
                self.recent.wrote(commits, &self.open_writes, transaction, write);
            }
        }
    }

    /// Writes, and has reads know that everything is noted which was executed.
    pub(super) fn writing<T>(&self, write: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let written = write();
        self.commits.iter().for_each(|commits| commits.noted());
        written
    }

    /// Notes that a write which needs a thread, and is a transaction by itself, is in flight.
    pub(super) fn in_flight(&self, transaction: i64, row: impl FnOnce() -> WrittenRow) -> Option<InFlightWrite> {
        let needs_note = transaction == 0 && self.is_shared() && self.commits.is_some();
        needs_note.then(|| self.recent.in_flight.begin(row()))
    }

    /// Notes that the commit of a transaction is in flight, whose database is another process.
    pub(super) fn committing(&self, transaction: i64) -> Option<PlacedWrites> {
        let is_of_process = self.is_shared() && self.commits.is_some();
        is_of_process.then(|| self.placed(transaction))
    }

    /// Takes the writes of a transaction whose commit is about to be sent. They are in flight from now on.
    pub(super) fn placed(&self, transaction: i64) -> PlacedWrites {
        let placed = self.open_writes.place(transaction);
        // A trigger may write also if no row is noted.
        match self.commits.as_ref().is_some_and(|commits| commits.has_triggers()) {
            true => placed.and_any_of(&self.recent),
            false => placed,
        }
    }

    /// Returns the write of a row that was replaced.
    pub(super) fn changed(&self, old: &Value, new: &Value) -> RowWrite {
        RowWrite::of_values(&self.schema.key_of(fields(old)), [old, new])
    }

    /// Returns the row that a change writes.
    pub(super) fn written_row(&self, change: &RowChange) -> WrittenRow {
        match change {
            RowChange::Insert(row) if self.schema.auto => WrittenRow::Numbered(row.clone(), self.schema.key[0]),
            RowChange::Insert(row) => WrittenRow::Inserted(self.schema.key_of(fields(row)), row.clone()),
            RowChange::Upsert(row) => WrittenRow::Key(self.schema.key_of(fields(row))),
            RowChange::Replace(key, _) | RowChange::Delete(key) => WrittenRow::Key(key.clone()),
        }
    }

    /// Returns the notes of changes whose answers come later.
    pub(super) fn noting(&self) -> ChangeNotes {
        ChangeNotes {
            schema: Arc::clone(&self.schema),
            commits: self.commits.clone(),
            write_sets: Arc::clone(&self.write_sets),
            recent: Arc::clone(&self.recent),
            open_writes: Arc::clone(&self.open_writes),
        }
    }
}
