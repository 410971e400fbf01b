//! References between tables: a row names the key of a row of another table, which cannot be deleted, or takes it along.
//!
//! A write of a row looks up the rows that it references. A deletion collects the rows that go with it (`cascade`) and then
//! fails if a row that stays references one of them. So its result does not depend on the order in which rows are found,
//! nor on the store.
//!
//! The compiler makes all writes of tables with references exclude each other, and those of stored tables. So nothing
//! changes between the check and the write.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use weir::{Failure, Value};

use super::constraint;
use super::open_table::OpenTable;
use super::referencing_rows::Referencing;
use super::row::fields;
use super::rows::RowChange;
use super::schema::{TableCondition, TableQuery, TableReference, TableSearch};
use super::storage::TableStorage;

/// A deletion of rows together with those that reference them.
struct Deletion<'s> {
    storage: &'s TableStorage,
    /// The number of the transaction; 0 if the statement is in none, and nobody else can write meanwhile.
    transaction: i64,
    tables: BTreeMap<String, DoomedRows>,
    /// The rows whose references are still to be followed: their table and their key.
    open: VecDeque<(Arc<OpenTable>, Value)>,
    /// Rows that reference deleted ones without `cascade`.
    blocking: Vec<BlockingRow>,
}

/// The rows of a table that a deletion deletes, by their keys.
struct DoomedRows {
    table: Arc<OpenTable>,
    rows: BTreeMap<Value, Value>,
}

/// A row that references a deleted one.
struct BlockingRow {
    reference: TableReference,
    table: Arc<OpenTable>,
    row: Value,
}

impl OpenTable {
    /// Returns whether its rows reference rows of a table in another process, so that a write of one waits for it.
    pub(super) fn references_shared(&self, storage: &TableStorage) -> bool {
        let is_shared = |name: &String| storage.table(name).is_ok_and(|table| table.rows.is_shared());
        self.schema.references.iter().any(|reference| is_shared(&reference.target))
    }

    /// Runs a statement that looks up referenced rows before it writes. If it is in no transaction, and other programs may
    /// write the table, it is one of its own.
    pub(super) fn with_references<T>(
        &self,
        storage: &TableStorage,
        transaction: i64,
        statement: impl FnOnce(i64) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if transaction != 0 || self.schema.references.is_empty() || !self.rows.is_shared() {
            return statement(transaction);
        }
        let number = storage.next_transaction();
        let value = statement(number).inspect_err(|_| self.rows.roll_back(number))?;
        self.rows.commit(number, true)?;
        Ok(value)
    }

    /// Inserts or replaces a row, after it has looked up the rows that this references. Returns its key, or the
    /// row as it is stored if it replaces the one with a key.
    pub(super) fn changed(
        &self,
        storage: &TableStorage,
        transaction: i64,
        change: RowChange,
    ) -> Result<Value, Failure> {
        self.with_references(storage, transaction, |transaction| {
            self.check_changed(storage, transaction, &change)?;
            match change {
                RowChange::Insert(row) => self.rows.insert(transaction, row),
                RowChange::Upsert(row) => self.rows.upsert(transaction, row),
                RowChange::Replace(key, row) => self.rows.replace(transaction, &key, row),
                RowChange::Delete(key) => self.rows.delete(transaction, &key).map(Value::Bool),
            }
        })
    }

    /// Returns whether the rows that a changed row references in another process are known to exist, so that nothing waits for them.
    pub(super) fn knows_references(&self, storage: &TableStorage, transaction: i64, change: &RowChange) -> bool {
        let (RowChange::Insert(row) | RowChange::Upsert(row) | RowChange::Replace(_, row)) = change else {
            return true;
        };
        self.schema.references.iter().all(|reference| {
            let Some(key) = reference.key_in(fields(row)) else { return true };
            let target = storage.table(&reference.target);
            target.is_ok_and(|target| !target.rows.is_shared() || target.rows.knows_row(transaction, &key))
        })
    }

