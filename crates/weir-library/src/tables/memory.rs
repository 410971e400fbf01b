//! A table in memory: its rows by key, ordered indexes, expiry, eviction, and a log that takes back a transaction.
//!
//! Rows are written in the order of their *write numbers*. As all rows have the same time to live, the one that was written
//! first is the next to expire, and the next to be evicted.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::SystemTime;

use weir::{Failure, Value};

use super::constraint;
use super::grouping::{GroupsInMemory, TableGrouping};
use super::row::fields;
use super::schema::{Schema, TableSearch};

/// A clock by which rows expire.
pub(super) type TableClock = fn() -> SystemTime;

/// A table in memory.
#[derive(Debug)]
pub(super) struct MemoryTable {
    schema: Schema,
    rows: BTreeMap<Value, StoredRow>,
    /// For each index, the keys of the rows by the values of its columns.
    indexes: Vec<BTreeMap<Vec<Value>, BTreeSet<Value>>>,
    /// The keys by write number.
    written: BTreeMap<u64, Value>,
    writes: u64,
    /// The number of the next row, if the table numbers its rows; `None` if all numbers are used up.
    next: Option<i64>,
    /// The transaction that is open, and what it has changed.
    undo: Option<UndoLog>,
    clock: TableClock,
}

#[derive(Clone, Debug)]
struct StoredRow {
    row: Value,
    write: u64,
    /// The time at which it was written.
    at: SystemTime,
}

#[derive(Debug)]
struct UndoLog {
    transaction: i64,
    next: Option<i64>,
    /// The keys that were written, each with the row before.
    changes: Vec<(Value, Option<StoredRow>)>,
}

/// The part of an index that holds the rows of a query, and the order in which it is visited.
struct AccessPath {
    /// The index; `None` for the key.
    index: Option<usize>,
    /// The least values of its columns.
    low: Vec<Value>,
    /// The greatest values of its columns.
    high: Vec<Value>,
    /// The direction of the visit if the rows then come in the order of the query.
    direction: Option<Direction>,
    /// The values of the index, and the key, of the row before a page.
    start: Option<(Vec<Value>, Value)>,
    /// The number of columns whose values are known, one that has a bound, and the order: the more, the fewer rows are
    /// visited.
    worth: (usize, bool, bool),
}

/// The direction of a visit.
#[derive(Clone, Copy)]
struct Direction {
    /// True if the greatest values of the columns come first.
    descending: bool,
    /// True if the greatest key comes first among rows that agree in the columns of an index.
    keys_descending: bool,
}

impl AccessPath {
    fn of(search: &TableSearch, index: Option<usize>, columns: &[usize], key: &[usize]) -> AccessPath {
        let mut low: Vec<Value> = columns.iter().map_while(|at| search.equal(*at).cloned()).collect();
        let known = low.len();
        let mut high = low.clone();
        let mut is_bounded = false;
        if let Some(column) = columns.get(known) {
            let (least, greatest) = search.bounds(*column);
            is_bounded = least.is_some() || greatest.is_some();
            low.push(least.cloned().unwrap_or(Value::Absent));
            high.push(greatest.cloned().unwrap_or_else(greatest_value));
        }
        low.resize(columns.len(), Value::Absent);
        high.resize_with(columns.len(), greatest_value);
        let direction = direction(search, index, &columns[known..], key);
        let mut path =
            AccessPath { index, low, high, direction, start: None, worth: (known, is_bounded, direction.is_some()) };
        path.begin_behind(search, known, columns, key);
        path
    }

    /// Begins an ordered visit at the row before the page.
    fn begin_behind(&mut self, search: &TableSearch, known: usize, columns: &[usize], key: &[usize]) {
        let (Some(after), Some(direction)) = (&search.after, self.direction) else { return };
        let rest = &columns[known..];
        let matching = after.iter().zip(rest).take_while(|(start, column)| start.column == **column).count();
        let values = after[..matching].iter().map(|start| start.value.clone());
        let mut place: Vec<Value> = self.low[..known].iter().cloned().chain(values).collect();
        let is_whole = place.len() == columns.len();
        if direction.descending {
            place.resize_with(columns.len(), greatest_value);
            self.high = place.clone().min(std::mem::take(&mut self.high));
        } else {
            place.resize(columns.len(), Value::Absent);
            self.low = place.clone().max(std::mem::take(&mut self.low));
        }
        let of_key = |at: &usize| {
            let start = after.iter().find(|start| start.column == *at).map(|start| &start.value);
            start.or_else(|| search.equal(*at)).cloned()
        };
        let keys: Option<Vec<Value>> = key.iter().map(of_key).collect();
        self.start = keys.filter(|_| is_whole && self.index.is_some()).map(|keys| (place, key_value(&keys)));
    }
}

