//! A table in memory: its rows by key, ordered indexes, expiry, eviction, and a log that takes back a transaction.
//!
//! Rows are written in the order of their *write numbers*. As all rows have the same time to live, the one that was written
//! first is the next to expire, and the next to be evicted. The bytes of a row are those of its values, of its key in the maps,
//! and of its values in the indexes, each as if it were stored by itself: they are the same under every engine.

pub(super) mod access_path;
pub(super) mod index;
pub(super) mod key_tree;
pub(super) mod rows;
pub(super) mod write_order;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use weir::{Failure, Value};

use self::index::MemoryIndex;
use self::rows::KeyedRows;
use self::undo_log::UndoLog;
use self::write_order::WriteOrder;
use super::constraint;
use super::row::fields;
use super::schema::{Schema, SoftTable, TableSearch};

mod number_tree;
mod search;
mod undo_log;

/// The number of tables that were opened.
static TABLES: AtomicU64 = AtomicU64::new(0);

/// A monotonic clock by which rows expire: one that is set back would make an expired row be there again.
pub(super) type TableClock = fn() -> Instant;

/// A table in memory.
#[derive(Debug)]
pub(super) struct MemoryTable {
    /// Is the number of no other table of the process.
    number: u64,
    schema: Schema,
    rows: KeyedRows<StoredRow>,
    /// For each index, the rows by the values of its columns.
    indexes: Vec<MemoryIndex>,
    /// The keys in the order of the writes.
    written: WriteOrder,
    writes: u64,
    /// The bytes of all rows, if they are bounded.
    bytes: u64,
    /// The number of the next row, if the table numbers its rows; `None` if all numbers are used up.
    next: Option<i64>,
    /// The transaction that is open, and what it has changed.
    undo: Option<UndoLog<StoredRow>>,
    clock: TableClock,
}

#[derive(Clone, Debug)]
struct StoredRow {
    row: Value,
    write: u64,
    /// The time at which it was written, if rows expire.
    at: Option<Instant>,
    bytes: u64,
}

impl MemoryTable {
    pub(super) fn new(schema: Schema, clock: TableClock) -> MemoryTable {
        MemoryTable {
            number: TABLES.fetch_add(1, Ordering::Relaxed),
            indexes: schema.indexes.iter().map(|index| MemoryIndex::new(index, &schema.key)).collect(),
            schema,
            rows: KeyedRows::default(),
            written: WriteOrder::default(),
            writes: 0,
            bytes: 0,
            next: Some(1),
            undo: None,
            clock,
        }
    }

    pub(super) fn get(&mut self, transaction: i64, key: &Value) -> Option<Value> {
        self.enter(transaction);
        let now = self.now();
        let found = self.rows.get(key).filter(|row| self.is_live(row, now));
        found.map(|row| row.row.clone())
    }

    pub(super) fn insert(&mut self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.enter(transaction);
        let mut row = self.schema.stored(row)?;
        let mut next = self.next;
        if self.schema.auto {
            let number = next.ok_or_else(|| constraint::no_number_left(&self.schema))?;
            row = self.schema.renumbered(row, number);
            next = number.checked_add(1);
        }
        let key = self.schema.key_of(fields(&row));
        self.expire();
        // As in PostgreSQL, the key is the first rule. No row has the next number, nor a greater one.
        debug_assert!(!self.schema.auto || !self.rows.contains_key(&key), "numbers are given out in ascending order");
        if !self.schema.auto && self.rows.contains_key(&key) {
            return Err(constraint::taken(&self.schema, &self.schema.key, fields(&row)));
        }
        self.no_conflict(&row, None)?;
        self.next = next;
        self.log(&key);
        self.add(key.clone(), row);
        Ok(key)
    }

    pub(super) fn upsert(&mut self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.enter(transaction);
        let row = self.schema.stored(row)?;
        let key = self.schema.key_of(fields(&row));
        self.no_conflict(&row, Some(&key))?;
        if let (true, Value::Int(number)) = (self.schema.auto, &key) {
            self.next = self.next.and_then(|next| number.checked_add(1).map(|behind| next.max(behind)));
        }
        self.put(key.clone(), row);
        Ok(key)
    }

