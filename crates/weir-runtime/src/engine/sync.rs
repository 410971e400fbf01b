//! The primitives under [`super::parking`], in one place, so that the model check can put loom's in theirs.

pub(crate) use parking_lot::Mutex;

/// A step of the protocol that a mutant leaves out; the model check must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkingMutant {
    /// What was woken while it was polled is parked all the same.
    ForgetsWoken,
    /// What was given up while it was polled is parked all the same.
    ForgetsGivenUp,
    /// A wake-up finds the item parked, and leaves it there.
    LeavesParked,
    /// The note of a wake-up is wiped away after the poll instead of before it; a mistake of who polls, not of parking.
    #[cfg(test)]
    WipesLate,
}

/// Whether this is that mutant: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: ParkingMutant) -> bool {
    false
}
