//! Waiting offers and tasks on a channel: registered, withdrawn, and undone if their owner has gone.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::closed::Closed;
use super::core::Core;
use super::effects::MatchEffects;
use super::entry::{Delivery, Offer, Payload, ReceiveEntry, SendEntry, SendResult};
use super::outcome::{Received, Sent};
use super::state::ChannelState;
use crate::mutants::{Mutant, is_active};
use crate::primitives::SpinLock;
use crate::queue::{OfferQueue, QueueTicket};
use crate::waiter::Initiator;

impl<T: Send + 'static> Core<T> {
    /// Sends for a waiter's base event now, or queues the offer. If it sends now, the waiter is committed. Returns
    /// `None` if a peer has committed the waiter to another base event meanwhile.
    pub(crate) fn place_send(&self, offer: Offer, payload: Payload<T>, delivery: Delivery) -> Option<QueueTicket> {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let placed = match payload {
            Payload::Value(value) => self.place_value(&mut state, offer, value, delivery, &mut effects),
            Payload::Parcel(slot) => self.place_parcel(&mut state, offer, &slot, delivery, &mut effects),
        };
        self.publish_hints(&state);
        drop(state);
        effects.run();
        // The rest of a value is dropped outside the lock.
        placed.ok()
    }

    fn place_value(
        &self,
        state: &mut ChannelState<T>,
        offer: Offer,
        value: T,
        delivery: Delivery,
        effects: &mut MatchEffects<T>,
    ) -> Result<QueueTicket, Option<T>> {
        let mut value = Some(value);
        let sent = state.send_by(delivery, &mut value, self.capacity(), offer.initiator(), effects);
        match (sent, value) {
            (Sent::Taken, value) => Err(value),
            (Sent::Full, Some(value)) => {
                Ok(state.push_sender(SendEntry::Offer(offer, Payload::Value(value)), delivery))
            }
            (Sent::Closed, value) => Ok(state.push_send_result(Err(value), delivery)),
            (Sent::Done | Sent::Full, _) => Ok(state.push_send_result(Ok(()), delivery)),
        }
    }

    /// Holds the parcel's lock until the outcome is known: a peer that finds another offer of the same parcel meanwhile
    /// must not take the parcel for empty.
    fn place_parcel(
        &self,
        state: &mut ChannelState<T>,
        offer: Offer,
        slot: &Arc<SpinLock<Option<T>>>,
        delivery: Delivery,
        effects: &mut MatchEffects<T>,
    ) -> Result<QueueTicket, Option<T>> {
        let mut value = slot.lock();
        let sent = match *value {
            None => Sent::Full,
            Some(_) => state.send_by(delivery, &mut value, self.capacity(), offer.initiator(), effects),
        };
        match sent {
            Sent::Taken => Err(None),
            Sent::Full => Ok(state.push_sender(SendEntry::Offer(offer, Payload::Parcel(slot.clone())), delivery)),
            Sent::Closed => Ok(state.push_send_result(Err(None), delivery)),
            Sent::Done => Ok(state.push_send_result(Ok(()), delivery)),
        }
    }

    /// Receives for a waiter's base event now, or queues the offer. If it receives now, the waiter is committed.
    /// Returns `None` if a peer has committed the waiter to another base event meanwhile.
    pub(crate) fn place_receive(&self, offer: Offer) -> Option<QueueTicket> {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let received = match is_active(Mutant::PublishWithoutLooking) {
            true => Received::Empty,
            false => state.receive(self.capacity(), offer.initiator(), &mut effects),
        };
        let ticket = match received {
            Received::Taken => None,
            Received::Empty => Some(state.receivers.push(ReceiveEntry::Offer(offer))),
            Received::Done(value) => {
                let handed_over = state.number(value);
                Some(state.receivers.push_detached(ReceiveEntry::Finished(Ok(handed_over))))
            }
            Received::Closed => Some(state.receivers.push_detached(ReceiveEntry::Finished(Err(Closed)))),
        };
        self.publish_hints(&state);
        drop(state);
        effects.run();
        ticket
    }

    /// Owner, after the commit: returns the result of the base event that sends.
    pub(crate) fn conclude_send(&self, ticket: QueueTicket, delivery: Delivery) -> SendResult<T> {
        let entry = self.remove_sender(ticket, delivery);
        match entry {
            Some(SendEntry::Finished(sent)) => sent,
            _ => unreachable!("the result of an offer stays until its owner fetches it"),
        }
    }

    /// Owner, after the commit: returns the result of the base event that receives.
    pub(crate) fn conclude_receive(&self, ticket: QueueTicket) -> Result<T, Closed> {
        let entry = self.lock_without_consumer_buffer().receivers.remove(ticket);
        match entry {
            Some(ReceiveEntry::Finished(received)) => received.map(|handed_over| handed_over.value),
            _ => unreachable!("the result of an offer stays until its owner fetches it"),
        }
    }

    /// Sends for a task that waits for this channel only, or queues it.
    pub(crate) fn send_or_wait(&self, waker: Waker, value: &mut Option<T>) -> Result<Sent, QueueTicket> {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let sent = match is_active(Mutant::PublishWithoutLooking) {
            true => Sent::Full,
            false => state.send(value, self.capacity(), Initiator::Private, &mut effects),
        };
        let waits = if sent == Sent::Full { value.take() } else { None };
        let outcome = match waits {
            Some(value) => Err(state.senders.push(SendEntry::Task(value, waker))),
            None => Ok(sent),
        };
        self.publish_hints(&state);
        drop(state);
        effects.run();
        outcome
    }

    /// Receives for a task that waits for this channel only, or queues it.
    pub(crate) fn receive_or_wait(&self, waker: Waker) -> Result<Received<T>, QueueTicket> {
        let mut effects = MatchEffects::default();
        let mut state = self.lock();
        let received = match is_active(Mutant::PublishWithoutLooking) {
            true => Received::Empty,
            false => state.receive(self.capacity(), Initiator::Private, &mut effects),
        };
        let outcome = match received {
            Received::Empty => Err(state.receivers.push(ReceiveEntry::Task(waker))),
            received => Ok(received),
        };
        self.publish_hints(&state);
        drop(state);
        effects.run();
        outcome
    }

    /// Returns the result of a task that waits to send.
    pub(crate) fn fetch_sent(&self, ticket: QueueTicket, waker: &Waker) -> Poll<SendResult<T>> {
        self.fetch(ticket, waker, |state| &mut state.senders, SendEntry::waker).map(|entry| match entry {
            Some(SendEntry::Finished(sent)) => sent,
            _ => unreachable!("the result of a task stays until the task fetches it"),
        })
    }

    /// Returns the result of a task that waits to receive.
    pub(crate) fn fetch_received(&self, ticket: QueueTicket, waker: &Waker) -> Poll<Result<T, Closed>> {
        self.fetch(ticket, waker, |state| &mut state.receivers, ReceiveEntry::waker).map(|entry| match entry {
            Some(ReceiveEntry::Finished(received)) => received.map(|handed_over| handed_over.value),
            _ => unreachable!("the result of a task stays until the task fetches it"),
        })
    }

    /// Takes the result of a task out of its queue. If there is none yet, `waker` is woken from now on.
    fn fetch<E>(
        &self,
        ticket: QueueTicket,
        waker: &Waker,
        queue: impl Fn(&mut ChannelState<T>) -> &mut OfferQueue<E>,
        told: impl Fn(&mut E) -> Option<&mut Waker>,
    ) -> Poll<Option<E>> {
        // A waker is user code, to be cloned and dropped outside the lock: this one is dropped after the guard.
        let mut fresh = None;
        loop {
            let mut state = self.lock_without_consumer_buffer();
            let queue = queue(&mut state);
            let Some(known) = queue.get_mut(ticket).and_then(&told) else { return Poll::Ready(queue.remove(ticket)) };
            if known.will_wake(waker) {
                return Poll::Pending;
            }
            if let Some(fresh) = &mut fresh {
                std::mem::swap(known, fresh);
                return Poll::Pending;
            }
            drop(state);
            fresh = Some(waker.clone());
        }
    }

    /// Withdraws an entry of a sender; a value that was not sent is dropped outside the lock.
    pub(crate) fn leave_sending(&self, ticket: QueueTicket, delivery: Delivery) {
        drop(self.remove_sender(ticket, delivery));
    }

    fn remove_sender(&self, ticket: QueueTicket, delivery: Delivery) -> Option<SendEntry<T>> {
        let mut state = self.lock_without_consumer_buffer();
        let entry = match delivery {
            Delivery::Buffer => state.senders.remove(ticket),
            Delivery::Receipt => state.remove_receipt_sender(ticket),
        };
        self.publish_hints(&state);
        entry
    }

    /// Withdraws an entry of a receiver; a value that has arrived for it goes to the next one.
    pub(crate) fn leave_receiving(&self, ticket: QueueTicket) {
        let mut state = self.lock_without_consumer_buffer();
        let entry = state.receivers.remove(ticket);
        self.publish_hints(&state);
        drop(state);
        match entry {
            Some(ReceiveEntry::Finished(Ok(handed_over))) if !is_active(Mutant::DropWithoutReturn) => {
                self.return_value(handed_over);
            }
            _ => {}
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{Channel, Parcel, a_send};
    use std::pin::Pin;
    use std::task::{Context, Waker};

    #[test]
    fn withdrawn_senders_and_receivers_leave_no_hint() {
        for channel in [Channel::rendezvous(), Channel::bounded(1)] {
            let parcel = Parcel::new(1);
            parcel.take();
            let offers =
                [channel.send_parcel(&parcel).wrap(drop), a_send(&channel, 1).a_trans(), channel.recv().wrap(drop)];
            for event in offers {
                let mut waiting = event.synchronise();
                assert!(Pin::new(&mut waiting).poll(&mut Context::from_waker(Waker::noop())).is_pending());
                drop(waiting);
                let core = &channel.core;
                assert!(core.is_idle() && core.seems_full() == (core.capacity() == 0));
            }
        }
    }
}
