//! A copy of the database, also while the program writes it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use weir::Failure;

use super::connection::{read_only, read_write};
use super::database_error::{FILES_LIMITED, explain, limits_files};
use super::database_files::beside;
use super::database_format::is_ours;
use super::file_stamp;
use super::log_note::Noted;
use super::start_access::without_links;

/// Copies the database of a program to a new file, which holds the rows of one moment and no unused space. Nobody waits for
/// it. Returns the size of the copy in bytes.
///
/// # Errors
/// Fails if there is no database, if it is that of another program, or if the copy exists or cannot be written.
pub fn backup(database: &Path, copy: &Path) -> Result<u64, Failure> {
    if !database.exists() {
        let message = format!("there is no database {}; `--data DIR` names its folder", database.display());
        return Err(Failure::function(message));
    }
    if copy.exists() {
        return Err(Failure::function(format!("{} exists already; choose another name", copy.display())));
    }
    without_links(database).map_or(Ok(()), |path| Noted::check_log_owner(&path))?;
    let connection = read_only(database).map_err(|error| explain(database, &error))?;
    is_ours(&connection).map_err(|error| explain(database, &error))?;
    // The copy gets its name when it is complete.
    let partial = partial(copy);
    File::create_new(&partial).map_err(|error| cannot_write(copy, &error))?;
    let written = connection.execute("VACUUM INTO ?1", [partial.to_string_lossy()]);
    // The log of the database is none of the copy.
    let written = written.and_then(|_| file_stamp::renew(&read_write(&partial)?));
    let finished = written
        .map_err(|error| not_copied(database, copy, &error))
        .and_then(|()| finish(&partial, copy).map_err(|error| cannot_write(copy, &error)));
    if finished.is_err() {
        // The first failure is the one that counts. SQLite leaves the journal of a copy that it could not write.
        for file in [beside(&partial, "-journal"), partial] {
            _ = std::fs::remove_file(file);
        }
    }
    finished
}

/// Returns the failure of a copy that cannot be created.
fn cannot_write(copy: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write the copy {}: {error}", copy.display());
    Failure::function(match error.kind() {
        io::ErrorKind::NotFound => format!("{message}; create its folder, or choose another one"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("{message}; choose a folder that you may write")
        }
        _ => message,
    })
}

/// Returns the failure of an error while the rows were copied.
pub(in crate::tables) fn not_copied(database: &Path, copy: &Path, error: &rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Failure::function(format!(
            "cannot write the copy {}: its disk is full: free some space, or choose another disk; the database is as before",
            copy.display()
        )),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::DatabaseBusy) => {
            explain(database, error)
        }
        Some(ErrorCode::SystemIoFailure) if limits_files(&[&partial(copy)]) => Failure::function(format!(
            "cannot write the copy {}: {FILES_LIMITED}; the database is as before",
            copy.display()
        )),
        _ => Failure::function(format!("cannot write the copy {}: {error}", copy.display())),
    }
}

fn partial(copy: &Path) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push(format!("-partial-{}", std::process::id()));
    PathBuf::from(name)
}

/// Makes the copy durable, and gives it its name. Returns its size.
fn finish(partial: &Path, copy: &Path) -> std::io::Result<u64> {
    let file = File::open(partial)?;
    file.sync_all()?;
    std::fs::hard_link(partial, copy)?;
    std::fs::remove_file(partial)?;
    let folder = copy.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(file.metadata()?.len())
}
