//! The primitives under [`super::gate`], in one place, so that the model check can substitute loom's.

pub(crate) use parking_lot::Mutex;

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketMutant {
    /// The next flow is not told that its turn has come.
    LeavesWaiting,
    /// A flow that has passed before its turn is waited for.
    ForgetsPassed,
    /// A flow that passes a second time passes in the place of the next one.
    PassesAgain,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: TicketMutant) -> bool {
    false
}
