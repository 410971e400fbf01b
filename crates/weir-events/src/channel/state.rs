//! A channel's state under its lock, and the matching of offers: who meets whom, in which order.
//!
//! Words: the *buffer* holds values that no sender waits for any more; *senders* and *receivers* hold, in order of
//! arrival, *offers* of parties that wait, *tasks* that wait for this channel only, and *deposits* of asynchronous
//! events, for which nobody waits. A deposit's *action* is what runs when it is consumed.
//!
//! A task that just sends or receives has no party: only who holds the lock can take it. What came of an offer or a task
//! stays in its place, aside, until the owner fetches it, as does an offer that turned out to be stale.
//!
//! Under the lock, besides entries of parties that were taken elsewhere:
//! - a sender waits only while the buffer is full (whoever takes from the buffer refills it from the senders);
//! - values and receivers wait at once only where one synchronisation offers both to send and to receive.
//!
//! The second is why the paper's invariant (§5, Figure 8: a channel holds send acts or receive acts, never both) is
//! not kept: it does not survive choice.

use std::collections::VecDeque;

use super::closed::Closed;
use super::effects::{Discharge, Effects};
use super::entry::{Item, Offer, ReceiveEntry, SendEntry, Woken};
use super::outcome::{Received, Sent};
use crate::implicit::Then;
use crate::mutants::{Mutant, is_active};
use crate::party::{Seeker, Verdict};
use crate::queue::{Queue, Ticket};

/// What is under a channel's lock, in this order: what an exchange with nobody waiting writes lies in one cache line with
/// the lock, and what it only reads is not taken from the other side.
#[repr(C)]
pub(super) struct State<T> {
    pub(super) buffer: VecDeque<Item<T>>,
    /// No more than so many values are in the stash.
    pub(super) aside: usize,
    pub(super) closed: bool,
    pub(super) receivers: Queue<ReceiveEntry<T>>,
    pub(super) senders: Queue<SendEntry<T>>,
}

/// What came of sending for nobody who waits. What is left of it is dropped or run outside the lock.
pub(super) enum Deposited<T> {
    /// It waits for a receiver.
    Queued,
    /// A receiver has the value.
    Consumed(Then<Result<(), Closed>>),
    /// The channel is closed.
    Refused(Item<T>),
}

