//! The handle of a channel, with the events that it makes.

use std::fmt;
use std::sync::Arc;

use super::base_events;
use super::closed::Closed;
use super::core::Core;
use super::entry::Delivery;
use super::parcel::Parcel;
use crate::event::Event;

/// A channel of `T`s, for threads and tasks, for synchronous and asynchronous communication (the paper's `'a chan`).
///
/// A handle is cheap to clone, and every handle can send and receive. Offers are served first come, first served.
///
/// Only [`close`](Channel::close) closes a channel. Dropping its last handle frees it.
pub struct Channel<T> {
    pub(crate) core: Arc<Core<T>>,
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Channel { core: self.core.clone() }
    }
}

impl<T> fmt::Debug for Channel<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Channel").finish_non_exhaustive()
    }
}

/// Two handles are equal if they belong to the same channel.
impl<T> PartialEq for Channel<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl<T> Eq for Channel<T> {}

impl<T: Send + 'static> Channel<T> {
    /// Creates a channel on which sender and receiver wait for each other (`channel ()`).
    pub fn rendezvous() -> Self {
        Channel::with_capacity(0)
    }

    /// Creates a channel that buffers up to `capacity` values; with 0 a rendezvous channel.
    pub fn bounded(capacity: usize) -> Self {
        Channel::with_capacity(capacity)
    }

    /// Creates a channel on which no sender ever waits. Only memory limits the number of buffered values: prefer a
    /// bounded channel where senders can outrun receivers.
    pub fn unbounded() -> Self {
        Channel::with_capacity(usize::MAX)
    }

    fn with_capacity(capacity: usize) -> Self {
        Channel { core: Arc::new(Core::new(capacity)) }
    }

    /// Returns an event that sends `value` (`sendEvt`); each synchronisation that takes effect sends a clone.
    ///
    /// For values that cannot or should not be cloned there is [`send_parcel`](Channel::send_parcel).
    ///
    /// Cancellation safe: a synchronisation that does not take effect sends nothing.
    pub fn send(&self, value: T) -> Event<Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        self.send_by(value, Delivery::Buffer)
    }

    /// Returns an event that sends the value in the parcel; while the parcel is empty it never takes effect.
    /// `send_parcel(&Parcel::new(value))` thus sends this very `value`, once.
    ///
    /// Cancellation safe: a synchronisation that does not take effect, or finds the channel closed, leaves the value in
    /// the parcel.
    pub fn send_parcel(&self, parcel: &Parcel<T>) -> Event<Result<(), Closed>> {
        self.send_parcel_by(parcel, Delivery::Buffer)
    }

    /// Returns an event that receives a value (`recvEvt`), or yields `Closed` once the channel is closed and drained.
    ///
    /// Cancellation safe: a synchronisation that does not take effect receives nothing.
    pub fn recv(&self) -> Event<Result<T, Closed>> {
        Event::of(base_events::Receive { channel: self.core.clone() })
    }

    /// Closes the channel: waiting offers are woken with `Closed`, later sends fail, and values that were buffered or
    /// sent asynchronously before can still be received.
    pub fn close(&self) {
        self.core.close();
    }

    /// Returns true if the channel was closed.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Returns the number of values in the buffer and with waiting senders, including senders that are just being
    /// withdrawn.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Returns true if no value waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of waiting receivers, including those that are just being withdrawn.
    pub fn receivers_len(&self) -> usize {
        self.core.receivers_len()
    }

    /// Returns the capacity of the buffer; `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        Some(self.core.capacity()).filter(|&capacity| capacity != usize::MAX)
    }

    /// Returns an event that sends a clone of `value` and takes effect under the condition of the delivery.
    pub(crate) fn send_by(&self, value: T, delivery: Delivery) -> Event<Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        let (channel, offered) = (self.core.clone(), base_events::Cloned(value));
        Event::of(base_events::SendEvent { channel, offered, delivery: self.delivery(delivery) })
    }

    /// Returns an event that sends the value in the parcel and takes effect under the condition of the delivery.
    pub(crate) fn send_parcel_by(&self, parcel: &Parcel<T>, delivery: Delivery) -> Event<Result<(), Closed>> {
        let (channel, offered) = (self.core.clone(), base_events::InParcel(parcel.slot.clone()));
        Event::of(base_events::SendEvent { channel, offered, delivery: self.delivery(delivery) })
    }

    /// Without a buffer there is nothing but receipts, which then need no queue of their own.
    fn delivery(&self, wanted: Delivery) -> Delivery {
        if self.core.capacity() == 0 { Delivery::Buffer } else { wanted }
    }
}
