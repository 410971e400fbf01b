//! Opens a path beneath a directory so that it cannot escape from it.
//!
//! On Linux the kernel resolves the path (`openat2` with `RESOLVE_BENEATH`), so that a link exchanged during the walk
//! is no way out either; links that stay beneath the directory are followed. Without that system call, the path is
//! walked directory by directory, and no links are followed.
//!
//! Files are opened in non-blocking mode: a pipe without a writer is refused because of its type instead of blocking.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// Maximum number of directories in a path; the kernel's limit of 4,096 bytes for a path allows no more.
const DEPTH_MAX: usize = 2048;

/// A relative path with at least one component and without `..`.
pub(super) struct BeneathPath<'a>(&'a str);

impl<'a> BeneathPath<'a> {
    /// Checks a path; `None` if it is absolute, contains `..`, or has no component.
    pub(super) fn new(path: &'a str) -> Option<BeneathPath<'a>> {
        let (mut depth, mut leads_out) = (0, path.starts_with('/'));
        // One pass over the bytes, because this check runs for every file that a service reads.
        for part in path.as_bytes().split(|byte| *byte == b'/') {
            leads_out |= part == b"..";
            depth += usize::from(!matches!(part, b"" | b"."));
        }
        (!leads_out && (1..=DEPTH_MAX).contains(&depth)).then_some(BeneathPath(path))
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// Purpose for which a file is opened.
#[derive(Clone, Copy)]
pub(super) enum OpenMode {
    /// Reading.
    Read,
    /// Writing at the end; the file is created if it does not exist.
    Append,
}

impl OpenMode {
    fn flags(self) -> OFlags {
        let access = match self {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        };
        access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
    }

    /// Returns the mode of a file that is created; the kernel requires an empty mode if none can be created.
    fn mode(self) -> Mode {
        match self {
            OpenMode::Read => Mode::empty(),
            OpenMode::Append => Mode::from_raw_mode(0o666),
        }
    }
}

/// Opens `path` beneath `directory`.
#[cfg(target_os = "linux")]
pub(super) fn open(directory: &OwnedFd, path: &BeneathPath<'_>, access: OpenMode) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    /// Number of attempts: the kernel gives up if a rename crosses its walk. Opening a path that is renamed all the
    /// time fails.
    const ATTEMPTS_MAX: usize = 16;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS_MAX {
        match openat2(directory, path.0, access.flags(), access.mode(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return walk(directory.as_fd(), path, access),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens `path` beneath `directory` for reading if all names on it are in the kernel's name cache.
#[cfg(target_os = "linux")]
pub(super) fn open_cached(directory: &OwnedFd, path: &BeneathPath<'_>) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
    openat2(directory, path.0, OpenMode::Read.flags(), OpenMode::Read.mode(), resolve)
}

/// Opens `path` beneath `directory`.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(directory: &OwnedFd, path: &BeneathPath<'_>, access: OpenMode) -> Result<OwnedFd, Errno> {
    walk(directory.as_fd(), path, access)
}

/// Opens a path component by component, without following links.
pub(super) fn walk(directory: BorrowedFd<'_>, path: &BeneathPath<'_>, access: OpenMode) -> Result<OwnedFd, Errno> {
    let mut parts = parts(path.0).peekable();
    let mut parent: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let (access, kind) = match parts.peek() {
            Some(_) => (OpenMode::Read, OFlags::DIRECTORY),
            None => (access, OFlags::empty()),
        };
        let at = parent.as_ref().map_or(directory, AsFd::as_fd);
        parent = Some(openat(at, part, access.flags() | OFlags::NOFOLLOW | kind, access.mode())?);
    }
    parent.ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks paths in a directory that holds a subdirectory with a file, and symbolic links to both.
    #[test]
    fn walking_reads_files_and_follows_no_links() {
        let directory = std::env::temp_dir().join(format!("weir-walk-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("sub")).unwrap();
        std::fs::write(directory.join("sub/file"), "").unwrap();
        std::os::unix::fs::symlink("sub", directory.join("link")).unwrap();
        std::os::unix::fs::symlink("sub/file", directory.join("file")).unwrap();
        let root: OwnedFd = std::fs::File::open(&directory).unwrap().into();
        let walked = |path| walk(root.as_fd(), &BeneathPath::new(path).unwrap(), OpenMode::Read).map(|_| ());
        let found = ["sub/file", "./sub//file", "link/file", "file", "sub/none"].map(walked);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found, [Ok(()), Ok(()), Err(Errno::NOTDIR), Err(Errno::LOOP), Err(Errno::NOENT)]);
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        for path in ["", ".", "/", "/a", "..", "a/..", "a/../b", "../a"] {
            assert!(BeneathPath::new(path).is_none(), "{path}");
        }
    }
}
