//! One synchronisation's state word, and how two synchronisations commit to each other.
//!
//! Words: a *party* is one synchronisation that waits, of a thread or of a task; its *word* says how far it is. A
//! party's *leaves* are the base events of its choice, numbered from 0. A *seeker* is who looks for a peer in a
//! channel's queue: *private* while none of its own offers is queued anywhere, *published* afterwards.
//!
//! ```text
//!            peer: commit                      owner: commit_claimed
//! WAITING ───────────────▶ COMMITTED(leaf) ◀─────────────── CLAIMED
//!    │  ▲                                                     ▲ │
//!    │  └───────────────── owner: release ────────────────────┼─┘
//!    ├────────────────── owner: claim ────────────────────────┘
//!    └── owner: abandon ──▶ ABANDONED
//! ```
//!
//! The invariants, which the steps in the crate's documentation rely on:
//! - Only its owner moves a word into or out of `CLAIMED` and into `ABANDONED`; a peer only moves `WAITING` to
//!   `COMMITTED`. A word never leaves `COMMITTED` or `ABANDONED`.
//! - An owner that has claimed itself holds exactly one channel's lock, which it took before, takes no other channel's
//!   lock, and lets go of the claim before it lets go of the lock. So a claim is always short, and it is sound to wait
//!   for its end, whatever locks one holds.
//! - An owner that has claimed itself waits only for claimed parties with a greater `id`. So claims never wait in a
//!   circle.

pub(crate) mod pool;

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::Waker;
use std::time::Instant;

use crate::backoff::Backoff;
use crate::mutants::{Mutant, is_active};
use crate::primitives::{AtomicUsize, Lock, Parker};

/// Nobody has taken the party yet.
const WAITING: usize = 0;
/// Its owner is trying to commit it together with a peer.
const CLAIMED: usize = 1;
/// It was given up before anybody took it.
const ABANDONED: usize = 2;
/// `COMMITTED + leaf`: that leaf took effect.
const COMMITTED: usize = 3;

/// One synchronisation that may be waiting; its identity is its own, not that of its thread or task.
pub(crate) struct Party {
    /// See [`Party::id`].
    #[cfg(loom)]
    id: usize,
    word: AtomicUsize,
    wake: Wake,
}

/// How the owner is told. A task's waker may change between polls.
enum Wake {
    Thread(Parker),
    Task(Lock<Option<Waker>>),
}

/// What came of trying to commit a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The peer is committed; a published seeker is still claimed and must now commit itself.
    Committed,
    /// The peer had been taken or had given up: its offer is stale.
    Stale,
    /// The offer is the seeker's own.
    Own,
    /// The seeker itself was taken by somebody else in the meantime.
    Taken,
}

/// Who looks for a peer.
#[derive(Clone, Copy)]
pub(crate) enum Seeker<'a> {
    /// Nobody can take the seeker: none of its offers is queued, or it has none.
    Private,
    /// The seeker offers this leaf, and others may take it at any moment.
    Published(&'a Party, usize),
}

impl Party {
    /// A party of the calling thread.
    pub(crate) fn of_thread() -> Self {
        Party::new(Wake::Thread(Parker::new()))
    }

    /// A party of a task that is told by `waker`.
    pub(crate) fn of_task(waker: &Waker) -> Self {
        Party::new(Wake::Task(Lock::new(Some(waker.clone()))))
    }

    fn new(wake: Wake) -> Self {
        Party {
            #[cfg(loom)]
            id: identity::next(),
            word: AtomicUsize::new(WAITING),
            wake,
        }
    }

    /// Unique among living parties; orders those that claim at the same time. A party that others can see does not move,
    /// so that its place says who it is.
    #[cfg(not(loom))]
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Counted, as the model repeats executions and wants the same order each time.
    #[cfg(loom)]
    fn id(&self) -> usize {
        self.id
    }

    /// Makes a party ready for another synchronisation; nobody else may hold it.
    #[cfg(not(loom))]
    pub(crate) fn reset(&mut self) {
        self.word = AtomicUsize::new(WAITING);
    }

    /// The leaf that took effect, once one has.
    pub(crate) fn outcome(&self) -> Option<usize> {
        self.word.load(Acquire).checked_sub(COMMITTED)
    }

    /// Owner: gives up, unless somebody was faster.
    pub(crate) fn abandon(&self) -> bool {
        self.word.compare_exchange(WAITING, ABANDONED, AcqRel, Acquire).is_ok()
    }

