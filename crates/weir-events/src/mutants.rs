//! Deliberate faults in the protocol, to prove that the model checker would find them.
//!
//! Only a build under `--cfg loom` has them at all; there a test picks one, and asserts that the model fails.

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(loom), expect(dead_code, unreachable_pub, reason = "mutants live only in the model"))]
pub enum Mutant {
    /// No fault.
    None,
    /// A peer is committed by a plain store instead of a compare-and-exchange.
    CommitWithoutCompare,
    /// A published initiator looks at its own word instead of claiming it.
    MatchWithoutClaim,
    /// A synchronisation pairs with its own offer.
    PairWithItself,
    /// Two waiters that claim at once both keep their claims.
    NeitherClaimYields,
    /// A committed peer is not told.
    ForgetToWake,
    /// A waiter publishes without looking again for peers that came since it was private.
    PublishWithoutLooking,
    /// A loser's offers stay in their queues and are honoured without a look at the word.
    TakeValueBeforeCommit,
    /// Who queues an offer does not look into the consumer buffer.
    IgnoreConsumerBuffer,
    /// Who takes the buffer aside does not say how much it was.
    ForgetConsumerBufferLen,
    /// A published initiator that was taken serves a task or a buffered offer all the same.
    CommitSelfWithoutCheck,
    /// A received value whose synchronisation was dropped is dropped with it.
    DropWithoutReturn,
}

/// Whether a fault is switched on: never outside the model.
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

    /// Switches one fault on, and all others off.
    pub fn activate(mutant: Mutant) {
        ACTIVE.store(mutant as u8, SeqCst);
    }

    pub(crate) fn is_active(mutant: Mutant) -> bool {
        ACTIVE.load(SeqCst) == mutant as u8
    }
}
