//! Cache validator: the identity and status of a file, and the absence of symbolic links on the path to it.
//!
//! Every component of the path is checked by itself, without following links, so that a path that leads through a link
//! is never taken for one that leads to a file. The result therefore agrees with opening the path below the root: a
//! directory that was moved out of the root and replaced by a link to it counts as a link, although the files below it
//! are unchanged. No other property of a directory matters: if the path still ends at the same unchanged file, its
//! contents are the same.
//!
//! The first component of a path is an entry of the root directory. As long as the root directory is unchanged, none of
//! its entries has become a link, and asking for an open directory's timestamps costs half as much as looking up a
//! name. A validator therefore remembers the root's timestamp at which its first component was seen not to be a link,
//! provided that the root had not changed recently, and checks that component again only if the root's timestamp
//! differs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{FileType, Stat};

use super::modification_time::is_settled;

/// Maximum number of components of a cached path; validating more costs as much as opening the file.
const PARTS_MAX: usize = 8;

/// A file timestamp, as the time since 1970. Earlier times are treated as 1970.
pub(in crate::files) type FileTime = Duration;

/// Lookup of path components without following links: in a root directory, or on the simulated disk of the tests.
pub(in crate::files) trait PathLookup {
    /// Returns the current time of the clock that stamps files.
    fn now(&self) -> FileTime;

    /// Returns the time of the root directory's last change, such as creating, renaming or removing an entry; `None` if
    /// its timestamps are not reliable.
    fn root_changed(&self) -> Option<FileTime>;

    /// Returns `true` if something exists at the path and is not a symbolic link.
    fn is_no_link(&self, path: &str) -> bool;

    /// Returns the status of what is at the path, without following a link there.
    fn status(&self, path: &str) -> Option<FileStatus>;
}

/// Status of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) struct FileStatus {
    pub(super) kind: FileType,
    pub(super) file_id: FileId,
    pub(in crate::files) size: u64,
    /// Time of the last content change. Programs can set it.
    pub(super) modified: FileTime,
    /// Time of the last change of contents, names or metadata. Programs cannot set it.
    pub(in crate::files) changed: FileTime,
}

/// Identity of a file: its device and its inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) number: u64,
}

impl FileStatus {
    #[allow(clippy::unnecessary_cast, reason = "systems differ in how wide these numbers are")]
    pub(in crate::files) fn of(stat: &Stat) -> FileStatus {
        let time = |seconds: i64, nanoseconds: u32| Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds);
        FileStatus {
            kind: FileType::from_raw_mode(stat.st_mode),
            file_id: FileId { device: stat.st_dev as u64, number: stat.st_ino as u64 },
            size: stat.st_size as u64,
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

/// A validator: a file's status, and a path that leads to it without a symbolic link.
#[derive(Debug)]
pub(super) struct Validator {
    path: PathComponents,
    pub(super) file: FileStatus,
}

impl Validator {
    /// Creates a validator; `None` if the path leads through a link, does not end at a regular file, or has too many
    /// components.
    pub(super) fn of(path: &str, lookup: &impl PathLookup, unchanged_min: Duration) -> Option<Validator> {
        let parts = PathComponents { ends: ends(path)?, root_ns: AtomicU64::new(UNKNOWN_NS) };
        let file = parts.look(path, lookup, unchanged_min).filter(|status| status.kind == FileType::RegularFile)?;
        Some(Validator { path: parts, file })
    }

    /// Returns `true` if the path still leads to the same, unchanged file.
    pub(super) fn is_current(&self, path: &str, lookup: &impl PathLookup, unchanged_min: Duration) -> bool {
        self.path.look(path, lookup, unchanged_min).is_some_and(|status| status == self.file)
    }
}

/// Marks an unknown timestamp of the root directory.
const UNKNOWN_NS: u64 = u64::MAX;

/// The components of a path, and what is known about the first.
#[derive(Debug)]
struct PathComponents {
    /// End offset of each component; 0 after the last.
    ends: [u16; PARTS_MAX],
    /// Timestamp of the root directory, in nanoseconds, at which the first component was known not to be a link.
    root_ns: AtomicU64,
}

impl PathComponents {
    /// Returns the status at the end of the path; `None` if a component before it is a link or missing.
    fn look(&self, path: &str, lookup: &impl PathLookup, unchanged_min: Duration) -> Option<FileStatus> {
        let ends = self.ends.iter().take_while(|end| **end > 0);
        let mut beginnings = ends.filter_map(|end| path.get(..usize::from(*end)));
        let first = beginnings.next()?;
        let Some(mut here) = beginnings.next() else { return lookup.status(first) };
        if !self.is_first_no_link(first, lookup, unchanged_min) {
            return None;
        }
        for next in beginnings {
            if !lookup.is_no_link(here) {
                return None;
            }
            here = next;
        }
        lookup.status(here)
    }

    fn is_first_no_link(&self, first: &str, lookup: &impl PathLookup, unchanged_min: Duration) -> bool {
        // Read the timestamp before the name, so that a concurrent change leaves a different timestamp.
        let changed = lookup.root_changed();
        let root_ns = changed.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(UNKNOWN_NS);
        if root_ns != UNKNOWN_NS && root_ns == self.root_ns.load(Ordering::Relaxed) {
            return true;
        }
        let now = lookup.now();
        let is_no_link = lookup.is_no_link(first);
        if is_no_link && changed.is_some_and(|changed| is_settled(changed, now, unchanged_min)) {
            self.root_ns.store(root_ns, Ordering::Relaxed);
        }
        is_no_link
    }
}

/// Returns the end offset of each component; `None` if there are too many, or the path is longer than any system
/// allows.
fn ends(path: &str) -> Option<[u16; PARTS_MAX]> {
    let mut ends = [0; PARTS_MAX];
    let (mut count, mut from) = (0, 0);
    for part in path.split('/') {
        let end = from + part.len();
        from = end + 1;
        if !matches!(part, "" | ".") {
            *ends.get_mut(count)? = u16::try_from(end).ok()?;
            count += 1;
        }
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_components_end_at_their_offsets() {
        assert_eq!(ends("a"), Some([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(ends("./a//b.x/./c"), Some([3, 8, 12, 0, 0, 0, 0, 0]));
        assert_eq!(ends("a/."), Some([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(ends("1/2/3/4/5/6/7/8"), Some([1, 3, 5, 7, 9, 11, 13, 15]));
        assert_eq!(ends("1/2/3/4/5/6/7/8/9"), None);
        assert_eq!(ends(&"x".repeat(70_000)), None);
    }
}