    pub(super) fn replace(&mut self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure> {
        self.enter(transaction);
        let row = self.schema.replacement(key, row)?;
        self.has_replaced(key, &row)?;
        self.no_conflict(&row, Some(key))?;
        self.put(key.clone(), row.clone());
        Ok(row)
    }

    pub(super) fn replace_rows(&mut self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        self.enter(transaction);
        let rows = self.schema.replacements(old, new)?;
        rows.iter().try_for_each(|(key, row)| self.has_replaced(key, row))?;
        self.no_conflicts(&rows)?;
        let count = rows.len() as i64;
        rows.into_iter().for_each(|(key, row)| self.put(key, row));
        Ok(count)
    }

    pub(super) fn delete(&mut self, transaction: i64, key: &Value) -> bool {
        self.enter(transaction);
        self.expire();
        self.take(key)
    }

    pub(super) fn delete_all(&mut self, transaction: i64, search: &TableSearch) -> i64 {
        self.enter(transaction);
        self.expire();
        let mut rows = Vec::new();
        self.visit(&self.plan(search), search, &mut |row| {
            rows.push(row.clone());
            true
        });
        self.delete_rows(transaction, &rows)
    }

    pub(super) fn delete_rows(&mut self, transaction: i64, rows: &[Value]) -> i64 {
        self.enter(transaction);
        self.expire();
        let keys: Vec<Value> = rows.iter().map(|row| self.schema.key_of(fields(row))).collect();
        let deleted = keys.iter().filter(|key| self.take(key)).count();
        deleted as i64
    }

    pub(super) fn commit(&mut self, transaction: i64) {
        self.enter(transaction);
        self.undo = None;
    }

    /// Takes back a transaction, if it is open.
    pub(super) fn roll_back(&mut self, transaction: i64) {
        if self.undo.as_ref().is_some_and(|undo| undo.is_of(transaction)) {
            self.take_back();
        }
    }

    /// Takes back an unfinished transaction of another number, and begins to log this one.
    fn enter(&mut self, transaction: i64) {
        if self.undo.as_ref().is_some_and(|undo| !undo.is_of(transaction)) {
            self.take_back();
        }
        if self.undo.is_none() {
            self.written.close_gaps();
        }
        if transaction != 0 && self.undo.is_none() {
            self.undo = Some(UndoLog::new(transaction, self.time(), self.next));
        }
    }

    fn take_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.next = undo.next();
        for (key, before) in undo.into_changes() {
            self.remove(&key);
            if let Some(stored) = before {
                self.place(key, stored);
            }
        }
    }

    /// Removes expired rows. Fails if another row than the one with this key has the values of a unique index, or if this one is
    /// larger than the table may be.
    fn no_conflict(&mut self, row: &Value, but: Option<&Value>) -> Result<(), Failure> {
        self.expire();
        self.fits(row)?;
        let row = fields(row);
        for (index, known) in self.schema.indexes.iter().zip(&self.indexes) {
            if !index.unique || self.schema.has_absent(&index.columns, row) {
                continue;
            }
            let values: Vec<Value> = index.columns.iter().map(|at| row[*at].clone()).collect();
            if known.any_key(&values, |key| Some(key) != but) {
                return Err(constraint::taken(&self.schema, &index.columns, row));
            }
        }
        Ok(())
    }

    /// Removes expired rows. Fails if two rows would have the values of a unique index after these are replaced one after the other,
    /// or if one is larger than the table may be.
    fn no_conflicts(&mut self, rows: &[(Value, Value)]) -> Result<(), Failure> {
        self.expire();
        rows.iter().try_for_each(|(_, row)| self.fits(row))?;
        let replaced: BTreeSet<&Value> = rows.iter().map(|(key, _)| key).collect();
        let mut unique: Vec<_> = self.schema.indexes.iter().zip(&self.indexes).collect();
        unique.retain(|(index, _)| index.unique);
        let mut seen = vec![BTreeSet::new(); unique.len()];
        for row in rows.iter().map(|(_, row)| fields(row)) {
            for ((index, known), seen) in unique.iter().zip(&mut seen) {
                if self.schema.has_absent(&index.columns, row) {
                    continue;
                }
                let values: Vec<Value> = index.columns.iter().map(|at| row[*at].clone()).collect();
                let stays = known.any_key(&values, |key| !replaced.contains(key));
                if stays || !seen.insert(values) {
                    return Err(constraint::taken(&self.schema, &index.columns, row));
                }
            }
        }
        Ok(())
    }

