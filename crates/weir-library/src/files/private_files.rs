//! Files that belong to a program and not to its visitors, wherever its folder is served.
//!
//! Their names say so: names that begin with a dot (`.env`, `.git`; but for `.well-known`, which RFC 8615 reserves for visitors),
//! programs, plans, configurations and databases. A file is judged by the path that a program gives, and by the path that it has
//! once links are followed. A further hard link is a name of the file like any other, and judged by itself.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Ends of the names of private files.
const PRIVATE_ENDS: [&str; 8] =
    [".weir", ".plan.toml", ".config.toml", ".db", ".db-wal", ".db-shm", ".db-note", ".db-journal"];
/// A part of the name of a copy of a database that is not complete.
const PARTIAL_COPY: &[u8] = b".db-partial-";
/// The name that begins with a dot, and that visitors ask for.
const WELL_KNOWN: &str = ".well-known";
/// The text that the system appends to the path of a file that has been deleted since it was opened.
const DELETED: &[u8] = b" (deleted)";

/// Returns `true` if a path is that of a private file, or of something in a folder whose name begins with a dot.
pub(super) fn has_private_name(path: &str) -> bool {
    has_private_bytes(path.as_bytes())
}

fn has_private_bytes(path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"." | b".."));
    let is_dotted = |name: &[u8]| name.starts_with(b".") && name != WELL_KNOWN.as_bytes();
    let last = names.clone().next_back().unwrap_or_default();
    let ends_in = |end: &str| {
        let start = last.len().checked_sub(end.len());
        start.is_some_and(|start| last[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    let is_partial_copy = last.windows(PARTIAL_COPY.len()).any(|part| part.eq_ignore_ascii_case(PARTIAL_COPY));
    PRIVATE_ENDS.into_iter().any(ends_in) || is_partial_copy || names.any(is_dotted)
}

/// Returns `true` if this path, which is free of links and lies below `root`, is that of a private file.
pub(super) fn is_private(path: &Path, root: &OwnedFd) -> bool {
    // Most paths have no such name at all, and then the root need not be asked for its own.
    has_private_bytes(without_note(path))
        && path_of(root).map_or(true, |root| has_private_bytes(without_note(path.strip_prefix(&root).unwrap_or(path))))
}

fn without_note(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_bytes();
    bytes.strip_suffix(DELETED).unwrap_or(bytes)
}

/// Returns the path of what is open, without links.
///
/// # Errors
/// Fails if the system does not tell it.
#[cfg(target_os = "linux")]
pub(super) fn path_of(opened: &OwnedFd) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    let unknown = |error: io::Error| {
        let note = "to see where links lead, the program needs the file system `/proc`";
        io::Error::new(error.kind(), format!("{note}: {error}"))
    };
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).map_err(unknown)
}

/// Returns the path of what is open, without links.
///
/// # Errors
/// Fails if the system does not tell it.
#[cfg(target_vendor = "apple")]
pub(super) fn path_of(opened: &OwnedFd) -> io::Result<PathBuf> {
    let path = rustix::fs::getpath(opened)?;
    Ok(std::ffi::OsStr::from_bytes(path.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_files_have_private_names() {
        for path in [
            "main.weir",
            "a/MAIN.WEIR",
            "prod.plan.toml",
            "main.config.toml",
            "data.db",
            "data.db-wal",
            "a.db-shm",
            "a.db-note",
            "a.db-journal",
            "a/monday.db-partial-12345",
            ".env",
            ".git/config",
            "a/.ssh/b",
            "./.env",
            ".well-known.db",
            ".well-known/.x",
            "main.weir/",
        ] {
            assert!(has_private_name(path), "{path}");
        }
        for path in
            ["", ".", "./a", "a/./b", "../a", "a.txt", "weir", "a.weir.txt", ".well-known/acme-challenge/x", "a.b/c"]
        {
            assert!(!has_private_name(path), "{path}");
        }
    }
}
