//! The primitives under the waking protocol, in one place, so that the model check can put loom's in theirs.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::thread::{Thread, current, park};

pub(crate) use parking_lot::Mutex;

/// A step of the protocol that a mutant leaves out or weakens; the model check must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// The sleeper does not look again after it has registered.
    NoSecondLook,
    /// The sleeper's registration releases and acquires nothing.
    RelaxedRegistration,
    /// The maker of work reads the count with a plain load.
    PlainLoad,
    /// A port is unlisted without a look at what has come in the meantime.
    BlindRest,
}

/// Whether this is that mutant: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: Mutant) -> bool {
    false
}
