//! The files of an SQLite database that is open, by which the program notices that one of them was removed, replaced, overwritten or cut.
//!
//! A file that was removed or replaced is noticed by its name ([`DatabaseFileNames`]), and one that was overwritten by its length and its stamp
//! ([`FileContents`]). SQLite takes the zeros of a log that was cut and written again for pages. Such a log is shorter than before, or takes
//! less room on the disk if it was written again. Both is also true of one that has begun anew, and was cut for that by SQLite, or by another
//! program that has moved it. So the log is then compared with its index.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::database_file_names::DatabaseFileNames;
use super::database_files::{LOG, beside};
use super::file_contents::FileContents;
use super::log_index::LogIndex;

/// The open files of a database. They are opened at the start, so that a sync needs no file descriptor that the flows may have
/// used up.
#[derive(Debug)]
pub(super) struct OpenFiles {
    pub(super) names: DatabaseFileNames,
    log: File,
    /// Is closed after the connections of those who share these files.
    index: Option<LogIndex>,
    size: Mutex<LogSize>,
    contents: Mutex<FileContents>,
}

/// The length of a log in bytes, and the room that it takes on the disk.
#[derive(Clone, Copy, Debug)]
struct LogSize {
    length: u64,
    room: u64,
}

impl OpenFiles {
    /// Opens the log of a database that has been read by the connection.
    pub(super) fn open(database: &Path, connection: &Connection) -> io::Result<OpenFiles> {
        let log = File::options().read(true).write(true).open(beside(database, LOG))?;
        let log_state = log.metadata()?;
        let index = LogIndex::open(connection);
        Ok(OpenFiles {
            contents: Mutex::new(FileContents::of(database, index.as_ref())?),
            size: Mutex::new(LogSize::of(&log_state)),
            names: DatabaseFileNames::of_program(database, log_state)?,
            log,
            index,
        })
    }

    pub(super) fn database(&self) -> &Path {
        self.names.database()
    }

    pub(super) fn log(&self) -> &File {
        &self.log
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.names.log_path()
    }

    /// Returns the length of the log. Fails if the database or its log was removed or replaced, the database was overwritten, or one of them
    /// was cut.
    pub(super) fn check(&self) -> io::Result<u64> {
        // Is locked before the file is looked at: another thread may take a later look for right.
        let mut contents = self.contents.lock();
        let now = self.names.check()?;
        if !contents.is_right(&now, self.database(), self.index.as_ref())? {
            return Err(self.names.damaged(self.overwritten()));
        }
        drop(contents);
        self.check_log()
    }

    fn overwritten(&self) -> String {
        format!(
            "the file {} was overwritten or cut: if it is a backup that shall stay, remove {} to the rows of before; otherwise restore a backup",
            self.names.database().display(),
            self.names.left_behind()
        )
    }

    /// Returns the length of the log, to which others may append at once. Fails if it was cut.
    fn check_log(&self) -> io::Result<u64> {
        let mut size = self.size.lock();
        let now = LogSize::of(&self.log.metadata()?);
        let is_smaller = now.length < size.length || now.room < size.room;
        if is_smaller && !self.index.as_ref().map_or(Ok(true), |index| index.is_whole(&self.log))? {
            return Err(self.names.damaged(format!("the log {} was cut", self.log_path().display())));
        }
        *size = now;
        drop(size);
        #[cfg(test)]
        super::durable_files::DurableFiles::let_others_write(self.database());
        Ok(now.length)
    }

    /// Gives the log at least this length. Nobody else writes meanwhile. Fails if it was cut.
    pub(super) fn lengthen(&self, length: u64) -> io::Result<()> {
        if self.check_log()? < length {
            self.log.set_len(length)?;
            self.size.lock().length = length;
        }
        Ok(())
    }
}

impl LogSize {
    #[cfg(unix)]
    fn of(log: &Metadata) -> LogSize {
        LogSize { length: log.len(), room: std::os::unix::fs::MetadataExt::blocks(log) }
    }

    #[cfg(not(unix))]
    fn of(log: &Metadata) -> LogSize {
        LogSize { length: log.len(), room: log.len() }
    }
}
