//! A note beside an SQLite database by which a start learns that the log is lost or cut, or the database itself is gone.
//!
//! Until a checkpoint moves them, the newest commits are in the log alone. If somebody removes the log of a program that was
//! killed, or cuts it, SQLite opens the database without them and says nothing. So the database has a number in the table
//! `weir_log`, and the note has a number that the database has at least together with its log. The file of the database alone has a
//! smaller one whenever only the log has acknowledged commits, and then the log has at least the length that is noted, too:
//!
//! 1. A new number is committed to the log ([`LogNote::raise`]), which has its least length then; it is synced, and the number noted
//!    ([`LogNote::confirm`]). No later commit is acknowledged before that.
//! 2. Before anything is moved, there is a new number. It stays in the log until everything before it has been moved, because a
//!    reader needs the database as it was before ([`LogNote::hold_back`]).
//! 3. Behind a checkpoint there is a new number, which the next sync confirms.
//!
//! If another program, such as `sqlite3`, moves the log of a program that was killed, the file of the database gets the last number
//! at whatever moment that was: nothing is lost, and the start agrees. A loss behind that is not noticed, nor is one of what a log
//! has grown by since the last number.
//!
//! The note also says which file the log belongs to ([`file_stamp`](super::file_stamp)).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use weir::Failure;

use super::connection::{read_only, without_log};
use super::database_error::explain;
use super::database_files::{LOG, LOG_KEPT_MAX, LOG_PAGES_MAX, NOTE, beside, sync_folder};
use super::file_stamp::{DatabaseStamp, DatabaseStamps, StampedLog, salts_of};
use super::log_error::LogError;
use super::missing_pages::lacks_pages;
use super::open_files::OpenFiles;

/// Length of the log of an open database in bytes, at least: that of a log which a checkpoint moves. What was not written yet takes no
/// room on the disk.
const LOG_LENGTH: u64 = 4_120 * LOG_PAGES_MAX as u64;
/// Maximum number of bytes of a note that are read.
const NOTE_LENGTH_MAX: u64 = 256;

/// The note of a database that is open.
#[derive(Debug)]
pub(in crate::tables) struct LogNote {
    files: OpenFiles,
    /// The last number that is committed.
    written: AtomicI64,
    note: Mutex<NoteFile>,
}

#[derive(Debug)]
struct NoteFile {
    file: File,
    noted: i64,
    /// The least length of the log that is noted.
    log_length: u64,
    /// The stamps that the file of the database may have; `None` if they are not known.
    stamps: Option<DatabaseStamps>,
    /// True if the file has these stamps.
    has_stamps: bool,
    /// The salts of the log in which the last stamp was committed.
    salts: Option<u64>,
}

/// The contents of a note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tables) struct Noted {
    number: i64,
    /// The least length of the log.
    log_length: u64,
    /// The log and the stamps of its file; `None` if they were not known.
    log: Option<StampedLog>,
}

impl LogNote {
    /// Compares the note with the database, and begins to note its log. Fails if the log is lost.
    pub(in crate::tables) fn begin(path: &Path, connection: &Connection, noted: Noted) -> Result<LogNote, Failure> {
        let note = beside(path, NOTE);
        let written = noted.agrees(path, connection)?;
        let file = opened(&note).map_err(|error| unwritable(&note, &error))?;
        let files = OpenFiles::open(path, connection).map_err(|error| log_unwritable(&beside(path, LOG), &error))?;
        let begun = LogNote { files, written: AtomicI64::new(written), note: Mutex::new(NoteFile::of(file, noted)) };
        let stamp = begun.begin_stamps(connection)?;
        // One that reads first would not wait for another program before it writes.
        let change = Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
        begun.raise_in(change, stamp).map_err(|error| error.explain(path))?;
        begun.note.lock().salts = salts_of(begun.files.log());
        begun.sync_log()?;
        sync_folder(path).map_err(|error| begun.unwritable(&error))?;
        Ok(begun)
    }

    /// Returns the note of a database to which a link of this name leads, or that has this name.
    pub(super) fn named(self, name: &Path) -> LogNote {
        LogNote { files: self.files.named(name), ..self }
    }

    /// Notes the stamps that the file may have from now on. Returns the one that is to be committed first, if there is one.
    fn begin_stamps(&self, connection: &Connection) -> Result<Option<DatabaseStamp>, Failure> {
        let path = self.files.database();
        let at_start = DatabaseStamps::at_start(path, connection).map_err(|error| explain(path, &error))?;
        let Some((stamps, first)) = at_start else { return Ok(None) };
        let mut note = self.note.lock();
        (note.stamps, note.has_stamps) = (Some(stamps), false);
        let written = note.write_stamps(&self.files);
        written.map_err(|error| self.unwritable(&error)).map(|()| first)
    }