    /// Fails if a changed row references a row that does not exist.
    pub(super) fn check_changed(
        &self,
        storage: &TableStorage,
        transaction: i64,
        change: &RowChange,
    ) -> Result<(), Failure> {
        let numbered = matches!(change, RowChange::Insert(_)) && self.schema.auto;
        match change {
            RowChange::Insert(row) | RowChange::Upsert(row) | RowChange::Replace(_, row) => {
                self.check_references(storage, transaction, (row, numbered))
            }
            RowChange::Delete(_) => Ok(()),
        }
    }

    /// Fails if the row references a row that does not exist. `numbered` if the table gives the row its key.
    pub(super) fn check_references(
        &self,
        storage: &TableStorage,
        transaction: i64,
        (row, numbered): (&Value, bool),
    ) -> Result<(), Failure> {
        let row = fields(row);
        for reference in &self.schema.references {
            let Some(key) = reference.key_in(row) else { continue };
            let is_itself = !numbered && reference.target == self.schema.name && self.schema.key_of(row) == key;
            let target = storage.table(&reference.target)?;
            let exists = is_itself || target.rows.knows_row(transaction, &key);
            if !exists && target.rows.get(transaction, &key)?.is_none() {
                return Err(constraint::no_referenced_row(&self.schema, reference, row));
            }
        }
        Ok(())
    }

    /// Deletes the row with the key, and returns whether there was one.
    pub(super) fn delete(
        self: &Arc<Self>,
        storage: &TableStorage,
        transaction: i64,
        key: &Value,
    ) -> Result<bool, Failure> {
        if self.schema.referenced_by.is_empty() {
            return self.rows.delete(transaction, key);
        }
        let row = |transaction| Ok(self.rows.get(transaction, key)?.into_iter().collect());
        Ok(self.delete_with_references(storage, transaction, row)? > 0)
    }

    /// Deletes the rows that fulfil the conditions, and returns their number.
    pub(super) fn delete_all(
        self: &Arc<Self>,
        storage: &TableStorage,
        transaction: i64,
        search: &TableSearch,
    ) -> Result<i64, Failure> {
        if self.schema.referenced_by.is_empty() {
            return self.rows.delete_all(transaction, search);
        }
        self.delete_with_references(storage, transaction, |transaction| self.rows.select(transaction, search))
    }

    /// Deletes these rows, all or none, and returns their number.
    pub(super) fn delete_rows(
        self: &Arc<Self>,
        storage: &TableStorage,
        transaction: i64,
        rows: Vec<Value>,
    ) -> Result<i64, Failure> {
        if self.schema.referenced_by.is_empty() {
            return self.rows.delete_rows(transaction, &rows);
        }
        self.delete_with_references(storage, transaction, |_| Ok(rows))
    }

    /// Deletes the rows that `find` returns, in a transaction of its own if the statement is in none. That one begins before
    /// the first look at the tables if these are stored, because other programs may write them.
    fn delete_with_references(
        self: &Arc<Self>,
        storage: &TableStorage,
        transaction: i64,
        find: impl FnOnce(i64) -> Result<Vec<Value>, Failure>,
    ) -> Result<i64, Failure> {
        let begins_first = transaction == 0 && self.rows.is_stored();
        let number = if begins_first { storage.next_transaction() } else { transaction };
        let deleted = find(number).and_then(|rows| {
            let count = rows.len();
            let mut deletion = Deletion {
                storage,
                transaction: number,
                tables: BTreeMap::new(),
                open: VecDeque::new(),
                blocking: Vec::new(),
            };
            deletion.add(self, rows);
            deletion.follow()?;
            deletion.check()?;
            let kept = deletion.carry_out(transaction == 0, count)?;
            Ok(count.saturating_sub(kept) as i64)
        });
        if begins_first && deleted.is_err() {
            self.rows.roll_back(number);
        }
        deleted
    }
}

