//! A channel's state under its lock, and the matching of offers: who meets whom, in which order.
//!
//! Words: the *buffer* holds values that no sender waits for any more; *senders* and *receivers* hold, in order of
//! arrival, *offers* of parties that wait and *deposits* of asynchronous events, for which nobody waits. A deposit's
//! *action* is what runs when it is consumed.
//!
//! Under the lock, besides entries of parties that were taken elsewhere:
//! - a sender waits only while the buffer is full (whoever takes from the buffer refills it from the senders);
//! - values and receivers wait at once only where one synchronisation offers both to send and to receive.
//!
//! The second is why the paper's invariant (§5, Figure 8: a channel holds send acts or receive acts, never both) is
//! not kept: it does not survive choice.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Closed;
use super::effects::{Discharge, Effects};
use super::offer::{Offer, Side};
use crate::asynchronous::Then;
use crate::mutants::{Mutant, is_active};
use crate::party::{Seeker, Verdict};
use crate::primitives::Mutex;
use crate::queue::{Queue, Ticket};

/// What all handles of one channel share.
pub(crate) struct Core<T> {
    state: Mutex<State<T>>,
    /// How many values wait in the buffer before a sender has to.
    capacity: usize,
}

struct State<T> {
    buffer: VecDeque<Item<T>>,
    senders: Queue<SendEntry<T>>,
    receivers: Queue<ReceiveEntry<T>>,
    closed: bool,
}

/// A value on its way, and what runs when it is consumed.
pub(crate) struct Item<T> {
    pub(crate) value: T,
    pub(crate) consumed: Then<Result<(), Closed>>,
}

enum SendEntry<T> {
    Offer(Arc<Offer<T>>),
    Deposit(Item<T>),
}

enum ReceiveEntry<T> {
    Offer(Arc<Offer<T>>),
    Deposit(Then<Result<T, Closed>>),
}

/// What came of sending for nobody who waits. What is left of it is dropped or run outside the lock.
enum Deposited<T> {
    /// It waits for a receiver.
    Queued,
    /// A receiver has the value.
    Consumed(Then<Result<(), Closed>>),
    /// The channel is closed.
    Refused(Item<T>),
}

/// What came of trying to send.
pub(crate) enum Sent<T> {
    /// A receiver or the buffer has it.
    Done,
    /// The channel is closed.
    Closed(T),
    /// Nobody takes it now.
    Full(T),
    /// The seeker was committed to another leaf meanwhile.
    Taken(T),
}

/// What came of trying to receive.
pub(crate) enum Received<T> {
    /// A value.
    Done(T),
    /// Nothing is left, and nothing will come.
    Closed,
    /// Nothing is here now.
    Empty,
    /// The seeker was committed to another leaf meanwhile.
    Taken,
}