    /// Fails if a start would, because the log is lost or cut, or belongs to another file. Changes nothing. A program may have the
    /// database open.
    pub(in crate::tables) fn check(path: &Path) -> Result<(), Failure> {
        let noted = Noted::before_start(path)?;
        if noted.number == 0 {
            return Ok(());
        }
        // The number of the database only grows, so it is looked at behind the noted one.
        let connection = read_only(path).map_err(|error| explain(path, &error))?;
        noted.agrees(path, &connection).map(|_| ())
    }

    /// Commits the next number to the log, which is not shorter than it should be afterwards. Nobody else writes by this connection.
    /// Does not wait for another program that writes.
    pub(in crate::tables) fn raise(&self, connection: &Connection) -> Result<(), LogError> {
        let stamped = self.note.lock().salts;
        if stamped != salts_of(self.files.log()) {
            // Another program has moved all of the log, which has begun anew.
            return self.raise_behind_log(connection);
        }
        self.raise_in(connection.unchecked_transaction(), None)
    }

    /// Does the same when all of the log is in the file, and commits the next stamp.
    pub(super) fn raise_behind_log(&self, connection: &Connection) -> Result<(), LogError> {
        let mut note = self.note.lock();
        note.write_stamps(&self.files).map_err(|error| LogError::Log(self.unwritable(&error)))?;
        let moved = DatabaseStamp::of(connection)?;
        let next = note.stamps.map_or_else(|| DatabaseStamp::random(connection), |noted| Ok(noted.next))?;
        let stamps = DatabaseStamps::behind(moved, next, connection)?;
        self.raise_in(connection.unchecked_transaction(), Some(next))?;
        (note.stamps, note.has_stamps, note.salts) = (Some(stamps), false, salts_of(self.files.log()));
        Ok(())
    }

    /// Begins anew if another program has given the database an older number, such as by `.restore` of `sqlite3`, which puts the rows of a
    /// backup in the place of all others. Nobody else writes by this connection.
    pub(super) fn renew(&self, connection: &Connection) -> Result<(), LogError> {
        if number_of(connection)? >= self.written() {
            return Ok(());
        }
        let stamp = self.begin_stamps(connection).map_err(LogError::Log)?;
        self.raise_in(Transaction::new_unchecked(connection, TransactionBehavior::Immediate), stamp)?;
        self.note.lock().salts = salts_of(self.files.log());
        Ok(())
    }

    fn raise_in(
        &self,
        change: rusqlite::Result<Transaction<'_>>,
        stamp: Option<DatabaseStamp>,
    ) -> Result<(), LogError> {
        let (next, change) = (self.written.load(Ordering::Relaxed) + 1, change?);
        change.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS \"weir_log\" (\"id\" INTEGER PRIMARY KEY, \"number\" INTEGER NOT NULL) STRICT;
             INSERT INTO \"weir_log\" VALUES (1, {next}) ON CONFLICT DO UPDATE SET \"number\" = excluded.\"number\""
        ))?;
        stamp.map_or(Ok(()), |stamp| stamp.write(&change))?;
        // The transaction has the lock for writers: while the length is set, nobody appends what that would cut off.
        self.files.lengthen(LOG_LENGTH).map_err(|error| LogError::Log(self.log_unwritable(&error)))?;
        change.commit()?;
        self.written.store(next, Ordering::Release);
        Ok(())
    }

    /// Fails if the database or its log was removed, replaced or cut.
    pub(super) fn check_files(&self) -> Result<(), Failure> {
        let lost = |error| Failure::function(format!("rows that were acknowledged may be missing: {error}"));
        self.files.check().map(|_| ()).map_err(lost)
    }

    pub(super) fn files(&self) -> &OpenFiles {
        &self.files
    }

    /// Commits the next number to the log, and keeps checkpoints from moving it while the reader has its transaction.
    pub(in crate::tables) fn hold_back(&self, connection: &Connection, reader: &Connection) -> Result<(), LogError> {
        // The first read takes the snapshot.
        reader.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1")?;
        self.raise(connection)
    }

    /// Returns the last number that is committed, which [`LogNote::confirm`] takes after a sync.
    pub(super) fn written(&self) -> i64 {
        self.written.load(Ordering::Acquire)
    }

    /// Notes a number that was committed before a sync, if that was not done yet, and the length of the log.
    pub(super) fn confirm(&self, number: i64, log_length: u64) -> io::Result<()> {
        let mut note = self.note.lock();
        if note.noted < number { note.write((number, log_length), &self.files) } else { Ok(()) }
    }

    /// Returns the failure of a note that cannot be written.
    pub(super) fn unwritable(&self, error: &io::Error) -> Failure {
        unwritable(&beside(self.files.database(), NOTE), error)
    }

    /// Syncs the log, and notes the last number.
    ///
    /// # Errors
    /// Fails if the log cannot be synced, or its note not be written.
    pub(in crate::tables) fn sync_log(&self) -> Result<(), Failure> {
        let number = self.written();
        let length = self.synced_length().map_err(|error| self.log_unwritable(&error))?;
        self.confirm(number, length).map_err(|error| self.unwritable(&error))
    }

    /// Syncs the log, and returns the length that it has had before.
    fn synced_length(&self) -> io::Result<u64> {
        let length = self.files.check()?;
        self.files.sync(File::sync_all)?;
        Ok(length)
    }

    fn log_unwritable(&self, error: &io::Error) -> Failure {
        log_unwritable(&self.files.log_path(), error)
    }
}

