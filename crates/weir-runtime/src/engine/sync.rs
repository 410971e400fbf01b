//! The primitives under [`super::parking`], in one place, so that the model check can substitute loom's.

pub(crate) use parking_lot::Mutex;

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkingMutant {
    /// Parks an item although it was woken while it was polled.
    ForgetsWoken,
    /// Parks an item although it was cancelled while it was polled.
    ForgetsGivenUp,
    /// Parks a bound item that was cancelled, although it was woken while it was polled.
    ForgetsWokenLeaving,
    /// Leaves a woken item parked.
    LeavesParked,
    /// Stores an item that yields as if it waited, in the belief that its queue wakes it.
    #[cfg(test)]
    ParksYielded,
    /// Discards wake-ups after the poll instead of before it; a mistake of the polling thread, not of parking.
    #[cfg(test)]
    WipesLate,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: ParkingMutant) -> bool {
    false
}