impl<T: Send + 'static> Core<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { buffer: VecDeque::new(), senders: Queue::new(), receivers: Queue::new(), closed: false };
        Core { state: Mutex::new(state), capacity }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Values in the buffer and with waiting senders.
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        state.buffer.len() + state.senders.len()
    }

    /// Entries of waiting receivers.
    pub(crate) fn receivers_len(&self) -> usize {
        self.state.lock().receivers.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Whether a send would probably find a taker: a hint, for values that are dear to clone.
    pub(crate) fn would_take(&self) -> bool {
        let state = self.state.lock();
        state.closed || !state.receivers.is_empty() || state.buffer.len() < self.capacity
    }

    /// Sends without waiting.
    pub(crate) fn send(&self, value: T) -> Sent<T> {
        let mut effects = Effects::default();
        let sent = self.state.lock().send(value, self.capacity, Seeker::Private, &mut effects);
        effects.run();
        sent
    }

    /// Receives without waiting.
    pub(crate) fn receive(&self) -> Received<T> {
        let mut effects = Effects::default();
        let received = self.state.lock().receive(self.capacity, Seeker::Private, &mut effects);
        effects.run();
        received
    }

    /// Sends an offer's value now, or queues the offer. If the send is done now the party is committed.
    pub(crate) fn place_send(&self, offer: &Arc<Offer<T>>) {
        let Some(value) = offer.take() else { return };
        let seeker = Seeker::Published(offer.party(), offer.leaf());
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        match state.send(value, self.capacity, seeker, &mut effects) {
            Sent::Done => {}
            Sent::Closed(value) | Sent::Taken(value) => offer.put(value),
            Sent::Full(value) => {
                offer.put(value);
                offer.set_ticket(state.senders.push(SendEntry::Offer(offer.clone())));
            }
        }
        drop(state);
        effects.run();
    }

    /// Receives into an offer now, or queues the offer. If something is received now the party is committed.
    pub(crate) fn place_receive(&self, offer: &Arc<Offer<T>>) {
        let seeker = Seeker::Published(offer.party(), offer.leaf());
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let received = match is_active(Mutant::PublishWithoutLooking) {
            true => Received::Empty,
            false => state.receive(self.capacity, seeker, &mut effects),
        };
        match received {
            Received::Done(value) => offer.put(value),
            Received::Closed | Received::Taken => {}
            Received::Empty => offer.set_ticket(state.receivers.push(ReceiveEntry::Offer(offer.clone()))),
        }
        drop(state);
        effects.run();
    }

    /// Sends for nobody who waits: the value is taken, buffered or queued before this returns.
    pub(crate) fn deposit_send(&self, value: T, consumed: Then<Result<(), Closed>>) {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let outcome = state.deposit_send(Item { value, consumed }, self.capacity, &mut effects);
        drop(state);
        effects.run();
        match outcome {
            Deposited::Queued => {}
            Deposited::Consumed(consumed) => consumed.run(Ok(())),
            Deposited::Refused(item) => item.consumed.run(Err(Closed)),
        }
    }

    /// Like [`Core::deposit_send`] without an action; what follows from it is left to the caller, who holds a lock.
    pub(crate) fn deposit_quietly(&self, value: T) -> Effects<T> {
        let mut effects = Effects::default();
        let item = Item { value, consumed: Then::nothing() };
        let mut state = self.state.lock();
        let refused = state.deposit_send(item, self.capacity, &mut effects);
        drop(state);
        drop(refused);
        effects
    }

    /// Receives for nobody who waits: the action gets what comes.
    pub(crate) fn deposit_receive(&self, action: Then<Result<T, Closed>>) {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let outcome = match state.receive(self.capacity, Seeker::Private, &mut effects) {
            Received::Done(value) => Some((action, Ok(value))),
            Received::Closed => Some((action, Err(Closed))),
            Received::Empty | Received::Taken => {
                state.receivers.push(ReceiveEntry::Deposit(action));
                None
            }
        };
        drop(state);
        effects.run();
        if let Some((action, outcome)) = outcome {
            action.run(outcome);
        }
    }

    /// Takes an entry out of its queue. What was queued is dropped outside the lock.
    pub(crate) fn remove(&self, side: Side, ticket: Ticket) {
        match side {
            Side::Send => {
                let entry = self.state.lock().senders.remove(ticket);
                drop(entry);
            }
            Side::Receive => {
                let entry = self.state.lock().receivers.remove(ticket);
                drop(entry);
            }
        }
    }

    /// Gives a value back that was received by a synchronisation which was then dropped: the next receiver gets it.
    pub(crate) fn put_back(&self, value: T) {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        if let Some(value) = state.hand_over(value, Seeker::Private, &mut effects).value() {
            state.buffer.push_front(Item { value, consumed: Then::nothing() });
        }
        drop(state);
        effects.run();
    }

    /// Closes: wakes all offers; what was deposited stays to be received.
    pub(crate) fn close(&self) {
        let all = self.state.lock().close();
        all.into_iter().for_each(Effects::run);
    }
}

impl<T> Sent<T> {
    /// The value, if nobody took it.
    fn value(self) -> Option<T> {
        match self {
            Sent::Done => None,
            Sent::Closed(value) | Sent::Full(value) | Sent::Taken(value) => Some(value),
        }
    }
}