impl Deletion<'_> {
    /// Adds rows that are deleted.
    fn add(&mut self, table: &Arc<OpenTable>, rows: Vec<Value>) {
        let name = table.schema.name.clone();
        let doomed = || DoomedRows { table: Arc::clone(table), rows: BTreeMap::new() };
        let known = self.tables.entry(name).or_insert_with(doomed);
        for row in rows {
            let key = table.schema.key_of(fields(&row));
            if known.rows.insert(key.clone(), row).is_none() {
                self.open.push_back((Arc::clone(table), key));
            }
        }
    }

    /// Follows the references to deleted rows.
    fn follow(&mut self) -> Result<(), Failure> {
        while let Some((table, key)) = self.open.pop_front() {
            let mut keys = vec![key];
            while let Some((_, key)) = self.open.pop_front_if(|(next, _)| Arc::ptr_eq(next, &table)) {
                keys.push(key);
            }
            for reference in &table.schema.referenced_by {
                let source = self.storage.table(&reference.source)?;
                let sought = Referencing { source: &source, reference, transaction: self.transaction };
                if reference.cascade {
                    let rows = sought.rows(&keys, usize::MAX)?;
                    self.add(&source, rows);
                    continue;
                }
                // One row decides, unless it may itself be deleted.
                let may_go = source.schema.name == table.schema.name
                    || self.tables.contains_key(&source.schema.name)
                    || source.schema.references.iter().any(|reference| reference.cascade);
                let rows = sought.rows(&keys, if may_go { usize::MAX } else { 1 })?;
                self.blocking.extend(rows.into_iter().map(|row| BlockingRow {
                    reference: reference.clone(),
                    table: Arc::clone(&source),
                    row,
                }));
            }
        }
        Ok(())
    }

    /// Fails if a row that is not deleted references one that is.
    fn check(&self) -> Result<(), Failure> {
        let stays = |blocking: &&BlockingRow| {
            let schema = &blocking.table.schema;
            let doomed = self.tables.get(&schema.name);
            doomed.is_none_or(|doomed| !doomed.rows.contains_key(&schema.key_of(fields(&blocking.row))))
        };
        match self.blocking.iter().find(stays) {
            Some(BlockingRow { reference, table, row }) => {
                Err(constraint::referenced(&table.schema, reference, fields(row)))
            }
            None => Ok(()),
        }
    }

    /// Deletes the rows, and commits the transaction if it is the statement's own. Returns the number of those that the database has
    /// kept. `asked` is the number without the rows that go with others.
    fn carry_out(self, is_own: bool, asked: usize) -> Result<usize, Failure> {
        let number = if self.transaction == 0 { self.storage.next_transaction() } else { self.transaction };
        let mut tables: Vec<DoomedRows> = self.tables.into_values().collect();
        // The last of the stored tables commits them all; those in memory follow.
        tables.sort_by_key(|doomed| doomed.table.schema.soft.is_some());
        let mut kept = 0;
        let mut delete = || DoomedRows::delete_all(&tables, number, asked).map(|of_tables| kept = of_tables);
        match &tables[..] {
            // The program may go on with the transaction if the database refuses one of the deletions, or keeps a row.
            [first, others @ ..]
                if !is_own && (first.references_itself() || others.iter().any(DoomedRows::is_stored)) =>
            {
                first.table.rows.together(number, &mut delete)?;
            }
            _ => delete()?,
        }
        if is_own {
            let stored = tables.iter().filter(|doomed| doomed.table.schema.soft.is_none()).count();
            for (at, doomed) in tables.iter().enumerate() {
                match at + 1 == stored && stored < tables.len() {
                    true => doomed.table.rows.commit_at_once(number)?,
                    false => doomed.table.rows.commit(number, at + 1 == stored)?,
                }
            }
        }
        Ok(kept)
    }
}

