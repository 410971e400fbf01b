//! The primitives under [`super::batch`], in one place, so that the model check can substitute loom's.

pub(crate) use parking_lot::Mutex;

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchMutant {
    /// The sender is not told that all calls have left.
    KeepsAbandoned,
    /// The sender is not told that the flows that have joined are at rest.
    KeepsRestless,
    /// The calls are not told that they are answered.
    KeepsAnswers,
    /// It is not noted that the answers have woken the flow of a call.
    ForgetsWoken,
    /// A request is sent although no call makes it any more.
    SendsAbandoned,
    /// A call that leaves takes its request along, although another call makes it too.
    TakesRequestAlong,
    /// The sender of a batch that waits for further calls is not told that one has joined.
    KeepsDelayed,
    /// The sender of a batch that waits is not told that it is due earlier.
    KeepsDue,
    /// The sender of a batch that waits is not told that another batch needs it.
    KeepsSender,
    /// The sender of a batch that waits is not told that the call has left whose flow has further ones.
    KeepsExpectation,
    /// Calls that part from a member have none of its state.
    PartsAsleep,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: BatchMutant) -> bool {
    false
}
