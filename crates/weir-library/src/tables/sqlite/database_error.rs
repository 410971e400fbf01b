//! Failures of the database, with advice.

use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};
use weir::{Failure, FailureKind};

use super::counted_memory::take_refusal;
use super::database_files::{LOG, beside};

/// The advice for a file that the process may not make longer.
pub(super) const FILES_LIMITED: &str =
    "a file has the length that the program may give to files: allow longer ones (`ulimit -f`)";

/// Returns the failure for an error of the database.
pub(in crate::tables) fn explain(path: &Path, error: &rusqlite::Error) -> Failure {
    if path.is_dir() {
        return is_folder(path);
    }
    if is_hindered(error) {
        return Failure::new(FailureKind::Conflict, error.to_string());
    }
    if let Some(refusal) = take_refusal(error) {
        return refusal;
    }
    let code = error.sqlite_error_code();
    let advice = match code {
        Some(ErrorCode::DiskFull) => "the disk is full: free some space; nothing of the statement was written",
        Some(ErrorCode::ReadOnly) if has_extended_code(error, ffi::SQLITE_READONLY_DBMOVED) => {
            "its file was removed or replaced: put it back, or restart the program for the new one"
        }
        Some(ErrorCode::ReadOnly) => "it is read-only: give the program the right to write the file and its folder",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program reads or writes it: end that one",
        Some(ErrorCode::DatabaseCorrupt) => {
            "it is damaged: restore a backup, or rescue rows with `sqlite3 FILE .recover`"
        }
        Some(ErrorCode::NotADatabase) => "it is no SQLite database: move it away, or choose a folder with `--data DIR`",
        Some(ErrorCode::PermissionDenied) => "the program has no right to open it",
        Some(ErrorCode::SystemIoFailure) if has_extended_code(error, ffi::SQLITE_IOERR_SHORT_READ) => {
            "the file or its log was cut while the program had it open, or the disk failed: restart the program"
        }
        Some(ErrorCode::SystemIoFailure) if limits_files(&[path, &beside(path, LOG)]) => FILES_LIMITED,
        Some(ErrorCode::SystemIoFailure) => "the disk or the file system failed",
        Some(ErrorCode::TooBig) => "SQLite takes 1,000,000,000 bytes at most for a row and each of its values",
        _ => "",
    };
    let why = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    };
    // Such as a deferred foreign key of another program, at the commit.
    if code == Some(ErrorCode::ConstraintViolation) {
        return Failure::new(FailureKind::Constraint, format!("the database refuses the write: {why}"));
    }
    let denied = match code {
        // One that Weir refuses has no extended code.
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) if !has_extended_code(error, 0) => denied_file(path),
        _ => None,
    };
    let advice = match denied {
        Some(file) => format!("; give the program the right to read and write {}", file.display()),
        None if advice.is_empty() => String::new(),
        None => format!("; {advice}"),
    };
    Failure::function(format!("the database {}: {why}{advice}", path.display()))
}

/// Returns the file of a database that the program may not read and write.
fn denied_file(path: &Path) -> Option<PathBuf> {
    let mut files = ["", LOG, "-shm"].map(|end| beside(path, end)).into_iter();
    files
        .find(|file| access(file, Access::READ_OK | Access::WRITE_OK).is_err_and(|why| why != rustix::io::Errno::NOENT))
}

/// Returns the failure for an error of a read, which writes nothing but temporary files.
pub(in crate::tables) fn explain_read(path: &Path, error: &rusqlite::Error) -> Failure {
    if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
        return explain(path, error);
    }
    Failure::function(format!(
        "the folder {} for temporary files is full: SQLite sorts rows there that no index has in order; free some space, or choose \
         another folder with `TMPDIR`",
        temporary_folder().display()
    ))
}

/// Returns the folder in which SQLite creates temporary files.
fn temporary_folder() -> PathBuf {
    let chosen = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut folders = chosen.chain(["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from));
    let may_write = |folder: &PathBuf| folder.is_dir() && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    folders.find(may_write).unwrap_or_else(|| PathBuf::from("."))
}

/// Returns whether one of these files has reached the length that the process may give to files.
pub(super) fn limits_files(files: &[&Path]) -> bool {
    /// The longest page, with what precedes it in a log.
    const WRITE_MAX: u64 = (1 << 16) + 24;
    let length = |file: &&Path| std::fs::metadata(file).map_or(0, |file| file.len());
    let longest = files.iter().map(length).max().unwrap_or(0);
    getrlimit(Resource::Fsize).current.is_some_and(|limit| longest + WRITE_MAX > limit)
}

/// Returns the failure of a folder that has the name of the database.
pub(super) fn is_folder(path: &Path) -> Failure {
    Failure::function(format!(
        "the database {} is a folder: move it away, or choose another place with `--data DIR`",
        path.display()
    ))
}

/// Returns the failure of a database that another program has open.
pub(super) fn in_use(path: &Path) -> Failure {
    let path = path.display();
    Failure::function(format!(
        "another Weir program uses the database {path}; end it, or choose a folder with `--data DIR`"
    ))
}

/// Returns an error of a statement that Weir refuses.
pub(super) fn refused(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error { code: ErrorCode::CannotOpen, extended_code: 0 },
        Some(why.to_owned()),
    )
}

/// Returns the error of a transaction that has read what another program has changed before the transaction could write.
pub(super) fn hindered() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        ffi::Error { code: ErrorCode::OperationAborted, extended_code: ffi::SQLITE_BUSY_SNAPSHOT },
        Some("another program has written the tables of the transaction at the same time".to_owned()),
    )
}

/// Returns whether another program has hindered a transaction, so that it can be executed again.
pub(in crate::tables) fn is_hindered(error: &rusqlite::Error) -> bool {
    has_extended_code(error, ffi::SQLITE_BUSY_SNAPSHOT)
}

fn has_extended_code(error: &rusqlite::Error, code: i32) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(error, _) if error.extended_code == code)
}

/// Returns whether a statement has come to a damaged page.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Returns whether another program holds the database.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}
