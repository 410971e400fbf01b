//! A channel behind its locks: each operation locks, matches, unlocks, and only then wakes waiters and runs actions.
//!
//! Senders and receivers of a buffered channel would contend for one lock. A receiver that finds a filled buffer
//! therefore takes all of it at once: it becomes the *consumer buffer*, under a lock of its own, from which receivers
//! take until it is empty. The consumer buffer holds the older values, the buffer the younger ones. A channel of small
//! capacity has no consumer buffer.
//!
//! The invariants:
//! - The consumer buffer grows only while both locks are held (consumer buffer before state), and only while no sender
//!   and no receiver is queued. A thread that holds the state's lock and reads length 0 therefore knows that the
//!   consumer buffer is empty and stays so.
//! - While the consumer buffer holds values, no offer is queued and no value is returned: [`Core::lock`] merges it into
//!   the buffer first. A queued sender thus sees each slot that becomes free.
//! - A sender may read a length of the consumer buffer that is too large, never one that is too small: it may take the
//!   channel for full and check again under both locks, but it never exceeds the capacity. It reads the length only if
//!   it must: the state keeps an upper bound (`consumer_buffer_len_max`), which is the last length read.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::effects::MatchEffects;
use super::entry::{Delivery, QueuedValue};
use super::outcome::{Received, Sent};
use super::state::ChannelState;
use crate::adaptive_spin::AdaptiveSpin;
use crate::mutants::{Mutant, is_active};
use crate::primitives::{AtomicUsize, SpinLock, SpinLockGuard};
use crate::waiter::Initiator;

/// The state of a channel while its lock is held.
pub(super) type LockedState<'a, T> = SpinLockGuard<'a, ChannelState<T>>;

/// The shared state of all handles of one channel.
pub(crate) struct Core<T> {
    state: Padded<SpinLock<ChannelState<T>>>,
    consumer_buffer: Padded<ConsumerBuffer<T>>,
    /// Hints for readers without a lock: [`HINT_NOT_EMPTY`] and [`HINT_RECEIVER_WAITING`]. They are written under the
    /// state's lock, and a thread that goes to wait checks again under it. They have a cache line of their own, so that
    /// readers do not take the lock's line away from its holder.
    hints: Padded<AtomicUsize>,
    /// Number of values in the buffer from which on senders wait.
    capacity: usize,
}

/// The values that a receiver has taken from the buffer at once, with their number for senders.
struct ConsumerBuffer<T> {
    items: SpinLock<VecDeque<QueuedValue<T>>>,
    /// Number of items. Written under the lock, read without it.
    len: AtomicUsize,
}

/// Aligned to its own cache lines, so that senders and receivers do not share them.
#[repr(align(128))]
struct Padded<V>(V);

/// Smallest capacity with a consumer buffer: with fewer values a second lock does not pay. The model uses small
/// channels of both kinds.
const CONSUMER_BUFFER_CAPACITY_MIN: usize = if cfg!(loom) { 2 } else { 16 };

/// Set while the buffer or the senders' queue holds a value, or the channel is closed.
const HINT_NOT_EMPTY: usize = 1;
/// Set while a receiver waits on a rendezvous channel.
const HINT_RECEIVER_WAITING: usize = 2;

impl<T> QueuedValue<T> {
    /// Runs the post-consumption actions of a received value. No lock may be held.
    #[inline]
    fn consumed(self) -> Received<T> {
        if !self.consumed.is_none() {
            self.consumed.run(Ok(()));
        }
        Received::Done(self.value)
    }
}

