//! The files of an SQLite database by their names, by which the program notices that one of them was removed or replaced.
//!
//! SQLite goes on with a file that has no name any more. A name that leads to no file or to another one tells of it.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

use super::database_error::refused;
use super::database_files::{LOG, NOTE, beside};

/// A database and its log as they were when they were opened.
#[derive(Debug)]
pub(super) struct DatabaseFileNames {
    database: PathBuf,
    database_state: Metadata,
    /// `None` if the database has none.
    log_state: Option<Metadata>,
    /// True if the log has a note.
    has_note: bool,
    is_damaged: AtomicBool,
}

impl DatabaseFileNames {
    /// Notes the files of the database of the program, and its open log.
    pub(super) fn of_program(database: &Path, log: Metadata) -> io::Result<DatabaseFileNames> {
        DatabaseFileNames::of(database, (Some(log), true))
    }

    /// Notes the files of a database of other programs, in WAL mode or not.
    pub(super) fn of_existing(database: &Path, has_log: bool) -> io::Result<DatabaseFileNames> {
        let log = has_log.then(|| std::fs::metadata(beside(database, LOG))).transpose()?;
        DatabaseFileNames::of(database, (log, false))
    }

    fn of(database: &Path, (log_state, has_note): (Option<Metadata>, bool)) -> io::Result<DatabaseFileNames> {
        let database_state = std::fs::metadata(database)?;
        let is_damaged = AtomicBool::new(false);
        Ok(DatabaseFileNames { database: database.to_owned(), database_state, log_state, has_note, is_damaged })
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    pub(super) fn has_log(&self) -> bool {
        self.log_state.is_some()
    }

    pub(super) fn log_path(&self) -> PathBuf {
        beside(&self.database, LOG)
    }

    /// Returns the database as it is. Fails if it or its log was removed or replaced.
    pub(super) fn check(&self) -> io::Result<Metadata> {
        let gone = |path: &Path| format!("the file {} was removed or replaced", path.display());
        let Some(now) = found_at(&self.database_state, &self.database) else {
            // A start would take the log for one of the new file.
            return Err(self.damaged(match &self.log_state {
                Some(_) => format!(
                    "{}: put it back, or, if the new one shall stay, remove {} to the old one",
                    gone(&self.database),
                    self.left_behind()
                ),
                None => gone(&self.database),
            }));
        };
        match &self.log_state {
            Some(log) if found_at(log, &self.log_path()).is_none() => Err(self.damaged(gone(&self.log_path()))),
            _ => Ok(now),
        }
    }

    /// Returns the files that belong to the old contents when there are new ones: `mail.db-wal, which belongs`.
    pub(super) fn left_behind(&self) -> String {
        let log = self.log_path();
        match self.has_note {
            true => format!("{} and {}, which belong", log.display(), beside(&self.database, NOTE).display()),
            false => format!("{}, which belongs", log.display()),
        }
    }

    /// Opens another connection, which fails if it leads to another file.
    pub(super) fn connect(&self, open: fn(&Path) -> rusqlite::Result<Connection>) -> rusqlite::Result<Connection> {
        let connection = open(&self.database)?;
        self.check().map_err(|error| refused(&format!("{error}; restart the program")))?;
        Ok(connection)
    }

    /// Has a connection leave the log as it is when it is closed, if a file is damaged: SQLite would move what is left of it.
    pub(super) fn close_safely(&self, connection: &Connection) {
        use rusqlite::config::DbConfig;

        if self.is_damaged.load(Ordering::Relaxed) {
            let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            debug_assert!(set.is_ok(), "every connection has this setting");
        }
    }

    /// Notes that a file is damaged, and returns the error that says so.
    pub(super) fn damaged(&self, what: String) -> io::Error {
        self.is_damaged.store(true, Ordering::Relaxed);
        io::Error::other(what)
    }
}

/// Returns the file to which the path leads, if it is the same as before.
#[cfg(unix)]
fn found_at(file: &Metadata, path: &Path) -> Option<Metadata> {
    use std::os::unix::fs::MetadataExt;

    let now = std::fs::metadata(path).ok()?;
    ((now.dev(), now.ino()) == (file.dev(), file.ino())).then_some(now)
}

/// Returns the file to which the path leads: only Unix lets anybody remove a file that is open.
#[cfg(not(unix))]
fn found_at(file: &Metadata, path: &Path) -> Option<Metadata> {
    Some(std::fs::metadata(path).unwrap_or_else(|_| file.clone()))
}