/// Returns a value that is greater than that of any column.
fn greatest_value() -> Value {
    Value::Failure(Box::new(Failure::function("")))
}

/// Returns the key of these columns.
fn key_value(columns: &[Value]) -> Value {
    match columns {
        [only] => only.clone(),
        several => Value::Record(several.into()),
    }
}

impl MemoryTable {
    pub(super) fn new(schema: Schema, clock: TableClock) -> MemoryTable {
        MemoryTable {
            indexes: vec![BTreeMap::new(); schema.indexes.len()],
            schema,
            rows: BTreeMap::new(),
            written: BTreeMap::new(),
            writes: 0,
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

    pub(super) fn select(&mut self, transaction: i64, search: &TableSearch) -> Vec<Value> {
        self.enter(transaction);
        let plan = self.plan(search);
        let mut rows: Vec<Value> = Vec::new();
        self.visit(&plan, search, &mut |row| {
            if rows.len() < search.limit || plan.direction.is_none() {
                rows.push(row.clone());
            }
            plan.direction.is_none() || rows.len() < search.limit
        });
        if plan.direction.is_none() {
            self.sort(&mut rows, search);
            rows.truncate(search.limit);
        }
        rows
    }

    pub(super) fn count(&mut self, transaction: i64, search: &TableSearch) -> i64 {
        self.enter(transaction);
        let mut count = 0;
        self.visit(&self.plan(search), search, &mut |_| {
            count += 1;
            true
        });
        count
    }

    pub(super) fn sum(&mut self, transaction: i64, search: &TableSearch, column: usize) -> i128 {
        self.enter(transaction);
        let mut sum = 0;
        self.visit(&self.plan(search), search, &mut |row| {
            if let Value::Int(number) = &fields(row)[column] {
                sum += i128::from(*number);
            }
            true
        });
        sum
    }

    pub(super) fn group(&mut self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Vec<Value> {
        self.enter(transaction);
        let mut groups = GroupsInMemory::new(grouping);
        self.visit(&self.plan(search), search, &mut |row| {
            groups.add(self.schema.key_of(fields(row)), fields(row));
            true
        });
        groups.groups(search)
    }

    pub(super) fn insert(&mut self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.enter(transaction);
        let mut row = self.schema.stored(row)?;
        let mut next = self.next;
        if self.schema.auto {
            let number = next.ok_or_else(|| constraint::no_number_left(&self.schema))?;
            row = self.schema.numbered(&row, number);
            next = number.checked_add(1);
        }
        let key = self.schema.key_of(fields(&row));
        self.no_conflict(&row, None)?;
        if self.rows.contains_key(&key) {
            return Err(constraint::taken(&self.schema, &self.schema.key, fields(&row)));
        }
        self.next = next;
        self.put(key.clone(), row);
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

    pub(super) fn replace(&mut self, transaction: i64, key: &Value, row: Value) -> Result<(), Failure> {
        self.enter(transaction);
        let row = self.schema.replacement(key, row)?;
        self.no_conflict(&row, Some(key))?;
        self.put(key.clone(), row);
        Ok(())
    }

    pub(super) fn replace_rows(&mut self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        self.enter(transaction);
        let rows = self.schema.replacements(old, new)?;
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

    /// Takes back an unfinished transaction of another number, and begins to log this one.
    /// Takes back a transaction, if it is open.
    pub(super) fn roll_back(&mut self, transaction: i64) {
        if self.undo.as_ref().is_some_and(|undo| undo.transaction == transaction) {
            self.take_back();
        }
    }

    fn enter(&mut self, transaction: i64) {
        if self.undo.as_ref().is_some_and(|undo| undo.transaction != transaction) {
            self.take_back();
        }
        if transaction != 0 && self.undo.is_none() {
            self.undo = Some(UndoLog { transaction, next: self.next, changes: Vec::new() });
        }
    }

    fn take_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for (key, before) in undo.changes.into_iter().rev() {
            self.remove(&key);
            if let Some(stored) = before {
                self.place(key, stored);
            }
        }
        self.next = undo.next;
    }

    /// Removes expired rows. Fails if another row than the one with this key has the values of a unique index.
    fn no_conflict(&mut self, row: &Value, but: Option<&Value>) -> Result<(), Failure> {
        self.expire();
        let row = fields(row);
        for (index, known) in self.schema.indexes.iter().zip(&self.indexes) {
            if !index.unique || self.schema.has_absent(&index.columns, row) {
                continue;
            }
            let values: Vec<Value> = index.columns.iter().map(|at| row[*at].clone()).collect();
            if known.get(&values).is_some_and(|keys| keys.iter().any(|key| Some(key) != but)) {
                return Err(constraint::taken(&self.schema, &index.columns, row));
            }
        }
        Ok(())
    }

    /// Removes expired rows. Fails if two rows would have the values of a unique index after these are replaced.
    fn no_conflicts(&mut self, rows: &[(Value, Value)]) -> Result<(), Failure> {
        self.expire();
        let replaced: BTreeSet<&Value> = rows.iter().map(|(key, _)| key).collect();
        for (index, known) in self.schema.indexes.iter().zip(&self.indexes).filter(|(index, _)| index.unique) {
            let mut seen = BTreeSet::new();
            let present =
                rows.iter().map(|(_, row)| fields(row)).filter(|row| !self.schema.has_absent(&index.columns, row));
            for row in present {
                let values: Vec<Value> = index.columns.iter().map(|at| row[*at].clone()).collect();
                let stays = known.get(&values).is_some_and(|keys| keys.iter().any(|key| !replaced.contains(key)));
                if stays || !seen.insert(values) {
                    return Err(constraint::taken(&self.schema, &index.columns, row));
                }
            }
        }
        Ok(())
    }

    /// Writes a row, and evicts those beyond the limit.
    fn put(&mut self, key: Value, row: Value) {
        self.log(&key);
        self.remove(&key);
        self.writes += 1;
        let at = self.now().unwrap_or(SystemTime::UNIX_EPOCH);
        self.place(key, StoredRow { row, write: self.writes, at });
        let at_most = self.schema.soft.as_ref().and_then(|soft| soft.at_most).unwrap_or(usize::MAX);
        while self.rows.len() > at_most {
            let Some(oldest) = self.written.values().next().cloned() else { return };
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
            undo.changes.push((key.clone(), self.rows.get(key).cloned()));
        }
    }

    fn place(&mut self, key: Value, stored: StoredRow) {
        for (index, known) in self.schema.indexes.iter().zip(&mut self.indexes) {
            let values = index.columns.iter().map(|at| fields(&stored.row)[*at].clone()).collect();
            known.entry(values).or_default().insert(key.clone());
        }
        self.written.insert(stored.write, key.clone());
        self.rows.insert(key, stored);
    }

    fn remove(&mut self, key: &Value) -> bool {
        let Some(stored) = self.rows.remove(key) else { return false };
        self.written.remove(&stored.write);
        for (index, known) in self.schema.indexes.iter().zip(&mut self.indexes) {
            let values = index.columns.iter().map(|at| fields(&stored.row)[*at].clone()).collect();
            if let Entry::Occupied(mut keys) = known.entry(values) {
                keys.get_mut().remove(key);
                if keys.get().is_empty() {
                    keys.remove();
                }
            }
        }
        true
    }

    /// Removes the rows that have expired.
    fn expire(&mut self) {
        let Some(now) = self.now() else { return };
        while let Some(oldest) = self.written.values().next().cloned() {
            if self.rows.get(&oldest).is_some_and(|row| self.is_live(row, Some(now))) {
                return;
            }
            self.take(&oldest);
        }
    }

    /// Returns the time, if rows expire.
    fn now(&self) -> Option<SystemTime> {
        self.schema.soft.as_ref().and_then(|soft| soft.ttl).map(|_| (self.clock)())
    }

    fn is_live(&self, row: &StoredRow, now: Option<SystemTime>) -> bool {
        match (now, self.schema.soft.as_ref().and_then(|soft| soft.ttl)) {
            (Some(now), Some(ttl)) => now.duration_since(row.at).is_ok_and(|age| age < ttl) || row.at > now,
            _ => true,
        }
    }

    /// Chooses the index of which the most columns have the values that the query asks for; among those, one that has a
    /// bound, and one in the order of the query.
    fn plan(&self, search: &TableSearch) -> AccessPath {
        let indexes = self.schema.indexes.iter().enumerate().map(|(at, index)| (Some(at), &index.columns));
        let all = std::iter::once((None, &self.schema.key)).chain(indexes);
        let plans = all.map(|(index, columns)| AccessPath::of(search, index, columns, &self.schema.key));
        let best = plans.reduce(|one, other| if other.worth > one.worth { other } else { one });
        best.unwrap_or_else(|| AccessPath::of(search, None, &self.schema.key, &self.schema.key))
    }

    /// Calls `visit` with each live row that the query accepts, until it returns false.
    fn visit(&self, plan: &AccessPath, search: &TableSearch, visit: &mut dyn FnMut(&Value) -> bool) {
        if plan.low > plan.high {
            return;
        }
        let now = self.now();
        let mut row = |stored: &StoredRow| {
            !self.is_live(stored, now) || !search.accepts(fields(&stored.row)) || visit(&stored.row)
        };
        let descending = plan.direction.is_some_and(|direction| direction.descending);
        if let Some(index) = plan.index {
            let found = self.indexes[index].range(plan.low.clone()..=plan.high.clone());
            let mut all =
                |(values, keys): (&Vec<Value>, &BTreeSet<Value>)| self.visit_keys(plan, values, keys, &mut row);
            _ = if descending { found.rev().all(all) } else { { found }.all(&mut all) };
        } else {
            let mut found = self.rows.range(key_value(&plan.low)..=key_value(&plan.high)).map(|(_, stored)| stored);
            _ = if descending { found.rev().all(row) } else { found.all(&mut row) };
        }
    }

    /// Visits the rows with these values of an index, until `visit` returns false. Those before a page are left out.
    fn visit_keys(
        &self,
        plan: &AccessPath,
        values: &[Value],
        keys: &BTreeSet<Value>,
        visit: &mut dyn FnMut(&StoredRow) -> bool,
    ) -> bool {
        let start = plan.start.as_ref().filter(|(place, _)| place == values).map(|(_, key)| key);
        let mut row = |key: &Value| self.rows.get(key).is_none_or(&mut *visit);
        if plan.direction.is_some_and(|direction| direction.keys_descending) {
            let end = start.map_or(Bound::Unbounded, Bound::Excluded);
            return keys.range((Bound::Unbounded, end)).rev().all(&mut row);
        }
        let begin = start.map_or(Bound::Unbounded, Bound::Excluded);
        keys.range((begin, Bound::Unbounded)).all(&mut row)
    }

    /// Sorts rows by the order of the query, and equal ones by their keys.
    fn sort(&self, rows: &mut [Value], search: &TableSearch) {
        let by_key = |one: &[Value], other: &[Value]| self.schema.key_of(one).cmp(&self.schema.key_of(other));
        rows.sort_by(|one, other| {
            let (one, other) = (fields(one), fields(other));
            search.compare(one, other).then_with(|| by_key(one, other))
        });
    }
}

/// Returns the direction in which the columns of an index behind its prefix, and then the key, put the rows into the order of
/// a query, if they do.
fn direction(search: &TableSearch, index: Option<usize>, columns: &[usize], key: &[usize]) -> Option<Direction> {
    let order = &search.query.order;
    let Some(first) = order.first() else {
        let by_key = index.is_none() || columns.is_empty();
        return by_key.then_some(Direction { descending: false, keys_descending: false });
    };
    let descending = first.descending;
    if order.iter().any(|order| order.descending != descending) {
        return None;
    }
    let ordered = || order.iter().map(|order| order.column);
    if ordered().eq(columns.iter().copied()) {
        return Some(Direction { descending, keys_descending: false });
    }
    let with_key = index.is_some() && ordered().eq(columns.iter().chain(key).copied());
    with_key.then_some(Direction { descending, keys_descending: descending })
}
