//! The primitives under [`super::occupancy`], in one place, so that the model check can put loom's in theirs.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use crossbeam_utils::CachePadded;

pub(crate) use crate::striped::StripedCounter;

/// A step of the protocol that a mutant leaves out; the model check must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionMutant {
    /// Who leaves looks whether somebody waits before it is counted.
    ChecksBeforeReleasing,
    /// Who waits does not look whether it is time already, once it has called.
    RequestsWithoutCheck,
    /// What was called stays so, and everybody who leaves from then on tells those who do not wait.
    KeepsRequest,
}

/// Whether this is that mutant: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: AdmissionMutant) -> bool {
    false
}
