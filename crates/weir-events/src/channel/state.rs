//! The state of a channel under its lock, and the matching of offers.
//!
//! The *buffer* holds values whose senders do not wait any more. *Senders* and *receivers* hold, in order of arrival,
//! *offers* of waiters, *tasks* that wait for this channel only, and *buffered offers* of asynchronous events, for
//! which nobody waits. The *actions* of a buffered offer run when it is consumed.
//!
//! A task that just sends or receives has no waiter: only the holder of the lock can take it. The result of an offer or
//! a task stays in its slot, detached from the order, until the owner fetches it; so does a stale offer.
//!
//! Invariants under the lock, apart from entries of waiters that were committed elsewhere:
//! - a sender waits only while the buffer is full (a receive from the buffer refills it from the senders);
//! - values and receivers wait at the same time only if one synchronisation offers both to send and to receive.
//!
//! The second differs from the paper's invariant (§5, Figure 8: a channel holds send acts or receive acts, never both),
//! which does not survive choice.

use std::collections::VecDeque;

use super::closed::Closed;
use super::effects::{ConsumedOffer, MatchEffects};
use super::entry::{Offer, QueuedValue, ReceiveEntry, SendEntry, WakeTarget};
use super::outcome::{Received, Sent};
use crate::actions::PostConsumption;
use crate::mutants::{Mutant, is_active};
use crate::queue::{OfferQueue, QueueTicket};
use crate::waiter::{Initiator, MatchOutcome};

/// The fields under a channel's lock, in an order that keeps the fields that an uncontended exchange writes in one
/// cache line with the lock, and the fields that it only reads in another.
#[repr(C)]
pub(super) struct ChannelState<T> {
    pub(super) buffer: VecDeque<QueuedValue<T>>,
    /// Upper bound of the number of values in the consumer buffer.
    pub(super) consumer_buffer_len_max: usize,
    pub(super) closed: bool,
    pub(super) receivers: OfferQueue<ReceiveEntry<T>>,
    pub(super) senders: OfferQueue<SendEntry<T>>,
}

/// Result of a buffered send. The caller drops or runs its contents outside the lock.
pub(super) enum BufferedSend<T> {
    /// The value waits for a receiver.
    Queued,
    /// A receiver has the value.
    Consumed(PostConsumption<Result<(), Closed>>),
    /// The channel is closed.
    Refused(QueuedValue<T>),
}

