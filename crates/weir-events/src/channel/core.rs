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
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Closed;
use super::effects::{Discharge, Effects};
use super::offer::{Offer, Side};
use crate::asynchronous::Then;
use crate::mutants::{Mutant, is_active};
use crate::party::{Seeker, Verdict};
use crate::primitives::{AtomicUsize, Mutex, MutexGuard};
use crate::queue::{Queue, Ticket};

/// What all handles of one channel share.
pub(crate) struct Core<T> {
    state: Mutex<State<T>>,
    /// How many values wait in the buffer before a sender has to.
    capacity: usize,
    /// `IDLE` while there is nothing to receive and the channel is open, so that looking needs no lock. Written under
    /// the lock; whoever goes to wait looks again under the lock.
    idle: AtomicUsize,
}

/// See [`Core::idle`].
const IDLE: usize = 0;

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

/// What came of trying to send. Where it is not `Done`, the value is still where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A receiver or the buffer has it.
    Done,
    /// The channel is closed.
    Closed,
    /// Nobody takes it now.
    Full,
    /// The seeker was committed to another leaf meanwhile.
    Taken,
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
        Core { state: Mutex::new(state), capacity, idle: AtomicUsize::new(IDLE) }
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

    /// Sends without waiting. The value is there before, and gone if it is done.
    #[inline]
    pub(crate) fn send(&self, value: &mut Option<T>) -> Sent {
        let mut state = self.state.lock();
        if state.receivers.is_empty() && !state.closed {
            let sent = state.buffer_value(value, self.capacity);
            self.note(&state);
            return sent;
        }
        self.send_slowly(state, value)
    }

    /// Sends what is in a parcel, if anything is. The channel's lock comes before the parcel's.
    pub(crate) fn send_locked(&self, parcel: &Mutex<Option<T>>) -> Option<Sent> {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let mut value = parcel.lock();
        let sent = value.is_some().then(|| state.send(&mut value, self.capacity, Seeker::Private, &mut effects));
        drop(value);
        self.note(&state);
        drop(state);
        effects.run();
        sent
    }

    #[cold]
    fn send_slowly(&self, mut state: MutexGuard<'_, State<T>>, value: &mut Option<T>) -> Sent {
        let mut effects = Effects::default();
        let sent = state.send(value, self.capacity, Seeker::Private, &mut effects);
        self.note(&state);
        drop(state);
        effects.run();
        sent
    }

    /// Receives without waiting.
    #[inline]
    pub(crate) fn receive(&self) -> Received<T> {
        if self.idle.load(Acquire) == IDLE {
            return Received::Empty;
        }
        let mut state = self.state.lock();
        if state.senders.is_empty()
            && let Some(item) = state.buffer.pop_front()
        {
            self.note(&state);
            drop(state);
            item.consumed.run(Ok(()));
            return Received::Done(item.value);
        }
        self.receive_slowly(state)
    }

    #[cold]
    fn receive_slowly(&self, mut state: MutexGuard<'_, State<T>>) -> Received<T> {
        let mut effects = Effects::default();
        let received = state.receive(self.capacity, Seeker::Private, &mut effects);
        self.note(&state);
        drop(state);
        effects.run();
        received
    }

    /// Sends an offer's value now, or queues the offer. If the send is done now the party is committed.
    pub(crate) fn place_send(&self, offer: &Arc<Offer<T>>) {
        let seeker = Seeker::Published(offer.party(), offer.leaf());
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        // The value's lock is held until the outcome is known: a peer that finds another offer of the same parcel
        // meanwhile must not take the parcel for empty.
        let sent = offer.with_value(|value| match value {
            None => Sent::Full,
            Some(_) => state.send(value, self.capacity, seeker, &mut effects),
        });
        match sent {
            Sent::Done | Sent::Taken => {}
            Sent::Closed => offer.set_refused(),
            Sent::Full => offer.set_ticket(state.senders.push(SendEntry::Offer(offer.clone()))),
        }
        self.note(&state);
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
        self.note(&state);
        drop(state);
        effects.run();
    }

    /// Before the lock is let go: says whether there is anything to receive, or to hear of.
    #[inline]
    fn note(&self, state: &State<T>) {
        let idle = state.buffer.is_empty() && state.senders.is_empty() && !state.closed;
        let mark = if idle { IDLE } else { !IDLE };
        if self.idle.load(Relaxed) != mark {
            self.idle.store(mark, Release);
        }
    }

    /// Sends for nobody who waits: the value is taken, buffered or queued before this returns.
    pub(crate) fn deposit_send(&self, value: T, consumed: Then<Result<(), Closed>>) {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let outcome = state.deposit_send(Item { value, consumed }, self.capacity, &mut effects);
        self.note(&state);
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
        self.note(&state);
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
        self.note(&state);
        drop(state);
        effects.run();
        if let Some((action, outcome)) = outcome {
            action.run(outcome);
        }
    }

    /// Takes an entry out of its queue. What was queued is dropped outside the lock.
    pub(crate) fn remove(&self, side: Side, ticket: Ticket) {
        let mut state = self.state.lock();
        match side {
            Side::Send => {
                let entry = state.senders.remove(ticket);
                self.note(&state);
                drop(state);
                drop(entry);
            }
            Side::Receive => {
                let entry = state.receivers.remove(ticket);
                drop(state);
                drop(entry);
            }
        }
    }

    /// Gives a value back that was received by a synchronisation which was then dropped: the next receiver gets it.
    pub(crate) fn put_back(&self, value: T) {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let mut value = Some(value);
        state.hand_over(&mut value, Seeker::Private, &mut effects);
        if let Some(value) = value {
            state.buffer.push_front(Item { value, consumed: Then::nothing() });
        }
        self.note(&state);
        drop(state);
        effects.run();
    }

    /// Closes: wakes all offers; what was deposited stays to be received.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        let all = state.close();
        self.note(&state);
        drop(state);
        all.into_iter().for_each(Effects::run);
    }
}

