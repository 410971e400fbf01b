//! A value that is sent at most once, and that its owner keeps if it is not sent.

use std::fmt;
use std::sync::Arc;

use crate::primitives::SpinLock;

/// A value that is offered without being cloned: [`Channel::send_parcel`](crate::Channel::send_parcel) offers it, on
/// any number of channels and in any number of choices; the first receiver empties the parcel.
///
/// The value stays in the parcel until that moment, so it is never in two places, and losing a choice cannot lose it.
pub struct Parcel<T> {
    pub(crate) slot: Arc<SpinLock<Option<T>>>,
}

impl<T> Parcel<T> {
    /// Creates a parcel that holds `value`.
    pub fn new(value: T) -> Self {
        Parcel { slot: Arc::new(SpinLock::new(Some(value))) }
    }

    /// Creates a parcel to be filled later.
    pub fn empty() -> Self {
        Parcel { slot: Arc::new(SpinLock::new(None)) }
    }

    /// Returns true if the parcel holds no value: it was sent or taken, or none was put in.
    pub fn is_empty(&self) -> bool {
        self.slot.lock().is_none()
    }

    /// Takes the value out, if it was not sent. Synchronisations that offer it wait from then on until the parcel is
    /// filled.
    pub fn take(&self) -> Option<T> {
        self.slot.lock().take()
    }

    /// Puts a value in for the next synchronisation, and returns the previous one. Peers that already wait are not
    /// woken: fill a parcel before it is offered.
    pub fn fill(&self, value: T) -> Option<T> {
        self.slot.lock().replace(value)
    }
}

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Self {
        Parcel { slot: self.slot.clone() }
    }
}

impl<T> fmt::Debug for Parcel<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Parcel").field("is_full", &self.slot.lock().is_some()).finish()
    }
}
