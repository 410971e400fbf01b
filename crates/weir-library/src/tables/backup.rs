//! A copy of the database, also while the program writes it.

use std::fs::File;
use std::path::{Path, PathBuf};

use weir::Failure;

use super::connection::read_only;
use super::database::is_ours;
use super::database_error::explain;

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
    let connection = read_only(database).map_err(|error| explain(database, &error))?;
    is_ours(&connection).map_err(|error| explain(database, &error))?;
    // The copy gets its name when it is complete.
    let partial = partial(copy);
    let written = connection.execute("VACUUM INTO ?1", [partial.to_string_lossy()]);
    let finished = written.map_err(|error| explain(&partial, &error)).and_then(|_| {
        finish(&partial, copy).map_err(|error| Failure::function(format!("cannot write {}: {error}", copy.display())))
    });
    if finished.is_err() {
        // The first failure is the one that counts.
        _ = std::fs::remove_file(&partial);
    }
    finished
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