impl<T: Send + 'static> State<T> {
    pub(super) fn new() -> Self {
        State { buffer: VecDeque::new(), senders: Queue::new(), receivers: Queue::new(), closed: false, aside: 0 }
    }

    pub(super) fn send(
        &mut self,
        value: &mut Option<T>,
        capacity: usize,
        seeker: Seeker<'_>,
        effects: &mut Effects<T>,
    ) -> Sent {
        if self.closed {
            return if seeker.settle_alone() { Sent::Closed } else { Sent::Taken };
        }
        match self.hand_over(value, seeker, effects) {
            Sent::Full if self.buffer.len() >= capacity => Sent::Full,
            Sent::Full if !seeker.settle_alone() => Sent::Taken,
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
            self.buffer.push_back(Item::of(value));
        }
        Sent::Done
    }

    /// Hands a value to the first receiver that can take it.
    pub(super) fn hand_over(&mut self, value: &mut Option<T>, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent {
        let mut next = self.receivers.first();
        while let Some(ticket) = next {
            next = self.receivers.after(ticket);
            match self.hand_to(ticket, value, seeker, effects) {
                Ok(()) => return Sent::Done,
                Err(Verdict::Taken) => return Sent::Taken,
                Err(Verdict::Own) => {}
                Err(Verdict::Stale | Verdict::Committed) => _ = self.receivers.set_aside(ticket),
            }
        }
        Sent::Full
    }

    /// Hands a value to one receiver. A task or a deposit is certain to take it: nobody else can take either meanwhile.
    fn hand_to(
        &mut self,
        ticket: Ticket,
        value: &mut Option<T>,
        seeker: Seeker<'_>,
        effects: &mut Effects<T>,
    ) -> Result<(), Verdict> {
        match self.receivers.get(ticket) {
            Some(ReceiveEntry::Offer(offer)) => {
                offer.seize(seeker)?;
                seeker.settle();
            }
            _ if seeker.settle_alone() || is_active(Mutant::SettleWithoutLooking) => {}
            _ => return Err(Verdict::Taken),
        }
        let value = value.take().expect("who hands over has a value");
        if let Some(ReceiveEntry::Deposit(_)) = self.receivers.get(ticket) {
            if let Some(ReceiveEntry::Deposit(action)) = self.receivers.remove(ticket) {
                effects.discharge(Discharge::Received(action, Ok(value)));
            }
            return Ok(());
        }
        let entry = self.receivers.finish(ticket, ReceiveEntry::Finished(Ok(value)));
        effects.wake_all(entry.and_then(ReceiveEntry::owner));
        Ok(())
    }

    pub(super) fn receive(&mut self, capacity: usize, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Received<T> {
        if !self.buffer.is_empty() {
            return self.receive_buffered(capacity, seeker, effects);
        }
        match self.collect(seeker, effects) {
            Received::Empty if self.closed => {
                if seeker.settle_alone() {
                    Received::Closed
                } else {
                    Received::Taken
                }
            }
            received => received,
        }
    }

    fn receive_buffered(&mut self, capacity: usize, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Received<T> {
        if !seeker.settle_alone() {
            return Received::Taken;
        }
        let Some(item) = self.buffer.pop_front() else { return Received::Empty };
        effects.discharge(Discharge::Sent(item.consumed));
        self.refill(capacity, effects);
        Received::Done(item.value)
    }

    /// Takes a value from the first sender that can give one.
    fn collect(&mut self, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Received<T> {
        let mut next = self.senders.first();
        while let Some(ticket) = next {
            next = self.senders.after(ticket);
            match self.collect_from(ticket, seeker, effects) {
                Ok(item) => {
                    effects.discharge(Discharge::Sent(item.consumed));
                    return Received::Done(item.value);
                }
                Err(Verdict::Taken) => return Received::Taken,
                Err(Verdict::Own) => {}
                Err(Verdict::Stale | Verdict::Committed) => _ = self.senders.set_aside(ticket),
            }
        }
        Received::Empty
    }

    /// Takes the value of one sender. A task or a deposit is certain to give it.
    fn collect_from(
        &mut self,
        ticket: Ticket,
        seeker: Seeker<'_>,
        effects: &mut Effects<T>,
    ) -> Result<Item<T>, Verdict> {
        let in_parcel = match self.senders.get(ticket) {
            Some(SendEntry::Offer(offer, cargo)) => {
                let in_parcel = cargo.seize(offer, seeker)?;
                seeker.settle();
                in_parcel
            }
            _ if seeker.settle_alone() => None,
            _ => return Err(Verdict::Taken),
        };
        let entry = match self.senders.get(ticket) {
            Some(SendEntry::Deposit(_)) => self.senders.remove(ticket),
            _ => self.senders.finish(ticket, SendEntry::Finished(Ok(()))),
        };
        match entry {
            Some(SendEntry::Deposit(item)) => Ok(item),
            Some(SendEntry::Task(value, waker)) => {
                effects.wake(Woken::Task(waker));
                Ok(Item::of(value))
            }
            Some(SendEntry::Offer(offer, cargo)) => {
                effects.wake(Woken::Owner(offer.party));
                in_parcel.or_else(|| cargo.value()).map(Item::of).ok_or(Verdict::Stale)
            }
            Some(SendEntry::Finished(_)) | None => Err(Verdict::Stale),
        }
    }

    /// Moves values of waiting senders into the buffer while it has room.
    fn refill(&mut self, capacity: usize, effects: &mut Effects<T>) {
        let mut next = self.senders.first();
        while let Some(ticket) = next
            && self.buffer.len() < capacity
        {
            next = self.senders.after(ticket);
            match self.collect_from(ticket, Seeker::Private, effects) {
                Ok(item) => self.buffer.push_back(item),
                Err(Verdict::Own) => {}
                Err(_) => _ = self.senders.set_aside(ticket),
            }
        }
    }

    pub(super) fn deposit_send(&mut self, item: Item<T>, capacity: usize, effects: &mut Effects<T>) -> Deposited<T> {
        let Item { value, consumed } = item;
        if self.closed {
            return Deposited::Refused(Item { value, consumed });
        }
        let mut value = Some(value);
        self.hand_over(&mut value, Seeker::Private, effects);
        let Some(value) = value else { return Deposited::Consumed(consumed) };
        let item = Item { value, consumed };
        if self.buffer.len() < capacity {
            self.buffer.push_back(item);
        } else {
            self.senders.push(SendEntry::Deposit(item));
        }
        Deposited::Queued
    }

    /// Tells all who wait but the deposits of senders, which can still be received.
    pub(super) fn close(&mut self) -> Vec<Effects<T>> {
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

    fn close_receiver(&mut self, ticket: Ticket) -> Effects<T> {
        let mut effects = Effects::default();
        match self.receivers.get(ticket) {
            Some(ReceiveEntry::Offer(offer)) if offer.seize(Seeker::Private).is_err() => {
                self.receivers.set_aside(ticket);
            }
            Some(ReceiveEntry::Deposit(_)) => {
                if let Some(ReceiveEntry::Deposit(action)) = self.receivers.remove(ticket) {
                    effects.discharge(Discharge::Received(action, Err(Closed)));
                }
            }
            _ => {
                let entry = self.receivers.finish(ticket, ReceiveEntry::Finished(Err(Closed)));
                effects.wake_all(entry.and_then(ReceiveEntry::owner));
            }
        }
        effects
    }

    fn close_sender(&mut self, ticket: Ticket) -> Option<Effects<T>> {
        let mut effects = Effects::default();
        match self.senders.get(ticket)? {
            SendEntry::Deposit(_) => return None,
            SendEntry::Offer(offer, _) if offer.seize(Seeker::Private).is_err() => _ = self.senders.set_aside(ticket),
            _ => {
                let place = self.senders.set_aside(ticket)?;
                match std::mem::replace(place, SendEntry::Finished(Ok(()))) {
                    SendEntry::Offer(Offer { party, .. }, cargo) => {
                        *place = SendEntry::Finished(Err(cargo.value()));
                        effects.wake(Woken::Owner(party));
                    }
                    SendEntry::Task(value, waker) => {
                        *place = SendEntry::Finished(Err(Some(value)));
                        effects.wake(Woken::Task(waker));
                    }
                    entry => *place = entry,
                }
            }
        }
        Some(effects)
    }
}