    /// Fails if the row that is replaced was deleted. One that the table has forgotten meanwhile is written again.
    fn has_replaced(&self, key: &Value, row: &Value) -> Result<(), Failure> {
        let forgets = self.schema.soft.as_ref().is_some_and(SoftTable::forgets);
        match forgets || self.rows.get(key).is_some() {
            true => Ok(()),
            false => Err(constraint::not_replaced(&self.schema, fields(row))),
        }
    }

    /// Fails if a row is larger than the table may be.
    fn fits(&self, row: &Value) -> Result<(), Failure> {
        match self.capacity().map(|capacity| (capacity, self.bytes_of(fields(row)))) {
            Some((capacity, bytes)) if bytes > capacity => {
                Err(constraint::larger_than_table(&self.schema, bytes, capacity))
            }
            _ => Ok(()),
        }
    }

    /// Returns the maximum number of bytes of all rows, if they are bounded.
    fn capacity(&self) -> Option<u64> {
        self.schema.soft.as_ref().and_then(|soft| soft.capacity).map(|bytes| bytes as u64)
    }

    /// Returns about the bytes that a row takes.
    fn bytes_of(&self, row: &[Value]) -> u64 {
        let of = |columns: &[usize]| columns.iter().map(|at| row[*at].approximate_bytes()).sum::<u64>();
        let key = of(&self.schema.key);
        let indexed = self.schema.indexes.iter().map(|index| key + of(&index.columns));
        // The rows, and the order in which they were written, have the key, too.
        row.iter().map(Value::approximate_bytes).sum::<u64>() + 2 * key + indexed.sum::<u64>()
    }

    /// Writes a row, and evicts those beyond the limits.
    fn put(&mut self, key: Value, row: Value) {
        self.log(&key);
        self.remove(&key);
        self.add(key, row);
    }

    /// Writes a row whose key no other has, and evicts those beyond the limits.
    fn add(&mut self, key: Value, row: Value) {
        self.writes += 1;
        // Its life begins now, however long its transaction takes.
        let at = self.time();
        let capacity = self.capacity();
        let bytes = capacity.map_or(0, |_| self.bytes_of(fields(&row)));
        self.place(key, StoredRow { row, write: self.writes, at, bytes });
        let at_most = self.schema.soft.as_ref().and_then(|soft| soft.at_most).unwrap_or(usize::MAX);
        let capacity = capacity.unwrap_or(u64::MAX);
        while self.rows.len() > at_most || self.bytes > capacity {
            let Some(oldest) = self.written.oldest().cloned() else { return };
            self.take(&oldest);
        }
    }

    /// Deletes a row, and returns whether there was one.
    fn take(&mut self, key: &Value) -> bool {
        self.log(key);
        self.remove(key)
    }

    fn log(&mut self, key: &Value) {
        if let Some(undo) = &mut self.undo {
            undo.note(key.clone(), self.rows.get(key).cloned());
        }
    }

    fn place(&mut self, key: Value, stored: StoredRow) {
        for index in &mut self.indexes {
            index.insert(index.values(fields(&stored.row)), &key, stored.row.clone());
        }
        self.written.insert(stored.write, key.clone());
        self.bytes += stored.bytes;
        self.rows.insert(key, stored);
    }

    fn remove(&mut self, key: &Value) -> bool {
        let Some(stored) = self.rows.remove(key) else { return false };
        self.written.remove(stored.write);
        self.bytes -= stored.bytes;
        for index in &mut self.indexes {
            index.remove(index.values(fields(&stored.row)), key);
        }
        true
    }

    /// Removes the rows that have expired.
    fn expire(&mut self) {
        let Some(now) = self.now() else { return };
        while let Some(oldest) = self.written.oldest().cloned() {
            if self.rows.get(&oldest).is_some_and(|row| self.is_live(row, Some(now))) {
                return;
            }
            self.take(&oldest);
        }
    }

    /// Returns the time by which rows have expired, if they do: that of the open transaction.
    fn now(&self) -> Option<Instant> {
        self.undo.as_ref().map_or_else(|| self.time(), UndoLog::now)
    }

    /// Returns the time of the clock, if rows expire.
    fn time(&self) -> Option<Instant> {
        self.schema.soft.as_ref().and_then(|soft| soft.ttl).map(|_| (self.clock)())
    }

    fn is_live(&self, row: &StoredRow, now: Option<Instant>) -> bool {
        match (now, row.at, self.schema.soft.as_ref().and_then(|soft| soft.ttl)) {
            (Some(now), Some(at), Some(ttl)) => now.saturating_duration_since(at) < ttl,
            _ => true,
        }
    }
}
