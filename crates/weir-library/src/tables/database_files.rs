//! The files beside an SQLite database.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Returns the path of a file beside a database, whose name ends with this.
pub(super) fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Makes durable which files are beside a database.
pub(super) fn sync_folder(database: &Path) -> std::io::Result<()> {
    let Some(folder) = database.parent() else { return Ok(()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
