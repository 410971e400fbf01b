//! Sending and receiving without an event, for code that has no choice to make.

use std::fmt;

use super::closed::Closed;
use super::core::LockedState;
use super::entry::{Delivery, Offer, Payload};
use super::handle::Channel;
use super::outcome::{Received, Sent};
use crate::waiter::{Waiter, pool};

/// Error of a send on a closed channel, with the value that was not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Error of a send that did not succeed at once, with the value that was not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// No receiver waits and the buffer is full.
    Full(T),
    /// The channel is closed.
    Closed(T),
}

/// Error of a receive that did not succeed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No value is available now.
    Empty,
    /// No value is available, and none will arrive.
    Closed,
}

impl<T: Send + 'static> Channel<T> {
    /// Sends if a receiver waits or the buffer has room.
    ///
    /// # Errors
    /// If no receiver or buffer slot takes the value now, or the channel is closed; the error returns the value.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut value = Some(value);
        let sent = self.core.send(&mut value);
        match value {
            None => Ok(()),
            Some(value) if sent == Sent::Closed => Err(TrySendError::Closed(value)),
            Some(value) => Err(TrySendError::Full(value)),
        }
    }

    /// Receives if a value is there.
    ///
    /// # Errors
    /// If there is no value now, or the channel is closed and drained.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.core.receive() {
            Received::Done(value) => Ok(value),
            Received::Closed => Err(TryRecvError::Closed),
            Received::Empty | Received::Taken => Err(TryRecvError::Empty),
        }
    }

    /// Sends at once, whether a receiver waits or not and whatever the capacity; for [`a_send`](crate::a_send) without
    /// actions and without a clone.
    ///
    /// It never waits, so nothing but memory limits the number of values: prefer a send that waits where senders can
    /// outrun receivers.
    ///
    /// # Errors
    /// If the channel is closed; the error returns the value.
    pub fn post(&self, value: T) -> Result<(), SendError<T>> {
        self.core.post(value).map_err(SendError)
    }

    /// Sends, blocking the thread until a receiver or the buffer has the value (`send`).
    ///
    /// # Errors
    /// If the channel is closed; the error returns the value.
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        match self.core.buffer_or_lock(value) {
            Ok(()) => Ok(()),
            Err((value, state)) => self.send_later(value, state),
        }
    }

    #[cold]
    fn send_later(&self, value: T, state: LockedState<'_, T>) -> Result<(), SendError<T>> {
        let mut value = Some(value);
        let mut sent = self.core.send_locked(state, &mut value);
        if sent == Sent::Full {
            sent = self.core.send_spinning(&mut value);
        }
        match value {
            None => Ok(()),
            Some(value) if sent == Sent::Closed => Err(SendError(value)),
            Some(value) => self.wait_to_send(value),
        }
    }

    fn wait_to_send(&self, value: T) -> Result<(), SendError<T>> {
        let waiter = pool::take();
        let ticket = self.core.place_send(Offer::new(waiter.clone(), 0), Payload::Value(value), Delivery::Buffer);
        let ticket = ticket.expect("there is no other base");
        await_outcome(&waiter);
        let refused = self.core.conclude_send(ticket, Delivery::Buffer).err().flatten();
        pool::put_back(waiter);
        refused.map_or(Ok(()), |value| Err(SendError(value)))
    }

    /// Receives, blocking the thread until a value arrives (`recv`).
    ///
    /// # Errors
    /// If the channel is closed and drained.
    pub fn blocking_recv(&self) -> Result<T, Closed> {
        match self.core.receive() {
            Received::Done(value) => Ok(value),
            Received::Closed => Err(Closed),
            Received::Empty | Received::Taken => self.receive_later(),
        }
    }

    #[cold]
    fn receive_later(&self) -> Result<T, Closed> {
        match self.core.receive_spinning() {
            Received::Done(value) => Ok(value),
            Received::Closed => Err(Closed),
            Received::Empty | Received::Taken => self.wait_to_receive(),
        }
    }

    fn wait_to_receive(&self) -> Result<T, Closed> {
        let waiter = pool::take();
        let ticket = self.core.place_receive(Offer::new(waiter.clone(), 0));
        let ticket = ticket.expect("there is no other base");
        await_outcome(&waiter);
        let received = self.core.conclude_receive(ticket);
        pool::put_back(waiter);
        received
    }
}

fn await_outcome(waiter: &Waiter) {
    while waiter.outcome().is_none() {
        waiter.wait(None);
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SendError(..)")
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Closed.fmt(formatter)
    }
}

impl<T> std::error::Error for SendError<T> {}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrySendError::Full(_) => formatter.write_str("nobody receives and the buffer is full"),
            TrySendError::Closed(_) => Closed.fmt(formatter),
        }
    }
}

impl<T> std::error::Error for TrySendError<T> {}

impl fmt::Display for TryRecvError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => formatter.write_str("nothing is there to receive"),
            TryRecvError::Closed => Closed.fmt(formatter),
        }
    }
}

impl std::error::Error for TryRecvError {}
