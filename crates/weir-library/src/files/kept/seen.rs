//! What the system says of a path: the directories that it leads through, and the file at its end.
//!
//! Every part is looked at by itself and no link is followed, so that a path which leads through a link is never seen as
//! one that leads to a file. That is how the answer for a path stays the one that opening it below the root would give: a
//! directory that was moved out of the root and has left a link in its place is a link here, although all files below it
//! are as they were.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};

/// Parts of a path; looking at more costs as much as opening the file.
const PARTS_MAX: usize = 8;

/// A time of a file, since 1970. Times before are 1970: nobody compares what is so old.
pub(in crate::files) type Time = Duration;

/// The time now, by the clock that files are stamped with.
pub(in crate::files) fn now() -> Time {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) struct Status {
    pub(super) kind: FileType,
    pub(super) node: Node,
    pub(in crate::files) size: u64,
    /// When its bytes were last changed, or were said to be: a program can set this.
    pub(super) modified: Time,
    /// When its bytes, its names or anything else about it were last changed: no program can set this.
    pub(super) changed: Time,
}

/// The device that something lies on, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) device: u64,
    pub(super) number: u64,
}

impl Status {
    #[allow(clippy::unnecessary_cast, reason = "systems differ in how wide these numbers are")]
    pub(in crate::files) fn of(stat: &Stat) -> Status {
        let time = |seconds: i64, nanoseconds: u32| Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds);
        Status {
            kind: FileType::from_raw_mode(stat.st_mode),
            node: Node { device: stat.st_dev as u64, number: stat.st_ino as u64 },
            size: stat.st_size as u64,
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

/// Where a path leads without a link on its way.
#[derive(Debug)]
pub(super) struct Seen {
    through: Box<[Node]>,
    pub(super) file: Status,
}

impl Seen {
    /// What `look` says of each part of the path; `None` where it leads through a link, to no file, or through too many
    /// parts.
    pub(super) fn of(path: &str, mut look: impl FnMut(&str) -> Option<Status>) -> Option<Seen> {
        let statuses: Option<Vec<Status>> = beginnings(path).take(PARTS_MAX + 1).map(&mut look).collect();
        let statuses = statuses.filter(|statuses| statuses.len() <= PARTS_MAX)?;
        let (file, directories) = statuses.split_last()?;
        let leads = file.kind == FileType::RegularFile
            && directories.iter().all(|directory| directory.kind == FileType::Directory);
        leads.then(|| Seen { through: directories.iter().map(|directory| directory.node).collect(), file: *file })
    }

    /// Whether the same path, which is looked at anew, leads through the same directories to the same file, which has
    /// not been changed.
    pub(super) fn is_still_so(&self, path: &str, mut look: impl FnMut(&str) -> Option<Status>) -> bool {
        let mut through = self.through.iter();
        beginnings(path).all(|beginning| {
            let status = look(beginning);
            status.is_some_and(|status| match through.next() {
                // What else was made in a directory changes it, and not where the path leads.
                Some(node) => status.kind == FileType::Directory && status.node == *node,
                None => status == self.file,
            })
        })
    }

    /// What it takes beside itself.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.through)
    }
}

/// The path up to the end of each of its parts: `a`, `a/b`, `a/b/c`.
fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    path.split('/').filter_map(move |part| {
        let end = from + part.len();
        from = end + 1;
        (!part.is_empty() && part != ".").then(|| &path[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_beginning_for_each_part() {
        let all = |path| beginnings(path).collect::<Vec<_>>();
        assert_eq!(all("a"), ["a"]);
        assert_eq!(all("./a//b.x/./c"), ["./a", "./a//b.x", "./a//b.x/./c"]);
        assert_eq!(all("a/."), ["a"]);
    }
}
