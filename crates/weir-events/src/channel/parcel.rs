//! A value that is to be sent at most once, and that comes back if it is not.

use std::fmt;
use std::sync::Arc;

use crate::primitives::Mutex;

/// A value on offer, for values that cannot be cloned: [`Channel::send_parcel`](crate::Channel::send_parcel) offers
/// it, in as many choices as you like, one after the other; whoever receives it empties the parcel.
///
/// While one synchronisation offers the value, others that offer the same parcel wait in vain for it; a parcel's value
/// is never in two places.
pub struct Parcel<T> {
    pub(crate) home: Arc<Mutex<Option<T>>>,
}

impl<T> Parcel<T> {
    /// A parcel that holds `value`.
    pub fn new(value: T) -> Self {
        Parcel { home: Arc::new(Mutex::new(Some(value))) }
    }

    /// Takes the value out, if it is not sent and not on offer right now.
    pub fn take(&self) -> Option<T> {
        self.home.lock().take()
    }
}

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Self {
        Parcel { home: self.home.clone() }
    }
}

impl<T> fmt::Debug for Parcel<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Parcel").field("is_full", &self.home.lock().is_some()).finish()
    }
}
