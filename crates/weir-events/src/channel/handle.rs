//! The handle of a channel, and the events that it makes.

use std::fmt;
use std::sync::Arc;

use super::base_events;
use super::closed::Closed;
use super::core::Core;
use super::parcel::Parcel;
use crate::event::Event;

/// A channel of `T`s, for threads and tasks, synchronous and asynchronous communication alike (the paper's `'a chan`).
///
/// A handle is cheap to clone, and every handle can send and receive. Offers are served first come, first served.
///
/// A channel is closed by [`close`](Channel::close) only; one that nobody holds any more is simply gone.
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

/// Two handles are equal if they are of the same channel.
impl<T> PartialEq for Channel<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl<T> Eq for Channel<T> {}

impl<T: Send + 'static> Channel<T> {
    /// A channel on which sender and receiver wait for each other (`channel ()`).
    pub fn rendezvous() -> Self {
        Channel::with_capacity(0)
    }

    /// A channel that holds up to `capacity` values for which no sender waits; with 0 a rendezvous channel.
    pub fn bounded(capacity: usize) -> Self {
        Channel::with_capacity(capacity)
    }

    /// A channel on which no sender ever waits. Nothing but memory limits what it holds: prefer a bounded one where
    /// senders can outrun receivers.
    pub fn unbounded() -> Self {
        Channel::with_capacity(usize::MAX)
    }

    fn with_capacity(capacity: usize) -> Self {
        Channel { core: Arc::new(Core::new(capacity)) }
    }

    /// An event that sends `value` (`sendEvt`); each synchronisation that takes effect sends a clone.
    ///
    /// For values that cannot or should not be cloned there is [`send_once`](Channel::send_once).
    ///
    /// Cancellation safe: a synchronisation that does not take effect sends nothing.
    pub fn send(&self, value: T) -> Event<Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        Event::of(base_events::SendClone { channel: self.core.clone(), value })
    }

    /// An event that sends this very `value`, once; after that it never takes effect again.
    ///
    /// Cancellation safe: while nobody has received the value the event owns it, however many choices it has lost. To
    /// get it back, use [`send_parcel`](Channel::send_parcel).
    pub fn send_once(&self, value: T) -> Event<Result<(), Closed>> {
        self.send_parcel(&Parcel::new(value))
    }

    /// An event that sends what is in the parcel; while the parcel is empty it never takes effect.
    ///
    /// Cancellation safe: a synchronisation that does not take effect, or finds the channel closed, base events the value in
    /// the parcel.
    pub fn send_parcel(&self, parcel: &Parcel<T>) -> Event<Result<(), Closed>> {
        Event::of(base_events::SendParcel { channel: self.core.clone(), slot: parcel.slot.clone() })
    }

    /// An event that receives a value (`recvEvt`); `Closed` once the channel is closed and drained.
    ///
    /// Cancellation safe: a synchronisation that does not take effect takes nothing.
    pub fn receive(&self) -> Event<Result<T, Closed>> {
        Event::of(base_events::Receive { channel: self.core.clone() })
    }

    /// Closes the channel: offers that wait are woken with `Closed`, later sends fail, and what was buffered or sent
    /// asynchronously before can still be received.
    pub fn close(&self) {
        self.core.close();
    }

    /// Whether the channel was closed.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// How many values wait: in the buffer and with senders, those included whose synchronisation is just going away.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Whether no value waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many receivers wait, those included whose synchronisation is just going away.
    pub fn receivers_len(&self) -> usize {
        self.core.receivers_len()
    }

    /// How many values wait without a waiting sender at most; `None` if there is no limit.
    pub fn capacity(&self) -> Option<usize> {
        Some(self.core.capacity()).filter(|&capacity| capacity != usize::MAX)
    }
}
