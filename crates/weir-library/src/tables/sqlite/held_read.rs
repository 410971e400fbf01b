//! Held reads: short reads outside of transactions that follow one another quickly share a transaction that reads.
//!
//! A read locks the log of SQLite and unlocks it: two system calls, which take as long as the rest of a read by key. While a
//! transaction is open, its reads need none. It must not hide what another program commits meanwhile. Each commit changes the
//! header of the index of the log, a file that SQLite maps into memory. So each read compares the header with the one before the
//! transaction, by one system call, which takes a third of the time of those two.
//!
//! The connection that writes ends the transaction before it writes, and a checkpoint before it needs all of the log. A thread ends
//! it after [`HELD_MAX`], so that programs which wait for readers find a moment.

use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::log_index::{IndexHeader, LogIndex};

/// Time for which a transaction is held at most.
pub(super) const HELD_MAX: Duration = Duration::from_millis(50);
/// Time after a transaction in which none is held.
pub(super) const BETWEEN: Duration = Duration::from_millis(2);
/// Number of reads that follow one another quickly if they take less than [`COUNTED_MAX`].
const COUNTED: u32 = 256;
/// Time of [`COUNTED`] reads for which a transaction is worth the work of the thread that ends it.
const COUNTED_MAX: Duration = Duration::from_millis(64);

/// The transaction that the reads of a connection share.
#[derive(Debug, Default)]
pub(super) struct HeldRead {
    /// The header before the open transaction, if one is open.
    open: Option<IndexHeader>,
    index: HeldIndex,
    /// The reads since `begun`.
    reads: u32,
    begun: Option<Instant>,
    /// True if the last reads that were counted followed one another quickly.
    are_frequent: bool,
}

/// The index of the log as a connection that reads knows it.
#[derive(Debug, Default)]
enum HeldIndex {
    #[default]
    NotOpened,
    /// It cannot be read.
    None,
    /// Is never closed: that would release the locks that SQLite has on it.
    Opened(ManuallyDrop<LogIndex>),
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

impl HeldIndex {
    fn open(&mut self, connection: &Connection) {
        if matches!(self, HeldIndex::NotOpened) {
            let index = LogIndex::open(connection);
            *self = index.map_or(HeldIndex::None, |index| HeldIndex::Opened(ManuallyDrop::new(index)));
        }
    }

    fn header(&self) -> Option<IndexHeader> {
        let HeldIndex::Opened(index) = self else { return None };
        index.header()
    }
}
