//! The state of a channel under its lock, and the matching of offers.
//!
//! The *buffer* holds values whose senders do not wait any more. *Senders* and *receivers* hold, in order of arrival,
//! *offers* of waiters, *tasks* that wait for this channel only, and *buffered offers* of asynchronous events, for
//! which no thread or task waits. The *actions* of a buffered offer run when it is consumed.
//!
//! A task that just sends or receives has no waiter: only the holder of the lock can take it. The result of an offer or
//! a task stays in its slot, detached from the order, until the owner fetches it; so does a stale offer.
//!
//! Invariants under the lock, apart from entries of waiters that were committed elsewhere:
//! - a sender waits only while the buffer is full (a receive from the buffer refills it from the senders);
//! - an offer that waits for its receipt (`rare.rs`) is served after the values that came before it, and holds up no
//!   other sender;
//! - values and receivers wait at the same time only if one synchronisation offers both to send and to receive.
//!
//! The last differs from the paper's invariant (§5, Figure 8: a channel holds send acts or receive acts, never both),
//! which does not survive choice.

use std::collections::VecDeque;

use super::closed::Closed;
use super::effects::{ConsumedOffer, MatchEffects};
use super::entry::{HandedOver, QueuedValue, ReceiveEntry, SendEntry};
use super::outcome::{Received, Sent};
use super::rare::{DueOffers, RareEntries};
use super::senders::collect_from;
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
    /// `None` on most channels; checked by every exchange without a waiting peer.
    pub(super) rare: Option<Box<RareEntries<T>>>,
    /// Number of values that were handed over to waiting receivers.
    handed_over: u64,
}

/// Result of a buffered send. The caller drops or runs its contents outside the lock.
pub(crate) enum BufferedSend<T> {
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
            consumer_buffer_len_max: 0,
            closed: false,
            receivers: OfferQueue::new(),
            senders: OfferQueue::new(),
            rare: None,
            handed_over: 0,
        }
    }

    /// Returns true if a value goes into the buffer, provided that there is room: the channel is open, no receiver waits,
    /// and there are no rare entries.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.receivers.is_empty() && !self.closed && self.rare.is_none()
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
            Sent::Full if self.buffered_len() >= capacity => Sent::Full,
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
        let handed_over = self.number(value);
        let entry = self.receivers.finish(ticket, ReceiveEntry::Finished(Ok(handed_over)));
        effects.wake_all(entry.and_then(ReceiveEntry::owner));
        Ok(())
    }

    pub(super) fn receive(
        &mut self,
        capacity: usize,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Received<T> {
        match self.receive_rare(DueOffers::Now, initiator, effects) {
            Received::Empty if !self.buffer.is_empty() => return self.receive_buffered(capacity, initiator, effects),
            Received::Empty => {}
            received => {
                self.refill(capacity, effects);
                return received;
            }
        }
        let received = match self.collect(initiator, effects) {
            Received::Empty => self.receive_rare(DueOffers::Any, initiator, effects),
            received => received,
        };
        match received {
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
        self.count_received();
        effects.set_consumed(ConsumedOffer::Sent(item.consumed));
        self.refill(capacity, effects);
        Received::Done(item.value)
    }

    /// Numbers a value that is handed over to a waiting receiver.
    pub(super) fn number(&mut self, value: T) -> HandedOver<T> {
        self.handed_over += 1;
        HandedOver { value, number: self.handed_over }
    }

    /// Takes a value from the first sender that can supply one.
    fn collect(&mut self, initiator: Initiator<'_>, effects: &mut MatchEffects<T>) -> Received<T> {
        let mut next = self.senders.first();
        while let Some(ticket) = next {
            next = self.senders.after(ticket);
            match collect_from(&mut self.senders, ticket, initiator, effects) {
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

    /// Moves values of waiting senders into the buffer while it has room.
    fn refill(&mut self, capacity: usize, effects: &mut MatchEffects<T>) {
        let mut next = self.senders.first();
        while let Some(ticket) = next.filter(|_| self.buffered_len() < capacity) {
            next = self.senders.after(ticket);
            match collect_from(&mut self.senders, ticket, Initiator::Private, effects) {
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
        if self.buffered_len() < capacity {
            self.buffer.push_back(item);
        } else {
            self.senders.push(SendEntry::Buffered(item));
        }
        BufferedSend::Queued
    }
}
