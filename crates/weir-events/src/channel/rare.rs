//! Entries that most channels never have: offers that wait for their receipt, and returned values.
//!
//! An *offer that waits for its receipt* belongs to a buffered channel and takes effect only when a receiver has its value
//! (`a_trans`). It waits beside the buffer: it is due when all values have left that were there when it came. A *returned
//! value* was handed over to a receiver that was dropped before it fetched the value. It goes back to its position among
//! the other values that were handed over, all of which are older than those in the buffer.
//!
//! Both are kept in a box, so that an ordinary exchange checks one pointer.

use std::collections::BTreeMap;

use super::effects::{ConsumedOffer, MatchEffects};
use super::entry::{HandedOver, QueuedValue, SendEntry};
use super::outcome::Received;
use super::senders::collect_from;
use crate::mutants::{Mutant, is_active};
use crate::queue::{OfferQueue, QueueTicket};
use crate::waiter::{Initiator, MatchOutcome};

/// The rare entries of a channel.
pub(super) struct RareEntries<T> {
    /// Offers that wait for their receipt, in order of arrival.
    pub(super) receipt_senders: OfferQueue<SendEntry<T>>,
    /// Returned values by the number of their handing over.
    pub(super) returned: BTreeMap<u64, T>,
    /// Number of values received since this was created, less those that were returned; wraps.
    received: u64,
}

/// The offers waiting for their receipt that a receiver may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DueOffers {
    /// Entries without an older value in the channel.
    Now,
    /// All, because the channel holds no other value.
    Any,
}

impl<T: 'static> RareEntries<T> {
    pub(super) fn new() -> Self {
        RareEntries { receipt_senders: OfferQueue::new(), returned: BTreeMap::new(), received: 0 }
    }

    /// Returns true if nothing is left in it.
    pub(super) fn is_unused(&self) -> bool {
        self.returned.is_empty() && self.receipt_senders.is_unused()
    }

    /// Queues an offer that is due after as many values as are older.
    pub(super) fn push(&mut self, mut entry: SendEntry<T>, older: usize) -> QueueTicket {
        if let SendEntry::Offer(offer, _) = &mut entry {
            offer.due_at = self.received.wrapping_add(older as u64);
        }
        self.receipt_senders.push(entry)
    }

    /// Puts a value back to its position.
    pub(super) fn return_to_position(&mut self, handed_over: HandedOver<T>) {
        self.received = self.received.wrapping_sub(1);
        let number = if is_active(Mutant::ReturnInAnyOrder) { !handed_over.number } else { handed_over.number };
        self.returned.insert(number, handed_over.value);
    }

    /// Counts a received value, for the offers that are due after it.
    pub(super) fn count_received(&mut self) {
        self.received = self.received.wrapping_add(1);
    }

    /// Receives the value of a due offer that waits for its receipt.
    pub(super) fn receive(
        &mut self,
        due: DueOffers,
        initiator: Initiator<'_>,
        effects: &mut MatchEffects<T>,
    ) -> Received<T> {
        let mut next = self.first_due(due);
        while let Some(ticket) = next {
            next = self.receipt_senders.after(ticket).filter(|next| due == DueOffers::Any || self.is_due(*next));
            match collect_from(&mut self.receipt_senders, ticket, initiator, effects) {
                Ok(QueuedValue { value, consumed }) => {
                    effects.set_consumed(ConsumedOffer::Sent(consumed));
                    return Received::Done(value);
                }
                Err(MatchOutcome::Taken) => return Received::Taken,
                Err(MatchOutcome::Own) => {}
                Err(MatchOutcome::Stale | MatchOutcome::Committed) => _ = self.receipt_senders.detach(ticket),
            }
        }
        Received::Empty
    }

    /// The first offer, if it is due.
    fn first_due(&self, due: DueOffers) -> Option<QueueTicket> {
        let first = self.receipt_senders.first()?;
        (due == DueOffers::Any || self.is_due(first)).then_some(first)
    }

    fn is_due(&self, ticket: QueueTicket) -> bool {
        match self.receipt_senders.get(ticket) {
            // The difference is meaningful while fewer than 2^63 values are in the channel.
            Some(SendEntry::Offer(offer, _)) => (self.received.wrapping_sub(offer.due_at) as i64) >= 0,
            _ => true,
        }
    }
}
