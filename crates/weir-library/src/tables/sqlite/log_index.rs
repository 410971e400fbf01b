//! The index of the log of an SQLite database: a file that SQLite maps into memory. Its header changes with each commit, and tells
//! which frames the log has.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rusqlite::Connection;

/// Length of the header. There are two copies of it; a commit changes the second one first.
const HEADER: usize = 48;
/// Length of the header of a log, and of that of a frame, which is behind it with its page.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// Number of bytes that all frames of a log have in common, and the log that follows in the same file has not.
const SALTS: usize = 8;

/// Places in the index, behind both headers: how many frames are in the database, and how many the last checkpoint was to move.
const MOVED_AT: usize = 2 * HEADER;
const ATTEMPTED_AT: usize = MOVED_AT + 32;

/// A copy of the header of the index of a log.
pub(super) type IndexHeader = [u8; HEADER];

/// The index of a log. Closing it releases the locks that SQLite has on it in this process.
#[derive(Debug)]
pub(super) struct LogIndex(File);

/// The checkpoints of a log that were made or begun. Other ones have other numbers: SQLite notes which frames a checkpoint is to move before
/// it writes the database, and that it has moved them afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checkpoints {
    salts: [u8; SALTS],
    moved: u32,
    attempted: u32,
}

impl Checkpoints {
    /// Returns whether a checkpoint may be under way: one has begun and did not end, or nobody knows since a crash.
    pub(super) fn is_under_way(self) -> bool {
        self.moved != self.attempted
    }
}

/// The frames that a log has: pages that were committed, and not forgotten since.
struct LogFrames {
    count: u32,
    /// Length of a frame.
    length: u64,
    salts: [u8; SALTS],
}

impl LogIndex {
    /// Opens the index of the log of a database; `None` if it cannot be read, such as on a system whose files do not show at once what
    /// is written to their memory.
    pub(super) fn open(connection: &Connection) -> Option<LogIndex> {
        // SQLite names the file behind a link.
        let path = connection.path().map(|path| PathBuf::from(format!("{path}-shm")));
        path.filter(|_| cfg!(target_os = "linux")).and_then(|path| File::open(path).ok()).map(LogIndex)
    }

    /// Returns the copy of the header that a commit changes first.
    pub(super) fn header(&self) -> Option<IndexHeader> {
        let mut header = [0; HEADER];
        read_at(&self.0, &mut header, HEADER as u64).ok()?;
        Some(header)
    }

    /// Returns the checkpoints that were made until now.
    pub(super) fn checkpoints(&self) -> Option<Checkpoints> {
        let mut index = [0; ATTEMPTED_AT + 4];
        read_at(&self.0, &mut index, 0).ok()?;
        let number = |at: usize| index[at..].first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let salts = *index[HEADER + 32..].first_chunk()?;
        Some(Checkpoints { salts, moved: number(MOVED_AT)?, attempted: number(ATTEMPTED_AT)? })
    }

    /// Returns whether the log has all of its frames, to which others may append meanwhile. A part of the last page that it has is not
    /// missed.
    pub(super) fn is_whole(&self, log: &File) -> io::Result<bool> {
        let frames = || self.header().map(LogFrames::of);
        let Some(mut expected) = frames() else { return Ok(true) };
        while !expected.are_in(log)? {
            match frames() {
                // The log has begun anew, and was cut for that, or overwritten.
                Some(now) if now.salts != expected.salts => expected = now,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl LogFrames {
    /// Reads the header of an index, whose numbers have the order of bytes of the machine.
    fn of(header: IndexHeader) -> LogFrames {
        let size = u32::from(u16::from_ne_bytes([header[14], header[15]]));
        // The largest size does not fit, and is written as 1.
        let page = if size == 1 { 1 << 16 } else { size };
        let mut salts = [0; SALTS];
        salts.copy_from_slice(&header[32..32 + SALTS]);
        LogFrames {
            count: u32::from_ne_bytes([header[16], header[17], header[18], header[19]]),
            length: FRAME_HEADER + u64::from(page),
            salts,
        }
    }

    fn are_in(&self, log: &File) -> io::Result<bool> {
        let count = u64::from(self.count);
        if count == 0 {
            return Ok(true);
        }
        if log.metadata()?.len() < LOG_HEADER + count * self.length {
            return Ok(false);
        }
        for at in 0..count {
            let mut salts = [0; SALTS];
            match read_at(log, &mut salts, LOG_HEADER + at * self.length + 8) {
                Ok(()) if salts == self.salts => {}
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Reads bytes of a file from a place in it.
#[cfg(unix)]
pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Fails: an index is opened only on Linux.
#[cfg(not(unix))]
pub(super) fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
