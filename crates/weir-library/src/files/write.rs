//! Replacing and copying whole files below the root.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use super::{FileError, Root};

/// Replaces the contents of the file at `path` atomically by `bytes`: readers see the old contents or the new ones, and
/// nothing in between.
///
/// # Errors
/// Fails if the file cannot be written.
#[weir::function(blocking, idempotent)]
pub fn write(#[environment] root: &Root, path: &str, bytes: &[u8]) -> Result<(), FileError> {
    root.replace(path, bytes)
}

/// Copies the file at `path` to the path `to`, and replaces the file that is there atomically: readers see the old contents or
/// the new ones, and nothing in between.
///
/// # Errors
/// Fails if the file cannot be read, or the copy cannot be written.
#[weir::function(blocking, idempotent)]
pub fn copy(#[environment] root: &Root, path: &str, to: &str) -> Result<(), FileError> {
    root.copy(path, to)
}

/// A name in a directory, for a file that is written, renamed or deleted.
pub(super) struct NamedPlace<'a> {
    pub(super) directory: OwnedFd,
    pub(super) name: &'a str,
}

impl Root {
    /// Replaces the file at `path` atomically: writes a temporary file in the same directory and renames it.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be written.
    pub fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.replace_by(path, |file| file.write_all(bytes))
    }

    /// Copies the file at `path` to the path `to`, like [`Root::replace`].
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be read, or the copy cannot be written.
    pub fn copy(&self, path: &str, to: &str) -> Result<(), FileError> {
        let mut from = self.open_to_read(path)?;
        self.replace_by(to, |file| io::copy(&mut from, file).map(drop))
    }

    fn replace_by(&self, path: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), FileError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let NamedPlace { directory, name } = self.place_to_change(path)?;
        let beside = format!(".weir-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let refused = |reason: io::Error| FileError::not_written(path, reason);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file =
            openat(&directory, &beside, flags, Mode::from_raw_mode(0o666)).map_err(|error| refused(error.into()))?;
        let written = write(&mut File::from(file));
        let named = written.and_then(|()| Ok(renameat(&directory, &beside, &directory, name)?));
        named.map_err(|error| {
            // Cleaning up the temporary file is best effort; a failure to remove it changes nothing for the caller.
            let _ = unlinkat(&directory, &beside, AtFlags::empty());
            refused(error)
        })
    }

    /// Returns the place of a file that the program changes; fails if the file belongs to the program.
    pub(super) fn place_to_change<'a>(&self, path: &'a str) -> Result<NamedPlace<'a>, FileError> {
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        if path.is_empty() || path.contains('\0') {
            return Err(FileError::NotAPath(path.into()));
        }
        if matches!(name, "" | "." | "..") {
            return Err(FileError::NotAFile(path.into()));
        }
        if self.hides(name) {
            return Err(FileError::of_program(path));
        }
        let directory = self.open_directory(above)?;
        self.check_not_left_out(path, &directory, name)?;
        Ok(NamedPlace { directory, name })
    }
}
