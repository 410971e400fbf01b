//! The primitives under [`super::used_bytes`], in one place, so that the model check can substitute loom's.

pub(super) use std::sync::atomic::{AtomicUsize, Ordering};

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimMutant {
    /// Every text claims as if it were the only one in its buffer.
    ClaimsOthers,
    /// The comparison and the change are two steps.
    ReadsFirst,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(super) const fn is(_mutant: ClaimMutant) -> bool {
    false
}
