//! Held reads: short reads outside of transactions that follow one another quickly share a transaction that reads.
//!
//! A read locks the log of SQLite and unlocks it: two system calls, which take as long as the rest of a read by key. While a
//! transaction is open, its reads need none. It must not hide what another program commits meanwhile. Each commit changes the
//! header of the index of the log, a file that SQLite maps into memory. So each read compares the header with the one before the
//! transaction, by one system call, which takes a third of the time of those two.
//!
//! The connection that writes ends the transaction before it writes, and a checkpoint before it needs all of the log. A thread ends
//! it after [`HELD_MAX`], so that programs which wait for readers find a moment.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Time for which a transaction is held at most.
pub(super) const HELD_MAX: Duration = Duration::from_millis(50);
/// Time after a transaction in which none is held.
pub(super) const BETWEEN: Duration = Duration::from_millis(2);
/// Number of reads that follow one another quickly if they take less than [`COUNTED_MAX`].
const COUNTED: u32 = 256;
/// Time of [`COUNTED`] reads for which a transaction is worth the work of the thread that ends it.
const COUNTED_MAX: Duration = Duration::from_millis(64);
/// Length of the header. There are two copies of it; a commit changes the second one first.
const HEADER: usize = 48;

/// A copy of the header of the index of a log.
type IndexHeader = [u8; HEADER];

/// The transaction that the reads of a connection share.
#[derive(Debug, Default)]
pub(super) struct HeldRead {
    /// The header before the open transaction, if one is open.
    open: Option<IndexHeader>,
    index: LogIndex,
    /// The reads since `begun`.
    reads: u32,
    begun: Option<Instant>,
    /// True if the last reads that were counted followed one another quickly.
    are_frequent: bool,
}

/// The index of a log.
#[derive(Debug, Default)]
enum LogIndex {
    #[default]
    NotOpened,
    /// It cannot be read, such as on a system whose files do not show at once what is written to their memory.
    None,
    /// Is never closed: closing any descriptor of the file would release the locks that SQLite has on it.
    Opened(ManuallyDrop<File>),
}

impl HeldRead {
    /// Has the next read use a transaction that sees the last commit, if reads are frequent and `end_later` has the transaction
    /// be ended.
    #[inline]
    pub(super) fn hold(&mut self, connection: &Connection, end_later: impl FnOnce() -> bool) -> rusqlite::Result<()> {
        self.count();
        if self.open.is_some() {
            let header = self.index.header();
            if header == self.open {
                return Ok(());
            }
            self.end(connection)?;
            return self.begin(connection, header);
        }
        if !self.are_frequent {
            return Ok(());
        }
        self.index.open(connection);
        let header = self.index.header().filter(|_| end_later());
        self.begin(connection, header)
    }

    /// Begins a transaction. Its first read comes after the header was read, so that it sees all commits before.
    fn begin(&mut self, connection: &Connection, header: Option<IndexHeader>) -> rusqlite::Result<()> {
        if header.is_some() {
            connection.prepare_cached("BEGIN")?.execute([])?;
            self.open = header;
        }
        Ok(())
    }

    /// Ends the transaction, if one is open.
    #[inline]
    pub(super) fn end(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        // A failure of the disk may have ended it.
        if self.open.take().is_some() && !connection.is_autocommit() {
            connection.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(())
    }

    fn count(&mut self) {
        self.reads += 1;
        if self.reads >= COUNTED {
            let now = Instant::now();
            self.are_frequent = self.begun.is_some_and(|begun| now - begun < COUNTED_MAX);
            (self.reads, self.begun) = (0, Some(now));
        }
    }
}

impl LogIndex {
    fn open(&mut self, connection: &Connection) {
        if matches!(self, LogIndex::NotOpened) {
            // SQLite names the file behind a link.
            let path = connection.path().map(|path| PathBuf::from(format!("{path}-shm")));
            let file = path.filter(|_| cfg!(target_os = "linux")).and_then(|path| File::open(path).ok());
            *self = file.map_or(LogIndex::None, |file| LogIndex::Opened(ManuallyDrop::new(file)));
        }
    }

    /// Returns the copy of the header that a commit changes first.
    #[cfg(unix)]
    fn header(&self) -> Option<IndexHeader> {
        use std::os::unix::fs::FileExt;

        let LogIndex::Opened(file) = self else { return None };
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, HEADER as u64).ok()?;
        Some(header)
    }

    #[cfg(not(unix))]
    fn header(&self) -> Option<IndexHeader> {
        None
    }
}
