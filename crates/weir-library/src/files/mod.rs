//! Files below one directory, and no way out of it.
//!
//! Everything goes through a [`Root`], which the embedder opens; a program names files relative to it. Nothing in a
//! path is decoded: `%2e%2e` is a name like any other.

mod open;
mod root;

pub use root::{FileError, Root};

use bytes::Bytes;

weir::library! {
    /// Files below the program's root.
    pub(crate) files: read, exists, list
}

/// The whole file at `path`.
///
/// # Errors
/// A [`FileError`].
#[weir::function(reads, blocking)]
pub fn read(#[environment] root: &Root, path: &str) -> Result<Bytes, FileError> {
    root.read(path)
}

/// Whether there is something at `path`.
#[weir::function(reads, blocking)]
pub fn exists(#[environment] root: &Root, path: &str) -> bool {
    root.exists(path)
}

/// The names in the directory at `path`, sorted; `.` is the root itself.
///
/// # Errors
/// A [`FileError`].
#[weir::function(reads, blocking)]
pub fn list(#[environment] root: &Root, path: &str) -> Result<Vec<String>, FileError> {
    root.list(path)
}
