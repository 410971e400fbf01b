//! Files below one directory, and no way out of it.
//!
//! Everything goes through a [`Root`], which the embedder opens; a program names files relative to it. Nothing in a
//! path is decoded: `%2e%2e` is a name like any other.

mod cache;
mod follow;
mod lines;
mod open_beneath;
mod open_file;
#[cfg(target_os = "linux")]
mod page_cache;
mod root;
mod write;

pub use cache::FileCacheOptions;
pub(crate) use lines::{FileLines, root_of};
pub use open_file::{OpenFile, length, open};
pub use root::{FileError, Root};
pub use write::{Appender, write};

use bytes::Bytes;
use tokio::runtime::Handle;

/// The module `files`: its functions and its sources.
pub(crate) fn files() -> weir::Module {
    follow::within(lines::within(functions::files()))
}

mod functions {
    //! The functions of the module, apart so that the module made of them can be named as it is.

    weir::library! {
        /// Files below the program's root.
        pub(crate) files: super::read, super::exists, super::list, super::open_file::open, super::open_file::length,
            super::write::Appender::append, super::write::write
    }
}

/// The whole file at `path`.
///
/// # Errors
/// A [`FileError`].
#[weir::function(reads)]
pub async fn read(#[environment] root: &Root, path: &str) -> Result<Bytes, FileError> {
    if let Some(read) = root.read_from_memory(path) {
        return read;
    }
    let elsewhere = |path: String, root: Root| move || root.read(&path);
    match Handle::try_current() {
        Ok(handle) => handle.spawn_blocking(elsewhere(path.into(), root.clone())).await.unwrap_or_else(|error| {
            Err(FileError::Refused { path: path.into(), reason: std::io::Error::other(error) })
        }),
        // Without an event loop, as in the tests of a program, there is nothing to hold up.
        Err(_) => root.read(path),
    }
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
