//! The stamp of a database file, by which a start notices a log that belongs to another file.
//!
//! SQLite lays the pages of a log over whatever file has the name of the database. If that is a backup, which was copied there while the
//! log of the former database stayed, the backup is damaged. So the database has a random stamp in the table `weir_stamp`, and the note
//! of the log says which stamps its file may have ([`DatabaseStamps`]):
//!
//! 1. When all of a log has been moved into the file, the log begins anew, and the next stamp is committed to it. The file gets that
//!    stamp when it is moved, whoever moves it.
//! 2. The stamp is in the note before it is committed, so that the note is true at every moment, also after a kill or a power cut.
//! 3. The note names the log by its salts, which SQLite changes whenever the log begins anew: one of the two numbers is random then, and
//!    the other one greater by 1. The note is also true of the log that follows, and says nothing about others.
//!
//! A start refuses only what is certain: a log that the note names, beside a file with another stamp, or of another program. A copy of
//! all files, and a snapshot of the disk, keep what belongs together. A backup gets a stamp of its own ([`renew`]). What another
//! program has copied, such as `sqlite3`, is not told apart from the file itself before the log begins anew.

use std::fmt;
use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::connection::without_log;
use super::database_format::is_ours;
use super::log_index::read_at;

/// The number of digits of a stamp.
const DIGITS: usize = 32;
/// Length of the beginning of a log, in which the salts are the last bytes.
const LOG_BEGINNING: usize = 24;

/// A random number that tells the files of databases apart, and the states of one behind which its log has begun anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseStamp(u128);

/// The stamps that the file of a database may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseStamps {
    /// The stamp of the file when the log began; that of the log if the file had none.
    pub(super) of_file: DatabaseStamp,
    /// The stamp that the file gets when the log is moved.
    pub(super) of_log: DatabaseStamp,
    /// The stamp that is committed when the log begins anew.
    pub(super) next: DatabaseStamp,
}

/// The log that a note names, and the stamps that its file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StampedLog {
    pub(super) salts: u64,
    pub(super) stamps: DatabaseStamps,
}

impl DatabaseStamp {
    /// Returns the stamp of a database as the connection sees it; `None` if it has none.
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Option<DatabaseStamp>> {
        let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'weir_stamp'";
        if connection.query_row(table, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(None);
        }
        let stamp = connection.query_row("SELECT \"stamp\" FROM \"weir_stamp\" WHERE \"id\" = 1", [], |row| {
            Ok(row.get_ref(0)?.as_str().ok().and_then(DatabaseStamp::parse))
        });
        Ok(stamp.optional()?.flatten())
    }

    pub(super) fn random(connection: &Connection) -> rusqlite::Result<DatabaseStamp> {
        let bytes: [u8; 16] = connection.query_row("SELECT randomblob(16)", [], |row| row.get(0))?;
        Ok(DatabaseStamp(u128::from_ne_bytes(bytes)))
    }

    /// Writes the stamp into the database.
    pub(super) fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS \"weir_stamp\" (\"id\" INTEGER PRIMARY KEY, \"stamp\" TEXT NOT NULL) STRICT;
             INSERT INTO \"weir_stamp\" VALUES (1, '{self}') ON CONFLICT DO UPDATE SET \"stamp\" = excluded.\"stamp\""
        ))
    }

    pub(super) fn parse(text: &str) -> Option<DatabaseStamp> {
        let is_stamp = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_stamp.then(|| u128::from_str_radix(text, 16).ok().map(DatabaseStamp)).flatten()
    }
}

impl fmt::Display for DatabaseStamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:0DIGITS$x}", self.0)
    }
}

impl DatabaseStamps {
    /// Returns the stamps of a database that this program has just opened, and the stamp that it commits first, if it does: the log has
    /// nothing that is not in the file. `None` if the file cannot be read without its log, of which a part may have been moved.
    pub(super) fn at_start(
        path: &Path,
        connection: &Connection,
    ) -> rusqlite::Result<Option<(DatabaseStamps, Option<DatabaseStamp>)>> {
        let (of_log, random) = (DatabaseStamp::of(connection)?, || DatabaseStamp::random(connection));
        let Ok(file) = without_log(path) else { return Ok(None) };
        let Ok(of_file) = DatabaseStamp::of(&file) else { return Ok(None) };
        Ok(Some(match (of_file, of_log) {
            (Some(of_file), Some(of_log)) if of_file != of_log => {
                (DatabaseStamps { of_file, of_log, next: random()? }, None)
            }
            (None, Some(of_log)) if has_no_table(&file) => {
                (DatabaseStamps { of_file: of_log, of_log, next: random()? }, None)
            }
            // The file may have one that is not seen without the log.
            (None, Some(_)) => return Ok(None),
            _ => {
                let new = random()?;
                (DatabaseStamps { of_file: of_file.unwrap_or(new), of_log: new, next: random()? }, Some(new))
            }
        }))
    }

