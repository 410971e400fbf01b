//! What the system says of a path: whether it leads through links, and what is at its end.
//!
//! Every part is looked at by itself and no link is followed, so that a path which leads through a link is never seen as
//! one that leads to a file. That is how the answer for a path stays the one that opening it below the root would give: a
//! directory that was moved out of the root and has left a link in its place is a link here, although all files below it
//! are as they were. What a directory is does not matter otherwise: where the path still ends at the same unchanged file,
//! so are its bytes.
//!
//! A directory of the root is a name in the root. As long as the root has not been changed, no name in it has become a link,
//! and asking for an open directory's times costs half of what looking at a name does. So a look remembers which time the
//! root had when the first part of the path was seen to be no link, if the root had been left alone for a while by then, and
//! looks at the name again only where the root has another time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{FileType, Stat};

use super::modification_time::is_settled;

/// Parts of a path; looking at more costs as much as opening the file.
const PARTS_MAX: usize = 8;

/// A time of a file, since 1970. Times before are 1970: nobody compares what is so old.
pub(in crate::files) type FileTime = Duration;

/// Where paths lead, followed part by part: what is below a root, or a disk that a test made up.
pub(in crate::files) trait PathLookup {
    /// The time now, by the clock that it stamps files with.
    fn now(&self) -> FileTime;

    /// When a name in the root was last made, moved or taken away, or something else about the root changed; `None` where
    /// its times are not believed.
    fn root_changed(&self) -> Option<FileTime>;

    /// Whether there is something at the path, and it is no link.
    fn is_no_link(&self, path: &str) -> bool;

    /// What is at the path, or the link that is there.
    fn status(&self, path: &str) -> Option<FileStatus>;
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) struct FileStatus {
    pub(super) kind: FileType,
    pub(super) file_id: FileId,
    pub(in crate::files) size: u64,
    /// When its bytes were last changed, or were said to be: a program can set this.
    pub(super) modified: FileTime,
    /// When its bytes, its names or anything else about it were last changed: no program can set this.
    pub(in crate::files) changed: FileTime,
}

/// The device that something lies on, and its number there.
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

/// A file, and a path that leads to it without a link on its way.
#[derive(Debug)]
pub(super) struct Validator {
    path: PathComponents,
    pub(super) file: FileStatus,
}

impl Validator {
    /// `None` where the path leads through a link, to no file, or through too many parts.
    pub(super) fn of(path: &str, lookup: &impl PathLookup, unchanged_min: Duration) -> Option<Validator> {
        let parts = PathComponents { ends: ends(path)?, root_ns: AtomicU64::new(UNKNOWN_NS) };
        let file = parts.look(path, lookup, unchanged_min).filter(|status| status.kind == FileType::RegularFile)?;
        Some(Validator { path: parts, file })
    }

    /// Whether the same path, which is looked at anew, leads to the same file, and that has not been changed.
    pub(super) fn is_current(&self, path: &str, lookup: &impl PathLookup, unchanged_min: Duration) -> bool {
        self.path.look(path, lookup, unchanged_min).is_some_and(|status| status == self.file)
    }
}

/// No root was changed then.
const UNKNOWN_NS: u64 = u64::MAX;

/// The parts of a path, and what is known of the first.
#[derive(Debug)]
struct PathComponents {
    /// Where each ends; 0 behind the last.
    ends: [u16; PARTS_MAX],
    /// The time of the root, in nanoseconds, with which the first part is no link.
    root_ns: AtomicU64,
}

impl PathComponents {
    /// What is at the end of the path, where no part before it is a link.
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
        // Asked for first, so that what is changed while the name is looked at leaves another time.
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

/// Where each part of the path ends; `None` where it has too many, or is longer than any system allows.
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
    fn a_path_is_looked_at_up_to_the_end_of_each_of_its_parts() {
        assert_eq!(ends("a"), Some([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(ends("./a//b.x/./c"), Some([3, 8, 12, 0, 0, 0, 0, 0]));
        assert_eq!(ends("a/."), Some([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(ends("1/2/3/4/5/6/7/8"), Some([1, 3, 5, 7, 9, 11, 13, 15]));
        assert_eq!(ends("1/2/3/4/5/6/7/8/9"), None);
        assert_eq!(ends(&"x".repeat(70_000)), None);
    }
}
