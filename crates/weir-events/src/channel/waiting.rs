//! Offers that wait on a channel: placed, withdrawn, and undone when nobody wants what they got.

use std::sync::Arc;
use std::task::Waker;

use super::core::Core;
use super::effects::Effects;
use super::offer::Offer;
use super::outcome::{Received, Sent};
use super::state::{ReceiveEntry, SendEntry};
use crate::mutants::{Mutant, is_active};
use crate::party::Seeker;

impl<T: Send + 'static> Core<T> {
    /// Sends an offer's value now, or queues the offer. If the send is done now the party is committed.
    pub(crate) fn place_send(&self, offer: &Arc<Offer<T>>) {
        let seeker = Seeker::Published(offer.party(), offer.leaf());
        let mut effects = Effects::default();
        let mut state = self.lock();
        offer.place(|value| {
            let sent = match value {
                None => Sent::Full,
                Some(_) => state.send(value, self.capacity(), seeker, &mut effects),
            };
            let waits = sent == Sent::Full;
            (sent, waits.then(|| state.senders.push(SendEntry::Offer(offer.clone()))))
        });
        self.note(&state);
        drop(state);
        effects.run();
    }

    /// Receives into an offer now, or queues the offer. If something is received now the party is committed.
    pub(crate) fn place_receive(&self, offer: &Arc<Offer<T>>) {
        let seeker = Seeker::Published(offer.party(), offer.leaf());
        let mut effects = Effects::default();
        let mut state = self.lock();
        let received = match is_active(Mutant::PublishWithoutLooking) {
            true => Received::Empty,
            false => state.receive(self.capacity(), seeker, &mut effects),
        };
        match received {
            Received::Done(value) => offer.put(value),
            Received::Closed | Received::Taken => {}
            Received::Empty => offer.set_ticket(state.receivers.push(ReceiveEntry::Offer(offer.clone()))),
        }
        self.note(&state);
        drop(state);
        effects.run();
    }

    /// Sends for a task that has no other offers, or queues its only one. Nobody can see the task before that.
    pub(crate) fn send_or_wait(&self, waker: Waker, value: &mut Option<T>) -> Result<Sent, Arc<Offer<T>>> {
        // Made before the lock is taken: a sender that gets here nearly always has to wait.
        let offer = Arc::new(Offer::of_task(waker));
        let mut effects = Effects::default();
        let mut state = self.lock();
        let sent = match is_active(Mutant::PublishWithoutLooking) {
            true => Sent::Full,
            false => state.send(value, self.capacity(), Seeker::Private, &mut effects),
        };
        if sent == Sent::Full {
            value.take().into_iter().for_each(|value| offer.put(value));
            offer.set_ticket(state.senders.push(SendEntry::Offer(offer.clone())));
        }
        self.note(&state);
        drop(state);
        effects.run();
        if sent == Sent::Full { Err(offer) } else { Ok(sent) }
    }

    /// Receives for a task that has no other offers, or queues its only one.
    pub(crate) fn receive_or_wait(&self, waker: Waker) -> Result<Received<T>, Arc<Offer<T>>> {
        let offer = Arc::new(Offer::of_task(waker));
        let mut effects = Effects::default();
        let mut state = self.lock();
        let received = state.receive(self.capacity(), Seeker::Private, &mut effects);
        let waits = matches!(received, Received::Empty);
        if waits {
            offer.set_ticket(state.receivers.push(ReceiveEntry::Offer(offer.clone())));
        }
        self.note(&state);
        drop(state);
        effects.run();
        if waits { Err(offer) } else { Ok(received) }
    }

    /// Owner: takes the offer of a sender out of its queue, if it is still there. What was queued is dropped outside the
    /// lock.
    pub(crate) fn withdraw_send(&self, offer: &Offer<T>) {
        let Some(ticket) = offer.take_ticket() else { return };
        let mut state = self.lock();
        let entry = state.senders.remove(ticket);
        self.note(&state);
        drop(state);
        drop(entry);
    }

    /// Owner: the same of a receiver.
    pub(crate) fn withdraw_receive(&self, offer: &Offer<T>) {
        let Some(ticket) = offer.take_ticket() else { return };
        let mut state = self.lock();
        let entry = state.receivers.remove(ticket);
        self.note(&state);
        drop(state);
        drop(entry);
    }

    /// Owner, who does not want any more what came of a receiver: the value goes to the next one.
    pub(crate) fn retract_receive(&self, offer: &Offer<T>) {
        if let Some(value) = offer.take()
            && !is_active(Mutant::DropWithoutReturn)
        {
            self.put_back(value);
        }
    }
}
