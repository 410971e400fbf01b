//! Whose times are believed, and from when on.
//!
//! A file is known to be unchanged by its times, and these say so only under two conditions.
//!
//! *The file system keeps them itself.* A file on another machine may be changed there, and this one learns of it when it
//! asks, which it does not always do; what a file system in user space says is its own affair. So there is a list of those
//! that are known to stamp every change, a rename included, and all others are read each time.
//!
//! *The file has been left alone for a while.* Two changes within one tick of the clock that stamps files (1 to 10 ms on
//! most, a second where a file system has no room for more) leave the same time, so that a file which was read between
//! them looks as if it had been read after both. The same happens where a write takes long: the system stamps the file
//! first, and the bytes follow. Git's index has the same trap, and the same way out: what is younger is not believed.
//! [`UNCHANGED_MIN`] is far more than a tick, and more than a write of a file takes which is small enough to be kept.
//!
//! What is written through a mapping (`mmap`) is stamped when a page is first written to, and not again before the system
//! has saved that page. No time tells of what is stored into it meanwhile, here as for every other program that goes by
//! times. Files that are changed in such a way while they are read are to be read without keeping them.

use std::os::fd::AsFd;
use std::time::Duration;

/// How long a file has been unchanged before its times are believed.
pub(super) const UNCHANGED_MIN: Duration = Duration::from_secs(5);

/// Whether something last changed at `changed` had been left alone for long enough at `at`; both since 1970.
pub(super) fn is_settled(changed: Duration, at: Duration, unchanged_min: Duration) -> bool {
    // What was changed in the future was so by a clock that has been set back.
    at.checked_sub(changed).is_some_and(|age| age >= unchanged_min)
}

/// Whether the file lies on a file system of the list.
#[cfg(target_os = "linux")]
pub(in crate::files) fn has_reliable_times(file: impl AsFd) -> bool {
    /// The numbers in `linux/magic.h`: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, overlayfs.
    const RELIABLE: [u32; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630];
    rustix::fs::fstatfs(file).is_ok_and(|status| RELIABLE.contains(&(status.f_type as u32)))
}

/// Nobody has looked at the file systems of this system.
#[cfg(not(target_os = "linux"))]
pub(in crate::files) fn has_reliable_times(_file: impl AsFd) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_young_or_of_the_future_is_not_believed() {
        let at = Duration::from_secs(1_000);
        let settled = |changed| is_settled(changed, at, UNCHANGED_MIN);
        assert!(settled(at - UNCHANGED_MIN));
        assert!(!settled(at - UNCHANGED_MIN + Duration::from_nanos(1)));
        assert!(!settled(at) && !settled(at + Duration::from_secs(60)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_kernel_makes_up_is_not_believed() {
        assert!(!has_reliable_times(std::fs::File::open("/proc/self/status").unwrap()));
    }
}
