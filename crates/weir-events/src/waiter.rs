//! The commit state of a synchronisation, and the commit of two synchronisations to each other.
//!
//! A *waiter* is one synchronisation that waits, of a thread or of a task. Its *base events* are those of its choice,
//! numbered from 0. An *initiator* looks for a peer in a channel's queue: it is *private* while none of its own offers
//! is queued anywhere, and *published* afterwards.
//!
//! ```text
//!            peer: commit                            owner: commit_claimed
//! WAITING ───────────────▶ COMMITTED(base event) ◀────────────── CLAIMED
//!    │  ▲                                                          ▲ │
//!    │  └────────────────────── owner: release ────────────────────┼─┘
//!    ├─────────────────────── owner: claim ────────────────────────┘
//!    └── owner: abandon ──▶ ABANDONED
//! ```
//!
//! The invariants, on which the commit protocol in the crate's documentation relies:
//! - Only the owner moves a state into or out of `CLAIMED` and into `ABANDONED`; a peer only moves `WAITING` to
//!   `COMMITTED`. A state never leaves `COMMITTED` or `ABANDONED`.
//! - An owner that has claimed itself holds exactly one channel's lock, which it took before, takes no other channel's
//!   lock, and releases the claim before the lock. So a claim is always short, and waiting for its end is sound,
//!   whatever locks the waiting thread holds.
//! - An owner that has claimed itself waits only for claimed waiters with a greater `id`. So claims never wait in a
//!   cycle.

pub(crate) mod pool;

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::Waker;
use std::time::Instant;

#[cfg(not(loom))]
use crate::adaptive_yield::yield_until;
use crate::backoff::Backoff;
use crate::mutants::{Mutant, is_active};
use crate::primitives::{AtomicUsize, Parker, SpinLock};

/// No peer has committed the waiter yet.
const WAITING: usize = 0;
/// The owner is trying to commit itself together with a peer.
const CLAIMED: usize = 1;
/// The owner abandoned the synchronisation before any commit.
const ABANDONED: usize = 2;
/// `COMMITTED + base`: the base event with index `base` took effect.
const COMMITTED: usize = 3;

/// The commit state of one synchronisation, with the means to wake its owner. Its identity is its own, not that of its
/// thread or task.
pub(crate) struct Waiter {
    /// See [`Waiter::id`].
    #[cfg(loom)]
    id: usize,
    commit_state: AtomicUsize,
    wake: Wake,
}

/// The means to wake the owner. The waker of a task may change between polls.
enum Wake {
    Thread(Parker),
    Task(SpinLock<Option<Waker>>),
}

/// Result of trying to commit a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchOutcome {
    /// The peer is committed; a published initiator is still claimed and must now commit itself.
    Committed,
    /// The peer is committed or abandoned: its offer is stale.
    Stale,
    /// The offer is the initiator's own.
    Own,
    /// A peer has committed the initiator itself in the meantime.
    Taken,
}

/// The synchronisation that looks for a peer.
#[derive(Clone, Copy)]
pub(crate) enum Initiator<'a> {
    /// No peer can commit the initiator: none of its offers is queued, or it has none.
    Private,
    /// The initiator offers this base event, and others may commit it at any moment.
    Published(&'a Waiter, usize),
}

impl Waiter {
    /// Creates a waiter of the calling thread.
    pub(crate) fn of_thread() -> Self {
        Waiter::new(Wake::Thread(Parker::new()))
    }

    /// Creates a waiter of a task that is woken by `waker`.
    pub(crate) fn of_task(waker: &Waker) -> Self {
        Waiter::new(Wake::Task(SpinLock::new(Some(waker.clone()))))
    }

    fn new(wake: Wake) -> Self {
        Waiter {
            #[cfg(loom)]
            id: identity::next(),
            commit_state: AtomicUsize::new(WAITING),
            wake,
        }
    }

    /// Returns a number that is unique among living waiters and orders those that claim at the same time. A waiter that
    /// others can see does not move, so its address identifies it.
    #[cfg(not(loom))]
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns a counted number, because the model repeats executions and needs the same order each time.
    #[cfg(loom)]
    fn id(&self) -> usize {
        self.id
    }

    /// Makes a waiter ready for another synchronisation; the caller must hold the only reference to it.
    #[cfg(not(loom))]
    pub(crate) fn reset(&mut self) {
        self.commit_state = AtomicUsize::new(WAITING);
    }

    /// Returns the base event that took effect, once one has.
    pub(crate) fn outcome(&self) -> Option<usize> {
        self.commit_state.load(Acquire).checked_sub(COMMITTED)
    }

    /// Owner: abandons the synchronisation and returns true, unless a base event has taken effect.
    pub(crate) fn abandon(&self) -> bool {
        self.commit_state.compare_exchange(WAITING, ABANDONED, AcqRel, Acquire).is_ok()
    }

    /// Owner or peer: commits a waiting waiter to a base event.
    fn commit(&self, base: usize) -> Result<(), usize> {
        if is_active(Mutant::CommitWithoutCompare) {
            self.commit_state.store(COMMITTED + base, Release);
            return Ok(());
        }
        self.commit_state.compare_exchange(WAITING, COMMITTED + base, AcqRel, Acquire).map(drop)
    }

