//! The place where a start opens or makes an SQLite database, and whether it may write there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rustix::fs::{Access, FlockOperation, access, flock};
use weir::Failure;

use super::connection::read_write;
use super::database_error::{explain, is_folder};
use super::database_files::{LOG, NOTE, beside};
use super::log_note::unwritable;

/// The ends of the names of the files beside a database that a start writes.
const WRITTEN_BESIDE: [&str; 3] = [NOTE, LOG, "-shm"];
/// The files without which a database that was moved may lack rows.
const MOVED_WITH: [&str; 2] = [LOG, NOTE];
/// Maximum number of links that are followed, as in Linux.
const LINKS_MAX: usize = 40;

/// Returns the path of the file to which links lead from the path of a database: SQLite makes its log beside that file. Fails if a
/// log or note was left beside a link.
pub(in crate::tables) fn without_links(database: &Path) -> Result<PathBuf, Failure> {
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

/// Fails if a start could not open a database to write it, or make it. Changes nothing.
pub(in crate::tables) fn check_openable(database: &Path) -> Result<(), Failure> {
    if database.is_dir() {
        return Err(is_folder(database));
    }
    check_writable(database, &[database.to_owned()])
}

/// Fails if a start could not write the files beside a database, or make them. Changes nothing.
pub(in crate::tables) fn check_beside_writable(database: &Path) -> Result<(), Failure> {
    check_writable(database, &WRITTEN_BESIDE.map(|end| beside(database, end)))
}

fn check_writable(database: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut is_missing = false;
    for file in files {
        match access(file, Access::READ_OK | Access::WRITE_OK) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => is_missing = true,
            Err(refused) if file == database => return Err(not_opened(file, &refused.into())),
            Err(refused) if *file == beside(database, NOTE) => return Err(unwritable(file, &refused.into())),
            Err(refused) => return Err(not_written(database, file, &refused.into())),
        }
    }
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Err(refused) if is_missing => Err(not_opened(database, &refused.into())),
        _ => Ok(()),
    }
}

/// Fails if another program holds a lock of a database that a start needs: the one with which it is written, and in a database that
/// is not in WAL mode, such as a backup, also those of readers. Waits for that one for as long as a start does. Changes nothing.
/// Does not look at a database that a Weir program has open: that one holds the lock again and again, and would wait.
pub(in crate::tables) fn check_unlocked(database: &Path) -> Result<(), Failure> {
    if !database.exists() || is_open(database) {
        return Ok(());
    }
    let log_length = beside(database, "-wal").metadata().map_or(0, |log| log.len());
    let locked = read_write(database).and_then(|connection| {
        // Otherwise the end of the connection would move the log of a program that was killed.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, log_length > 0)?;
        // In WAL mode this waits for a writer alone; otherwise also for readers, as the switch to WAL mode does at the start.
        connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK")
    });
    locked.map_err(|error| explain(database, &error))
}

/// Returns whether a Weir program has a database open. This process must have no connection to it, whose locks would end here.
fn is_open(database: &Path) -> bool {
    File::open(database).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
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
        None => {
            let is_denied = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
            let advice = match is_denied {
                true => {
                    "give the program the right to read and write it and its folder, or choose another one with `--data DIR`"
                }
                false => "`--data DIR` chooses a folder",
            };
            format!("cannot open the database {}: {error}; {advice}", path.display())
        }
    })
}

fn not_written(database: &Path, file: &Path, error: &io::Error) -> Failure {
    Failure::function(format!(
        "the database {}: cannot write {}: {error}; give the program the right to write this file and its folder",
        database.display(),
        file.display()
    ))
}

fn left_beside_link(database: &Path, path: &Path, left: &Path) -> Failure {
    let (database, path, left) = (database.display(), path.display(), left.display());
    Failure::function(format!(
        "{database} is a link to {path}, and {left} is beside the link: move {database}-wal and {database}-note to the folder of \
         {path}, whose newest rows may be in them, but replace none that is there; or remove them if they are older"
    ))
}
