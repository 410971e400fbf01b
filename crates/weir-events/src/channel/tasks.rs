//! Sending and receiving by tasks without making an event first.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::closed::Closed;
use super::core::Core;
use super::direct::SendError;
use super::handle::Channel;
use super::outcome::{Received, Sent};
use crate::queue::QueueTicket;

impl<T: Send + 'static> Channel<T> {
    /// A future that sends `value`; the same as awaiting [`send_once`](Channel::send_once), but cheaper.
    ///
    /// Cancellation safe in that nothing is lost on the way: dropped before the value was received or buffered, it
    /// drops the value with it. To keep the value, choose with [`send_parcel`](Channel::send_parcel).
    pub fn send_async(&self, value: T) -> Sending<'_, T> {
        Sending { channel: &self.core, progress: DirectProgress::New(Some(value)) }
    }

    /// A future that receives; the same as awaiting [`receive`](Channel::receive), but cheaper.
    ///
    /// Cancellation safe: dropped before it is ready it takes nothing; a value that had come meanwhile goes back to the
    /// front of the channel.
    pub fn receive_async(&self) -> Receiving<'_, T> {
        Receiving { channel: &self.core, progress: DirectProgress::New(()) }
    }
}

/// See [`Channel::send_async`].
#[must_use = "a future does nothing until it is polled"]
pub struct Sending<'a, T: Send + 'static> {
    channel: &'a Core<T>,
    progress: DirectProgress<Option<T>>,
}

/// See [`Channel::receive_async`].
#[must_use = "a future does nothing until it is polled"]
pub struct Receiving<'a, T: Send + 'static> {
    channel: &'a Core<T>,
    progress: DirectProgress<()>,
}

/// How far a future is.
enum DirectProgress<N> {
    /// Not polled yet, and with what.
    New(N),
    /// In the channel's queue.
    Waiting(QueueTicket),
    Over,
}

/// Neither holds a reference into itself.
impl<T: Send + 'static> Unpin for Sending<'_, T> {}
impl<T: Send + 'static> Unpin for Receiving<'_, T> {}

impl<T: Send + 'static> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let refused = match &mut this.progress {
            DirectProgress::New(value) => match begin_sending(this.channel, value, context) {
                Ok(()) => value.take(),
                Err(ticket) => {
                    this.progress = DirectProgress::Waiting(ticket);
                    return Poll::Pending;
                }
            },
            DirectProgress::Waiting(ticket) => {
                ready!(this.channel.fetch_sent(*ticket, context.waker())).err().flatten()
            }
            DirectProgress::Over => panic!("a future is not polled after it was ready"),
        };
        this.progress = DirectProgress::Over;
        Poll::Ready(refused.map_or(Ok(()), |value| Err(SendError(value))))
    }
}

/// Sends at once, which base events the value only where the channel is closed, or begins to wait.
fn begin_sending<T: Send + 'static>(
    channel: &Core<T>,
    value: &mut Option<T>,
    context: &Context<'_>,
) -> Result<(), QueueTicket> {
    // Whoever goes to wait looks again, and under the same lock.
    let mut sent = if channel.seems_full() { Sent::Full } else { channel.send(value) };
    if sent == Sent::Full {
        sent = channel.send_or_wait(context.waker().clone(), value)?;
    }
    debug_assert_eq!(value.is_some(), sent == Sent::Closed, "whoever has no other offers is not taken");
    Ok(())
}

impl<T: Send + 'static> Future for Receiving<'_, T> {
    type Output = Result<T, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let received = match &this.progress {
            DirectProgress::New(()) => match begin_receiving(this.channel, context) {
                Ok(received) => received,
                Err(ticket) => {
                    this.progress = DirectProgress::Waiting(ticket);
                    return Poll::Pending;
                }
            },
            DirectProgress::Waiting(ticket) => ready!(this.channel.fetch_received(*ticket, context.waker())),
            DirectProgress::Over => panic!("a future is not polled after it was ready"),
        };
        this.progress = DirectProgress::Over;
        Poll::Ready(received)
    }
}

/// Receives at once, or begins to wait.
fn begin_receiving<T: Send + 'static>(
    channel: &Core<T>,
    context: &Context<'_>,
) -> Result<Result<T, Closed>, QueueTicket> {
    let mut received = channel.receive();
    if matches!(received, Received::Empty | Received::Taken) {
        received = channel.receive_or_wait(context.waker().clone())?;
    }
    Ok(match received {
        Received::Done(value) => Ok(value),
        Received::Closed | Received::Empty | Received::Taken => Err(Closed),
    })
}

impl<T: Send + 'static> Drop for Sending<'_, T> {
    fn drop(&mut self) {
        // What was sent has been sent.
        if let DirectProgress::Waiting(ticket) = self.progress {
            self.channel.leave_sending(ticket);
        }
    }
}

impl<T: Send + 'static> Drop for Receiving<'_, T> {
    fn drop(&mut self) {
        if let DirectProgress::Waiting(ticket) = self.progress {
            self.channel.leave_receiving(ticket);
        }
    }
}
