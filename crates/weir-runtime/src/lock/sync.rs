//! The primitives under [`super::fair_rwlock`], in one place, so that the model check can put loom's in theirs.

pub(crate) use std::sync::atomic::AtomicUsize;

pub(crate) use parking_lot::Mutex;

/// A step of the protocol that a mutant leaves out; the model check must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockMutant {
    /// What is given back is not handed over, though somebody is queued.
    ForgetsQueue,
    /// Who comes new takes a lock that others are queued for.
    Overtakes,
    /// The queue is announced though the lock has become free since it was looked at.
    AnnouncesBlindly,
    /// What is given back lets nobody see what its holder has written.
    ReleasesRelaxed,
}

/// Whether this is that mutant: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: LockMutant) -> bool {
    false
}
