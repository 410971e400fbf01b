//! Searches of a table in memory: which rows fulfil the conditions of a query, and what is computed of them.

use weir::Value;

use super::access_path::{AccessPath, key_value};
use super::index::IndexedRows;
use super::{MemoryTable, StoredRow};
use crate::tables::grouping::{GroupsInMemory, TableGrouping};
use crate::tables::row::fields;
use crate::tables::schema::TableSearch;

/// Maximum number of rows of a visit for which the end of an index's range is not looked up.
const SHORT_VISIT_MAX: usize = 32;

/// Work for a row that a search visits, and for one that it sorts too, in steps of SQLite's machine (`read_work`).
const STEPS_OF_ROW: u32 = 2;
const STEPS_OF_SORTED_ROW: u32 = 6;

impl MemoryTable {
    pub(in crate::tables) fn select(&mut self, transaction: i64, search: &TableSearch) -> Vec<Value> {
        self.enter(transaction);
        self.found(search, Value::clone)
    }

    /// Returns the values of a column of the rows that fulfil the conditions, in order.
    pub(in crate::tables) fn column(&mut self, transaction: i64, search: &TableSearch, column: usize) -> Vec<Value> {
        self.enter(transaction);
        self.found(search, |row| fields(row)[column].clone())
    }

    /// Returns a part of each row that fulfils the conditions, in order.
    fn found(&self, search: &TableSearch, part: impl Fn(&Value) -> Value) -> Vec<Value> {
        let plan = self.plan(search);
        if plan.direction.is_none() {
            let mut rows = Vec::new();
            self.visit(&plan, search, &mut |row| {
                rows.push(row.clone());
                true
            });
            self.sort(&mut rows, search);
            rows.truncate(search.limit);
            return rows.iter().map(part).collect();
        }
        let mut parts: Vec<Value> = Vec::with_capacity(search.limit.min(SHORT_VISIT_MAX));
        if search.limit > 0 {
            self.visit(&plan, search, &mut |row| {
                parts.push(part(row));
                parts.len() < search.limit
            });
        }
        parts
    }

    pub(in crate::tables) fn count(&mut self, transaction: i64, search: &TableSearch) -> i64 {
        self.enter(transaction);
        let mut count = 0;
        self.visit(&self.plan(search), search, &mut |_| {
            count += 1;
            true
        });
        count
    }

    pub(in crate::tables) fn sum(&mut self, transaction: i64, search: &TableSearch, column: usize) -> i128 {
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

    pub(in crate::tables) fn group(
        &mut self,
        transaction: i64,
        search: &TableSearch,
        grouping: &TableGrouping,
    ) -> Vec<Value> {
        self.enter(transaction);
        let mut groups = GroupsInMemory::new(grouping);
        self.visit(&self.plan(search), search, &mut |row| {
            groups.add(self.schema.key_of(fields(row)), fields(row));
            true
        });
        groups.groups(search)
    }

    /// Chooses the index of which the most columns have the values that the query asks for; among those, one that has a
    /// bound, and one in the order of the query.
    pub(super) fn plan(&self, search: &TableSearch) -> AccessPath {
        let key = &self.schema.key;
        let index = search.query.index_in(self.number, || self.best_index(search));
        let columns = index.map_or(key, |at| &self.indexes[at].columns);
        AccessPath::of(search, index, columns, key)
    }

    /// Returns the index of the plan, which does not depend on the values of the query; `None` for the key.
    fn best_index(&self, search: &TableSearch) -> Option<usize> {
        let key = &self.schema.key;
        let mut best = (None, AccessPath::worth(search, None, key, key));
        for (at, index) in self.indexes.iter().enumerate() {
            let worth = AccessPath::worth(search, Some(at), &index.columns, key);
            if worth > best.1 {
                best = (Some(at), worth);
            }
        }
        best.0
    }

    /// Calls `visit` with each live row that the query accepts, until it returns false.
    pub(super) fn visit(&self, plan: &AccessPath, search: &TableSearch, visit: &mut dyn FnMut(&Value) -> bool) {
        if !plan.is_point && plan.low > plan.high {
            return;
        }
        let now = self.now();
        let mut visited = 0;
        let mut row = |row: &Value| {
            visited += 1;
            let is_found = plan.accepts_all || search.accepts(fields(row));
            !is_found || visit(row)
        };
        let descending = plan.direction.is_some_and(|direction| direction.descending);
        if let Some(index) = plan.index {
            let mut live = |found: &Value| {
                let is_live = |key| self.rows.get(&key).is_none_or(|stored| self.is_live(stored, now));
                now.is_some() && !is_live(self.schema.key_of(fields(found))) || row(found)
            };
            let index = &self.indexes[index];
            let mut all = |values: &[Value], rows: &IndexedRows| visit_rows(plan, values, rows, &mut live);
            if plan.is_point {
                _ = index.at(&plan.low).is_none_or(|rows| all(&plan.low, rows));
            } else {
                let is_short = plan.direction.is_some() && search.limit <= SHORT_VISIT_MAX;
                index.visit((&plan.low, &plan.high), descending, is_short, &mut all);
            }
        } else {
            let mut live = |stored: &StoredRow| !self.is_live(stored, now) || row(&stored.row);
            self.rows.visit((&key_value(&plan.low), &key_value(&plan.high)), descending, &mut live);
        }
        search.query.work.note(if plan.direction.is_some() { STEPS_OF_ROW } else { STEPS_OF_SORTED_ROW } * visited);
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

/// Visits the rows with these values of an index, until `visit` returns false. Those before a page are left out.
fn visit_rows(plan: &AccessPath, values: &[Value], rows: &IndexedRows, visit: &mut dyn FnMut(&Value) -> bool) -> bool {
    let start = plan.start.as_ref().filter(|(place, _)| place == values).map(|(_, key)| key);
    let descending = plan.direction.is_some_and(|direction| direction.keys_descending);
    rows.all(descending, start, &plan.keys, visit)
}
