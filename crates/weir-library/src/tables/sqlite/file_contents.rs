//! The contents of the file of a database, by which the program notices that somebody has overwritten or cut it in place.
//!
//! In WAL mode, SQLite writes the file only in checkpoints, whichever program makes them, and notes in the index of the log how far they
//! have come ([`Checkpoints`]). So if the file has another length or another time of modification than before, and no checkpoint was made,
//! somebody has written it by other means, such as a backup that was copied over it. The time alone proves nothing, because people can set
//! it: the [stamp](super::file_stamp) is compared then.
//!
//! Behind a checkpoint the file is looked at anew, and taken for right, because nobody knows its contents. So it is not noticed if the file is
//! overwritten while a checkpoint is being made, nor if bytes are changed while its length and stamp stay.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, ErrorCode};

use super::connection::{read_only, without_log};
use super::file_stamp::DatabaseStamp;
use super::log_index::{Checkpoints, LogIndex};

/// The contents of a file, as far as they are known.
#[derive(Debug)]
pub(super) struct FileContents {
    size: FileSize,
    stamp: StampRead,
    /// The checkpoints before the file had this size.
    checkpoints: Option<Checkpoints>,
}

/// The length of a file, and when it was written last.
#[derive(Debug, PartialEq, Eq)]
struct FileSize {
    length: u64,
    modified: Option<SystemTime>,
}

/// The stamp in a file, without its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampRead {
    /// `None` if it has none.
    Read(Option<DatabaseStamp>),
    /// The file is no database, or not a whole one.
    Damaged,
    /// It could not be read now, such as because all file descriptors are used.
    Unknown,
}

impl FileContents {
    /// Looks at a file that may be as it should be.
    pub(super) fn of(path: &Path, index: Option<&LogIndex>) -> std::io::Result<FileContents> {
        let checkpoints = index.and_then(LogIndex::checkpoints);
        let size = FileSize::of(&std::fs::metadata(path)?);
        Ok(FileContents { size, stamp: StampRead::of(without_log(path)), checkpoints })
    }

    /// Returns whether the file is as it was, or was written by checkpoints, as far as that can be told.
    #[inline]
    pub(super) fn is_right(&mut self, now: &Metadata, path: &Path, index: Option<&LogIndex>) -> std::io::Result<bool> {
        let now = FileSize::of(now);
        if now == self.size { Ok(true) } else { self.is_explained(now, path, index) }
    }

    #[cold]
    fn is_explained(&mut self, now: FileSize, path: &Path, index: Option<&LogIndex>) -> std::io::Result<bool> {
        let Some((index, checkpoints)) = index.and_then(|index| Some((index, index.checkpoints()?))) else {
            return Ok(true);
        };
        if self.checkpoints != Some(checkpoints) {
            if !checkpoints.is_under_way() {
                *self = FileContents::of(path, Some(index))?;
            }
            return Ok(true);
        }
        let stamp = StampRead::of(without_log(path));
        let is_right = match checkpoints.is_under_way() {
            true => self.may_be_moved(&now, stamp, path),
            false => now.length == self.size.length && stamp.may_be(self.stamp),
        };
        if index.checkpoints() != Some(checkpoints) {
            // One has begun meanwhile, and the next look tells more.
            return Ok(true);
        }
        if is_right {
            self.size = now;
        }
        Ok(is_right)
    }

    /// Returns whether a checkpoint that is under way, or was when a program was killed, may have written the file.
    fn may_be_moved(&self, now: &FileSize, stamp: StampRead, path: &Path) -> bool {
        match stamp {
            StampRead::Damaged => now.length >= self.size.length || self.stamp == StampRead::Damaged,
            _ => stamp.may_be(self.stamp) || stamp.may_be(StampRead::of(read_only(path))),
        }
    }
}

impl FileSize {
    fn of(file: &Metadata) -> FileSize {
        FileSize { length: file.len(), modified: file.modified().ok() }
    }
}

impl StampRead {
    fn of(file: rusqlite::Result<Connection>) -> StampRead {
        match file.and_then(|file| DatabaseStamp::of(&file)) {
            Ok(stamp) => StampRead::Read(stamp),
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StampRead::Damaged,
                _ => StampRead::Unknown,
            },
        }
    }

    fn may_be(self, other: StampRead) -> bool {
        self == other || [self, other].contains(&StampRead::Unknown)
    }
}
