//! A right that leans to one thread, its *favourite*: that one takes and returns it by plain writes.
//!
//! Two exchanges of a word take longer than many a flow. So who takes a right again and again gets it for good, and nobody
//! pays but who comes in between (biased locks: Kawachiya, Koseki, Onodera, Lock reservation, OOPSLA 2002).
//!
//! Protocol; 3 to 5 are done under the lock of whoever has a bias:
//! 1. The favourite says that it is *inside*, and then looks whether it is still the favourite. If so it has the right;
//!    else it takes back what it has said.
//! 2. It returns the right by saying that it is not inside any more, which releases what it has done.
//! 3. Who becomes the favourite has the right by way of the lock, and is inside at once. It is always the same thread: one
//!    that was the favourite may still be in 1, and writes the word.
//! 4. Who wants the right says that nobody is the favourite, and then looks whether somebody is inside; as long as that is
//!    so, it looks again. Seeing that it is not acquires what the favourite has done.
//! 5. It has the right for as long as it has the lock, because nobody becomes the favourite without that.
//!
//! In 1 and 4 each thread writes a word and then reads the other's: one of them must see what the other wrote. A fence in
//! both would see to it, and cost the favourite as much as a lock. Here it is all on the side that is rare: the system is
//! asked for a fence on every processor that runs a thread of this process (`membarrier` of Linux), and the favourite only
//! keeps the compiler from reordering. Where the system has none, there is no favourite.

use super::sync::{AtomicBool, AtomicUsize, Ordering, SchedulerMutant, heavy_fence, is, light_fence};

/// Not the number of a thread.
const NOBODY: usize = 0;

/// To whom a right leans.
pub(crate) struct BiasedLock {
    /// The number of the favourite. Written under the lock.
    owner: AtomicUsize,
    /// Whether the favourite has the right. Written by the favourite.
    inside: AtomicBool,
}

impl BiasedLock {
    /// A right without a favourite.
    pub(crate) fn new() -> Self {
        BiasedLock { owner: AtomicUsize::new(NOBODY), inside: AtomicBool::new(false) }
    }

    /// Whether this thread has the right now, being the favourite, until it returns it.
    #[inline]
    pub(crate) fn try_enter(&self, thread: usize) -> bool {
        if self.owner.load(Ordering::Relaxed) != thread || self.inside.load(Ordering::Relaxed) {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        if !is(SchedulerMutant::EnterUnfenced) {
            light_fence();
        }
        let entered = self.owner.load(Ordering::Relaxed) == thread || is(SchedulerMutant::EnterUnchecked);
        if !entered {
            self.leave();
        }
        entered
    }

    /// Returns the right, as the favourite.
    #[inline]
    pub(crate) fn leave(&self) {
        let order = if is(SchedulerMutant::LeaveUnreleased) { Ordering::Relaxed } else { Ordering::Release };
        self.inside.store(false, order);
    }

    /// Makes this thread the favourite; it has the right, until it returns it. Under the lock, and with the right; and only
    /// where no other was the favourite before.
    pub(crate) fn bias_to(&self, thread: usize) {
        self.owner.store(thread, Ordering::Relaxed);
        self.inside.store(true, Ordering::Relaxed);
    }

    /// Takes the bias away where there is one. Whether the right is free then; it may be so later. Under the lock.
    pub(crate) fn revoke(&self) -> bool {
        if self.owner.load(Ordering::Relaxed) != NOBODY {
            self.owner.store(NOBODY, Ordering::Relaxed);
            if !is(SchedulerMutant::RevokeUnfenced) {
                heavy_fence();
            }
        }
        !self.inside.load(Ordering::Acquire) || is(SchedulerMutant::RevokeUnchecked)
    }
}
