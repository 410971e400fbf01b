//! Offers and tasks that wait on a channel: placed, withdrawn, and undone when nobody wants what they got.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::closed::Closed;
use super::core::Core;
use super::effects::Effects;
use super::entry::{Cargo, Offer, ReceiveEntry, SendEntry, Shipped};
use super::outcome::{Received, Sent};
use super::state::State;
use crate::mutants::{Mutant, is_active};
use crate::party::Seeker;
use crate::primitives::Lock;
use crate::queue::{Queue, Ticket};

impl<T: Send + 'static> Core<T> {
    /// Sends for a party's leaf now, or queues the offer. If the send is done now the party is committed. `None`: another
    /// leaf has taken effect meanwhile.
    pub(crate) fn place_send(&self, offer: Offer, cargo: Cargo<T>) -> Option<Ticket> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let placed = match cargo {
            Cargo::Value(value) => self.place_value(&mut state, offer, value, &mut effects),
            Cargo::Parcel(home) => self.place_parcel(&mut state, offer, &home, &mut effects),
        };
        self.note(&state);
        drop(state);
        effects.run();
        // What is left of a value goes outside the lock.
        placed.ok()
    }

    fn place_value(
        &self,
        state: &mut State<T>,
        offer: Offer,
        value: T,
        effects: &mut Effects<T>,
    ) -> Result<Ticket, Option<T>> {
        let mut value = Some(value);
        let sent = state.send(&mut value, self.capacity(), offer.seeker(), effects);
        match (sent, value) {
            (Sent::Taken, value) => Err(value),
            (Sent::Full, Some(value)) => Ok(state.senders.push(SendEntry::Offer(offer, Cargo::Value(value)))),
            (Sent::Closed, value) => Ok(state.senders.push_aside(SendEntry::Finished(Err(value)))),
            (Sent::Done | Sent::Full, _) => Ok(state.senders.push_aside(SendEntry::Finished(Ok(())))),
        }
    }

    /// The parcel's lock is held until the outcome is known: a peer that finds another offer of the same parcel meanwhile
    /// must not take the parcel for empty.
    fn place_parcel(
        &self,
        state: &mut State<T>,
        offer: Offer,
        home: &Arc<Lock<Option<T>>>,
        effects: &mut Effects<T>,
    ) -> Result<Ticket, Option<T>> {
        let mut value = home.lock();
        let sent = match *value {
            None => Sent::Full,
            Some(_) => state.send(&mut value, self.capacity(), offer.seeker(), effects),
        };
        match sent {
            Sent::Taken => Err(None),
            Sent::Full => Ok(state.senders.push(SendEntry::Offer(offer, Cargo::Parcel(home.clone())))),
            Sent::Closed => Ok(state.senders.push_aside(SendEntry::Finished(Err(None)))),
            Sent::Done => Ok(state.senders.push_aside(SendEntry::Finished(Ok(())))),
        }
    }

    /// Receives for a party's leaf now, or queues the offer. If something is received now the party is committed. `None`:
    /// another leaf has taken effect meanwhile.
    pub(crate) fn place_receive(&self, offer: Offer) -> Option<Ticket> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let received = match is_active(Mutant::PublishWithoutLooking) {
            true => Received::Empty,
            false => state.receive(self.capacity(), offer.seeker(), &mut effects),
        };
        let ticket = match received {
            Received::Taken => None,
            Received::Empty => Some(state.receivers.push(ReceiveEntry::Offer(offer))),
            Received::Done(value) => Some(state.receivers.push_aside(ReceiveEntry::Finished(Ok(value)))),
            Received::Closed => Some(state.receivers.push_aside(ReceiveEntry::Finished(Err(Closed)))),
        };
        self.note(&state);
        drop(state);
        effects.run();
        ticket
    }

    /// Owner, after the commit: what came of the leaf that sends.
    pub(crate) fn conclude_send(&self, ticket: Ticket) -> Shipped<T> {
        let entry = self.lock_beside_stash().senders.remove(ticket);
        match entry {
            Some(SendEntry::Finished(shipped)) => shipped,
            _ => unreachable!("what came of an offer stays until its owner fetches it"),
        }
    }

    /// Owner, after the commit: what came of the leaf that receives.
    pub(crate) fn conclude_receive(&self, ticket: Ticket) -> Result<T, Closed> {
        let entry = self.lock_beside_stash().receivers.remove(ticket);
        match entry {
            Some(ReceiveEntry::Finished(received)) => received,
            _ => unreachable!("what came of an offer stays until its owner fetches it"),
        }
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

    /// What came of a task that waits to send.
    pub(crate) fn fetch_sent(&self, ticket: Ticket, waker: &Waker) -> Poll<Shipped<T>> {
        self.fetch(ticket, waker, |state| &mut state.senders, SendEntry::waker).map(|entry| match entry {
            Some(SendEntry::Finished(shipped)) => shipped,
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

    /// Nobody waits here to send any more; a value that was not sent goes, outside the lock.
    pub(crate) fn leave_sending(&self, ticket: Ticket) {
        let mut state = self.lock_beside_stash();
        let entry = state.senders.remove(ticket);
        self.note(&state);
        drop(state);
        drop(entry);
    }

    /// Nobody waits here to receive any more; a value that has come for them goes to the next one.
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
}
