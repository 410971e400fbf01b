//! Open files whose contents are not read, for functions that pass them on.

use std::fs::File;
use std::sync::Arc;

use super::{FileError, Root};

/// A file that is open for reading. Cloning it increments a reference count; dropping the last clone closes it.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "files.Open")]
pub struct OpenFile {
    pub(crate) file: Arc<File>,
    /// Length of the file in bytes when it was opened.
    pub(crate) length: u64,
}

/// Opens the file at `path` without reading it.
///
/// # Errors
/// Fails if the file cannot be opened.
#[weir::function(reads, blocking)]
pub fn open(#[environment] root: &Root, path: &str) -> Result<OpenFile, FileError> {
    let file = root.open_to_read(path)?;
    let status = file.metadata().map_err(|reason| FileError::Refused { path: path.into(), reason })?;
    Ok(OpenFile { file: Arc::new(file), length: status.len() })
}

/// Returns the length of an open file in bytes, as it was when the file was opened.
#[weir::function(pure)]
pub fn length(file: &OpenFile) -> i64 {
    i64::try_from(file.length).unwrap_or(i64::MAX)
}
