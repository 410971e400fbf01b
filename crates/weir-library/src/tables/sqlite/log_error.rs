//! Reasons why the log of a database is not moved, or has no new number.

use std::path::Path;

use weir::Failure;

use super::database_error::{explain, is_busy};

#[derive(Debug)]
pub(in crate::tables) enum LogError {
    Database(rusqlite::Error),
    /// The log could not be lengthened or synced, or its note not be written. Without that nothing is moved.
    Log(Failure),
}

impl LogError {
    /// Returns whether another program hinders the checkpoint.
    pub(in crate::tables) fn is_busy(&self) -> bool {
        matches!(self, LogError::Database(error) if is_busy(error))
    }

    /// Returns the failure for this error.
    pub(in crate::tables) fn explain(&self, database: &Path) -> Failure {
        match self {
            LogError::Database(error) => explain(database, error),
            LogError::Log(failure) => failure.clone(),
        }
    }
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> LogError {
        LogError::Database(error)
    }
}
