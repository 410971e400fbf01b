//! Changing the names of files below the root: deleting and renaming.

use std::io;

use rustix::fs::{AtFlags, FileType, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::write::NamedPlace;
use super::{FileError, Root};

/// Deletes the file at `path`; returns `true` if there was one. If `path` is a link, the link is deleted, and not the file to
/// which it leads.
///
/// # Errors
/// Fails if the file cannot be deleted, or if `path` is a directory.
#[weir::function(blocking)]
pub fn delete(#[environment] root: &Root, path: &str) -> Result<bool, FileError> {
    root.delete(path)
}

/// Gives the file at `path` the path `to`, and replaces the file that is there, in one step. If `path` is a link, the link is
/// renamed.
///
/// # Errors
/// Fails if there is no file at `path`, if one of the paths is that of a directory, or if the file cannot be renamed, for example
/// because `to` is on another file system.
#[weir::function(blocking)]
pub fn rename(#[environment] root: &Root, path: &str, to: &str) -> Result<(), FileError> {
    root.rename(path, to)
}

impl Root {
    /// Deletes the file at `path`; returns false if there is none.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be deleted.
    pub fn delete(&self, path: &str) -> Result<bool, FileError> {
        let place = match self.place_to_change(path) {
            Err(FileError::NotFound(_)) => return Ok(false),
            place => place?,
        };
        if !place.has_file(path)? {
            return Ok(false);
        }
        match unlinkat(&place.directory, place.name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            // Somebody else was faster.
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(FileError::NotWritten { path: path.into(), reason: error.into() }),
        }
    }

    /// Gives the file at `path` the path `to`, and replaces the file that is there.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be renamed.
    pub fn rename(&self, path: &str, to: &str) -> Result<(), FileError> {
        let from = self.place_to_change(path)?;
        if !from.has_file(path)? {
            return Err(FileError::NotFound(path.into()));
        }
        let place = self.place_to_change(to)?;
        place.has_file(to)?;
        renameat(&from.directory, from.name, &place.directory, place.name).map_err(|error| match error {
            Errno::XDEV => {
                let reason = format!("`{path}` is on another file system; use `files.copy` and `files.delete`");
                FileError::not_written(to, io::Error::new(io::ErrorKind::CrossesDevices, reason))
            }
            Errno::NOENT => FileError::NotFound(path.into()),
            error => FileError::not_written(to, error.into()),
        })
    }
}

impl NamedPlace<'_> {
    /// Returns true if the place has a file or a link, and false if it has nothing.
    fn has_file(&self, path: &str) -> Result<bool, FileError> {
        match statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) if FileType::from_raw_mode(status.st_mode) == FileType::Directory => {
                Err(FileError::NotAFile(path.into()))
            }
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(super::error::explain(path, error)),
        }
    }
}
