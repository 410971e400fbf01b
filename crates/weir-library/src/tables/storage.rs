//! The place where a program keeps its tables.

use std::sync::atomic::{AtomicI64, Ordering};

use weir::Failure;

use super::memory::MemoryTable;
use super::schema::Schema;

/// The place where a program keeps its tables.
#[derive(Debug, Default)]
pub struct TableStorage {
    transactions: AtomicI64,
}

impl TableStorage {
    pub(super) fn open(&self, schema: Schema) -> Result<MemoryTable, Failure> {
        Ok(MemoryTable::new(schema))
    }

    pub(super) fn next_transaction(&self) -> i64 {
        self.transactions.fetch_add(1, Ordering::Relaxed) + 1
    }
}
