//! A transaction that was taken back by SQLite itself, or because of another program, so that it cannot go on.

use rusqlite::{ErrorCode, ffi};

use super::database_error::{hindered, is_busy, is_hindered, refused};

/// A transaction that was taken back, and why.
#[derive(Debug)]
pub(super) struct LostTransaction {
    pub(super) number: i64,
    why: LossReason,
}

/// The reason for which a transaction was taken back.
#[derive(Debug)]
enum LossReason {
    /// A rule of the database has refused a statement, with this message.
    Rule(String),
    /// Another program has written before the transaction had the database for itself.
    Hindered,
    Disk,
}

impl LostTransaction {
    /// Returns a transaction that was lost by this error of one of its statements.
    pub(super) fn new(number: i64, error: &rusqlite::Error) -> LostTransaction {
        let why = match () {
            () if is_of_rule(error) => LossReason::Rule(error.to_string()),
            () if is_hindered(error) || is_busy(error) => LossReason::Hindered,
            () => LossReason::Disk,
        };
        LostTransaction { number, why }
    }

    /// Returns the error of everything that the transaction is still to do.
    pub(super) fn error(&self) -> rusqlite::Error {
        match &self.why {
            LossReason::Rule(rule) => rusqlite::Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_CONSTRAINT_TRIGGER),
                Some(format!(
                    "a trigger (`RAISE(ROLLBACK)`) or a rule (`ON CONFLICT ROLLBACK`) has rolled back the whole transaction: {rule}"
                )),
            ),
            LossReason::Hindered => hindered(),
            LossReason::Disk => after_failure_of_disk(),
        }
    }
}

/// Returns the error of a transaction that a failure of the disk has taken back.
pub(super) fn after_failure_of_disk() -> rusqlite::Error {
    refused("the transaction was rolled back after a failure of the disk")
}

/// Returns whether a rule of the database has refused a statement, such as a trigger.
pub(super) fn is_of_rule(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