impl NoteFile {
    fn of(file: File, Noted { number, log_length, .. }: Noted) -> NoteFile {
        NoteFile { file, noted: number, log_length, stamps: None, has_stamps: false, salts: None }
    }

    /// Notes the stamps, if that was not done yet.
    fn write_stamps(&mut self, files: &OpenFiles) -> io::Result<()> {
        if self.has_stamps { Ok(()) } else { self.write((self.noted, self.log_length), files) }
    }

    fn write(&mut self, (number, log_length): (i64, u64), files: &OpenFiles) -> io::Result<()> {
        // A longer log is cut when it begins anew.
        let log_length = log_length.min(u64::from(LOG_KEPT_MAX));
        let log = salts_of(files.log()).zip(self.stamps).map(|(salts, stamps)| StampedLog { salts, stamps });
        let log = log.map_or_else(StampedLog::shown_unknown, |log| log.to_string());
        self.file.rewind()?;
        // Always of one length, so that it needs no more room on the disk.
        self.file.write_all(format!("{number:019} {log_length:010} {log}\n").as_bytes())?;
        files.sync_note(&self.file)?;
        (self.noted, self.log_length, self.has_stamps) = (number, log_length, true);
        Ok(())
    }
}

impl Noted {
    /// Reads the note of a database that is not open: SQLite would move what is left of a log when it closes the database. Fails if
    /// the log was cut, or the database is gone.
    pub(in crate::tables) fn before_start(path: &Path) -> Result<Noted, Failure> {
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let (noted, log) = (Noted::beside(path)?, length(&beside(path, LOG)));
        // SQLite writes the database before its log, and would remove the log of an empty one.
        if length(path) == 0 && (noted.number > 0 || log > 0) {
            return Err(gone(path));
        }
        noted.check_owner(path)?;
        if log >= noted.log_length {
            noted.check_number(path)?;
            return Ok(noted);
        }
        // Another program may have moved the log, and begun a new one.
        match without_log(path).and_then(|database| number_of(&database)) {
            Ok(number) if number >= noted.number => Ok(noted),
            // A part of the log that was moved may not fit to the rest.
            Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseCorrupt) => Err(explain(path, &error)),
            _ if log == 0 => Err(lost(path)),
            _ => Err(cut(path)),
        }
    }

    /// Fails if the database has a smaller number together with its log, such as an older one that was put there, or was cut. A connection
    /// that writes would move that log when it is closed.
    fn check_number(self, path: &Path) -> Result<(), Failure> {
        if self.number == 0 {
            return Ok(());
        }
        // What cannot be read fails the start, too, with what has to be done.
        let Ok(database) = read_only(path) else { return Ok(()) };
        match number_of(&database) {
            Ok(number) if number < self.number => Err(lost(path)),
            Ok(_) if lacks_pages(path, &database).unwrap_or(false) => Err(lacking(path)),
            _ => Ok(()),
        }
    }

    /// Fails if the log of a database belongs to another file.
    pub(super) fn check_log_owner(path: &Path) -> Result<(), Failure> {
        // Only a start needs a note that can be read.
        Noted::beside(path).map_or(Ok(()), |noted| noted.check_owner(path))
    }

    fn check_owner(self, path: &Path) -> Result<(), Failure> {
        let is_of_another = self.log.is_some_and(|noted| noted.is_of_another_file(path, &beside(path, LOG)));
        // A program that has the database open may have moved the log meanwhile.
        if is_of_another && Noted::beside(path)? == self { Err(of_another_file(path)) } else { Ok(()) }
    }

    fn beside(path: &Path) -> Result<Noted, Failure> {
        let note = beside(path, NOTE);
        match File::open(&note) {
            Ok(file) => Noted::read(&file, &note),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Noted::default()),
            Err(error) => Err(unreadable(&note, &error)),
        }
    }

    /// Reads a note. One that was not written yet is empty, or has zeros after a power cut.
    fn read(file: &File, note: &Path) -> Result<Noted, Failure> {
        let mut text = Vec::new();
        file.take(NOTE_LENGTH_MAX).read_to_end(&mut text).map_err(|error| unreadable(note, &error))?;
        if text.iter().all(|byte| *byte == 0) {
            return Ok(Noted::default());
        }
        std::str::from_utf8(&text).ok().and_then(Noted::parse).ok_or_else(|| damaged(note))
    }

    /// Parses `number length log`. Notes of older versions have no log, or only the number.
    fn parse(text: &str) -> Option<Noted> {
        let mut parts = text.strip_suffix('\n')?.splitn(3, ' ');
        let number = parts.next()?.parse().ok()?;
        let log_length = parts.next().map_or(Ok(0), str::parse).ok()?;
        let log = parts.next().map_or(Some(None), StampedLog::parse)?;
        Some(Noted { number, log_length, log })
    }

    /// Returns the number of the database. Fails if that is smaller than the noted one.
    fn agrees(self, path: &Path, connection: &Connection) -> Result<i64, Failure> {
        let number = number_of(connection).map_err(|error| explain(path, &error))?;
        if number < self.number { Err(lost(path)) } else { Ok(number) }
    }
}