impl DoomedRows {
    /// Deletes rows of tables. Returns the number of those that the database has kept, such as by a trigger. Fails if one of them
    /// references a deleted one, or if rows go with others: one without the other would not do.
    fn delete_all(tables: &[DoomedRows], transaction: i64, asked: usize) -> Result<usize, Failure> {
        let all: usize = tables.iter().map(|doomed| doomed.rows.len()).sum();
        let mut count = 0;
        for doomed in tables {
            let kept = doomed.delete(transaction)?;
            if let Some(row) = kept.values().find(|row| all > asked || doomed.references_deleted(row, &kept)) {
                return Err(constraint::not_deleted(&doomed.table.schema, fields(row)));
            }
            count += kept.len();
        }
        Ok(count)
    }

    /// Deletes the rows. Returns those that the database has kept, by their keys.
    fn delete(&self, transaction: i64) -> Result<BTreeMap<Value, Value>, Failure> {
        let rows: Vec<Value> = self.rows.values().cloned().collect();
        if self.table.rows.delete_rows(transaction, &rows)? == rows.len() as i64 {
            return Ok(BTreeMap::new());
        }
        // The others may have expired, or a foreign key of the database has deleted them.
        let keys: Vec<Value> = self.rows.keys().cloned().collect();
        let found = self.table.rows.get_all(transaction, &keys)?;
        Ok(keys.into_iter().zip(found).filter_map(|(key, row)| Some((key, row?))).collect())
    }

    fn is_stored(&self) -> bool {
        self.table.rows.is_stored()
    }

    /// Returns the references of the table to itself.
    fn own_references(&self) -> impl Iterator<Item = &TableReference> {
        let schema = &self.table.schema;
        schema.references.iter().filter(|reference| reference.target == schema.name)
    }

    fn references_itself(&self) -> bool {
        self.own_references().next().is_some()
    }

    /// Returns whether a row that is kept references one of the table that is not.
    fn references_deleted(&self, row: &Value, kept: &BTreeMap<Value, Value>) -> bool {
        let mut keys = self.own_references().filter_map(|reference| reference.key_in(fields(row)));
        keys.any(|key| self.rows.contains_key(&key) && !kept.contains_key(&key))
    }
}

impl TableReference {
    /// Returns the key that a row of the source references; `None` if a part of it is absent.
    pub(super) fn key_in(&self, row: &[Value]) -> Option<Value> {
        let part = |at: &usize| match &row[*at] {
            Value::Variant(Value::NONE, None) if self.is_optional(*at) => None,
            Value::Variant(Value::SOME, Some(held)) if self.is_optional(*at) => held.first().cloned(),
            present => Some(present.clone()),
        };
        let parts: Option<Vec<Value>> = self.columns.iter().map(part).collect();
        let mut parts = parts?;
        if parts.len() == 1 { parts.pop() } else { Some(Value::Record(parts.into())) }
    }

    /// Returns the search for the rows of the source that reference the row with a key.
    pub(super) fn search(&self, key: &Value, limit: usize) -> TableSearch {
        let parts = match key {
            Value::Record(parts) if self.columns.len() > 1 => parts.to_vec(),
            only => vec![only.clone()],
        };
        let limit = Value::Int(i64::try_from(limit).unwrap_or(i64::MAX));
        let value = |(part, optional): (Value, &bool)| if *optional { Value::some(part) } else { part };
        let values = [limit, Value::Unit].into_iter().chain(parts.into_iter().zip(&self.optional).map(value));
        let equal = |column: &usize| TableCondition { column: *column, comparison: "==".to_owned() };
        let query = TableQuery { conditions: self.columns.iter().map(equal).collect(), order: Vec::new() };
        TableSearch::new(query, Value::Record(values.collect()))
    }

    fn is_optional(&self, column: usize) -> bool {
        self.columns.iter().position(|at| *at == column).is_some_and(|at| self.optional[at])
    }
}
