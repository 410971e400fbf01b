//! The connection that writes, and its open transaction.
//!
//! Statements that are no transaction of the program are executed as a *group*: one transaction of the database for all that are
//! executed until somebody waits for one of them, or reads what one has written. A statement that fails takes back only itself.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::database_error::{explain, refused};
use super::group_commit::GroupCommit;

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: Connection,
    /// The number of the open transaction; 0 if there is none.
    pub(super) transaction: i64,
    /// The number of the last transaction that SQLite took back by itself, after a failure of the disk. It cannot go on.
    pub(super) lost: i64,
    /// The commits of the database; `None` if each is durable when it is executed, so that there are no groups.
    pub(super) commits: Option<Arc<GroupCommit>>,
    /// The number of the first commit of the open group, if one is open.
    group: Option<u64>,
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Writer {
        Writer { connection, transaction: 0, lost: 0, commits: None, group: None }
    }

    /// Begins the transaction if it is not open, after taking back another one that was left unfinished.
    pub(super) fn enter(&mut self, transaction: i64) -> rusqlite::Result<()> {
        if transaction != 0 && transaction == self.lost {
            return Err(taken_back());
        }
        if self.transaction != transaction {
            self.roll_back()?;
        }
        if transaction == 0 {
            return self.begin_group();
        }
        if self.transaction == 0 {
            self.end_group()?;
            self.begin()?;
            self.transaction = transaction;
        }
        Ok(())
    }

    fn begin(&self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(|_| ())
    }

    fn begin_group(&mut self) -> rusqlite::Result<()> {
        if self.group.is_none()
            && let Some(commits) = &self.commits
        {
            self.begin()?;
            self.group = Some(commits.executed_count() + 1);
        }
        Ok(())
    }

    /// Notes what a statement of a group has done. An error with which the database takes back the transaction loses the group.
    pub(super) fn executed_in_group(&mut self, result: Result<(), &rusqlite::Error>) {
        let Some(commits) = &self.commits else { return };
        match result {
            Ok(()) => commits.executed_in_group(),
            Err(error) if self.connection.is_autocommit() => {
                if let Some(first) = self.group.take() {
                    commits.lose(first, self.failure(error));
                }
            }
            Err(_) => {}
        }
    }

    /// Commits the open group, if there is one. If that fails, the flows fail that have written in it.
    pub(super) fn end_group(&mut self) -> rusqlite::Result<()> {
        let Some((first, commits)) = self.group.take().zip(self.commits.as_ref()) else { return Ok(()) };
        let committed = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        match committed {
            Ok(_) => commits.group_executed(),
            Err(error) => {
                if !self.connection.is_autocommit() {
                    _ = self.connection.execute_batch("ROLLBACK");
                }
                commits.lose(first, self.failure(&error));
                return Err(error);
            }
        }
        Ok(())
    }

    fn failure(&self, error: &rusqlite::Error) -> weir::Failure {
        explain(Path::new(self.connection.path().unwrap_or_default()), error)
    }

    /// Takes back the open transaction, if there is one, and commits the open group.
    pub(super) fn be_idle(&mut self) -> rusqlite::Result<()> {
        self.roll_back()?;
        self.end_group()
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
