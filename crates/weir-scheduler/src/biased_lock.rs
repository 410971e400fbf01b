//! Biased lock: a lock that its owner thread acquires and releases by plain writes, without an atomic
//! read-modify-write.
//!
//! Two atomic exchanges take longer than a short flow. A thread that acquires the same lock repeatedly therefore
//! becomes its *bias owner*, and only a thread that revokes the bias pays for synchronisation (Kawachiya, Koseki,
//! Onodera: Lock reservation, OOPSLA 2002).
//!
//! The biased lock belongs to a mutex, here that of [`ModeLock`](super::execution_mode::ModeLock):
//!
//! ```text
//!               bias_to (mutex held)              leave
//!    Unbiased ------------------------> Inside ----------> Outside
//!       ^                                  ^                |  |
//!       |                                  +-- try_enter ---+  |
//!       +---------------- revoke (mutex held) -----------------+
//! ```
//!
//! Protocol:
//! 1. *Enter* (owner, `try_enter`). Load `owner` and `inside`, relaxed, as a hint. Store `inside = true`, relaxed.
//!    Light fence. Load `owner` again, relaxed. If it still names this thread, the thread holds the lock; otherwise it
//!    leaves.
//! 2. *Leave* (owner, `leave`). Store `inside = false`, release.
//! 3. *Bias* (mutex held, `bias_to`). Store `owner` and `inside = true`, both relaxed. The caller holds the mutex and
//!    therefore has exclusive access already. Only one thread ever becomes the owner: a former owner may still be at
//!    step 1, and would overwrite the `inside` of another one.
//! 4. *Revoke* (mutex held, `revoke`). Store `owner = NOBODY`, relaxed. Heavy fence. Load `inside`, acquire. If it is
//!    true, the caller loads it again later. Once it is false, the caller has exclusive access for as long as it holds
//!    the mutex, because step 3 needs the mutex.
//!
//! These orderings suffice:
//! * *Mutual exclusion.* Steps 1 and 4 each store one word and then load the other one (store buffering). At least one
//!   of the two threads must see the store of the other, which requires a fence between store and load on both sides.
//!   The fence pair is asymmetric: the heavy fence of the rare side executes a full fence on every processor that runs
//!   a thread of this process (`membarrier` of Linux), so that the owner's side only has to stop the compiler from
//!   reordering. If the system has no such fence, no thread becomes an owner.
//! * *Visibility to the next holder.* The acquire load in step 4 reads `false` from the release store in step 2, so
//!   that everything the owner did happens before the revoking thread goes on.
//! * *Visibility to the owner.* Step 1 needs no acquire. The owner held the mutex in step 3 and saw everything before
//!   it, and no other thread has had access since: that would have required step 4, after which `owner` does not name
//!   this thread.

use super::sync::{AtomicBool, AtomicUsize, Ordering, SchedulerMutant, heavy_fence, is, light_fence};

/// The value of `owner` if there is no bias; no thread has this number.
const NOBODY: usize = 0;

/// A lock that can be biased towards one thread.
pub(crate) struct BiasedLock {
    /// The number of the bias owner. Written with the mutex held, read by every thread that tries to enter.
    owner: AtomicUsize,
    /// True while the owner holds the lock. Written by the owner only; read by a thread that revokes the bias.
    inside: AtomicBool,
}

impl BiasedLock {
    /// Creates a lock without an owner.
    pub(crate) fn new() -> Self {
        BiasedLock { owner: AtomicUsize::new(NOBODY), inside: AtomicBool::new(false) }
    }

    /// Acquires the lock for `thread`, the number of the calling thread, if that is the owner and does not hold the
    /// lock yet. Returns true on success; the caller must then call [`BiasedLock::leave`].
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

    /// Releases the lock. Called by the owner only.
    #[inline]
    pub(crate) fn leave(&self) {
        let order = if is(SchedulerMutant::LeaveUnreleased) { Ordering::Relaxed } else { Ordering::Release };
        self.inside.store(false, order);
    }

    /// Makes the calling thread the owner, which holds the lock until it calls [`BiasedLock::leave`]. The caller holds
    /// the mutex and has exclusive access, and no other thread has ever been the owner.
    pub(crate) fn bias_to(&self, thread: usize) {
        self.owner.store(thread, Ordering::Relaxed);
        self.inside.store(true, Ordering::Relaxed);
    }

    /// Revokes the bias, if there is one. Returns whether the owner is outside; otherwise the caller must call this
    /// again. The caller holds the mutex.
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
