//! Channels as pairs of a sender and a receiver, which close when all handles of a side have been dropped.

use std::fmt;
use std::sync::Arc;

use crate::channel::{Channel, Closed, Parcel, Receiving, SendError, Sending, TryRecvError, TrySendError};
use crate::event::Event;

/// Creates a channel that buffers up to `capacity` values; with 0 a rendezvous channel. It closes when all clones of
/// either handle have been dropped, and wakes the peers that wait. After the last sender, the values that it left can
/// still be received. After the last receiver they are dropped, so that a request that was never served drops the sender
/// of its reply.
///
/// An event that was made from a handle keeps the channel, but not the handle.
pub fn bounded<T: Send + 'static>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    split(Channel::bounded(capacity))
}

/// Creates a channel on which sender and receiver wait for each other, and which closes like [`bounded`].
pub fn rendezvous<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
    split(Channel::rendezvous())
}

/// Creates a channel on which no sender ever waits, and which closes like [`bounded`].
pub fn unbounded<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
    split(Channel::unbounded())
}

pub(crate) fn split<T: Send + 'static>(channel: Channel<T>) -> (Sender<T>, Receiver<T>) {
    (Sender { half: Arc::new(LastSender(channel.clone())) }, Receiver { half: Arc::new(LastReceiver(channel)) })
}

/// Shared by all senders; closes the channel.
struct LastSender<T: Send + 'static>(Channel<T>);

/// Shared by all receivers; closes the channel and drops the values that are left.
struct LastReceiver<T: Send + 'static>(Channel<T>);

impl<T: Send + 'static> Drop for LastSender<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T: Send + 'static> Drop for LastReceiver<T> {
    fn drop(&mut self) {
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}

/// The sending side of a pair; see [`bounded`].
pub struct Sender<T: Send + 'static> {
    half: Arc<LastSender<T>>,
}

/// The receiving side of a pair; see [`bounded`].
pub struct Receiver<T: Send + 'static> {
    half: Arc<LastReceiver<T>>,
}

impl<T: Send + 'static> Sender<T> {
    /// See [`Channel::send`].
    pub fn send(&self, value: T) -> Event<Result<(), Closed>>
    where
        T: Clone + Sync,
    {
        self.half.0.send(value)
    }

    /// See [`Channel::send_parcel`].
    pub fn send_parcel(&self, parcel: &Parcel<T>) -> Event<Result<(), Closed>> {
        self.half.0.send_parcel(parcel)
    }

    /// See [`Channel::try_send`].
    ///
    /// # Errors
    /// If no receiver or buffer slot takes the value now, or all receivers have been dropped; the error returns the
    /// value.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.half.0.try_send(value)
    }

    /// See [`Channel::blocking_send`].
    ///
    /// # Errors
    /// If all receivers have been dropped; the error returns the value.
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        self.half.0.blocking_send(value)
    }

    /// See [`Channel::post`].
    ///
    /// # Errors
    /// If all receivers have been dropped; the error returns the value.
    pub fn post(&self, value: T) -> Result<(), SendError<T>> {
        self.half.0.post(value)
    }

    /// See [`Channel::send_async`].
    pub fn send_async(&self, value: T) -> Sending<'_, T> {
        self.half.0.send_async(value)
    }

    #[cfg(feature = "sink")]
    pub(crate) fn channel(&self) -> &Channel<T> {
        &self.half.0
    }

    /// Returns true if all receivers have been dropped.
    pub fn is_closed(&self) -> bool {
        self.half.0.is_closed()
    }
}

impl<T: Send + 'static> Receiver<T> {
    /// See [`Channel::recv`].
    pub fn recv(&self) -> Event<Result<T, Closed>> {
        self.half.0.recv()
    }

    /// See [`Channel::try_recv`].
    ///
    /// # Errors
    /// If no value is available now, or none will arrive.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.half.0.try_recv()
    }

    /// See [`Channel::blocking_recv`].
    ///
    /// # Errors
    /// If all senders have been dropped and no value is left.
    pub fn blocking_recv(&self) -> Result<T, Closed> {
        self.half.0.blocking_recv()
    }

    /// See [`Channel::recv_async`].
    pub fn recv_async(&self) -> Receiving<'_, T> {
        self.half.0.recv_async()
    }
}

impl<T: Send + 'static> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender { half: self.half.clone() }
    }
}

impl<T: Send + 'static> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver { half: self.half.clone() }
    }
}

impl<T: Send + 'static> fmt::Debug for Sender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").field("is_closed", &self.is_closed()).finish()
    }
}

impl<T: Send + 'static> fmt::Debug for Receiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Receiver").field("is_closed", &self.half.0.is_closed()).finish()
    }
}
