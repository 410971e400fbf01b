//! File descriptors of the process: connections may have most of them, and the rest is in reserve for files and for
//! connections that the program opens itself.
//!
//! The limit belongs to the process, so all listeners count their connections together (`ConnectionDescriptor`).

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The least number of descriptors in reserve: event loops, listeners, standard streams and a few files.
const RESERVE_MIN: u64 = 64;
/// The reserve is this part of the limit. Chosen by judgement: a flow rarely has more than one file open, and most of
/// the flows in progress have none.
const RESERVE_PART: u64 = 8;

/// The number of descriptors that connections have.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Raises the process's limit of open files to the most that the system permits it. The usual limit of 1024 is meant for
/// programs that use `select`.
pub fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where the system refuses, the program runs under the limit that it has.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Returns the number of descriptors that connections may have under the present limit.
pub(crate) fn for_connections() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| {
        let reserve = (limit / RESERVE_PART).max(RESERVE_MIN).min(limit / 2);
        usize::try_from(limit - reserve).unwrap_or(usize::MAX)
    })
}

/// Returns true if an operation failed because the process or the system has no file descriptors left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let raw = error.raw_os_error();
    [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].iter().any(|errno| raw == Some(errno.raw_os_error()))
}

/// The descriptor of one accepted connection; dropping it counts the descriptor as free.
#[derive(Debug)]
pub(crate) struct ConnectionDescriptor(());

impl ConnectionDescriptor {
    /// Counts one more descriptor, and returns it with the number of all.
    pub(crate) fn take() -> (ConnectionDescriptor, usize) {
        let others = TAKEN.fetch_add(1, Ordering::Relaxed);
        (ConnectionDescriptor(()), others + 1)
    }
}

impl Drop for ConnectionDescriptor {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}
