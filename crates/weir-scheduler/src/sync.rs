//! The primitives under the protocols between threads, in one place, so that the model check can put loom's in theirs.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::thread::{Thread, current, park};
use std::time::Duration;

pub(crate) use parking_lot::{Mutex, MutexGuard};

/// The lock, where it is to be had within this time.
pub(crate) fn lock_within<T>(mutex: &Mutex<T>, patience: Duration) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock_for(patience)
}

/// Hands the lock to who waits for it.
pub(crate) fn unlock_fair<T>(guard: MutexGuard<'_, T>) {
    MutexGuard::unlock_fair(guard);
}

/// A step of the protocol that a mutant leaves out or weakens; the model check must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// The sleeper does not look again after it has registered.
    NoSecondLook,
    /// The sleeper's registration releases and acquires nothing.
    RelaxedRegistration,
    /// The maker of work reads the count with a plain load.
    PlainLoad,
    /// A port is unlisted without a look at what has come in the meantime.
    BlindRest,
    /// A port is claimed without a look at whether somebody runs it.
    BlindClaim,
    /// A place of the ready ports is written without releasing what came before.
    RelaxedPlace,
    /// A place of the ready ports is read whatever lap it is of.
    AnyLap,
    /// A ticket is taken without a look at whether somebody else has it.
    HeadUnlooked,
    /// Who works beside others does not say so.
    JoinsUncounted,
    /// Who would work alone does not look whether others work.
    AloneUnlooked,
    /// Who would rest does not look again after having said so.
    RestUnlooked,
    /// Who rests says so without releasing or acquiring anything.
    RelaxedRest,
    /// Who would rest reads what is in flight with a plain load.
    PlainFlight,
}

/// Whether this is that mutant: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: Mutant) -> bool {
    false
}
