//! A channel's state under its lock, and the matching of offers: who meets whom, in which order.
//!
//! Words: the *buffer* holds values that no sender waits for any more; *senders* and *receivers* hold, in order of
//! arrival, *offers* of parties that wait, *tasks* that wait for this channel only, and *deposits* of asynchronous
//! events, for which nobody waits. A deposit's *action* is what runs when it is consumed.
//!
//! A task that just sends or receives has no party: it waits in the queue, where only who holds the lock can take it, and
//! what came of it stays in its place until it fetches it.
//!
//! Under the lock, besides entries of parties that were taken elsewhere:
//! - a sender waits only while the buffer is full (whoever takes from the buffer refills it from the senders);
//! - values and receivers wait at once only where one synchronisation offers both to send and to receive.
//!
//! The second is why the paper's invariant (§5, Figure 8: a channel holds send acts or receive acts, never both) is
//! not kept: it does not survive choice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use super::closed::Closed;
use super::effects::{Discharge, Effects, Woken};
use super::offer::Offer;
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

/// A value on its way, and what runs when it is consumed.
pub(crate) struct Item<T> {
    pub(crate) value: T,
    pub(crate) consumed: Then<Result<(), Closed>>,
}

/// Who waits to send.
pub(super) enum SendEntry<T> {
    Offer(Arc<Offer<T>>),
    Task(T, Waker),
    Deposit(Item<T>),
    /// What came of a task: nothing, or what the closed channel refused.
    Finished(Option<T>),
}

/// Who waits to receive.
pub(super) enum ReceiveEntry<T> {
    Offer(Arc<Offer<T>>),
    Task(Waker),
    Deposit(Then<Result<T, Closed>>),
    /// What came of a task.
    Finished(Result<T, Closed>),
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

impl<T> SendEntry<T> {
    /// By which a waiting task is told.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let SendEntry::Task(_, waker) = self { Some(waker) } else { None }
    }
}

