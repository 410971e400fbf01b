//! The steps of a program that write one database: whoever ends such a step takes back what it has left open there, and learns whether
//! the step has committed.
//!
//! Each database has a constraint of the program, which all steps hold that write it: so there is one such step at a time. The end of a
//! step leaves alone the transactions of all other databases, in which other steps may be.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use super::table_databases::OpenDatabase;
use super::transaction_number;

/// The steps that write one database.
#[derive(Debug)]
pub(super) struct DatabaseSteps {
    /// The number of transactions that have begun in all databases of the program.
    begun: Arc<AtomicI64>,
    /// That number when a step has ended last.
    begun_before: AtomicI64,
    /// True if the step that restores shared values has committed.
    has_committed: AtomicBool,
    /// The database, when it is open; never one in memory.
    database: OnceLock<OpenDatabase>,
}

impl DatabaseSteps {
    pub(super) fn new(begun: Arc<AtomicI64>) -> DatabaseSteps {
        DatabaseSteps {
            begun,
            begun_before: AtomicI64::new(0),
            has_committed: AtomicBool::new(false),
            database: OnceLock::new(),
        }
    }

    /// Notes the database, which is open now.
    pub(super) fn opened(&self, database: OpenDatabase) {
        // It is opened once.
        _ = self.database.set(database);
    }

    /// Notes that a transaction has committed.
    pub(super) fn committed(&self, transaction: i64) {
        if transaction_number::is_restoring(transaction) {
            self.has_committed.store(true, Ordering::Relaxed);
        }
    }
}

impl weir::StepEnd for DatabaseSteps {
    fn take_back_unfinished(&self) {
        let begun = self.begun.load(Ordering::Relaxed);
        // If no transaction has begun, there is none to look for in the database.
        if self.begun_before.swap(begun, Ordering::Relaxed) != begun
            && let Some(database) = self.database.get()
        {
            database.take_back_unfinished();
        }
    }

    fn has_completed(&self) -> bool {
        self.has_committed.swap(false, Ordering::Relaxed)
    }
}
