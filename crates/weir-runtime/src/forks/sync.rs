//! The primitives under [`super::hand_over`], in one place, so that the model check can substitute loom's.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::MutexGuard;
pub(crate) use parking_lot::{Condvar, Mutex};

/// Waits until the condition variable is notified.
pub(crate) fn wait<'a, T>(condvar: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(&mut guard);
    guard
}

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOverMutant {
    /// The task that waits is not woken when the piece is put back.
    LeavesAsleep,
    /// The thread that blocks is not woken when the piece is put back.
    LeavesBlocked,
    /// A helper that begins a piece does not know of the task that waits.
    ForgetsWaiter,
    /// A helper puts back a piece that was given up.
    KeepsGivenUp,
    /// The mark that a piece is given up is set behind the critical section.
    MarksLate,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: HandOverMutant) -> bool {
    false
}
