//! The database of a program's stored tables: one SQLite file, with one writer and a pool of readers.
//!
//! *Durability.* The file is in WAL mode with `synchronous=NORMAL`: a commit writes to the log and is visible at once, but is
//! not yet durable. A thread syncs the log for all commits that were executed meanwhile ([`GroupCommit`]), and
//! [`Database::settled`] waits for it. Together that is `synchronous=FULL` with one sync for a group. Checkpoints, which the
//! same thread makes, sync the log before the database and the database before the log is used again.
//!
//! *Readers* have connections of their own and see the last commit; they never wait for the writer. Statements of a
//! transaction that has written read by its connection.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use weir::Failure;

use super::connection::{read_only, read_write};
use super::database_error::{explain, in_use};
use super::group_commit::GroupCommit;

/// Marks the database of a Weir program: `Weir` in ASCII.
const APPLICATION_ID: i32 = 0x5765_6972;
/// The version of the layout of the database.
const LAYOUT: i32 = 1;
/// Maximum number of readers that wait for their next use.
const IDLE_READERS_MAX: usize = 16;

/// The database of a program.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    group_commit: Arc<GroupCommit>,
    /// Keeps other programs out. Closed last: closing any descriptor of the file would release SQLite's locks.
    _lock: File,
}

/// The connection that writes.
#[derive(Debug)]
struct Writer {
    connection: Connection,
    /// The number of the open transaction; 0 if there is none.
    transaction: i64,
    /// The number of the last transaction that SQLite took back by itself, after a failure of the disk. It cannot go on.
    lost: i64,
}

impl Database {
    /// Opens the database, and creates it if it is new.
    pub(super) fn open(path: &Path) -> Result<Database, Failure> {
        let lock = locked(path)?;
        let connection = connect(path).map_err(|error| explain(path, &error))?;
        let group_commit = GroupCommit::begin(path)?;
        let writer = Mutex::new(Writer { connection, transaction: 0, lost: 0 });
        Ok(Database { path: path.to_owned(), writer, readers: Mutex::default(), group_commit, _lock: lock })
    }

    /// Runs a statement that writes: in the transaction, or as one of its own if the number is 0.
    pub(super) fn write<T>(
        &self,
        transaction: i64,
        statement: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut writer = self.writer.lock();
        writer.enter(transaction)?;
        if transaction != 0 && writer.transaction == 0 {
            writer.connection.execute_batch("BEGIN IMMEDIATE")?;
            writer.transaction = transaction;
        }
        let result = statement(&writer.connection);
        if transaction == 0 {
            self.group_commit.executed();
        } else if result.is_err() && writer.connection.is_autocommit() {
            (writer.lost, writer.transaction) = (transaction, 0);
        }
        result
    }

    /// Runs a statement that reads.
    pub(super) fn read<T>(
        &self,
        transaction: i64,
        statement: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        if transaction != 0 {
            let writer = self.writer.lock();
            if writer.transaction == transaction {
                return statement(&writer.connection);
            }
        }
        let idle = self.readers.lock().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => read_only(&self.path)?,
        };
        let value = statement(&reader)?;
        let mut readers = self.readers.lock();
        if readers.len() < IDLE_READERS_MAX {
            readers.push(reader);
        }
        Ok(value)
    }

    /// Commits a transaction. If that fails, nothing of it takes effect.
    pub(super) fn commit(&self, transaction: i64) -> Result<(), Failure> {
        let mut writer = self.writer.lock();
        if writer.lost == transaction {
            return Err(self.failure(&taken_back()));
        }
        if writer.transaction != transaction {
            return Ok(());
        }
        writer.transaction = 0;
        if let Err(error) = writer.connection.execute_batch("COMMIT") {
            _ = writer.connection.execute_batch("ROLLBACK");
            return Err(self.failure(&error));
        }
        self.group_commit.executed();
        Ok(())
    }

    /// Waits until everything that was committed before is durable.
    pub(super) async fn settled(&self) -> Result<(), Failure> {
        self.group_commit.settled().await
    }

    pub(super) fn failure(&self, error: &rusqlite::Error) -> Failure {
        explain(&self.path, error)
    }

    /// Fails if the log could not be synced: then nobody knows what is durable, and nothing more is written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.group_commit.check()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.group_commit.end();
    }
}

impl Writer {
    /// Takes back a transaction that was left unfinished.
    fn enter(&mut self, transaction: i64) -> rusqlite::Result<()> {
        if transaction != 0 && transaction == self.lost {
            return Err(taken_back());
        }
        if self.transaction != 0 && self.transaction != transaction {
            self.transaction = 0;
            self.connection.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }
}

/// Opens the file, and takes the lock that keeps other Weir programs out.
fn locked(path: &Path) -> Result<File, Failure> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(|error| {
        Failure::function(format!(
            "cannot open the database {}: {error}; `--data DIR` chooses a folder",
            path.display()
        ))
    })?;
    let lock = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    lock.map_err(|_| in_use(path))?;
    Ok(file)
}

/// Opens the connection that writes, after checking that the database is one of ours.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = read_write(path)?;
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0));
    let (application, layout) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(refused("it is the database of another program; `--data DIR` chooses a folder"));
    }
    if layout > LAYOUT {
        return Err(refused("a newer version of Weir has written it; use that version, or a newer one"));
    }
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys=OFF;
         PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={LAYOUT};"
    ))?;
    Ok(connection)
}

fn taken_back() -> rusqlite::Error {
    refused("the transaction was taken back after a failure of the disk")
}

fn refused(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error { code: rusqlite::ErrorCode::CannotOpen, extended_code: 0 },
        Some(why.to_owned()),
    )
}