impl<T: Send + 'static> Core<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Core {
            state: Padded(SpinLock::new(ChannelState::new())),
            consumer_buffer: Padded(ConsumerBuffer { items: SpinLock::new(VecDeque::new()), len: AtomicUsize::new(0) }),
            hints: Padded(AtomicUsize::new(0)),
            capacity,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Locks the state after merging the consumer buffer into its buffer.
    pub(super) fn lock(&self) -> LockedState<'_, T> {
        self.merge_consumer_buffer(self.state.0.lock())
    }

    /// Locks the state, for operations that do not look at buffered values.
    pub(super) fn lock_without_consumer_buffer(&self) -> LockedState<'_, T> {
        self.state.0.lock()
    }

    /// Returns the locked state with the values of the consumer buffer at the front of its buffer.
    #[inline]
    fn merge_consumer_buffer<'a>(&'a self, state: LockedState<'a, T>) -> LockedState<'a, T> {
        if self.capacity < CONSUMER_BUFFER_CAPACITY_MIN
            || self.consumer_buffer.0.len.load(Relaxed) == 0
            || is_active(Mutant::IgnoreConsumerBuffer)
        {
            return state;
        }
        self.merge_consumer_buffer_slow(state)
    }

    /// Takes the consumer buffer's lock before the state's, and merges the two buffers.
    #[cold]
    fn merge_consumer_buffer_slow<'a>(&'a self, state: LockedState<'a, T>) -> LockedState<'a, T> {
        drop(state);
        let mut consumer_buffer = self.consumer_buffer.0.items.lock();
        let mut state = self.state.0.lock();
        consumer_buffer.append(&mut state.buffer);
        std::mem::swap(&mut *consumer_buffer, &mut state.buffer);
        self.consumer_buffer.0.len.store(0, Release);
        state
    }

    /// Returns the number of buffered values and queued senders.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        self.publish_hints(&state);
        state.len()
    }

    /// Returns the number of queued receivers.
    pub(crate) fn receivers_len(&self) -> usize {
        self.state.0.lock().receivers.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.0.lock().closed
    }

    /// Returns true if a send would probably succeed: a hint that saves an expensive clone.
    pub(crate) fn would_take(&self, delivery: Delivery) -> bool {
        let state = self.state.0.lock();
        if delivery == Delivery::Receipt {
            return state.closed || !state.receivers.is_empty();
        }
        let buffered = state.buffered_len() + self.consumer_buffer.0.len.load(Relaxed);
        state.closed || !state.receivers.is_empty() || buffered < self.capacity
    }

    /// Sends without waiting if the buffer takes the value at once; otherwise returns the value and the locked state, for
    /// [`Core::send_locked`]. A large value is thus copied once.
    #[inline]
    pub(super) fn buffer_or_lock(&self, value: T) -> Result<(), (T, LockedState<'_, T>)> {
        let mut state = self.state.0.lock();
        if !self.has_room(&mut state) {
            return Err((value, state));
        }
        state.buffer.push_back(QueuedValue::of(value));
        self.publish_hints(&state);
        Ok(())
    }

    /// Sends without waiting, after the buffer did not take the value at once.
    pub(super) fn send_locked(&self, state: LockedState<'_, T>, value: &mut Option<T>) -> Sent {
        if self.is_full(&state) {
            return Sent::Full;
        }
        self.send_slowly(state, Delivery::Buffer, value)
    }

    /// Sends without waiting. Takes the value out of `value` if it succeeds.
    #[inline]
    pub(crate) fn send(&self, value: &mut Option<T>) -> Sent {
        let Some(owned) = value.take() else { return Sent::Done };
        match self.buffer_or_lock(owned) {
            Ok(()) => Sent::Done,
            Err((owned, state)) => {
                *value = Some(owned);
                self.send_locked(state, value)
            }
        }
    }

    /// Sends without waiting, under the condition of the delivery.
    #[inline]
    pub(crate) fn send_by(&self, delivery: Delivery, value: &mut Option<T>) -> Sent {
        match delivery {
            Delivery::Buffer => self.send(value),
            Delivery::Receipt => self.send_slowly(self.state.0.lock(), delivery, value),
        }
    }

    /// Sends the value in a parcel without waiting; `None` if the parcel is empty. The channel's lock comes before the
    /// parcel's.
    pub(crate) fn send_parcel(&self, parcel: &SpinLock<Option<T>>, delivery: Delivery) -> Option<Sent> {
        let mut state = self.state.0.lock();
        if delivery == Delivery::Receipt {
            return self.send_parcel_slowly(state, delivery, parcel);
        }
        if self.has_room(&mut state) {
            let value = parcel.lock().take()?;
            state.buffer.push_back(QueuedValue::of(value));
            self.publish_hints(&state);
            return Some(Sent::Done);
        }
        if self.is_full(&state) { Some(Sent::Full) } else { self.send_parcel_slowly(state, delivery, parcel) }
    }

    /// Returns true if the buffer takes a value at once.
    #[inline]
    fn has_room(&self, state: &mut ChannelState<T>) -> bool {
        state.is_plain() && state.buffer.len() < self.room(state)
    }

    /// Returns true if a send has to wait. The consumer buffer is not counted: it may have become smaller since its
    /// length was read.
    fn is_full(&self, state: &ChannelState<T>) -> bool {
        state.is_plain() && state.buffer.len() >= self.capacity
    }

    /// Returns the number of values that the buffer may hold beside the consumer buffer.
    #[inline]
    fn room(&self, state: &mut ChannelState<T>) -> usize {
        if state.buffer.len() + state.consumer_buffer_len_max >= self.capacity {
            state.consumer_buffer_len_max = self.consumer_buffer.0.len.load(Relaxed);
        }
        self.capacity.saturating_sub(state.consumer_buffer_len_max)
    }

    #[cold]
    fn send_parcel_slowly(
        &self,
        state: LockedState<'_, T>,
        delivery: Delivery,
        parcel: &SpinLock<Option<T>>,
    ) -> Option<Sent> {
        let mut effects = MatchEffects::default();
        let mut state = self.merge_consumer_buffer(state);
        let mut value = parcel.lock();
        let sent = value
            .is_some()
            .then(|| state.send_by(delivery, &mut value, self.capacity, Initiator::Private, &mut effects));
        drop(value);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        sent
    }

    #[cold]
    fn send_slowly(&self, state: LockedState<'_, T>, delivery: Delivery, value: &mut Option<T>) -> Sent {
        let mut effects = MatchEffects::default();
        let mut state = self.merge_consumer_buffer(state);
        let sent = state.send_by(delivery, value, self.capacity, Initiator::Private, &mut effects);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        sent
    }

    /// Returns true if a sender had to wait a moment ago; takes no lock. Known only for capacities 0 and 1.
    pub(crate) fn seems_full(&self) -> bool {
        match self.capacity {
            0 => self.hints.0.load(Relaxed) & HINT_RECEIVER_WAITING == 0,
            1 => !self.seems_empty(),
            _ => false,
        }
    }

    /// Returns true if the buffer was empty a moment ago; takes no lock.
    fn seems_empty(&self) -> bool {
        self.hints.0.load(Relaxed) & HINT_NOT_EMPTY == 0
    }

    /// Spins until there may be room, and sends again.
    #[cold]
    pub(crate) fn send_spinning(&self, value: &mut Option<T>) -> Sent {
        let mut spin = AdaptiveSpin::new(self.capacity);
        loop {
            let buffered_by_consumer = self.consumer_buffer.0.len.load(Relaxed);
            // Waits for the whole buffer and not for one slot, so that several values can then be sent in a row.
            let has_room = || self.seems_empty() || self.consumer_buffer.0.len.load(Relaxed) != buffered_by_consumer;
            if !spin.spin_until(has_room) {
                return Sent::Full;
            }
            match self.send(value) {
                Sent::Full => {}
                sent => return sent,
            }
        }
    }

    /// Spins until there may be a value, and receives again.
    #[cold]
    pub(crate) fn receive_spinning(&self) -> Received<T> {
        let mut spin = AdaptiveSpin::new(self.capacity);
        while spin.spin_until(|| !self.is_idle()) {
            match self.receive() {
                Received::Empty => {}
                received => return received,
            }
        }
        Received::Empty
    }

    /// Receives without waiting.
    #[inline]
    pub(crate) fn receive(&self) -> Received<T> {
        if self.is_idle() {
            return Received::Empty;
        }
        if self.capacity < CONSUMER_BUFFER_CAPACITY_MIN {
            return self.receive_one();
        }
        let mut consumer_buffer = self.consumer_buffer.0.items.lock();
        if consumer_buffer.is_empty() && !self.fill(&mut consumer_buffer) {
            drop(consumer_buffer);
            return self.receive_slowly(self.state.0.lock());
        }
        let Some(item) = consumer_buffer.pop_front() else { return Received::Empty };
        self.consumer_buffer.0.len.store(consumer_buffer.len(), Release);
        drop(consumer_buffer);
        item.consumed()
    }

    /// Receives from a channel without a consumer buffer; takes the first value if no sender waits.
    #[inline]
    fn receive_one(&self) -> Received<T> {
        let mut state = self.state.0.lock();
        if !state.senders.is_empty() || !state.receivers.is_empty() || state.rare.is_some() {
            return self.receive_slowly(state);
        }
        let Some(item) = state.buffer.pop_front() else { return self.receive_slowly(state) };
        self.publish_hints(&state);
        drop(state);
        item.consumed()
    }

    /// Returns true if there is nothing to receive and the channel is open, without taking a lock.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        // If there is a consumer buffer, the senders' cache line is not read. A value that moves from the buffer to the
        // consumer buffer is counted there before it disappears here, hence the second look.
        let is_consumer_buffer_empty = || self.consumer_buffer.0.len.load(Acquire) == 0;
        is_consumer_buffer_empty() && self.hints.0.load(Acquire) & HINT_NOT_EMPTY == 0 && is_consumer_buffer_empty()
    }

    /// Swaps the buffer into the empty consumer buffer, unless the buffer is empty or an offer is queued.
    fn fill(&self, consumer_buffer: &mut VecDeque<QueuedValue<T>>) -> bool {
        let mut state = self.state.0.lock();
        let is_queued = !state.senders.is_empty() || !state.receivers.is_empty() || state.rare.is_some();
        if state.buffer.is_empty() || is_queued {
            return false;
        }
        std::mem::swap(consumer_buffer, &mut state.buffer);
        state.consumer_buffer_len_max =
            if is_active(Mutant::ForgetConsumerBufferLen) { 0 } else { consumer_buffer.len() };
        self.consumer_buffer.0.len.store(consumer_buffer.len(), Release);
        self.publish_hints(&state);
        true
    }

    #[cold]
    fn receive_slowly(&self, state: LockedState<'_, T>) -> Received<T> {
        let mut effects = MatchEffects::default();
        let mut state = self.merge_consumer_buffer(state);
        let received = state.receive(self.capacity, Initiator::Private, &mut effects);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        received
    }

    /// Publishes the hints for readers without a lock; called before the state's lock is released.
    #[inline]
    pub(super) fn publish_hints(&self, state: &ChannelState<T>) {
        let is_there = !state.buffer.is_empty() || !state.senders.is_empty() || state.rare.is_some() || state.closed;
        let is_wanted = self.capacity == 0 && !state.receivers.is_empty();
        let hints = if is_there { HINT_NOT_EMPTY } else { 0 } | if is_wanted { HINT_RECEIVER_WAITING } else { 0 };
        if self.hints.0.load(Relaxed) != hints {
            self.hints.0.store(hints, Release);
        }
    }

    /// Closes the channel: wakes all waiting offers; buffered values can still be received. Returns true if it was
    /// open.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.lock();
        let was_open = !state.closed;
        let all = state.close();
        self.publish_hints(&state);
        drop(state);
        all.into_iter().for_each(MatchEffects::run);
        was_open
    }
}
