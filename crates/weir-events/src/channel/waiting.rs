//! Offers and tasks that wait on a channel: placed, withdrawn, and undone when nobody wants what they got.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::closed::Closed;
use super::core::Core;
use super::effects::Effects;
use super::offer::Offer;
use super::outcome::{Received, Sent};
use super::state::{ReceiveEntry, SendEntry, State};
use crate::mutants::{Mutant, is_active};
use crate::party::Seeker;
use crate::queue::{Queue, Ticket};

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

    /// Sends for a task that waits for nothing else, or queues it.
    pub(crate) fn send_or_wait(&self, waker: Waker, value: &mut Option<T>) -> Result<Sent, Ticket> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let sent = match is_active(Mutant::PublishWithoutLooking) {
            true => Sent::Full,
            false => state.send(value, self.capacity(), Seeker::Private, &mut effects),
        };
        let waits = if sent == Sent::Full { value.take() } else { None };
        let outcome = match waits {
            Some(value) => Err(state.senders.push(SendEntry::Task(value, waker))),
            None => Ok(sent),
        };
        self.note(&state);
        drop(state);
        effects.run();
        outcome
    }

    /// Receives for a task that waits for nothing else, or queues it.
    pub(crate) fn receive_or_wait(&self, waker: Waker) -> Result<Received<T>, Ticket> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let received = match is_active(Mutant::PublishWithoutLooking) {
            true => Received::Empty,
            false => state.receive(self.capacity(), Seeker::Private, &mut effects),
        };
        let outcome = match received {
            Received::Empty => Err(state.receivers.push(ReceiveEntry::Task(waker))),
            received => Ok(received),
        };
        self.note(&state);
        drop(state);
        effects.run();
        outcome
    }

    /// What came of a task that waits to send: nothing, or the value that was refused.
    pub(crate) fn fetch_sent(&self, ticket: Ticket, waker: &Waker) -> Poll<Option<T>> {
        self.fetch(ticket, waker, |state| &mut state.senders, SendEntry::waker).map(|entry| match entry {
            Some(SendEntry::Finished(refused)) => refused,
            _ => unreachable!("what came of a task stays until it fetches it"),
        })
    }

    /// What came of a task that waits to receive.
    pub(crate) fn fetch_received(&self, ticket: Ticket, waker: &Waker) -> Poll<Result<T, Closed>> {
        self.fetch(ticket, waker, |state| &mut state.receivers, ReceiveEntry::waker).map(|entry| match entry {
            Some(ReceiveEntry::Finished(received)) => received,
            _ => unreachable!("what came of a task stays until it fetches it"),
        })
    }

    /// Takes what came of a task out of its queue. While nothing has, it is told by this waker from now on.
    fn fetch<E>(
        &self,
        ticket: Ticket,
        waker: &Waker,
        queue: impl Fn(&mut State<T>) -> &mut Queue<E>,
        told: impl Fn(&mut E) -> Option<&mut Waker>,
    ) -> Poll<Option<E>> {
        // A waker is foreign code, to be cloned and dropped outside the lock: this one goes after the lock does.
        let mut fresh = None;
        loop {
            let mut state = self.lock_beside_stash();
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

    /// A task does not wait to send any more; what it has not sent goes with it.
    pub(crate) fn leave_sending(&self, ticket: Ticket) {
        let mut state = self.lock_beside_stash();
        let entry = state.senders.remove(ticket);
        self.note(&state);
        drop(state);
        drop(entry);
    }

    /// A task does not wait to receive any more; what has come for it goes to the next one.
    pub(crate) fn leave_receiving(&self, ticket: Ticket) {
        let mut state = self.lock_beside_stash();
        let entry = state.receivers.remove(ticket);
        self.note(&state);
        drop(state);
        if let Some(ReceiveEntry::Finished(Ok(value))) = entry
            && !is_active(Mutant::DropWithoutReturn)
        {
            self.put_back(value);
        }
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
