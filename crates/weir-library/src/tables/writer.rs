//! The connection that writes, and its open transaction.

use rusqlite::Connection;

use super::database_error::refused;

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: Connection,
    /// The number of the open transaction; 0 if there is none.
    pub(super) transaction: i64,
    /// The number of the last transaction that SQLite took back by itself, after a failure of the disk. It cannot go on.
    pub(super) lost: i64,
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Writer {
        Writer { connection, transaction: 0, lost: 0 }
    }

    /// Begins the transaction if it is not open, after taking back another one that was left unfinished.
    pub(super) fn enter(&mut self, transaction: i64) -> rusqlite::Result<()> {
        if transaction != 0 && transaction == self.lost {
            return Err(taken_back());
        }
        if self.transaction != transaction {
            self.roll_back()?;
        }
        if transaction != 0 && self.transaction == 0 {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            self.transaction = transaction;
        }
        Ok(())
    }

    /// Takes back the open transaction, if there is one.
    pub(super) fn roll_back(&mut self) -> rusqlite::Result<()> {
        if self.transaction != 0 {
            self.transaction = 0;
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }
}

pub(super) fn taken_back() -> rusqlite::Error {
    refused("the transaction was taken back after a failure of the disk")
}
