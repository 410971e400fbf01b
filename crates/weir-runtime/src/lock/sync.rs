//! The primitives under [`super::fair_rwlock`], in one place, so that the model check can substitute loom's.

pub(crate) use std::sync::atomic::AtomicUsize;

pub(crate) use parking_lot::Mutex;

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockMutant {
    /// A release does not hand the lock over, although a flow is queued.
    ForgetsQueue,
    /// A new flow acquires a lock that others are queued for.
    Overtakes,
    /// The queue is announced although the lock was released since the word was read.
    AnnouncesBlindly,
    /// A release does not publish what its holder has written.
    ReleasesRelaxed,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: LockMutant) -> bool {
    false
}
