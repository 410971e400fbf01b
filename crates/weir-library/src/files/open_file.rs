//! Files that are open and not read, for those that hand them on without looking into them.

use std::fs::File;
use std::sync::Arc;

use super::{FileError, Root};

/// A file that is open for reading. Cloning it counts a reference; it is closed with the last.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "files.Open")]
pub struct OpenFile {
    pub(crate) file: Arc<File>,
    /// Its bytes when it was opened.
    pub(crate) length: u64,
}

/// Opens the file at `path` and reads nothing of it.
///
/// # Errors
/// A [`FileError`].
#[weir::function(reads, blocking)]
pub fn open(#[environment] root: &Root, path: &str) -> Result<OpenFile, FileError> {
    let file = root.open_to_read(path)?;
    let status = file.metadata().map_err(|reason| FileError::Refused { path: path.into(), reason })?;
    Ok(OpenFile { file: Arc::new(file), length: status.len() })
}

/// The bytes of an open file, as many as it had when it was opened.
#[weir::function(pure)]
pub fn length(file: &OpenFile) -> i64 {
    i64::try_from(file.length).unwrap_or(i64::MAX)
}
