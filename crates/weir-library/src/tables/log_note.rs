//! A note beside an SQLite database by which a start learns that the log is lost.
//!
//! Until a checkpoint moves them, the newest commits are in the log alone. If somebody removes the log of a program that was
//! killed, SQLite opens the database without them and says nothing. So the database has a number in the table `weir_log`, and the
//! note has the number that the database has with its log.
//!
//! 1. A start writes the next number, syncs the log, and then writes the note.
//! 2. A checkpoint writes the next number into the note before it moves anything, and into the log when it has.
//! 3. The end of a program moves everything. The number in the database is then that of the note.
//!
//! Each write of the note is durable before the next step. Therefore the database without its log has a smaller number than the
//! note whenever only the log has acknowledged commits. If a program is killed within a checkpoint, the number is smaller by one
//! although nothing is lost; then the log is there. Other programs that move the log are not noticed.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use weir::Failure;

use super::database_error::explain;
use super::database_files::{beside, sync_folder};

/// The end of the name of the note.
const NOTE: &str = "-note";

/// The note of a database that is open.
#[derive(Debug)]
pub(super) struct LogNote {
    file: File,
    /// The number in the note.
    noted: i64,
    /// The number in the database with its log.
    written: i64,
}

/// The state of the files before SQLite opens the database, which may create or remove the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilesBefore {
    has_database: bool,
    has_log: bool,
}

impl FilesBefore {
    pub(super) fn of(database: &Path) -> FilesBefore {
        let has_bytes = |path: PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        FilesBefore { has_database: has_bytes(database.to_owned()), has_log: has_bytes(beside(database, "-wal")) }
    }
}

impl LogNote {
    /// Compares the note with the database, and begins to note its log. Fails if the log is lost.
    pub(super) fn begin(path: &Path, connection: &Connection, before: FilesBefore) -> Result<LogNote, Failure> {
        let note = beside(path, NOTE);
        let mut file = opened(&note).map_err(|error| unwritable(&note, &error))?;
        let noted = number_in(&mut file);
        let written = number_of(connection).map_err(|error| explain(path, &error))?;
        let is_lost = written < noted - 1 || written == noted - 1 && !before.has_log;
        // If the database is new, somebody has removed the old one.
        if before.has_database && is_lost {
            return Err(lost(path, &note));
        }
        let next = noted.max(written) + 1;
        write_number(connection, next).map_err(|error| explain(path, &error))?;
        let mut begun = LogNote { file, noted, written: next };
        let synced = File::open(beside(path, "-wal")).and_then(|log| log.sync_all()).and_then(|()| sync_folder(path));
        synced.and_then(|()| begun.note(next)).map_err(|error| unwritable(&note, &error))?;
        Ok(begun)
    }

    /// Notes that a checkpoint begins.
    pub(super) fn checkpoint_begins(&mut self) -> std::io::Result<()> {
        if self.noted > self.written { Ok(()) } else { self.note(self.written + 1) }
    }

    /// Writes the number of the note into the log, unless the database has it.
    pub(super) fn checkpoint_ended(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.noted > self.written {
            write_number(connection, self.noted)?;
            self.written = self.noted;
        }
        Ok(())
    }

    fn note(&mut self, number: i64) -> std::io::Result<()> {
        self.file.rewind()?;
        // Always of one length, so that it needs no more room on the disk.
        self.file.write_all(format!("{number:019}\n").as_bytes())?;
        self.file.sync_data()?;
        self.noted = number;
        Ok(())
    }
}

fn opened(note: &PathBuf) -> std::io::Result<File> {
    let is_new = !note.exists();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(note)?;
    if is_new {
        file.sync_all()?;
    }
    Ok(file)
}

/// Returns the number in a note; 0 if it has none.
fn number_in(file: &mut File) -> i64 {
    let mut text = String::new();
    file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok()).unwrap_or(0)
}

/// Returns the number in the database; 0 if it has none.
fn number_of(connection: &Connection) -> rusqlite::Result<i64> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'weir_log'";
    match connection.query_row(table, [], |row| row.get::<_, i64>(0))? {
        0 => Ok(0),
        _ => connection.query_row("SELECT max(\"number\") FROM \"weir_log\"", [], |row| row.get(0)),
    }
}

fn write_number(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    let change = connection.unchecked_transaction()?;
    change.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS \"weir_log\" (\"id\" INTEGER PRIMARY KEY, \"number\" INTEGER NOT NULL) STRICT;
         INSERT INTO \"weir_log\" VALUES (1, {number}) ON CONFLICT DO UPDATE SET \"number\" = excluded.\"number\""
    ))?;
    change.commit()
}

fn lost(path: &Path, note: &Path) -> Failure {
    let (path, note) = (path.display(), note.display());
    Failure::function(format!(
        "the log {path}-wal of the database is lost, or the database is older than {note}: rows that were acknowledged may be \
         missing; put the log back, or remove {note} to go on without it, such as with a backup"
    ))
}

fn unwritable(note: &Path, error: &std::io::Error) -> Failure {
    Failure::function(format!("cannot write {}, which notes the log of the database: {error}", note.display()))
}
