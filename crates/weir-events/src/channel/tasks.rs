//! Sending and receiving by tasks without making an event first.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::closed::Closed;
use super::core::Core;
use super::direct::SendError;
use super::handle::Channel;
use super::offer::Offer;
use super::outcome::{Received, Sent};

impl<T: Send + 'static> Channel<T> {
    /// A future that sends `value`; the same as awaiting [`send_once`](Channel::send_once), but cheaper.
    ///
    /// Cancellation safe in that nothing is lost on the way: dropped before the value was received or buffered, it
    /// drops the value with it. To keep the value, choose with [`send_parcel`](Channel::send_parcel).
    pub fn send_async(&self, value: T) -> Sending<'_, T> {
        Sending { channel: &self.core, value: Some(value), offer: None }
    }

    /// A future that receives; the same as awaiting [`receive`](Channel::receive), but cheaper.
    ///
    /// Cancellation safe: dropped before it is ready it takes nothing; a value that had come meanwhile goes back to the
    /// front of the channel.
    pub fn receive_async(&self) -> Receiving<'_, T> {
        Receiving { channel: &self.core, offer: None }
    }
}

/// See [`Channel::send_async`].
#[must_use = "a future does nothing until it is polled"]
pub struct Sending<'a, T: Send + 'static> {
    channel: &'a Arc<Core<T>>,
    value: Option<T>,
    offer: Option<Arc<Offer<T>>>,
}

/// See [`Channel::receive_async`].
#[must_use = "a future does nothing until it is polled"]
pub struct Receiving<'a, T: Send + 'static> {
    channel: &'a Arc<Core<T>>,
    offer: Option<Arc<Offer<T>>>,
}

/// Neither holds a reference into itself.
impl<T: Send + 'static> Unpin for Sending<'_, T> {}
impl<T: Send + 'static> Unpin for Receiving<'_, T> {}

impl<T: Send + 'static> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.offer.is_none() {
            assert!(this.value.is_some(), "a future is not polled after it was ready");
            // Whoever goes to wait looks again, and under the same lock.
            let mut sent = if this.channel.seems_full() { Sent::Full } else { this.channel.send(&mut this.value) };
            if sent == Sent::Full {
                match this.channel.send_or_wait(context.waker().clone(), &mut this.value) {
                    Ok(at_once) => sent = at_once,
                    Err(offer) => {
                        this.offer = Some(offer);
                        return Poll::Pending;
                    }
                }
            }
            debug_assert_eq!(this.value.is_some(), sent == Sent::Closed, "whoever has no other offers is not taken");
            return Poll::Ready(this.value.take().map_or(Ok(()), |value| Err(SendError(value))));
        }
        poll_offer(&mut this.offer, context).map(|refused| refused.map_or(Ok(()), |value| Err(SendError(value))))
    }
}

impl<T: Send + 'static> Future for Receiving<'_, T> {
    type Output = Result<T, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.offer.is_none() {
            let mut received = this.channel.receive();
            if matches!(received, Received::Empty | Received::Taken) {
                match this.channel.receive_or_wait(context.waker().clone()) {
                    Ok(at_once) => received = at_once,
                    Err(offer) => {
                        this.offer = Some(offer);
                        return Poll::Pending;
                    }
                }
            }
            return Poll::Ready(match received {
                Received::Done(value) => Ok(value),
                Received::Closed | Received::Empty | Received::Taken => Err(Closed),
            });
        }
        poll_offer(&mut this.offer, context).map(|value| value.ok_or(Closed))
    }
}

/// What is in the offer once it has taken effect: what was received, or could not be sent.
fn poll_offer<T: Send + 'static>(slot: &mut Option<Arc<Offer<T>>>, context: &Context<'_>) -> Poll<Option<T>> {
    let offer = slot.take().expect("a future is not polled after it was ready");
    if offer.party().outcome().is_none() {
        offer.listen(context.waker());
    }
    if offer.party().outcome().is_none() {
        *slot = Some(offer);
        return Poll::Pending;
    }
    Poll::Ready(match Arc::try_unwrap(offer) {
        Ok(offer) => offer.into_value(),
        // Whoever woke us is not quite done with it.
        Err(offer) => offer.take(),
    })
}

impl<T: Send + 'static> Drop for Sending<'_, T> {
    fn drop(&mut self) {
        // What was sent has been sent.
        if let Some(offer) = self.offer.take()
            && offer.party().abandon()
        {
            self.channel.withdraw_send(&offer);
        }
    }
}

impl<T: Send + 'static> Drop for Receiving<'_, T> {
    fn drop(&mut self) {
        if let Some(offer) = self.offer.take() {
            match offer.party().abandon() {
                true => self.channel.withdraw_receive(&offer),
                false => self.channel.retract_receive(&offer),
            }
        }
    }
}