    /// Owner: commits itself to a base event that needs no peer; returns false if it is already committed.
    pub(crate) fn commit_alone(&self, base: usize) -> bool {
        self.commit(base).is_ok()
    }

    fn claim(&self) -> bool {
        if is_active(Mutant::MatchWithoutClaim) {
            return self.commit_state.load(Acquire) == WAITING;
        }
        self.commit_state.compare_exchange(WAITING, CLAIMED, AcqRel, Acquire).is_ok()
    }

    fn release(&self) {
        if !is_active(Mutant::MatchWithoutClaim) {
            self.commit_state.store(WAITING, Release);
        }
    }

    /// Owner: commits itself after its claim.
    fn commit_claimed(&self, base: usize) {
        self.commit_state.store(COMMITTED + base, Release);
    }

    fn await_unclaimed(&self) {
        let mut backoff = Backoff::default();
        while self.commit_state.load(Acquire) == CLAIMED {
            backoff.pause();
        }
    }

    /// Wakes the owner. Called after a commit and outside all locks.
    pub(crate) fn wake(&self) {
        match &self.wake {
            Wake::Thread(thread) => thread.unpark(),
            Wake::Task(waker) => {
                let waker = waker.lock().take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
    }

    /// Owner, on each poll and before it reads the commit state: sets the waker. A commit before this call is seen in
    /// the state; a commit after it finds the waker.
    pub(crate) fn listen(&self, waker: &Waker) {
        let Wake::Task(slot) = &self.wake else { return };
        if slot.lock().as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        // A waker is user code: it is cloned before the lock, and the replaced one is dropped after it.
        let fresh = waker.clone();
        let replaced = slot.lock().replace(fresh);
        drop(replaced);
    }

    /// Owner, a thread: blocks until a base event took effect, the deadline has passed, or it was woken for another
    /// reason.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        match &self.wake {
            Wake::Thread(parker) if !yield_until(|| self.outcome().is_some()) => parker.park(deadline),
            _ => {}
        }
    }
}

/// A future wakes a waiter as a peer does.
impl std::task::Wake for Waiter {
    fn wake(self: Arc<Self>) {
        Waiter::wake(&self);
    }
}

impl Initiator<'_> {
    /// Tries to commit `peer` to its base event `base`, and claims a published initiator for it.
    ///
    /// After [`MatchOutcome::Committed`] the caller exchanges the value and then calls [`Initiator::commit_self`].
    pub(crate) fn commit_peer(self, peer: &Waiter, base: usize) -> MatchOutcome {
        match self {
            Initiator::Private => loop {
                match peer.commit(base) {
                    Ok(()) => return MatchOutcome::Committed,
                    Err(CLAIMED) => peer.await_unclaimed(),
                    Err(_) => return MatchOutcome::Stale,
                }
            },
            Initiator::Published(own, _) if std::ptr::eq(own, peer) => self.refuse_own(),
            Initiator::Published(own, _) => claim_and_commit(own, peer, base),
        }
    }

    fn refuse_own(self) -> MatchOutcome {
        if is_active(Mutant::PairWithItself) { MatchOutcome::Committed } else { MatchOutcome::Own }
    }

    /// Commits the initiator after it has committed a peer.
    pub(crate) fn commit_self(self) {
        if let Initiator::Published(own, base) = self {
            own.commit_claimed(base);
        }
    }

    /// Commits the initiator to an operation that needs no peer; returns false if it is already committed.
    pub(crate) fn try_commit_self(self) -> bool {
        match self {
            Initiator::Private => true,
            Initiator::Published(own, base) => own.commit_alone(base),
        }
    }
}

/// Claims `own`, then commits `peer`. If two waiters claim at once and want each other, the one with the greater
/// identity yields.
fn claim_and_commit(own: &Waiter, peer: &Waiter, base: usize) -> MatchOutcome {
    while own.claim() {
        match commit_while_claimed(own, peer, base) {
            Ok(()) => return MatchOutcome::Committed,
            Err(CLAIMED) => {
                own.release();
                peer.await_unclaimed();
            }
            Err(_) => {
                own.release();
                return MatchOutcome::Stale;
            }
        }
    }
    MatchOutcome::Taken
}

/// Keeps the claim and waits if the peer has the greater identity, because that one yields.
fn commit_while_claimed(own: &Waiter, peer: &Waiter, base: usize) -> Result<(), usize> {
    loop {
        match peer.commit(base) {
            Err(CLAIMED) if own.id() < peer.id() || is_active(Mutant::NeitherClaimYields) => peer.await_unclaimed(),
            result => return result,
        }
    }
}

/// The model explores every interleaving; yields would only multiply them.
#[cfg(loom)]
fn yield_until(is_there: impl Fn() -> bool) -> bool {
    is_there()
}

#[cfg(loom)]
mod identity {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    loom::lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(0);
    }

    pub(super) fn next() -> usize {
        NEXT.fetch_add(1, Relaxed)
    }
}
