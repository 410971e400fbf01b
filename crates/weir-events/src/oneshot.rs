//! One-shot channels: one value, sent and received once.

use std::fmt;

use crate::channel::{Channel, Closed, SendError};
use crate::event::Event;

/// Creates a channel for one value. Dropping the sender closes it; dropping the receiver makes the send fail.
///
/// ```
/// use weir_events::{Closed, always, choose_biased, oneshot};
///
/// let (reply, answer) = oneshot();
/// assert_eq!(choose_biased([answer.recv(), always(Ok("too early"))]).sync(), Ok("too early"));
/// reply.send("here it is").unwrap();
/// assert_eq!((answer.recv().sync(), answer.recv().sync()), (Ok("here it is"), Err(Closed)));
/// ```
pub fn oneshot<T: Send + 'static>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let channel = Channel::rendezvous();
    (OneshotSender { channel: channel.clone() }, OneshotReceiver { channel })
}

/// The sending side of [`oneshot`].
pub struct OneshotSender<T: Send + 'static> {
    channel: Channel<T>,
}

/// The receiving side of [`oneshot`].
pub struct OneshotReceiver<T: Send + 'static> {
    channel: Channel<T>,
}

impl<T: Send + 'static> OneshotSender<T> {
    /// Sends the value at once.
    ///
    /// # Errors
    /// If the receiver has been dropped; the value comes back.
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        self.channel.post(value)
    }

    /// Returns true if the receiver has been dropped.
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }
}

impl<T: Send + 'static> OneshotReceiver<T> {
    /// Returns an event that receives the value, or yields `Closed` if it was received before or the sender was dropped
    /// without sending.
    ///
    /// Cancellation safe: a synchronisation that does not take effect leaves the value where it is.
    pub fn recv(&self) -> Event<Result<T, Closed>> {
        self.channel.recv()
    }
}

impl<T: Send + 'static> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        self.channel.close();
    }
}

impl<T: Send + 'static> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        self.channel.close();
        // A value that nobody can receive is dropped with the receiver, even if an event still holds the channel.
        while self.channel.try_recv().is_ok() {}
    }
}

impl<T: Send + 'static> fmt::Debug for OneshotSender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OneshotSender").field("is_closed", &self.is_closed()).finish()
    }
}

impl<T: Send + 'static> fmt::Debug for OneshotReceiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OneshotReceiver").field("is_closed", &self.channel.is_closed()).finish()
    }
}
