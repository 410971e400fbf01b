//! Closing a channel: waking all waiting senders and receivers.

use super::closed::Closed;
use super::effects::{ConsumedOffer, MatchEffects};
use super::entry::ReceiveEntry;
use super::senders::close_senders;
use super::state::ChannelState;
use crate::queue::QueueTicket;
use crate::waiter::Initiator;

impl<T: Send + 'static> ChannelState<T> {
    /// Wakes all waiting receivers and senders. Buffered offers to send stay, because they can still be received.
    pub(super) fn close(&mut self) -> Vec<MatchEffects<T>> {
        self.closed = true;
        let mut all = Vec::new();
        while let Some(ticket) = self.receivers.first() {
            all.push(self.close_receiver(ticket));
        }
        close_senders(&mut self.senders, &mut all);
        if let Some(rare) = &mut self.rare {
            close_senders(&mut rare.receipt_senders, &mut all);
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
}
