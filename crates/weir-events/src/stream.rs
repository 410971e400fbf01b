//! A channel as a stream: its values until it is closed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::channel::{Channel, Closed};
use crate::event::{Event, Synchronisation};
use crate::pair::Receiver;

/// The values of an event that receives, until it yields [`Closed`]; see [`Channel::stream`].
///
/// Cancellation safe: a stream that is dropped leaves the values that it has not yielded in the channel.
#[must_use = "a stream does nothing until it is polled"]
pub struct ChannelStream<T: 'static, H = ()> {
    receive: Event<Result<T, Closed>>,
    /// The synchronisation of the next value, once it has been polled.
    next: Option<Synchronisation<Result<T, Closed>>>,
    /// Keeps the channel open while the stream lives.
    _handle: H,
}

impl<T: Send + 'static> Channel<T> {
    /// Returns the values of the channel as a stream, until it is closed.
    pub fn stream(&self) -> ChannelStream<T> {
        ChannelStream { receive: self.recv(), next: None, _handle: () }
    }
}

impl<T: Send + 'static> Receiver<T> {
    /// Returns the values as a stream, until all senders have been dropped.
    pub fn into_stream(self) -> ChannelStream<T, Receiver<T>> {
        ChannelStream { receive: self.recv(), next: None, _handle: self }
    }
}

impl<T: 'static, H: Unpin> Stream for ChannelStream<T, H> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let next = this.next.get_or_insert_with(|| this.receive.synchronise());
        let received = ready!(Pin::new(next).poll(context));
        this.next = None;
        Poll::Ready(received.ok())
    }
}

impl<T: 'static, H> fmt::Debug for ChannelStream<T, H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChannelStream").finish_non_exhaustive()
    }
}
