//! Sending and receiving by tasks without an event.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::closed::Closed;
use super::core::Core;
use super::direct::SendError;
use super::entry::Delivery;
use super::handle::Channel;
use super::outcome::{Received, Sent};
use crate::cooperative::poll_within_budget;
use crate::queue::QueueTicket;

impl<T: Send + 'static> Channel<T> {
    /// Returns a future that sends `value`; cheaper than awaiting an event.
    ///
    /// Cancellation safe in that no value is lost in transit: if the future is dropped before the value was received or
    /// buffered, it drops the value. To keep the value, choose with [`send_parcel`](Channel::send_parcel).
    pub fn send_async(&self, value: T) -> Sending<'_, T> {
        Sending { channel: &self.core, progress: DirectProgress::New(Some(value)) }
    }

    /// Returns a future that receives; equivalent to awaiting [`recv`](Channel::recv), but cheaper.
    ///
    /// Cancellation safe: if it is dropped before it is ready it receives nothing; a value that arrived meanwhile goes
    /// back to the front of the channel.
    pub fn recv_async(&self) -> Receiving<'_, T> {
        Receiving { channel: &self.core, progress: DirectProgress::New(()) }
    }
}

/// Future of [`Channel::send_async`].
#[must_use = "a future does nothing until it is polled"]
pub struct Sending<'a, T: Send + 'static> {
    channel: &'a Core<T>,
    progress: DirectProgress<Option<T>>,
}

/// Future of [`Channel::recv_async`].
#[must_use = "a future does nothing until it is polled"]
pub struct Receiving<'a, T: Send + 'static> {
    channel: &'a Core<T>,
    progress: DirectProgress<()>,
}

/// Progress of a future.
enum DirectProgress<N> {
    /// Not polled yet; holds its argument.
    New(N),
    /// Queued in the channel.
    Waiting(QueueTicket),
    Over,
}

/// Neither future holds a reference into itself.
impl<T: Send + 'static> Unpin for Sending<'_, T> {}
impl<T: Send + 'static> Unpin for Receiving<'_, T> {}

impl<T: Send + 'static> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll_within_budget(context, |context| self.get_mut().advance(context))
    }
}

impl<T: Send + 'static> Sending<'_, T> {
    fn advance(&mut self, context: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let refused = match &mut self.progress {
            DirectProgress::New(value) => match begin_sending(self.channel, value, context) {
                Ok(()) => value.take(),
                Err(ticket) => {
                    self.progress = DirectProgress::Waiting(ticket);
                    return Poll::Pending;
                }
            },
            DirectProgress::Waiting(ticket) => {
                ready!(self.channel.fetch_sent(*ticket, context.waker())).err().flatten()
            }
            DirectProgress::Over => panic!("a future is not polled after it was ready"),
        };
        self.progress = DirectProgress::Over;
        Poll::Ready(refused.map_or(Ok(()), |value| Err(SendError(value))))
    }
}

/// Sends at once, or queues the task. Leaves the value only if the channel is closed.
fn begin_sending<T: Send + 'static>(
    channel: &Core<T>,
    value: &mut Option<T>,
    context: &Context<'_>,
) -> Result<(), QueueTicket> {
    // The slow path checks again under the lock in which it queues the task.
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
        poll_within_budget(context, |context| self.get_mut().advance(context))
    }
}

impl<T: Send + 'static> Receiving<'_, T> {
    fn advance(&mut self, context: &Context<'_>) -> Poll<Result<T, Closed>> {
        let received = match &self.progress {
            DirectProgress::New(()) => match begin_receiving(self.channel, context) {
                Ok(received) => received,
                Err(ticket) => {
                    self.progress = DirectProgress::Waiting(ticket);
                    return Poll::Pending;
                }
            },
            DirectProgress::Waiting(ticket) => ready!(self.channel.fetch_received(*ticket, context.waker())),
            DirectProgress::Over => panic!("a future is not polled after it was ready"),
        };
        self.progress = DirectProgress::Over;
        Poll::Ready(received)
    }
}

/// Receives at once, or queues the task.
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
        // A sent value stays sent.
        if let DirectProgress::Waiting(ticket) = self.progress {
            self.channel.leave_sending(ticket, Delivery::Buffer);
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