    /// Returns the stamps behind the commit of the next one. All of the log before was moved into the file.
    pub(super) fn behind(
        moved: Option<DatabaseStamp>,
        next: DatabaseStamp,
        connection: &Connection,
    ) -> rusqlite::Result<DatabaseStamps> {
        Ok(DatabaseStamps { of_file: moved.unwrap_or(next), of_log: next, next: DatabaseStamp::random(connection)? })
    }
}

impl StampedLog {
    /// Parses the salts and the stamps; the inner value is `None` if they were not known.
    pub(super) fn parse(text: &str) -> Option<Option<StampedLog>> {
        let (salts, stamps) = text.split_once(' ')?;
        let salts = u64::from_str_radix(salts, 16).ok()?;
        let stamps: Vec<DatabaseStamp> = stamps.split(' ').map(DatabaseStamp::parse).collect::<Option<_>>()?;
        let [of_file, of_log, next] = stamps[..] else { return None };
        Some((salts != 0).then_some(StampedLog { salts, stamps: DatabaseStamps { of_file, of_log, next } }))
    }

    /// Returns the text of a log that is not known, which is as long as that of another one.
    pub(super) fn shown_unknown() -> String {
        let none = DatabaseStamp(0);
        StampedLog { salts: 0, stamps: DatabaseStamps { of_file: none, of_log: none, next: none } }.to_string()
    }

    /// Returns the stamps that the file may have beside a log with these salts; `None` if that is another one.
    fn stamps_beside(&self, salts: u64) -> Option<Vec<DatabaseStamp>> {
        let DatabaseStamps { of_file, of_log, next } = self.stamps;
        let count = |salts: u64| (salts >> 32) as u32;
        if salts == self.salts {
            return Some(vec![of_file, of_log, next]);
        }
        // All of the noted log was moved into the file.
        (count(salts) == count(self.salts).wrapping_add(1)).then(|| vec![of_log, next])
    }

    /// Returns whether the log certainly belongs to another file than the one that has the name of the database now.
    pub(super) fn is_of_another_file(&self, path: &Path, log: &Path) -> bool {
        let salts = File::open(log).ok().and_then(|log| salts_of(&log));
        let Some(allowed) = salts.and_then(|salts| self.stamps_beside(salts)) else { return false };
        let Ok(file) = without_log(path) else { return false };
        match is_ours(&file).and_then(|()| DatabaseStamp::of(&file)) {
            Ok(Some(stamp)) => !allowed.contains(&stamp),
            // A log that was moved in part may hide the table of the stamp in other pages than the first, but not all tables.
            Ok(None) => self.stamps.of_file != self.stamps.of_log && (has_no_table(&file) || has_short_schema(path)),
            // Of another program, or no database. Other errors may be those of a log that was moved in part.
            Err(error) => matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase)),
        }
    }
}

impl fmt::Display for StampedLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DatabaseStamps { of_file, of_log, next } = self.stamps;
        write!(formatter, "{:016x} {of_file} {of_log} {next}", self.salts)
    }
}

/// Gives a copy of a database a stamp of its own, if it has one.
pub(super) fn renew(copy: &Connection) -> rusqlite::Result<()> {
    match DatabaseStamp::of(copy)? {
        Some(_) => DatabaseStamp::random(copy)?.write(copy),
        None => Ok(()),
    }
}

/// Returns whether the first page has all of the schema: it is a leaf of the tree in which SQLite keeps that, and a page is moved as a
/// whole.
fn has_short_schema(path: &Path) -> bool {
    /// The kind of the first page is behind the header of the file.
    const KIND_AT: u64 = 100;
    const LEAF_OF_TABLE: u8 = 13;
    let mut kind = [0];
    File::open(path).and_then(|file| read_at(&file, &mut kind, KIND_AT)).is_ok() && kind == [LEAF_OF_TABLE]
}

fn has_no_table(file: &Connection) -> bool {
    file.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)) == Ok(0)
}

/// Returns the salts of a log; `None` if nothing was written to it.
pub(super) fn salts_of(log: &File) -> Option<u64> {
    let mut beginning = [0; LOG_BEGINNING];
    read_at(log, &mut beginning, 0).ok()?;
    let salts = u64::from_be_bytes(*beginning.last_chunk()?);
    (salts != 0).then_some(salts)
}
