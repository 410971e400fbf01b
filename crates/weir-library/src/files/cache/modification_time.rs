//! Modification-time policy: the conditions under which equal timestamps prove that a file is unchanged.
//!
//! There are two conditions.
//!
//! *The file system maintains the timestamps itself.* A file on a network file system can be changed on another
//! machine, and a query on this machine does not always show the change; a file system in user space may report
//! anything. The cache therefore has a list of file systems that are known to stamp every change, including renames.
//! Files on all others are read each time.
//!
//! *The file has not been modified recently.* Two changes within one tick of the clock that stamps files (1 to 10 ms on
//! most file systems, a second on some) leave the same timestamp, so that a file read between them looks as if it had
//! been read after both. The same happens if a write takes long, because the kernel stamps the file before it copies
//! the bytes. Git's index has the same race, and the same solution: a recent timestamp is not trusted.
//! [`UNCHANGED_MIN`] is far longer than a tick, and longer than writing a file that is small enough for the cache.
//!
//! Writes through a memory mapping (`mmap`) are stamped when a page is first written to, and not again until the kernel
//! has written that page back. No timestamp shows the stores in between, neither here nor to any other program that
//! relies on timestamps. Read such files with the cache disabled.

use std::os::fd::AsFd;
use std::time::Duration;

/// Minimum time since the last modification before a file's timestamps are trusted.
pub(super) const UNCHANGED_MIN: Duration = Duration::from_secs(5);

/// Returns `true` if something that last changed at `changed` had been left alone for long enough at `at`; both count
/// from 1970.
pub(super) fn is_settled(changed: Duration, at: Duration, unchanged_min: Duration) -> bool {
    // A change in the future was stamped by a clock that has since been set back.
    at.checked_sub(changed).is_some_and(|age| age >= unchanged_min)
}

/// Returns `true` if the file lies on a file system with reliable timestamps.
#[cfg(target_os = "linux")]
pub(in crate::files) fn has_reliable_times(file: impl AsFd) -> bool {
    /// File system magic numbers of `linux/magic.h`: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, overlayfs.
    const RELIABLE: [u32; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630];
    rustix::fs::fstatfs(file).is_ok_and(|status| RELIABLE.contains(&(status.f_type as u32)))
}

/// Returns `false`: no file system of this operating system has been examined.
#[cfg(not(target_os = "linux"))]
pub(in crate::files) fn has_reliable_times(_file: impl AsFd) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_and_future_timestamps_are_not_trusted() {
        let at = Duration::from_secs(1_000);
        let settled = |changed| is_settled(changed, at, UNCHANGED_MIN);
        assert!(settled(at - UNCHANGED_MIN));
        assert!(!settled(at - UNCHANGED_MIN + Duration::from_nanos(1)));
        assert!(!settled(at) && !settled(at + Duration::from_secs(60)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn procfs_timestamps_are_not_trusted() {
        assert!(!has_reliable_times(std::fs::File::open("/proc/self/status").unwrap()));
    }
}
