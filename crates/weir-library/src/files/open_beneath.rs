//! Opens a path below a directory such that nothing leads out of it.
//!
//! On Linux the kernel walks the path (`openat2` with `RESOLVE_BENEATH`), so that a link that is changed meanwhile is no
//! way out either; links that stay below the directory are followed. Where there is no such call, we walk the path
//! ourselves from directory to directory, and follow no links at all.
//!
//! Files are opened without waiting: a pipe without a writer is refused by its type instead of waited for.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// Directories in a path; the kernel's own limit of 4,096 bytes a path allows no more.
const DEPTH_MAX: usize = 2048;

/// The parts of a path that leads down: no part is empty, `.` or `..`, and there is at least one.
pub(super) struct BeneathPath<'a>(&'a str);

impl<'a> BeneathPath<'a> {
    /// `None` for a path that is absolute, has a `..`, or is nothing.
    pub(super) fn new(path: &'a str) -> Option<BeneathPath<'a>> {
        let (mut depth, mut leads_out) = (0, path.starts_with('/'));
        // By bytes, once: this is done for every file that a service reads.
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

/// What a file is opened for.
#[derive(Clone, Copy)]
pub(super) enum Access {
    /// To be read.
    Read,
    /// To be written at its end; made where there is none.
    Append,
}

impl Access {
    fn flags(self) -> OFlags {
        let access = match self {
            Access::Read => OFlags::RDONLY,
            Access::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        };
        access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
    }

    /// The mode of a file that is made; the kernel wants none where none can be made.
    fn mode(self) -> Mode {
        match self {
            Access::Read => Mode::empty(),
            Access::Append => Mode::from_raw_mode(0o666),
        }
    }
}

/// Opens what `path` names below `directory`.
#[cfg(target_os = "linux")]
pub(super) fn open(directory: &OwnedFd, path: &BeneathPath<'_>, access: Access) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    /// The kernel gives up where a rename crosses its walk; a path that is renamed all the time fails.
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

/// Opens what `path` names below `directory` to be read, where that needs no disk.
#[cfg(target_os = "linux")]
pub(super) fn open_cached(directory: &OwnedFd, path: &BeneathPath<'_>) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
    openat2(directory, path.0, Access::Read.flags(), Access::Read.mode(), resolve)
}

/// Opens what `path` names below `directory`.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(directory: &OwnedFd, path: &BeneathPath<'_>, access: Access) -> Result<OwnedFd, Errno> {
    walk(directory.as_fd(), path, access)
}

/// Opens part by part, following no links.
pub(super) fn walk(directory: BorrowedFd<'_>, path: &BeneathPath<'_>, access: Access) -> Result<OwnedFd, Errno> {
    let mut parts = parts(path.0).peekable();
    let mut parent: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let (access, kind) = match parts.peek() {
            Some(_) => (Access::Read, OFlags::DIRECTORY),
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

    /// What `walk` says of a path in a directory with a file, a directory with a file, and links to both.
    #[test]
    fn walking_reads_files_and_follows_no_links() {
        let directory = std::env::temp_dir().join(format!("weir-walk-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("sub")).unwrap();
        std::fs::write(directory.join("sub/file"), "").unwrap();
        std::os::unix::fs::symlink("sub", directory.join("link")).unwrap();
        std::os::unix::fs::symlink("sub/file", directory.join("file")).unwrap();
        let root: OwnedFd = std::fs::File::open(&directory).unwrap().into();
        let walked = |path| walk(root.as_fd(), &BeneathPath::new(path).unwrap(), Access::Read).map(|_| ());
        let found = ["sub/file", "./sub//file", "link/file", "file", "sub/none"].map(walked);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found, [Ok(()), Ok(()), Err(Errno::NOTDIR), Err(Errno::LOOP), Err(Errno::NOENT)]);
    }

    #[test]
    fn paths_that_lead_out_are_none() {
        for path in ["", ".", "/", "/a", "..", "a/..", "a/../b", "../a"] {
            assert!(BeneathPath::new(path).is_none(), "{path}");
        }
    }
}
