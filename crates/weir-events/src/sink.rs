//! A channel as a sink: values are taken while there is room.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;

use crate::channel::{Channel, Closed, Parcel, TrySendError};
use crate::event::{Event, Synchronisation};
use crate::pair::Sender;

/// A sink that sends its values on a channel, and holds one value while the channel has no room; see [`Channel::sink`].
///
/// A value that the sink holds is lost only with the sink: [`take_unsent`](ChannelSink::take_unsent) returns it, also
/// after the channel was closed.
#[must_use = "a sink does nothing until a value is sent to it"]
pub struct ChannelSink<T: Send + 'static, H = ()> {
    channel: Channel<T>,
    /// The value that waits for room.
    unsent: Parcel<T>,
    send: Event<Result<(), Closed>>,
    /// The synchronisation that sends it, once it has been polled.
    sending: Option<Synchronisation<Result<(), Closed>>>,
    /// Keeps the channel open until the sink is closed or dropped.
    handle: Option<H>,
}

impl<T: Send + 'static> Channel<T> {
    /// Returns a sink that sends on the channel. Closing the sink sends the value that it holds, and leaves the channel
    /// open.
    pub fn sink(&self) -> ChannelSink<T> {
        ChannelSink::new(self.clone(), ())
    }
}

impl<T: Send + 'static> Sender<T> {
    /// Returns this sender as a sink. Closing the sink sends the value that it holds, and drops the sender.
    pub fn into_sink(self) -> ChannelSink<T, Sender<T>> {
        ChannelSink::new(self.channel().clone(), self)
    }
}

impl<T: Send + 'static, H> ChannelSink<T, H> {
    fn new(channel: Channel<T>, handle: H) -> Self {
        let unsent = Parcel::empty();
        let send = channel.send_parcel(&unsent);
        ChannelSink { channel, unsent, send, sending: None, handle: Some(handle) }
    }

    /// Takes the value that was given to the sink and has not been sent.
    pub fn take_unsent(&mut self) -> Option<T> {
        self.sending = None;
        self.unsent.take()
    }

    fn flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        if self.unsent.is_empty() {
            // A committed synchronisation has emptied the parcel; nothing is left to be learned from it.
            self.sending = None;
            return Poll::Ready(Ok(()));
        }
        let sending = self.sending.get_or_insert_with(|| self.send.synchronise());
        let sent = ready!(Pin::new(sending).poll(context));
        self.sending = None;
        Poll::Ready(sent)
    }
}

impl<T: Send + 'static, H: Unpin> Sink<T> for ChannelSink<T, H> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().flush(context)
    }

    /// Sends the value, or holds it if there is no room.
    ///
    /// # Panics
    /// If the sink holds a value already: `poll_ready` was not asked.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        let this = self.get_mut();
        assert!(this.unsent.is_empty(), "`poll_ready` comes before `start_send`");
        match this.channel.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(value)) => {
                this.unsent.fill(value);
                Ok(())
            }
            Err(TrySendError::Closed(value)) => {
                this.unsent.fill(value);
                Err(Closed)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let this = self.get_mut();
        ready!(this.flush(context))?;
        this.handle = None;
        Poll::Ready(Ok(()))
    }
}

impl<T: Send + 'static, H> fmt::Debug for ChannelSink<T, H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChannelSink").field("is_holding", &!self.unsent.is_empty()).finish()
    }
}
