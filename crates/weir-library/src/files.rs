//! Access to files, confined to one root directory.
//!
//! All access goes through a [`Root`], which the embedder opens; programs name files relative to it. Paths are taken
//! literally: `%2e%2e` is an ordinary file name.

mod append;
mod appended_files;
mod cache;
mod error;
mod follow;
mod lines;
mod names;
mod open_beneath;
mod open_file;
#[cfg(target_os = "linux")]
mod page_cache;
mod private_files;
mod root;
mod write;

pub use append::Appender;
pub use cache::FileCacheOptions;
pub use error::FileError;
pub(crate) use lines::{FileLines, root_of};
pub use names::{delete, rename};
pub use open_file::{OpenFile, length, open};
pub use root::Root;
pub use write::{copy, write};

use bytes::Bytes;
use tokio::runtime::Handle;

/// Builds the module `files`: its functions and its sources.
pub(crate) fn files() -> weir::Module {
    follow::within(lines::within(functions::files()))
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Files below the program's root directory.
        pub(crate) files: super::read, super::exists, super::list, super::open_file::open, super::open_file::length,
            super::append::Appender::append, super::write::write, super::write::copy, super::names::rename, super::names::delete
    }
}

/// Reads the whole file at `path`.
///
/// # Errors
/// Fails if the file cannot be opened or read.
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
        // Without an event loop, as in tests of a program, blocking the thread delays nobody.
        Err(_) => root.read(path),
    }
}

/// Returns `true` if something exists at `path`.
#[weir::function(reads, blocking)]
pub fn exists(#[environment] root: &Root, path: &str) -> bool {
    root.exists(path)
}

/// Returns the names in the directory at `path`, sorted; `.` is the root itself.
///
/// # Errors
/// Fails if the directory cannot be read.
#[weir::function(reads, blocking)]
pub fn list(#[environment] root: &Root, path: &str) -> Result<Vec<String>, FileError> {
    root.list(path)
}
