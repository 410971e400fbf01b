//! Write sets: the rows and columns that commits have written, for whoever keeps something that depends on tables.
//!
//! A write set is published when the commit is visible to others, in the order of the commits. Programs that share tables in
//! PostgreSQL publish theirs to each other (`postgres::publications`). It may name more than was written: all columns of a row
//! that was replaced, or all rows of a table.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use weir::Value;

use super::constraint;
use super::program_owned::text_bytes;
use super::row::fields;
use super::schema::Schema;

/// Maximum number of write sets that wait for a reader. One that is slower learns that it has missed some.
const WAITING_MAX: usize = 1_024;
/// Maximum number of transactions whose writes are kept until they commit.
const TRANSACTIONS_MAX: usize = 1_024;
/// Maximum number of rows that a write set names; of more, it names the table.
const ROWS_MAX: usize = 100;
/// Maximum length of the text of a key, in bytes; a longer one is not named.
const KEY_BYTES_MAX: usize = 1_000;

/// Rows of a table that a commit has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWrite {
    /// The name of the table.
    pub table: String,
    /// The key of the row, as a program writes it; `None` if any rows may be written.
    pub key: Option<String>,
    /// The columns that may have other values; all if a row was inserted or deleted.
    pub columns: Vec<String>,
}

/// Rows that a commit has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteSet {
    /// These rows.
    Rows(Vec<TableWrite>),
    /// Perhaps all rows of all tables: the connection was lost on which other programs tell of their commits, or is there again.
    Unknown,
}

impl TableWrite {
    /// A row that was inserted or deleted, or replaced by another one.
    pub(super) fn of_row(schema: &Schema, key: &Value) -> TableWrite {
        TableWrite { key: key_text(schema, key), ..TableWrite::of_any(schema) }
    }

    /// Any rows of the table.
    pub(super) fn of_any(schema: &Schema) -> TableWrite {
        let columns = schema.columns.iter().map(|column| column.name.clone()).collect();
        TableWrite { table: schema.name.clone(), key: None, columns }
    }

    /// A row with another one in its place, of which this program does not know the values before.
    pub(super) fn of_replaced(schema: &Schema, key: &Value) -> TableWrite {
        let mut written = TableWrite::of_row(schema, key);
        written.columns.retain(|name| schema.key.iter().all(|at| schema.columns[*at].name != *name));
        written
    }

    /// Rows with others in their places: the columns that differ.
    pub(super) fn of_changed(schema: &Schema, old: &[Value], new: &[Value]) -> Vec<TableWrite> {
        if old.len() > ROWS_MAX {
            return vec![TableWrite::of_any(schema)];
        }
        let differing = |(old, new): (&Value, &Value)| {
            let (key, pairs) = (schema.key_of(fields(old)), fields(old).iter().zip(fields(new)));
            let columns = pairs.zip(&schema.columns).filter(|((old, new), _)| old != new);
            let columns = columns.map(|(_, column)| column.name.clone()).collect();
            TableWrite { table: schema.name.clone(), key: key_text(schema, &key), columns }
        };
        old.iter().zip(new).map(differing).collect()
    }

    /// Rows that were deleted.
    pub(super) fn of_deleted(schema: &Schema, rows: &[Value]) -> Vec<TableWrite> {
        if rows.len() > ROWS_MAX {
            return vec![TableWrite::of_any(schema)];
        }
        rows.iter().map(|row| TableWrite::of_row(schema, &schema.key_of(fields(row)))).collect()
    }
}

/// Returns a key as a program writes it; `None` if it is too long.
pub(super) fn key_text(schema: &Schema, key: &Value) -> Option<String> {
    if text_bytes(key) > KEY_BYTES_MAX {
        return None;
    }
    let text = match (&schema.key[..], key) {
        ([only], key) => constraint::whole(&schema.columns[*only], key),
        (several, Value::Record(parts)) => {
            let parts = several.iter().zip(parts.iter());
            let parts: Vec<String> = parts.map(|(at, part)| constraint::whole(&schema.columns[*at], part)).collect();
            format!("({})", parts.join(", "))
        }
        _ => return None,
    };
    (text.len() <= KEY_BYTES_MAX).then_some(text)
}

/// The write sets of the commits of a program, and of other programs that share its tables.
#[derive(Debug)]
pub(super) struct WriteSets {
    /// The number of readers, so that a program without one pays nothing.
    readers: AtomicUsize,
    published: broadcast::Sender<WriteSet>,
    /// The writes of transactions that have not ended, by their numbers.
    open: Mutex<BTreeMap<i64, Vec<TableWrite>>>,
}

impl Default for WriteSets {
    fn default() -> Self {
        WriteSets {
            readers: AtomicUsize::new(0),
            published: broadcast::Sender::new(WAITING_MAX),
            open: Mutex::default(),
        }
    }
}

impl WriteSets {
    /// Returns the write sets that are published from now on.
    pub(super) fn watch(&self) -> broadcast::Receiver<WriteSet> {
        self.readers.fetch_add(1, Ordering::AcqRel);
        self.published.subscribe()
    }

    /// Returns whether somebody has ever asked for write sets.
    fn is_watched(&self) -> bool {
        self.readers.load(Ordering::Acquire) > 0
    }

    /// Publishes a write set.
    pub(super) fn publish(&self, set: WriteSet) {
        // Nobody reads it any more if this fails.
        _ = self.published.send(set);
    }

    /// Notes writes of a transaction; those of a statement that is none of a transaction are published.
    pub(super) fn wrote(&self, transaction: i64, writes: impl FnOnce() -> Vec<TableWrite>) {
        if !self.is_watched() {
            return;
        }
        let writes = writes();
        if transaction == 0 {
            return self.publish(WriteSet::Rows(writes));
        }
        let mut open = self.open.lock();
        open.entry(transaction).or_default().extend(writes);
        // A transaction whose flow has ended without a word stays until others take its place.
        if open.len() > TRANSACTIONS_MAX {
            open.pop_first();
        }
    }

    /// Publishes what a transaction has written.
    pub(super) fn committed(&self, transaction: i64) {
        if let Some(writes) = self.open.lock().remove(&transaction).filter(|writes| !writes.is_empty()) {
            self.publish(WriteSet::Rows(writes));
        }
    }

    /// Forgets what a transaction has written.
    pub(super) fn rolled_back(&self, transaction: i64) {
        self.open.lock().remove(&transaction);
    }
}
