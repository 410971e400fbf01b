//! A value that is to be sent at most once, and that comes back if it is not.

use std::fmt;
use std::sync::Arc;

use crate::primitives::SpinLock;

/// A value on offer, for values that cannot be cloned: [`Channel::send_parcel`](crate::Channel::send_parcel) offers
/// it, on as many channels and in as many choices as you like; whoever receives it first empties the parcel.
///
/// The value stays in the parcel until that moment, so it is never in two places, and losing a choice cannot lose it.
pub struct Parcel<T> {
    pub(crate) slot: Arc<SpinLock<Option<T>>>,
}

impl<T> Parcel<T> {
    /// A parcel that holds `value`.
    pub fn new(value: T) -> Self {
        Parcel { slot: Arc::new(SpinLock::new(Some(value))) }
    }

    /// Takes the value out, if it was not sent. Synchronisations that offer it wait in vain from then on.
    pub fn take(&self) -> Option<T> {
        self.slot.lock().take()
    }

    /// Puts a value in for the next synchronisation, and returns what was in it. Peers that wait already are not told:
    /// fill a parcel before it is offered.
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