impl<T: Send + 'static> ChannelState<T> {
    pub(super) fn new() -> Self {
        ChannelState {
            buffer: VecDeque::new(),
            senders: OfferQueue::new(),
            receivers: OfferQueue::new(),
            closed: false,
            consumer_buffer_len_max: 0,
        }
    }

    pub(super) fn send(
        &mut self,
        value: &mut Option<T>,
        capacity: usize,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Sent {
        if self.closed {
            return if initiator.try_commit_self() { Sent::Closed } else { Sent::Taken };
        }
        match self.hand_over(value, initiator, effects) {
            Sent::Full if self.buffer.len() >= capacity => Sent::Full,
            Sent::Full if !initiator.try_commit_self() => Sent::Taken,
            Sent::Full => self.buffer_value(value, capacity),
            sent => sent,
        }
    }

    /// Buffers a value if there is room.
    #[inline]
    pub(super) fn buffer_value(&mut self, value: &mut Option<T>, capacity: usize) -> Sent {
        if self.buffer.len() >= capacity {
            return Sent::Full;
        }
        if let Some(value) = value.take() {
            self.buffer.push_back(QueuedValue::of(value));
        }
        Sent::Done
    }

    /// Hands a value to the first receiver that can take it.
    pub(super) fn hand_over(
        &mut self,
        value: &mut Option<T>,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Sent {
        let mut next = self.receivers.first();
        while let Some(ticket) = next {
            next = self.receivers.after(ticket);
            match self.hand_to(ticket, value, initiator, effects) {
                Ok(()) => return Sent::Done,
                Err(MatchOutcome::Taken) => return Sent::Taken,
                Err(MatchOutcome::Own) => {}
                Err(MatchOutcome::Stale | MatchOutcome::Committed) => _ = self.receivers.detach(ticket),
            }
        }
        Sent::Full
    }

    /// Hands a value to one receiver. A task or a buffered offer always takes it, because only the holder of the lock
    /// can take either.
    fn hand_to(
        &mut self,
        ticket: QueueTicket,
        value: &mut Option<T>,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Result<(), MatchOutcome> {
        match self.receivers.get(ticket) {
            Some(ReceiveEntry::Offer(offer)) => {
                offer.commit_peer(initiator)?;
                initiator.commit_self();
            }
            _ if initiator.try_commit_self() || is_active(Mutant::CommitSelfWithoutCheck) => {}
            _ => return Err(MatchOutcome::Taken),
        }
        let value = value.take().expect("who hands over has a value");
        if let Some(ReceiveEntry::Buffered(_)) = self.receivers.get(ticket) {
            if let Some(ReceiveEntry::Buffered(action)) = self.receivers.remove(ticket) {
                effects.set_consumed(ConsumedOffer::Received(action, Ok(value)));
            }
            return Ok(());
        }
        let entry = self.receivers.finish(ticket, ReceiveEntry::Finished(Ok(value)));
        effects.wake_all(entry.and_then(ReceiveEntry::owner));
        Ok(())
    }

    pub(super) fn receive(
        &mut self,
        capacity: usize,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Received<T> {
        if !self.buffer.is_empty() {
            return self.receive_buffered(capacity, initiator, effects);
        }
        match self.collect(initiator, effects) {
            Received::Empty if self.closed => {
                if initiator.try_commit_self() {
                    Received::Closed
                } else {
                    Received::Taken
                }
            }
            received => received,
        }
    }

    fn receive_buffered(
        &mut self,
        capacity: usize,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Received<T> {
        if !initiator.try_commit_self() {
            return Received::Taken;
        }
        let Some(item) = self.buffer.pop_front() else { return Received::Empty };
        effects.set_consumed(ConsumedOffer::Sent(item.consumed));
        self.refill(capacity, effects);
        Received::Done(item.value)
    }

    /// Takes a value from the first sender that can give one.
    fn collect(&mut self, initiator: Initiator<'_>, effects: &mut MatchEffects<T>) -> Received<T> {
        let mut next = self.senders.first();
        while let Some(ticket) = next {
            next = self.senders.after(ticket);
            match self.collect_from(ticket, initiator, effects) {
                Ok(item) => {
                    effects.set_consumed(ConsumedOffer::Sent(item.consumed));
                    return Received::Done(item.value);
                }
                Err(MatchOutcome::Taken) => return Received::Taken,
                Err(MatchOutcome::Own) => {}
                Err(MatchOutcome::Stale | MatchOutcome::Committed) => _ = self.senders.detach(ticket),
            }
        }
        Received::Empty
    }

    /// Takes the value of one sender. A task or a buffered offer always gives it.
    fn collect_from(
        &mut self,
        ticket: QueueTicket,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Result<QueuedValue<T>, MatchOutcome> {
        let in_parcel = match self.senders.get(ticket) {
            Some(SendEntry::Offer(offer, payload)) => {
                let in_parcel = payload.commit_peer(offer, initiator)?;
                initiator.commit_self();
                in_parcel
            }
            _ if initiator.try_commit_self() => None,
            _ => return Err(MatchOutcome::Taken),
        };
        let entry = match self.senders.get(ticket) {
            Some(SendEntry::Buffered(_)) => self.senders.remove(ticket),
            _ => self.senders.finish(ticket, SendEntry::Finished(Ok(()))),
        };
        match entry {
            Some(SendEntry::Buffered(item)) => Ok(item),
            Some(SendEntry::Task(value, waker)) => {
                effects.wake(WakeTarget::Task(waker));
                Ok(QueuedValue::of(value))
            }
            Some(SendEntry::Offer(offer, payload)) => {
                effects.wake(WakeTarget::Owner(offer.waiter));
                in_parcel.or_else(|| payload.value()).map(QueuedValue::of).ok_or(MatchOutcome::Stale)
            }
            Some(SendEntry::Finished(_)) | None => Err(MatchOutcome::Stale),
        }
    }

    /// Moves values of waiting senders into the buffer while it has room.
    fn refill(&mut self, capacity: usize, effects: &mut MatchEffects<T>) {
        let mut next = self.senders.first();
        while let Some(ticket) = next
            && self.buffer.len() < capacity
        {
            next = self.senders.after(ticket);
            match self.collect_from(ticket, Initiator::Private, effects) {
                Ok(item) => self.buffer.push_back(item),
                Err(MatchOutcome::Own) => {}
                Err(_) => _ = self.senders.detach(ticket),
            }
        }
    }

    pub(super) fn send_buffered(
        &mut self,
        item: QueuedValue<T>,
        capacity: usize,
        effects: &mut MatchEffects<T>,
    ) -> BufferedSend<T> {
        let QueuedValue { value, consumed } = item;
        if self.closed {
            return BufferedSend::Refused(QueuedValue { value, consumed });
        }
        let mut value = Some(value);
        self.hand_over(&mut value, Initiator::Private, effects);
        let Some(value) = value else { return BufferedSend::Consumed(consumed) };
        let item = QueuedValue { value, consumed };
        if self.buffer.len() < capacity {
            self.buffer.push_back(item);
        } else {
            self.senders.push(SendEntry::Buffered(item));
        }
        BufferedSend::Queued
    }

    /// Wakes all waiting receivers and senders. Buffered offers to send stay, because they can still be received.
    pub(super) fn close(&mut self) -> Vec<MatchEffects<T>> {
        self.closed = true;
        let mut all = Vec::new();
        while let Some(ticket) = self.receivers.first() {
            all.push(self.close_receiver(ticket));
        }
        let mut next = self.senders.first();
        while let Some(ticket) = next {
            next = self.senders.after(ticket);
            all.extend(self.close_sender(ticket));
        }
        all
    }

    fn close_receiver(&mut self, ticket: QueueTicket) -> MatchEffects<T> {
        let mut effects = MatchEffects::default();
        match self.receivers.get(ticket) {
            Some(ReceiveEntry::Offer(offer)) if offer.commit_peer(Initiator::Private).is_err() => {
                self.receivers.detach(ticket);
            }
            Some(ReceiveEntry::Buffered(_)) => {
                if let Some(ReceiveEntry::Buffered(action)) = self.receivers.remove(ticket) {
                    effects.set_consumed(ConsumedOffer::Received(action, Err(Closed)));
                }
            }
            _ => {
                let entry = self.receivers.finish(ticket, ReceiveEntry::Finished(Err(Closed)));
                effects.wake_all(entry.and_then(ReceiveEntry::owner));
            }
        }
        effects
    }

    fn close_sender(&mut self, ticket: QueueTicket) -> Option<MatchEffects<T>> {
        let mut effects = MatchEffects::default();
        match self.senders.get(ticket)? {
            SendEntry::Buffered(_) => return None,
            SendEntry::Offer(offer, _) if offer.commit_peer(Initiator::Private).is_err() => {
                _ = self.senders.detach(ticket)
            }
            _ => {
                let place = self.senders.detach(ticket)?;
                match std::mem::replace(place, SendEntry::Finished(Ok(()))) {
                    SendEntry::Offer(Offer { waiter, .. }, payload) => {
                        *place = SendEntry::Finished(Err(payload.value()));
                        effects.wake(WakeTarget::Owner(waiter));
                    }
                    SendEntry::Task(value, waker) => {
                        *place = SendEntry::Finished(Err(Some(value)));
                        effects.wake(WakeTarget::Task(waker));
                    }
                    entry => *place = entry,
                }
            }
        }
        Some(effects)
    }
}
