//! The commits that a flow has seen and that may not be durable yet: its answer waits for them.
//!
//! 1. An engine enters the commits of a flow whenever it takes up the flow ([`SeenCommits::enter`]).
//! 2. Host functions that read what was committed note its number ([`SeenCommits::note`]). One that runs on another thread passes
//!    on what it has noted there.
//! 3. The host function that the flow calls before its answer waits for the last of them ([`SeenCommits::current`]).

use std::cell::Cell;

thread_local! {
    /// The number of the last commit that the flow which runs on this thread has seen.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The number of the last commit that a flow has seen; 0 if it has seen none that may not be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenCommits(u64);

/// The running flow of a thread, as far as commits are concerned. Dropping it gives the flow what it has seen, and the thread
/// what was there before.
#[must_use]
pub struct EnteredCommits<'f>(&'f mut SeenCommits);

impl SeenCommits {
    /// Returns the number of the last commit that the flow on this thread has seen.
    #[inline]
    #[must_use]
    pub fn current() -> u64 {
        CURRENT.get()
    }

    /// Notes that the flow on this thread has seen the commit with this number.
    pub fn note(commit: u64) {
        CURRENT.set(CURRENT.get().max(commit));
    }

    /// Enters the commits of a flow, which runs on this thread until the result is dropped.
    #[inline]
    pub fn enter(&mut self) -> EnteredCommits<'_> {
        self.swap();
        EnteredCommits(self)
    }

    #[inline]
    fn swap(&mut self) {
        self.0 = CURRENT.replace(self.0);
    }
}

impl Drop for EnteredCommits<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.swap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_keeps_the_last_commit_that_it_has_seen() {
        let (mut first, mut second) = (SeenCommits::default(), SeenCommits::default());
        {
            let _first = first.enter();
            SeenCommits::note(3);
            {
                let _second = second.enter();
                assert_eq!(SeenCommits::current(), 0);
                SeenCommits::note(9);
            }
            SeenCommits::note(2);
            assert_eq!(SeenCommits::current(), 3);
        }
        assert_eq!(SeenCommits::current(), 0);
        let _second = second.enter();
        assert_eq!(SeenCommits::current(), 9);
    }
}