impl<T: Send + 'static> State<T> {
    fn send(&mut self, value: &mut Option<T>, capacity: usize, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent {
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
    fn buffer_value(&mut self, value: &mut Option<T>, capacity: usize) -> Sent {
        if self.buffer.len() >= capacity {
            return Sent::Full;
        }
        let item = value.take().map(|value| Item { value, consumed: Then::nothing() });
        self.buffer.extend(item);
        Sent::Done
    }

    /// Hands a value to the first receiver that can take it.
    fn hand_over(&mut self, value: &mut Option<T>, seeker: Seeker<'_>, effects: &mut Effects<T>) -> Sent {
        let mut next = self.receivers.first();
        while let Some(ticket) = next {
            next = self.receivers.after(ticket);
            let Some(ReceiveEntry::Offer(offer)) = self.receivers.get(ticket) else {
                return self.hand_to_deposit(value, ticket, seeker, effects);
            };
            match offer.deliver(value, seeker) {
                Verdict::Committed => {
                    seeker.settle();
                    effects.wake(offer.party().clone());
                    self.receivers.remove(ticket);
                    return Sent::Done;
                }
                Verdict::Taken => return Sent::Taken,
                Verdict::Own => {}
                Verdict::Stale => drop(self.receivers.remove(ticket)),
            }
        }
        Sent::Full
    }

    fn hand_to_deposit(
        &mut self,
        value: &mut Option<T>,
        ticket: Ticket,
        seeker: Seeker<'_>,
        effects: &mut Effects<T>,
    ) -> Sent {
        if !seeker.settle_alone() {
            return Sent::Taken;
        }
        if let Some(ReceiveEntry::Deposit(action)) = self.receivers.remove(ticket)
            && let Some(value) = value.take()
        {
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
        let mut next = self.senders.first();
        while let Some(ticket) = next
            && self.buffer.len() < capacity
        {
            next = self.senders.after(ticket);
            if let Some(SendEntry::Offer(offer)) = self.senders.get(ticket) {
                match offer.collect(Seeker::Private) {
                    Err(Verdict::Own) => continue,
                    Err(_) => {}
                    Ok(value) => {
                        effects.wake(offer.party().clone());
                        self.buffer.push_back(Item { value, consumed: Then::nothing() });
                    }
                }
            }
            if let Some(SendEntry::Deposit(item)) = self.senders.remove(ticket) {
                self.buffer.push_back(item);
            }
        }
    }

    fn deposit_send(&mut self, item: Item<T>, capacity: usize, effects: &mut Effects<T>) -> Deposited<T> {
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
        if offer.refuse() == Verdict::Committed {
            effects.wake(offer.party().clone());
        }
    }
}
