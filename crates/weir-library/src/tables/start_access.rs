//! The place where a start opens or makes an SQLite database, and whether it may write there.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use weir::Failure;

use super::database_error::is_folder;
use super::database_files::beside;

/// The ends of the names of the files beside a database that a start writes.
const WRITTEN_BESIDE: [&str; 3] = ["-wal", "-shm", "-note"];
/// The files without which a database that was moved may lack rows.
const MOVED_WITH: [&str; 2] = ["-wal", "-note"];
/// Maximum number of links that are followed, as in Linux.
const LINKS_MAX: usize = 40;

/// Returns the path of the file to which links lead from the path of a database: SQLite makes its log beside that file. Fails if a
/// log or note was left beside a link.
pub(super) fn without_links(database: &Path) -> Result<PathBuf, Failure> {
    let mut path = database.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let left = MOVED_WITH.map(|end| beside(database, end));
    let has_content = |file: &PathBuf| file.metadata().is_ok_and(|file| file.len() > 0);
    match left.iter().find(|left| path != database && has_content(left)) {
        Some(left) => Err(left_beside_link(database, &path, left)),
        None => Ok(path),
    }
}

/// Fails if a start could not write a database, or make it. Changes nothing.
pub(super) fn check_writable(database: &Path) -> Result<(), Failure> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut is_missing = false;
    for file in std::iter::once(database.to_owned()).chain(WRITTEN_BESIDE.map(|end| beside(database, end))) {
        match access(&file, Access::READ_OK | Access::WRITE_OK) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => is_missing = true,
            Err(refused) => return Err(not_opened(&file, &refused.into())),
        }
    }
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Err(refused) if is_missing => Err(not_opened(database, &refused.into())),
        _ => Ok(()),
    }
}

/// Returns the failure of a database that cannot be opened or made.
pub(super) fn not_opened(path: &Path, error: &io::Error) -> Failure {
    if path.is_dir() {
        return is_folder(path);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    Failure::function(match folder {
        Some(folder) => format!(
            "cannot make the database {}: there is no folder {}; create it, or choose another one with `--data DIR`",
            path.display(),
            folder.display()
        ),
        None => format!("cannot open the database {}: {error}; `--data DIR` chooses a folder", path.display()),
    })
}

fn left_beside_link(database: &Path, path: &Path, left: &Path) -> Failure {
    let (database, path, left) = (database.display(), path.display(), left.display());
    Failure::function(format!(
        "{database} is a link to {path}, and {left} is beside the link: move {database}-wal and {database}-note to the folder of \
         {path}, whose newest rows may be in them, but replace none that is there; or remove them if they are older"
    ))
}
