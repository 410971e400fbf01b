//! The files of an SQLite database that other programs have made, by which a write notices that one of them was removed or replaced.
//!
//! SQLite goes on to write a log whose database has no name any more, or which has none itself. So a write looks at the files before it
//! begins, because what it adds to the log of a former file would damage the new one, and behind its commit, because what is in a
//! file without a name ends with the program. When a file is missed, nothing more is written until a restart.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rusqlite::Connection;

use super::database_error::refused;
use super::open_files::{OpenFiles, database_gone, is_at};
use crate::tables::table_log::TableLog;

/// The files of an open database of other programs.
#[derive(Debug)]
pub(super) struct ExistingFiles {
    path: PathBuf,
    database_state: Metadata,
    /// The database with its log; `None` if it had a rollback journal when it was opened.
    with_log: Option<OpenFiles>,
    /// The reason for which nothing more is written.
    failure: OnceLock<String>,
    /// The log of the program; `None` in tests and reports.
    program_log: Option<TableLog>,
}

impl ExistingFiles {
    /// Notes the files of a database that has been read by the connection.
    pub(super) fn open(
        path: &Path,
        (connection, has_log): (&Connection, bool),
        program_log: Option<TableLog>,
    ) -> std::io::Result<ExistingFiles> {
        // SQLite names the file behind a link, beside which the log is. Nobody changes to another journal while the log is open.
        let file = connection.path().map_or(path, Path::new);
        let with_log = has_log.then(|| OpenFiles::open(file, connection)).transpose()?;
        let database_state = std::fs::metadata(path)?;
        Ok(ExistingFiles { path: path.to_owned(), database_state, with_log, failure: OnceLock::new(), program_log })
    }

    /// Fails if the database or its log was removed or replaced, or the log was cut, now or before.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        if self.failure.get().is_none() {
            match self.missed() {
                None => return Ok(()),
                Some(why) => self.note(&format!("{why}; restart the program")),
            }
        }
        self.failure.get().map_or(Ok(()), |why| Err(refused(why)))
    }

    /// Runs a statement that is none of a transaction, and fails if a file is missed before or behind it.
    pub(super) fn around<T>(&self, run: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.check()?;
        let value = run()?;
        self.check().map(|()| value)
    }

    fn missed(&self) -> Option<String> {
        if !is_at(&self.database_state, &self.path) {
            return Some(database_gone(&self.path));
        }
        self.with_log.as_ref().and_then(|files| files.check().err()).map(|error| error.to_string())
    }

    fn note(&self, why: &str) {
        if self.failure.set(why.to_owned()).is_ok()
            && let Some(log) = &self.program_log
        {
            let path = self.path.display();
            log.error(format!(
                "the database {path}: {why}: until then, nothing more is written to it; rows that were acknowledged may be missing"
            ));
        }
    }

    /// Has a connection leave the log as it is when it is closed, if a file is missed.
    pub(super) fn close_safely(&self, connection: &Connection) {
        if let Some(files) = &self.with_log {
            files.close_safely(connection);
        }
    }
}
