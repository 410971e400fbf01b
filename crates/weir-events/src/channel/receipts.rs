//! The state of a channel with rare entries: offers that wait for their receipt, and returned values.

use super::effects::MatchEffects;
use super::entry::{Delivery, HandedOver, SendEntry, SendResult};
use super::outcome::{Received, Sent};
use super::rare::{DueOffers, RareEntries};
use super::state::ChannelState;
use crate::queue::QueueTicket;
use crate::waiter::Initiator;

impl<T: Send + 'static> ChannelState<T> {
    /// Number of values that occupy the buffer.
    pub(super) fn buffered_len(&self) -> usize {
        self.buffer.len() + self.rare.as_ref().map_or(0, |rare| rare.returned.len())
    }

    /// Number of values in the channel, those of waiting senders included.
    pub(super) fn len(&self) -> usize {
        let receipt_senders = self.rare.as_ref().map_or(0, |rare| rare.receipt_senders.len());
        self.buffered_len() + self.senders.len() + receipt_senders
    }

    /// Sends a value to a waiting receiver or, if that suffices, to the buffer.
    pub(super) fn send_by(
        &mut self,
        delivery: Delivery,
        value: &mut Option<T>,
        capacity: usize,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Sent {
        match delivery {
            Delivery::Buffer => self.send(value, capacity, initiator, effects),
            Delivery::Receipt => self.send_to_receiver(value, initiator, effects),
        }
    }

    /// Hands a value to a waiting receiver, and to nothing else.
    pub(super) fn send_to_receiver(
        &mut self,
        value: &mut Option<T>,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Sent {
        match self.closed {
            true if initiator.try_commit_self() => Sent::Closed,
            true => Sent::Taken,
            false => self.hand_over(value, initiator, effects),
        }
    }

    /// Queues an offer to send.
    pub(super) fn push_sender(&mut self, entry: SendEntry<T>, delivery: Delivery) -> QueueTicket {
        match delivery {
            Delivery::Buffer => self.senders.push(entry),
            Delivery::Receipt => {
                let older = self.buffered_len() + self.senders.len();
                self.rare_entries().push(entry, older)
            }
        }
    }

    /// Stores the result of an offer that did not have to wait.
    pub(super) fn push_send_result(&mut self, result: SendResult<T>, delivery: Delivery) -> QueueTicket {
        match delivery {
            Delivery::Buffer => self.senders.push_detached(SendEntry::Finished(result)),
            Delivery::Receipt => self.rare_entries().receipt_senders.push_detached(SendEntry::Finished(result)),
        }
    }

    /// Removes an offer that waits for its receipt, or its result.
    pub(super) fn remove_receipt_sender(&mut self, ticket: QueueTicket) -> Option<SendEntry<T>> {
        let entry = self.rare.as_mut()?.receipt_senders.remove(ticket);
        self.drop_unused();
        entry
    }

    /// Puts a value back to its position.
    pub(super) fn return_to_position(&mut self, handed_over: HandedOver<T>) {
        self.rare_entries().return_to_position(handed_over);
    }

    /// Counts a received value, for the offers that are due after it.
    pub(super) fn count_received(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.count_received();
        }
    }

    /// Receives a returned value, or the value of an offer that waits for its receipt.
    pub(super) fn receive_rare(
        &mut self,
        due: DueOffers,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Received<T> {
        let Some(rare) = &mut self.rare else { return Received::Empty };
        if rare.returned.is_empty() {
            return rare.receive(due, initiator, effects);
        }
        if !initiator.try_commit_self() {
            return Received::Taken;
        }
        rare.count_received();
        let first = rare.returned.pop_first();
        self.drop_unused();
        first.map_or(Received::Empty, |(_, value)| Received::Done(value))
    }

    fn rare_entries(&mut self) -> &mut RareEntries<T> {
        self.rare.get_or_insert_with(|| Box::new(RareEntries::new()))
    }

    fn drop_unused(&mut self) {
        if self.rare.as_ref().is_some_and(|rare| rare.is_unused()) {
            self.rare = None;
        }
    }
}
