//! Appending lines to files: a call that succeeds has handed its line to the operating system.
//!
//! A line is written by one system call, without a buffer: copying a line to the page cache costs less than waking a flow
//! that would wait for a common flush.
//!
//! * *A line that cannot be written* fails the call that appends it, and nothing of it stays in the file: if the disk fills
//!   up in the middle of a line, its beginning is removed. If another process has appended behind it in the meantime, it
//!   stays, and is terminated before the next line.
//! * *After log rotation* the line goes to the file that has the name now: each call compares the identity of the open
//!   file with that of the name.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Seek, Write};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use rustix::fs::fstat;
use weir::{Failure, FailureKind};

use super::{FileError, Root};

/// Maximum number of files that are open for appending.
const FILES_MAX: usize = 1024;

/// Appends lines to files. The state is private to its call site, so that lines keep the order of their source; the
/// open files are shared by all call sites.
#[derive(Default)]
pub struct Appender;

#[weir::function]
impl Appender {
    /// Appends a line to the file at `path`, which is created if it does not exist. If the call succeeds, the operating
    /// system has the line. If it fails, the file has nothing of the line. After log rotation, lines go to the new file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn append(&mut self, #[environment] root: &Root, path: &str, line: &str) -> Result<(), Failure> {
        let file = root.appended().open(path, root)?;
        let appended = file.lock().append(root, path, line);
        Ok(appended.map_err(|reason| FileError::not_written(path, reason))?)
    }
}

/// The files to which a program appends, each open once however many calls append to it.
#[derive(Debug, Default)]
pub(super) struct AppendedFiles(Mutex<IndexMap<String, Arc<Mutex<AppendedFile>>>>);

/// A file that is open for appending.
#[derive(Debug)]
struct AppendedFile {
    file: File,
    /// Device and inode number of the file.
    identity: (u64, u64),
    /// `true` if the file ends with the beginning of a line that could neither be completed nor removed.
    torn: bool,
}

impl AppendedFiles {
    /// Returns the file at this path, and opens it if necessary.
    fn open(&self, path: &str, root: &Root) -> Result<Arc<Mutex<AppendedFile>>, Failure> {
        let mut files = self.0.lock();
        if let Some(file) = files.get(path) {
            return Ok(Arc::clone(file));
        }
        if files.len() >= FILES_MAX {
            files.retain(|_, file| Arc::strong_count(file) > 1);
        }
        if files.len() >= FILES_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("{FILES_MAX} files are already open for writing")));
        }
        let opened = AppendedFile::open(path, root)?;
        Ok(Arc::clone(files.entry(path.to_owned()).or_insert(Arc::new(Mutex::new(opened)))))
    }
}

impl AppendedFile {
    fn open(path: &str, root: &Root) -> Result<Self, FileError> {
        let file = root.open_to_append(path)?;
        let status = fstat(&file).map_err(|error| FileError::not_written(path, error.into()))?;
        Ok(AppendedFile { file, identity: (status.st_dev, status.st_ino), torn: false })
    }

    /// Appends a line to the file that has this path now.
    fn append(&mut self, root: &Root, path: &str, line: &str) -> io::Result<()> {
        if root.identity(path) != Some(self.identity) {
            *self = AppendedFile::open(path, root).map_err(io::Error::other)?;
        }
        let terminator: &[u8] = if self.torn { b"\n" } else { b"" };
        self.write([terminator, line.as_bytes(), b"\n"])?;
        self.torn = false;
        Ok(())
    }

    /// Writes the parts contiguously, or nothing of them.
    fn write(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut rest = slices.as_mut_slice();
        let mut written = 0;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let error = match (&self.file).write_vectored(rest) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(length) => {
                    written += length;
                    IoSlice::advance_slices(&mut rest, length);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.torn |= written > 0 && !self.remove_last(written as u64);
            return Err(error);
        }
        Ok(())
    }

    /// Removes the bytes that were written last; returns `false` if that is impossible.
    fn remove_last(&self, bytes: u64) -> bool {
        let removed = || -> io::Result<bool> {
            // In append mode, the position is the end of this file's last write.
            let end = (&self.file).stream_position()?;
            let is_last = self.file.metadata()?.len() == end;
            if is_last {
                self.file.set_len(end - bytes)?;
            }
            Ok(is_last)
        };
        removed().unwrap_or(false)
    }
}
