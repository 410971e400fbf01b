//! The files of an SQLite database that is open, by which the program notices that one of them was removed, replaced, overwritten or cut.
//!
//! A file that was removed or replaced is noticed by its name, which leads to no file or to another one, and one that was overwritten by its length and its stamp
//! ([`FileContents`]). SQLite takes the zeros of a log that was cut and written again for pages. Such a log is shorter than before, or takes
//! less room on the disk if it was written again. Both is also true of one that has begun anew, and was cut for that by SQLite, or by another
//! program that has moved it. So the log is then compared with its index.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::database_error::refused;
use super::database_files::{LOG, NOTE, beside};
use super::file_contents::FileContents;
use super::log_index::LogIndex;

/// The open files of a database. They are opened at the start, so that a sync needs no file descriptor that the flows may have
/// used up.
#[derive(Debug)]
pub(super) struct OpenFiles {
    database: PathBuf,
    /// The path by which the program names the database, such as that of a link.
    name: PathBuf,
    /// The database when it was opened, and its log.
    database_state: Metadata,
    log_state: Metadata,
    log: File,
    /// Is closed after the connections of those who share these files.
    index: Option<LogIndex>,
    size: Mutex<LogSize>,
    /// True if a file was removed, replaced, overwritten or cut.
    has_changed: AtomicBool,
    /// The reason why the log could not be synced. The operating system tells it once: a later sync succeeds, although what was to be
    /// synced is perhaps lost.
    failed_sync: OnceLock<String>,
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
            database: database.to_owned(),
            name: database.to_owned(),
            database_state: std::fs::metadata(database)?,
            size: Mutex::new(LogSize::of(&log_state)),
            log_state,
            log,
            index,
            has_changed: AtomicBool::new(false),
            failed_sync: OnceLock::new(),
        })
    }

    /// Returns the files of a database to which a link of this name leads, or that has this name.
    pub(super) fn named(self, name: &Path) -> OpenFiles {
        OpenFiles { name: name.to_owned(), ..self }
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    pub(super) fn log(&self) -> &File {
        &self.log
    }

    pub(super) fn log_path(&self) -> PathBuf {
        log_of(&self.database)
    }

    /// Returns the length of the log. Fails if the database or its log was removed or replaced, the database was overwritten, or one of them
    /// was cut, and if a sync has failed before.
    pub(super) fn check(&self) -> io::Result<u64> {
        if let Some(why) = self.failed_sync.get() {
            return Err(io::Error::other(why.clone()));
        }
        // Is locked before the file is looked at: another thread may take a later look for right.
        let mut contents = self.contents.lock();
        let now = self.check_names()?;
        if !contents.is_right(&now, &self.database, self.index.as_ref())? {
            return Err(self.changed(self.overwritten()));
        }
        drop(contents);
        self.check_log()
    }

    /// Syncs the log.
    pub(super) fn sync(&self, sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        #[cfg(test)]
        let sync = |log: &File| {
            super::durable_files::DurableFiles::fail(&self.database)?;
            super::durable_files::DurableFiles::synced(&self.database, || sync(log))
        };
        sync(&self.log).inspect_err(|error| self.fail(error))
    }

    /// Syncs the note beside the database.
    pub(super) fn sync_note(&self, note: &File) -> io::Result<()> {
        #[cfg(test)]
        return super::durable_files::DurableFiles::synced_note(&self.database, || note.sync_data());
        #[cfg(not(test))]
        note.sync_data()
    }

    /// Notes that the log could not be synced.
    pub(super) fn fail(&self, error: &io::Error) {
        _ = self.failed_sync.set(error.to_string());
    }

    /// Returns true if a file was removed, replaced, overwritten or cut.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }

    /// Returns the database as it is. Fails if it or its log was removed or replaced.
    fn check_names(&self) -> io::Result<Metadata> {
        let Some(now) = found_at(&self.database_state, &self.database) else {
            return Err(self.changed(database_gone(&self.database)));
        };
        if self.name != self.database && !is_at(&self.database_state, &self.name) {
            let (name, database) = (self.name.display(), self.database.display());
            return Err(self.changed(format!("{name} does not lead to {database} any more: put the link back")));
        }
        let log = self.log_path();
        match is_at(&self.log_state, &log) {
            true => Ok(now),
            false => Err(self.changed(gone(&log))),
        }
    }

    fn overwritten(&self) -> String {
        let overwritten = format!("the file {} was overwritten or cut", self.database.display());
        match left_behind(&self.database) {
            Some(left) => format!(
                "{overwritten}: if it is a backup that shall stay, remove {left} to the rows of before; otherwise restore a backup"
            ),
            None => overwritten,
        }
    }

    /// Returns the length of the log, to which others may append at once. Fails if it was cut.
    fn check_log(&self) -> io::Result<u64> {
        let mut size = self.size.lock();
        let now = LogSize::of(&self.log.metadata()?);
        let is_smaller = now.length < size.length || now.room < size.room;
        if is_smaller && !self.index.as_ref().map_or(Ok(true), |index| index.is_whole(&self.log))? {
            return Err(self.changed(format!("the log {} was cut", self.log_path().display())));
        }
        *size = now;
        drop(size);
        #[cfg(test)]
        super::durable_files::DurableFiles::let_others_write(&self.database);
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

    /// Opens another connection, which fails if it leads to another file.
    pub(super) fn connect(&self, open: fn(&Path) -> rusqlite::Result<Connection>) -> rusqlite::Result<Connection> {
        let connection = open(&self.database)?;
        self.check_names().map_err(|error| refused(&format!("{error}; restart the program")))?;
        Ok(connection)
    }

    /// Has a connection leave the log as it is when it is closed, if a file has changed or a sync has failed: SQLite would move what is
    /// left of it.
    pub(super) fn close_safely(&self, connection: &Connection) {
        use rusqlite::config::DbConfig;

        if self.has_changed() || self.failed_sync.get().is_some() {
            let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            debug_assert!(set.is_ok(), "every connection has this setting");
        }
    }

    fn changed(&self, what: String) -> io::Error {
        self.has_changed.store(true, Ordering::Relaxed);
        io::Error::other(what)
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

fn log_of(database: &Path) -> PathBuf {
    beside(database, LOG)
}

fn gone(file: &Path) -> String {
    format!("the file {} was removed or replaced", file.display())
}

/// Returns that a database was removed or replaced, and what to do: a start would take its log for one of the new file.
pub(super) fn database_gone(database: &Path) -> String {
    let gone = gone(database);
    match left_behind(database) {
        None => gone,
        Some(left) => format!("{gone}: put it back, or, if the new one shall stay, remove {left} to the old one"),
    }
}

/// Returns the files that belong to the old contents when there are new ones, such as `mail.db-wal, which belongs`.
fn left_behind(database: &Path) -> Option<String> {
    let left = [LOG, NOTE].map(|end| beside(database, end)).into_iter().filter(|left| left.exists());
    let left: Vec<String> = left.map(|left| left.display().to_string()).collect();
    let belong = if left.len() == 1 { "belongs" } else { "belong" };
    (!left.is_empty()).then(|| format!("{}, which {belong}", left.join(" and ")))
}

/// Returns whether the path leads to the same file as before.
pub(super) fn is_at(file: &Metadata, path: &Path) -> bool {
    found_at(file, path).is_some()
}

/// Returns the file to which the path leads, if it is the same as before.
#[cfg(unix)]
fn found_at(file: &Metadata, path: &Path) -> Option<Metadata> {
    use std::os::unix::fs::MetadataExt;

    let now = std::fs::metadata(path).ok()?;
    ((now.dev(), now.ino()) == (file.dev(), file.ino())).then_some(now)
}

/// Returns the file: only Unix lets anybody remove one that is open.
#[cfg(not(unix))]
fn found_at(_: &Metadata, path: &Path) -> Option<Metadata> {
    std::fs::metadata(path).ok()
}