impl<T: Send + 'static> State<T> {
    fn send(&mut self, value: T, capacity: usize, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent<T> {
        if self.closed {
            return if seeker.settle_alone() { Sent::Closed(value) } else { Sent::Taken(value) };
        }
        match self.hand_over(value, seeker, effects) {
            Sent::Full(value) if self.buffer.len() < capacity => {
                if !seeker.settle_alone() {
                    return Sent::Taken(value);
                }
                self.buffer.push_back(Item { value, consumed: Then::nothing() });
                Sent::Done
            }
            sent => sent,
        }
    }

    /// Hands a value to the first receiver that can take it.
    fn hand_over(&mut self, value: T, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent<T> {
        let mut value = value;
        let mut next = self.receivers.first();
        while let Some(ticket) = next {
            next = self.receivers.after(ticket);
            let Some(ReceiveEntry::Offer(offer)) = self.receivers.get(ticket) else {
                return self.hand_to_deposit(value, ticket, seeker, effects);
            };
            match offer.deliver(value, seeker) {
                Ok(()) => {
                    seeker.settle();
                    effects.wake(offer.party().clone());
                    self.receivers.remove(ticket);
                    return Sent::Done;
                }
                Err((Verdict::Taken, back)) => return Sent::Taken(back),
                Err((Verdict::Own, back)) => value = back,
                Err((Verdict::Stale | Verdict::Committed, back)) => {
                    value = back;
                    self.receivers.remove(ticket);
                }
            }
        }
        Sent::Full(value)
    }

    fn hand_to_deposit(&mut self, value: T, ticket: Ticket, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent<T> {
        if !seeker.settle_alone() {
            return Sent::Taken(value);
        }
        if let Some(ReceiveEntry::Deposit(action)) = self.receivers.remove(ticket) {
            effects.discharge(Discharge::Received(action, Ok(value)));
        }
        Sent::Done
    }

    fn receive(&mut self, capacity: usize, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Received<T> {
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
                return self.collect_deposit(ticket, seeker, effects);
            };
            match offer.collect(seeker) {
                Ok(value) => {
                    seeker.settle();
                    effects.wake(offer.party().clone());
                    self.senders.remove(ticket);
                    return Received::Done(value);
                }
                Err(Verdict::Taken) => return Received::Taken,
                Err(Verdict::Own) => {}
                Err(Verdict::Stale | Verdict::Committed) => drop(self.senders.remove(ticket)),
            }
        }
        Received::Empty
    }

    fn collect_deposit(&mut self, ticket: Ticket, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Received<T> {
        if !seeker.settle_alone() {
            return Received::Taken;
        }
        match self.senders.remove(ticket) {
            Some(SendEntry::Deposit(item)) => {
                effects.discharge(Discharge::Sent(item.consumed));
                Received::Done(item.value)
            }
            _ => Received::Empty,
        }
    }

    /// Moves values of waiting senders into the buffer while it has room.
    fn refill(&mut self, capacity: usize, effects: &mut Effects<T>) {
        while self.buffer.len() < capacity {
            match self.senders.pop() {
                None => return,
                Some(SendEntry::Deposit(item)) => self.buffer.push_back(item),
                Some(SendEntry::Offer(offer)) => {
                    if let Ok(value) = offer.collect(Seeker::Private) {
                        self.buffer.push_back(Item { value, consumed: Then::nothing() });
                        effects.wake(offer.party().clone());
                    }
                }
            }
        }
    }

    fn deposit_send(&mut self, item: Item<T>, capacity: usize, effects: &mut Effects<T>) -> Deposited<T> {
        let Item { value, consumed } = item;
        if self.closed {
            return Deposited::Refused(Item { value, consumed });
        }
        let Some(value) = self.hand_over(value, Seeker::Private, effects).value() else {
            return Deposited::Consumed(consumed);
        };
        let item = Item { value, consumed };
        if self.buffer.len() < capacity {
            self.buffer.push_back(item);
        } else {
            self.senders.push(SendEntry::Deposit(item));
        }
        Deposited::Queued
    }

    fn close(&mut self) -> Vec<Effects<T>> {
        self.closed = true;
        let mut all = Vec::new();
        while let Some(entry) = self.receivers.pop() {
            let mut effects = Effects::default();
            match entry {
                ReceiveEntry::Deposit(action) => effects.discharge(Discharge::Received(action, Err(Closed))),
                ReceiveEntry::Offer(offer) => Self::refuse(&offer, &mut effects),
            }
            all.push(effects);
        }
        let mut next = self.senders.first();
        while let Some(ticket) = next {
            next = self.senders.after(ticket);
            if let Some(SendEntry::Offer(_)) = self.senders.get(ticket)
                && let Some(SendEntry::Offer(offer)) = self.senders.remove(ticket)
            {
                let mut effects = Effects::default();
                Self::refuse(&offer, &mut effects);
                all.push(effects);
            }
        }
        all
    }

    fn refuse(offer: &Arc<Offer<T>>, effects: &mut Effects<T>) {
        if Seeker::Private.seize(offer.party(), offer.leaf()) == Verdict::Committed {
            effects.wake(offer.party().clone());
        }
    }
}
