//! The place where a program keeps its tables.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use weir::Failure;

use super::database::Database;
use super::memory::{MemoryTable, TableClock};
use super::open_table::OpenTable;
use super::rows::TableRows;
use super::schema::Schema;
use super::stored::StoredTable;

/// The place where a program keeps its tables: by default, all in memory.
#[derive(Debug)]
pub struct TableStorage {
    /// The file of the stored tables.
    file: Option<PathBuf>,
    database: Mutex<Option<Arc<Database>>>,
    transactions: AtomicI64,
    /// The open tables, by name.
    tables: Mutex<BTreeMap<String, Arc<OpenTable>>>,
    /// The clock by which rows of soft tables expire.
    clock: TableClock,
}

impl Default for TableStorage {
    fn default() -> Self {
        TableStorage {
            file: None,
            database: Mutex::default(),
            transactions: AtomicI64::new(0),
            tables: Mutex::default(),
            clock: SystemTime::now,
        }
    }
}

impl weir::Closing for TableStorage {
    fn close(&self) -> Result<(), Failure> {
        let database = self.database.lock().clone();
        database.map_or(Ok(()), |database| database.close())
    }
}

impl TableStorage {
    /// Returns a storage that keeps tables in this file, which the first of them creates.
    #[must_use]
    pub fn in_file(file: PathBuf) -> TableStorage {
        TableStorage { file: Some(file), ..TableStorage::default() }
    }

    /// Returns a storage that keeps tables in memory, whose rows expire by this clock.
    #[cfg(test)]
    pub(super) fn with_clock(clock: TableClock) -> TableStorage {
        TableStorage { clock, ..TableStorage::default() }
    }

    /// Opens a table, and creates it if it is new.
    pub(super) fn open(&self, schema: Schema) -> Result<Arc<OpenTable>, Failure> {
        let rows = self.rows_of(schema.clone())?;
        let table = Arc::new(OpenTable { schema, rows });
        self.tables.lock().insert(table.schema.name.clone(), Arc::clone(&table));
        Ok(table)
    }

    /// Returns an open table.
    pub(super) fn table(&self, name: &str) -> Result<Arc<OpenTable>, Failure> {
        let table = self.tables.lock().get(name).cloned();
        table.ok_or_else(|| Failure::function(format!("the table `{name}` is not open")))
    }

    fn rows_of(&self, schema: Schema) -> Result<Box<dyn TableRows>, Failure> {
        let file = self.file.as_ref().filter(|_| schema.soft.is_none());
        let Some(file) = file else { return Ok(Box::new(Mutex::new(MemoryTable::new(schema, self.clock)))) };
        let mut database = self.database.lock();
        let open = match &*database {
            Some(open) => Arc::clone(open),
            None => Arc::clone(database.insert(Arc::new(Database::open(file)?))),
        };
        Ok(Box::new(StoredTable::open(schema, open)?))
    }

    pub(super) fn next_transaction(&self) -> i64 {
        self.transactions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits until everything that was committed before is durable.
    pub(super) async fn settled(&self) -> Result<(), Failure> {
        let database = self.database.lock().clone();
        match database {
            Some(database) => database.settled().await,
            None => Ok(()),
        }
    }
}
