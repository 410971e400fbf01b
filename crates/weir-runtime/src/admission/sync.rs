//! The primitives under [`super::occupancy`], in one place, so that the model check can substitute loom's.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use crossbeam_utils::CachePadded;

pub(crate) use crate::striped::StripedCounter;

/// A mutant: leaves out one step of the protocol, which the model check must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionMutant {
    /// A release reads the threshold before it is counted.
    ChecksBeforeReleasing,
    /// A waiter does not read the counters after its request.
    RequestsWithoutCheck,
    /// A release leaves the threshold as it is, so that no later release notifies a waiter.
    KeepsRequest,
}

/// Returns true if this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: AdmissionMutant) -> bool {
    false
}