impl<T> ReceiveEntry<T> {
    /// By which a waiting task is told.
    pub(super) fn waker(&mut self) -> Option<&mut Waker> {
        if let ReceiveEntry::Task(waker) = self { Some(waker) } else { None }
    }
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
            self.buffer.push_back(Item { value, consumed: Then::nothing() });
        }
        Sent::Done
    }

    /// Hands a value to the first receiver that can take it.
    pub(super) fn hand_over(&mut self, value: &mut Option<T>, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent {
        let mut next = self.receivers.first();
        while let Some(ticket) = next {
            next = self.receivers.after(ticket);
            let Some(ReceiveEntry::Offer(offer)) = self.receivers.get(ticket) else {
                return self.hand_to_the_certain(value, ticket, seeker, effects);
            };
            match offer.deliver(value, seeker) {
                Ok(()) => {
                    seeker.settle();
                    if let Some(ReceiveEntry::Offer(offer)) = self.receivers.remove(ticket) {
                        effects.wake(Woken::Owner(offer));
                    }
                    return Sent::Done;
                }
                Err(Verdict::Taken) => return Sent::Taken,
                Err(Verdict::Own) => {}
                Err(Verdict::Stale | Verdict::Committed) => drop(self.receivers.remove(ticket)),
            }
        }
        Sent::Full
    }

    /// Hands a value to a task or a deposit: nobody else can take either of them meanwhile.
    fn hand_to_the_certain(
        &mut self,
        value: &mut Option<T>,
        ticket: Ticket,
        seeker: Seeker<'_>,
        effects: &mut Effects<T>,
    ) -> Sent {
        if !seeker.settle_alone() && !is_active(Mutant::SettleWithoutLooking) {
            return Sent::Taken;
        }
        let Some(value) = value.take() else { return Sent::Done };
        if let Some(ReceiveEntry::Task(_)) = self.receivers.get(ticket) {
            if let Some(ReceiveEntry::Task(waker)) = self.receivers.finish(ticket, ReceiveEntry::Finished(Ok(value))) {
                effects.wake(Woken::Task(waker));
            }
        } else if let Some(ReceiveEntry::Deposit(action)) = self.receivers.remove(ticket) {
            effects.discharge(Discharge::Received(action, Ok(value)));
        }
        Sent::Done
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
            let Some(SendEntry::Offer(offer)) = self.senders.get(ticket) else {
                return self.collect_from_the_certain(ticket, seeker, effects);
            };
            match offer.collect(seeker) {
                Ok(value) => {
                    seeker.settle();
                    if let Some(SendEntry::Offer(offer)) = self.senders.remove(ticket) {
                        effects.wake(Woken::Owner(offer));
                    }
                    return Received::Done(value);
                }
                Err(Verdict::Taken) => return Received::Taken,
                Err(Verdict::Own) => {}
                Err(Verdict::Stale | Verdict::Committed) => drop(self.senders.remove(ticket)),
            }
        }
        Received::Empty
    }

    /// Takes the value of a task or a deposit, which nobody else can take meanwhile.
    fn collect_from_the_certain(
        &mut self,
        ticket: Ticket,
        seeker: Seeker<'_>,
        effects: &mut Effects<T>,
    ) -> Received<T> {
        if !seeker.settle_alone() {
            return Received::Taken;
        }
        match self.take_certain(ticket, effects) {
            Some(item) => {
                effects.discharge(Discharge::Sent(item.consumed));
                Received::Done(item.value)
            }
            None => Received::Empty,
        }
    }

    /// The value of a task, which is told, or of a deposit.
    fn take_certain(&mut self, ticket: Ticket, effects: &mut Effects<T>) -> Option<Item<T>> {
        let is_task = matches!(self.senders.get(ticket), Some(SendEntry::Task(..)));
        let entry =
            if is_task { self.senders.finish(ticket, SendEntry::Finished(None)) } else { self.senders.remove(ticket) };
        match entry? {
            SendEntry::Deposit(item) => Some(item),
            SendEntry::Task(value, waker) => {
                effects.wake(Woken::Task(waker));
                Some(Item { value, consumed: Then::nothing() })
            }
            SendEntry::Offer(_) | SendEntry::Finished(_) => None,
        }
    }

    /// Moves values of waiting senders into the buffer while it has room.
    fn refill(&mut self, capacity: usize, effects: &mut Effects<T>) {
        let mut next = self.senders.first();
        while let Some(ticket) = next
            && self.buffer.len() < capacity
        {
            next = self.senders.after(ticket);
            let Some(SendEntry::Offer(offer)) = self.senders.get(ticket) else {
                let item = self.take_certain(ticket, effects);
                self.buffer.extend(item);
                continue;
            };
            let collected = offer.collect(Seeker::Private);
            if matches!(collected, Err(Verdict::Own)) {
                continue;
            }
            if let (Some(SendEntry::Offer(offer)), Ok(value)) = (self.senders.remove(ticket), collected) {
                effects.wake(Woken::Owner(offer));
                self.buffer.push_back(Item { value, consumed: Then::nothing() });
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
        let is_task = matches!(self.receivers.get(ticket), Some(ReceiveEntry::Task(_)));
        let entry = match is_task {
            true => self.receivers.finish(ticket, ReceiveEntry::Finished(Err(Closed))),
            false => self.receivers.remove(ticket),
        };
        match entry {
            Some(ReceiveEntry::Task(waker)) => effects.wake(Woken::Task(waker)),
            Some(ReceiveEntry::Deposit(action)) => effects.discharge(Discharge::Received(action, Err(Closed))),
            Some(ReceiveEntry::Offer(offer)) => Self::refuse(offer, &mut effects),
            Some(ReceiveEntry::Finished(_)) | None => {}
        }
        effects
    }

    fn close_sender(&mut self, ticket: Ticket) -> Option<Effects<T>> {
        let mut effects = Effects::default();
        match self.senders.get(ticket)? {
            SendEntry::Deposit(_) | SendEntry::Finished(_) => return None,
            SendEntry::Offer(_) => {
                if let Some(SendEntry::Offer(offer)) = self.senders.remove(ticket) {
                    Self::refuse(offer, &mut effects);
                }
            }
            SendEntry::Task(..) => {
                if let Some(SendEntry::Task(value, waker)) = self.senders.finish(ticket, SendEntry::Finished(None)) {
                    if let Some(finished) = self.senders.get_mut(ticket) {
                        *finished = SendEntry::Finished(Some(value));
                    }
                    effects.wake(Woken::Task(waker));
                }
            }
        }
        Some(effects)
    }

    fn refuse(offer: Arc<Offer<T>>, effects: &mut Effects<T>) {
        if offer.refuse().is_ok() {
            effects.wake(Woken::Owner(offer));
        }
    }
}
