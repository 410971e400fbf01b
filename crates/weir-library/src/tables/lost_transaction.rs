//! A transaction that SQLite has taken back by itself, so that it cannot go on.

use rusqlite::{ErrorCode, ffi};

use super::database_error::refused;

/// A transaction that was taken back, and why.
#[derive(Debug)]
pub(super) struct LostTransaction {
    pub(super) number: i64,
    /// The message of the rule that has taken it back; `None` if it was a failure of the disk.
    rule: Option<String>,
}

impl LostTransaction {
    /// Returns a transaction that was lost by this error of one of its statements.
    pub(super) fn new(number: i64, error: &rusqlite::Error) -> LostTransaction {
        LostTransaction { number, rule: is_of_rule(error).then(|| error.to_string()) }
    }

    /// Returns the error of everything that the transaction is still to do.
    pub(super) fn error(&self) -> rusqlite::Error {
        match &self.rule {
            Some(rule) => rusqlite::Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_CONSTRAINT_TRIGGER),
                Some(format!(
                    "a trigger (`RAISE(ROLLBACK)`) or a rule (`ON CONFLICT ROLLBACK`) has taken back the whole transaction: {rule}"
                )),
            ),
            None => after_failure_of_disk(),
        }
    }
}

/// Returns the error of a transaction that a failure of the disk has taken back.
pub(super) fn after_failure_of_disk() -> rusqlite::Error {
    refused("the transaction was taken back after a failure of the disk")
}

/// Returns whether a rule of the database has refused a statement, such as a trigger.
pub(super) fn is_of_rule(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