    /// Owner or peer: commits a waiting party to a leaf.
    fn commit(&self, leaf: usize) -> Result<(), usize> {
        if is_active(Mutant::CommitWithoutCompare) {
            self.word.store(COMMITTED + leaf, Release);
            return Ok(());
        }
        self.word.compare_exchange(WAITING, COMMITTED + leaf, AcqRel, Acquire).map(drop)
    }

    /// Owner: commits itself to a leaf for which no peer is needed, unless somebody was faster.
    pub(crate) fn commit_alone(&self, leaf: usize) -> bool {
        self.commit(leaf).is_ok()
    }

    fn claim(&self) -> bool {
        if is_active(Mutant::SeekWithoutClaim) {
            return self.word.load(Acquire) == WAITING;
        }
        self.word.compare_exchange(WAITING, CLAIMED, AcqRel, Acquire).is_ok()
    }

    fn release(&self) {
        if !is_active(Mutant::SeekWithoutClaim) {
            self.word.store(WAITING, Release);
        }
    }

    /// Owner: commits itself after its claim.
    fn commit_claimed(&self, leaf: usize) {
        self.word.store(COMMITTED + leaf, Release);
    }

    fn await_unclaimed(&self) {
        let mut backoff = Backoff::default();
        while self.word.load(Acquire) == CLAIMED {
            backoff.pause();
        }
    }

    /// Anybody, after a commit and outside all locks: tells the owner.
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

    /// Owner, on each poll and before it looks at the word: says whom to tell. A commit that comes before this is
    /// seen in the word; one that comes after it finds the waker.
    pub(crate) fn listen(&self, waker: &Waker) {
        if let Wake::Task(slot) = &self.wake {
            let mut slot = slot.lock();
            if !slot.as_ref().is_some_and(|known| known.will_wake(waker)) {
                *slot = Some(waker.clone());
            }
        }
    }

    /// Owner, a thread: waits until a leaf took effect, the deadline has passed, or it was woken for another reason.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        let mut backoff = Backoff::default();
        while !backoff.is_spent() {
            if self.outcome().is_some() {
                return;
            }
            backoff.pause();
        }
        if let Wake::Thread(parker) = &self.wake
            && self.outcome().is_none()
        {
            parker.park(deadline);
        }
    }
}

/// A future that a party waits for tells it like a peer does.
impl std::task::Wake for Party {
    fn wake(self: Arc<Self>) {
        Party::wake(&self);
    }
}

impl Seeker<'_> {
    /// Tries to commit `peer` to `leaf`, and to claim the seeker with it.
    ///
    /// After [`Verdict::Committed`] the caller exchanges the value and then calls [`Seeker::settle`].
    pub(crate) fn seize(self, peer: &Party, leaf: usize) -> Verdict {
        match self {
            Seeker::Private => loop {
                match peer.commit(leaf) {
                    Ok(()) => return Verdict::Committed,
                    Err(CLAIMED) => peer.await_unclaimed(),
                    Err(_) => return Verdict::Stale,
                }
            },
            Seeker::Published(own, _) if std::ptr::eq(own, peer) => self.refuse_own(),
            Seeker::Published(own, _) => seize_both(own, peer, leaf),
        }
    }

    fn refuse_own(self) -> Verdict {
        if is_active(Mutant::PairWithItself) { Verdict::Committed } else { Verdict::Own }
    }

    /// Commits the seeker after it has seized a peer.
    pub(crate) fn settle(self) {
        if let Seeker::Published(own, leaf) = self {
            own.commit_claimed(leaf);
        }
    }

    /// Commits the seeker to something that needs no peer; false if it was taken.
    pub(crate) fn settle_alone(self) -> bool {
        match self {
            Seeker::Private => true,
            Seeker::Published(own, leaf) => own.commit_alone(leaf),
        }
    }
}

/// Claims `own`, then commits `peer`; of two that claim at once and want each other, the greater gives way.
fn seize_both(own: &Party, peer: &Party, leaf: usize) -> Verdict {
    while own.claim() {
        match commit_while_claimed(own, peer, leaf) {
            Ok(()) => return Verdict::Committed,
            Err(CLAIMED) => {
                own.release();
                peer.await_unclaimed();
            }
            Err(_) => {
                own.release();
                return Verdict::Stale;
            }
        }
    }
    Verdict::Taken
}

/// The lesser keeps its claim and waits: the peer, being greater, gives way.
fn commit_while_claimed(own: &Party, peer: &Party, leaf: usize) -> Result<(), usize> {
    loop {
        match peer.commit(leaf) {
            Err(CLAIMED) if own.id() < peer.id() || is_active(Mutant::NobodyGivesWay) => peer.await_unclaimed(),
            result => return result,
        }
    }
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
