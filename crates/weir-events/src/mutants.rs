//! Injected faults in the protocol, to prove that the model checker finds them.
//!
//! They exist only in a build with `--cfg loom`; there a test activates one and asserts that the model fails.

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(loom), expect(dead_code, unreachable_pub, reason = "mutants live only in the model"))]
pub enum Mutant {
    /// No fault.
    None,
    /// A peer is committed by a plain store instead of a compare-and-exchange.
    CommitWithoutCompare,
    /// A published initiator reads its own commit state instead of claiming it.
    MatchWithoutClaim,
    /// A synchronisation pairs with its own offer.
    PairWithItself,
    /// Two waiters that claim at once both keep their claims.
    NeitherClaimYields,
    /// A committed peer is not woken.
    ForgetToWake,
    /// A waiter publishes without looking again for peers that came since its attempt.
    PublishWithoutLooking,
    /// The value of a parcel is taken before the commit.
    TakeValueBeforeCommit,
    /// A thread that queues an offer does not look into the consumer buffer.
    IgnoreConsumerBuffer,
    /// A receiver that takes the consumer buffer does not record its length.
    ForgetConsumerBufferLen,
    /// A published initiator that was committed elsewhere serves a task or a buffered offer all the same.
    CommitSelfWithoutCheck,
    /// A received value is dropped with its dropped synchronisation.
    DropWithoutReturn,
    /// Returned values are received in the reverse of their order.
    ReturnInAnyOrder,
    /// A synchronisation that finds a future being polled is not woken after the poll.
    ForgetWantedPoll,
}

/// Returns true if a fault is active: never outside the model.
#[cfg(not(loom))]
pub(crate) const fn is_active(_mutant: Mutant) -> bool {
    false
}

#[cfg(loom)]
pub use model::activate;
#[cfg(loom)]
pub(crate) use model::is_active;

#[cfg(loom)]
mod model {
    use super::Mutant;
    use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

    static ACTIVE: AtomicU8 = AtomicU8::new(Mutant::None as u8);

    /// Activates one fault and deactivates all others.
    pub fn activate(mutant: Mutant) {
        ACTIVE.store(mutant as u8, SeqCst);
    }

    pub(crate) fn is_active(mutant: Mutant) -> bool {
        ACTIVE.load(SeqCst) == mutant as u8
    }
}