fn opened(note: &Path) -> io::Result<File> {
    let is_new = !note.exists();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(note)?;
    if is_new {
        file.sync_all()?;
    }
    Ok(file)
}

/// Returns the number in the database; 0 if it has none.
fn number_of(connection: &Connection) -> rusqlite::Result<i64> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'weir_log'";
    match connection.query_row(table, [], |row| row.get::<_, i64>(0))? {
        0 => Ok(0),
        _ => connection.query_row("SELECT coalesce(max(\"number\"), 0) FROM \"weir_log\"", [], |row| row.get(0)),
    }
}

fn lost(path: &Path) -> Failure {
    let path = path.display();
    Failure::function(format!(
        "the log {path}-wal of the database is lost, or the database was cut or is older than {path}{NOTE}: rows that were \
         acknowledged may be missing; put the log back, restore a backup, or remove {path}{NOTE} to go on with the rows that are left"
    ))
}

fn lacking(path: &Path) -> Failure {
    let path = path.display();
    Failure::function(format!(
        "the database {path} was cut: pages of it are neither in the file nor in its log {path}-wal, and the rows in these are lost; restore \
         a backup, and remove {path}-wal and {path}{NOTE}"
    ))
}

fn gone(path: &Path) -> Failure {
    let path = path.display();
    Failure::function(format!(
        "the database {path} is missing or empty, and {path}{NOTE} or {path}-wal is left of it: rows that were acknowledged are \
         missing; put the database back, or restore a backup. If a new one is wanted, remove {path}{NOTE} and {path}-wal"
    ))
}

fn of_another_file(path: &Path) -> Failure {
    let path = path.display();
    Failure::function(format!(
        "the log {path}-wal belongs to another file than {path}, such as to the former database when a backup has replaced it, and would \
         damage this one: to go on with {path}, remove {path}-wal and {path}{NOTE}; to keep the rows that are in the log, put the file back \
         to which it belongs"
    ))
}

fn cut(path: &Path) -> Failure {
    let path = path.display();
    Failure::function(format!(
        "the log {path}-wal of the database was cut: rows that were acknowledged may be missing; put the whole log back, or remove \
         {path}{NOTE} to go on with the rows that are left"
    ))
}

fn damaged(note: &Path) -> Failure {
    let note = note.display();
    Failure::function(format!(
        "the file {note} is damaged, so that nobody knows whether the log of the database is complete; compare the rows with a \
         backup, or remove {note} to go on with those that are there"
    ))
}

fn unreadable(note: &Path, error: &io::Error) -> Failure {
    let advice = advice(error);
    Failure::function(format!("cannot read {}, which notes the log of the database: {error}{advice}", note.display()))
}

/// Returns the failure of a note that cannot be written.
pub(super) fn unwritable(note: &Path, error: &io::Error) -> Failure {
    let advice = advice(error);
    Failure::function(format!("cannot write {}, which notes the log of the database: {error}{advice}", note.display()))
}

fn log_unwritable(log: &Path, error: &io::Error) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::FileTooLarge => "; allow the program larger files (`ulimit -f`)",
        _ => advice(error),
    };
    let message = format!(
        "cannot write the log {} of the database, which has at least {} MB: {error}{advice}",
        log.display(),
        LOG_LENGTH.div_ceil(1_000_000)
    );
    Failure::function(message)
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; give the program the right to read and write this file and its folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space on the disk",
        _ => "",
    }
}
