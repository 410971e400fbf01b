//! The commits that a flow has seen or made and that may not be durable yet: its answer waits for them. And the calls that it has
//! placed: its failure waits for them.
//!
//! 1. An engine enters the commits of a flow whenever it takes up the flow ([`SeenCommits::enter`]).
//! 2. Host functions that read what was committed note its number ([`SeenCommits::note`]), and so do those that commit
//!    ([`SeenCommits::wrote`]). One that runs on another thread passes on what it has noted there ([`SeenCommits::add`]).
//! 3. The host function that the flow calls before its answer waits for them ([`SeenCommits::current`]). Where the flow has no such
//!    call, the engine waits: before a failure, and before a call that asks somebody outside ([`DurableCommits`](crate::DurableCommits)).

use std::cell::Cell;

thread_local! {
    /// The commits of the flow that runs on this thread.
    static CURRENT: Cell<SeenCommits> = const { Cell::new(SeenCommits { last: 0, first_own: 0, placed: NO_FLOW }) };
}

/// The commits that a flow has seen or made since it last waited for them. Numbers begin with 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenCommits {
    /// The number of the last one; 0 if there is none.
    pub last: u64,
    /// The number of the first one that the flow itself has made; 0 if there is none.
    pub first_own: u64,
    /// The group in which it has placed calls last ([`PlacedCalls`](crate::PlacedCalls)); 0 if there is none, and less if nobody
    /// would ask for their failures, because no flow of an engine runs.
    pub placed: i64,
}

/// Stands for calls that no flow of an engine makes.
const NO_FLOW: i64 = -1;

/// The running flow of a thread, as far as commits are concerned. Dropping it gives the flow what it has seen, and the thread
/// what was there before.
#[must_use]
pub struct EnteredCommits<'f>(&'f mut SeenCommits);

impl SeenCommits {
    /// Stands for all commits that were executed so far: the flow may learn of one from another flow.
    pub const ALL: u64 = u64::MAX;

    /// Returns the commits of the flow on this thread.
    #[inline]
    #[must_use]
    pub fn current() -> SeenCommits {
        CURRENT.get()
    }

    /// Notes that the flow on this thread has seen the commit with this number.
    pub fn note(commit: u64) {
        SeenCommits::add(SeenCommits { last: commit, ..SeenCommits::default() });
    }

    /// Notes that the flow on this thread has made the commit with this number.
    pub fn wrote(commit: u64) {
        SeenCommits::add(SeenCommits { last: commit, first_own: commit, placed: 0 });
    }

    /// Adds commits to those of the flow on this thread.
    pub fn add(further: SeenCommits) {
        let SeenCommits { last, first_own, placed } = CURRENT.get();
        let first_own = if first_own == 0 { further.first_own } else { first_own };
        let placed = if placed == NO_FLOW { placed } else { placed.max(further.placed) };
        CURRENT.set(SeenCommits { last: last.max(further.last), first_own, placed });
    }

    /// Returns whether the flow on this thread may place calls: whoever runs it asks for their failures.
    #[must_use]
    pub fn may_place() -> bool {
        CURRENT.get().placed != NO_FLOW
    }

    /// Notes that the flow on this thread has placed a call in this group, whose number is above 0 and greater than that of earlier
    /// groups.
    pub fn place(group: i64) {
        CURRENT.set(SeenCommits { placed: group, ..CURRENT.get() });
    }

    /// Takes the number of the last group in which the flow has placed calls; `None` if there is none.
    #[must_use]
    pub fn take_placed(&mut self) -> Option<i64> {
        Some(std::mem::take(&mut self.placed)).filter(|group| *group > 0)
    }

    /// Forgets the commits of the flow on this thread, which has waited for them. A flow that may learn of any commit may do so again.
    pub fn forget() {
        let SeenCommits { last, placed, .. } = CURRENT.get();
        let last = if last == SeenCommits::ALL { last } else { 0 };
        CURRENT.set(SeenCommits { last, first_own: 0, placed });
    }

    /// Enters the commits of a flow, which runs on this thread until the result is dropped.
    #[inline]
    pub fn enter(&mut self) -> EnteredCommits<'_> {
        self.swap();
        EnteredCommits(self)
    }

    /// Swaps the commits with those of the flow on this thread, twice for each advance of a flow. Inlined, which
    /// `LocalKey::replace` is only if the whole program is optimised at link time.
    #[inline(always)]
    fn swap(&mut self) {
        let swapped = CURRENT.try_with(|current| current.replace(*self));
        *self = swapped.expect("no flow runs on a thread that has ended");
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
    fn a_flow_keeps_what_it_has_seen() {
        let (mut first, mut second) = (SeenCommits::default(), SeenCommits::default());
        {
            let _first = first.enter();
            SeenCommits::note(3);
            {
                let _second = second.enter();
                assert_eq!(SeenCommits::current(), SeenCommits::default());
                SeenCommits::note(9);
            }
            SeenCommits::note(2);
            SeenCommits::wrote(4);
            SeenCommits::wrote(5);
            assert_eq!(SeenCommits::current(), SeenCommits { last: 5, first_own: 4, placed: 0 });
        }
        assert_eq!(SeenCommits::current().last, 0);
        let _second = second.enter();
        assert_eq!(SeenCommits::current().last, 9);
    }

    #[test]
    fn a_flow_that_may_learn_of_any_commit_never_forgets_that() {
        let mut flow = SeenCommits { last: SeenCommits::ALL, ..SeenCommits::default() };
        let entered = flow.enter();
        SeenCommits::wrote(4);
        SeenCommits::forget();
        drop(entered);
        assert_eq!(flow, SeenCommits { last: SeenCommits::ALL, first_own: 0, placed: 0 });
    }

    #[test]
    fn only_a_flow_may_place_calls_and_it_is_asked_for_their_failures_once() {
        SeenCommits::note(1);
        assert!(!SeenCommits::may_place(), "nobody asks for them");
        SeenCommits::forget();
        let mut flow = SeenCommits::default();
        {
            let _flow = flow.enter();
            assert!(SeenCommits::may_place());
            SeenCommits::place(7);
            SeenCommits::note(3);
            SeenCommits::forget();
        }
        assert!(!SeenCommits::may_place());
        assert_eq!((flow.take_placed(), flow.take_placed()), (Some(7), None));
    }
}
