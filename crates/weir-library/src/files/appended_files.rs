//! The files to which a program appends lines: a call that succeeds has handed its line to the operating system.
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

use super::error::FileError;

/// Maximum number of files that are open for appending: a fraction of the descriptors that a process usually has, so that
/// connections can still be accepted. Beyond it, the files to which no call appends at the moment are closed.
const FILES_MAX: usize = 128;

/// The files to which a program appends, each open once however many calls append to it.
#[derive(Debug, Default)]
pub(super) struct AppendedFiles(Mutex<IndexMap<String, Arc<Mutex<AppendedFile>>>>);

/// A path to which the program appends.
#[derive(Debug, Default)]
pub(super) struct AppendedFile(Option<AppendedInode>);

/// A file that is open for appending.
#[derive(Debug)]
struct AppendedInode {
    file: File,
    /// Device and inode number of the file.
    identity: (u64, u64),
    /// `true` if the file ends with the beginning of a line.
    torn: bool,
}

impl AppendedFiles {
    /// Returns the file of this path, which its first line opens.
    pub(super) fn of_path(&self, path: &str) -> Result<Arc<Mutex<AppendedFile>>, Failure> {
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
        Ok(Arc::clone(files.entry(path.to_owned()).or_default()))
    }
}

impl AppendedFile {
    /// Appends a line to the file that has the path now: that of this identity, or one that is opened, together with whether
    /// its last line has no end.
    pub(super) fn append(
        &mut self,
        line: &str,
        identity: Option<(u64, u64)>,
        open: impl FnOnce() -> Result<(File, bool), FileError>,
    ) -> io::Result<()> {
        if self.0.as_ref().is_none_or(|open| Some(open.identity) != identity) {
            self.0 = None;
            let (file, torn) = open().map_err(io::Error::other)?;
            let status = fstat(&file)?;
            self.0 = Some(AppendedInode { file, identity: (status.st_dev, status.st_ino), torn });
        }
        self.0.as_mut().map_or(Ok(()), |open| open.append(line))
    }
}

impl AppendedInode {
    fn append(&mut self, line: &str) -> io::Result<()> {
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
