//! A table that is open: its description, and the store of its rows.

use weir::Failure;

use super::rows::TableRows;
use super::schema::Schema;
use super::storage::TableStorage;

/// A table that is open.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) schema: Schema,
    pub(super) rows: Box<dyn TableRows>,
}

impl OpenTable {
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
}
