//! The rows of a table whose commits are published.

use std::sync::Arc;

use weir::{Failure, Value};

use super::grouping::TableGrouping;
use super::join::KeyPart;
use super::rows::TableRows;
use super::schema::{Schema, TableSearch};
use super::write_sets::{TableWrite, WriteSets};

/// The rows of a table, and the write sets of their program.
#[derive(Debug)]
pub(super) struct PublishedRows {
    pub(super) schema: Schema,
    pub(super) rows: Box<dyn TableRows>,
    pub(super) write_sets: Arc<WriteSets>,
}

impl PublishedRows {
    fn wrote(&self, transaction: i64, writes: impl FnOnce() -> Vec<TableWrite>) {
        self.write_sets.wrote(transaction, writes);
    }
}

impl TableRows for PublishedRows {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        self.rows.get(transaction, key)
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        self.rows.get_all(transaction, keys)
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        self.rows.select(transaction, search)
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        self.rows.select_joined(transaction, search, joined)
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        self.rows.count(transaction, search)
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        self.rows.sum(transaction, search, column)
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        self.rows.group(transaction, search, grouping)
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let key = self.rows.insert(transaction, row)?;
        self.wrote(transaction, || vec![TableWrite::of_row(&self.schema, &key)]);
        Ok(key)
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let key = self.rows.upsert(transaction, row)?;
        self.wrote(transaction, || vec![TableWrite::of_row(&self.schema, &key)]);
        Ok(key)
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<(), Failure> {
        self.rows.replace(transaction, key, row)?;
        self.wrote(transaction, || vec![TableWrite::of_replaced(&self.schema, key)]);
        Ok(())
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let written = TableWrite::of_changed(&self.schema, old, &new);
        let replaced = self.rows.replace_rows(transaction, old, new)?;
        self.wrote(transaction, || written);
        Ok(replaced)
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        let deleted = self.rows.delete(transaction, key)?;
        self.wrote(transaction, || if deleted { vec![TableWrite::of_row(&self.schema, key)] } else { Vec::new() });
        Ok(deleted)
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let deleted = self.rows.delete_all(transaction, search)?;
        self.wrote(transaction, || if deleted > 0 { vec![TableWrite::of_any(&self.schema)] } else { Vec::new() });
        Ok(deleted)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        let deleted = self.rows.delete_rows(transaction, rows)?;
        self.wrote(transaction, || TableWrite::of_deleted(&self.schema, rows));
        Ok(deleted)
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        self.rows.commit(transaction, last).inspect_err(|_| self.write_sets.rolled_back(transaction))?;
        // The tables in memory follow the last stored one, and add nothing to what was published.
        if last || !self.is_stored() {
            self.write_sets.committed(transaction);
        }
        Ok(())
    }

    fn roll_back(&self, transaction: i64) {
        self.rows.roll_back(transaction);
        self.write_sets.rolled_back(transaction);
    }

    fn is_stored(&self) -> bool {
        self.rows.is_stored()
    }

    fn is_shared(&self) -> bool {
        self.rows.is_shared()
    }
}
