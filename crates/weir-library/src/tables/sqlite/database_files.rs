//! The files beside an SQLite database, and the length of its log.

use std::fs::File;
use std::path::{Path, PathBuf};

/// The end of the name of the log.
pub(super) const LOG: &str = "-wal";
/// The end of the name of the note.
pub(super) const NOTE: &str = "-note";
/// Number of pages of the log from which it is moved into the database. A page that was written often is moved once, so
/// that the work for a row falls with this number; a start after a crash reads so many pages.
pub(in crate::tables) const LOG_PAGES_MAX: u32 = if cfg!(test) { 400 } else { 4_000 };
/// Length of the log's file, in bytes, that it keeps at most when it begins anew after it has grown: room for what is added during a
/// checkpoint.
pub(in crate::tables) const LOG_KEPT_MAX: u32 = 2 * 4_120 * LOG_PAGES_MAX;

/// Returns the path of a file beside a database, whose name ends with this.
pub(in crate::tables) fn beside(database: &Path, end: &str) -> PathBuf {
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
