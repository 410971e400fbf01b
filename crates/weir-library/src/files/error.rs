//! Errors of file operations, and their messages.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::output::unwritten_reason;

/// Error of a file operation. Paths are as the program gave them, relative to the root.
#[derive(Debug)]
pub enum FileError {
    /// Nothing exists at this path.
    NotFound(String),
    /// The path leads out of the root: it is absolute, contains `..`, or follows a link that leads out.
    Outside(String),
    /// The path is empty, too long, or contains a NUL byte.
    NotAPath(String),
    /// The path names a directory, a pipe, a socket or a device.
    NotAFile(String),
    /// The path does not name a directory.
    NotADirectory(String),
    /// The file has more bytes, or the directory more names, than the limit.
    TooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// The operating system refused, for example because of missing permission or a disk error.
    Refused {
        /// The path.
        path: String,
        /// The operating system's error.
        reason: io::Error,
    },
    /// The operating system did not write, for example because the disk is full.
    NotWritten {
        /// The path.
        path: String,
        /// The operating system's error.
        reason: io::Error,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotFound(path) => write!(f, "`{path}` does not exist"),
            FileError::Outside(path) => write!(f, "`{path}` leads out of the root"),
            FileError::NotAPath(path) => write!(f, "{path:?} is not a valid path"),
            FileError::NotAFile(path) => write!(f, "`{path}` is not a file"),
            FileError::NotADirectory(path) => write!(f, "`{path}` is not a directory"),
            FileError::TooLarge { path, limit } => write!(f, "`{path}` exceeds the limit of {limit}"),
            FileError::Refused { path, reason } => write!(f, "`{path}` cannot be read: {reason}"),
            FileError::NotWritten { path, reason } => {
                write!(f, "`{path}` cannot be written: {}", unwritten_reason(reason))
            }
        }
    }
}

impl std::error::Error for FileError {}

impl FileError {
    /// Returns the error of a write of a file that belongs to the program.
    pub(super) fn of_program(path: &str) -> FileError {
        let reason = io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to the program");
        FileError::NotWritten { path: path.into(), reason }
    }

    /// Converts the error of a write; an error that already says which file it is about stays itself.
    pub(super) fn not_written(path: &str, reason: io::Error) -> FileError {
        match reason.downcast::<FileError>() {
            Ok(FileError::Refused { path, reason }) => FileError::NotWritten { path, reason },
            // Appending creates the file, so it is the directory that is missing.
            Ok(FileError::NotFound(path)) => {
                let reason = io::Error::new(io::ErrorKind::NotFound, "its directory does not exist");
                FileError::NotWritten { path, reason }
            }
            Ok(error) => error,
            Err(reason) => FileError::NotWritten { path: path.into(), reason },
        }
    }
}

/// Converts an error of the operating system.
pub(super) fn explain(path: &str, errno: Errno) -> FileError {
    let path = path.to_owned();
    match errno {
        Errno::NOENT => FileError::NotFound(path),
        // A component of the path is not a directory, so nothing exists below it.
        Errno::NOTDIR => FileError::NotADirectory(path),
        // A link that leads out of the root, a link that is not followed, or a loop of links.
        Errno::XDEV | Errno::LOOP => FileError::Outside(path),
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => FileError::NotAPath(path),
        // A pipe without a reader, a missing device, or a directory opened for writing.
        Errno::NXIO | Errno::NODEV | Errno::ISDIR => FileError::NotAFile(path),
        errno => FileError::Refused { path, reason: errno.into() },
    }
}
