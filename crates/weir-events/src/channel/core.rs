//! A channel behind its locks: each operation locks, matches, unlocks, and only then tells whom it concerns.
//!
//! Senders and receivers of a buffered channel would take turns on one lock. So a receiver that finds the buffer takes
//! all of it at once: it becomes the *consumer buffer*, under a lock of its own, from which receivers take until it is empty.
//! What came first lies in the consumer buffer, what came later in the buffer. A channel with few places has no consumer buffer.
//!
//! The invariants:
//! - The consumer buffer grows only with both locks held (consumer buffer before state), and only while no sender and no receiver waits.
//!   So whoever holds the state's lock and sees its length at 0 knows that the consumer buffer is empty and stays so.
//! - Nobody is queued, and no value given back, while there is a consumer buffer: [`Core::lock`] puts it back into the buffer
//!   first. So a sender that waits still sees each place that becomes free.
//! - The consumer buffer's length may be seen too large by a sender, never too small: a sender may find the channel full and look
//!   again under both locks, but never overfills it. It looks only when it must: what it saw last, or the whole consumer buffer when
//!   it was taken, is noted in the state (`aside`), and there is no more of it than that.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::effects::MatchEffects;
use super::entry::QueuedValue;
use super::outcome::{Received, Sent};
use super::state::ChannelState;
use crate::adaptive_spin::AdaptiveSpin;
use crate::mutants::{Mutant, is_active};
use crate::primitives::{AtomicUsize, SpinLock, SpinLockGuard};
use crate::waiter::Initiator;

/// What all handles of one channel share.
pub(crate) struct Core<T> {
    state: Padded<SpinLock<ChannelState<T>>>,
    consumer_buffer: Padded<ConsumerBuffer<T>>,
    /// `THERE` while there is anything to receive but the consumer buffer, or the channel is closed; `WANTED` while a receiver waits
    /// where there is no buffer. So that looking needs no lock: written under the state's, and whoever goes to wait looks
    /// again under it. On a line of its own, so that who looks does not take the lock's line from who works under it.
    hints: Padded<AtomicUsize>,
    /// How many values wait in the buffer before a sender has to.
    capacity: usize,
}

/// The buffer that was taken aside, and what senders may know of it without its lock.
struct ConsumerBuffer<T> {
    items: SpinLock<VecDeque<QueuedValue<T>>>,
    /// How many there are. Written under the lock.
    len: AtomicUsize,
}

/// On cache lines of its own, which senders and receivers do not take from each other.
#[repr(align(128))]
struct Padded<V>(V);

/// The buffer of a channel that holds fewer is not taken aside: there is too little in it for a second lock. The model has
/// small ones of either kind.
const CONSUMER_BUFFER_CAPACITY_MIN: usize = if cfg!(loom) { 2 } else { 16 };

/// See [`Core::signs`].
const HINT_NOT_EMPTY: usize = 1;
/// See [`Core::signs`].
const HINT_RECEIVER_WAITING: usize = 2;

impl<T> QueuedValue<T> {
    /// It was received, and no lock is held.
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

    /// Locks the state, with everything that is buffered in its buffer.
    pub(super) fn lock(&self) -> SpinLockGuard<'_, ChannelState<T>> {
        self.merge_consumer_buffer(self.state.0.lock())
    }

    /// Locks the state, for what has nothing to do with what is buffered.
    pub(super) fn lock_without_consumer_buffer(&self) -> SpinLockGuard<'_, ChannelState<T>> {
        self.state.0.lock()
    }

    /// The locked state with what is in the consumer buffer before what is in its buffer.
    #[inline]
    fn merge_consumer_buffer<'a>(
        &'a self,
        state: SpinLockGuard<'a, ChannelState<T>>,
    ) -> SpinLockGuard<'a, ChannelState<T>> {
        if self.capacity < CONSUMER_BUFFER_CAPACITY_MIN
            || self.consumer_buffer.0.len.load(Relaxed) == 0
            || is_active(Mutant::IgnoreConsumerBuffer)
        {
            return state;
        }
        self.merge_consumer_buffer_slow(state)
    }

    /// The state with the consumer buffer, whose lock comes first.
    #[cold]
    fn merge_consumer_buffer_slow<'a>(
        &'a self,
        state: SpinLockGuard<'a, ChannelState<T>>,
    ) -> SpinLockGuard<'a, ChannelState<T>> {
        drop(state);
        let mut consumer_buffer = self.consumer_buffer.0.items.lock();
        let mut state = self.state.0.lock();
        consumer_buffer.append(&mut state.buffer);
        std::mem::swap(&mut *consumer_buffer, &mut state.buffer);
        self.consumer_buffer.0.len.store(0, Release);
        state
    }

    /// Values in the buffer and with waiting senders.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        self.publish_hints(&state);
        state.buffer.len() + state.senders.len()
    }

    /// Entries of waiting receivers.
    pub(crate) fn receivers_len(&self) -> usize {
        self.state.0.lock().receivers.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.0.lock().closed
    }

    /// Whether a send would probably find a taker: a hint, for values that are dear to clone.
    pub(crate) fn would_take(&self) -> bool {
        let state = self.state.0.lock();
        let buffered = state.buffer.len() + self.consumer_buffer.0.len.load(Relaxed);
        state.closed || !state.receivers.is_empty() || buffered < self.capacity
    }

    /// Sends without waiting. The value is there before, and gone if it is done.
    #[inline]
    pub(crate) fn send(&self, value: &mut Option<T>) -> Sent {
        let mut state = self.state.0.lock();
        match self.buffer_at_once(&mut state, |state, room| state.buffer_value(value, room)) {
            Sent::Taken => self.send_slowly(state, value),
            sent => sent,
        }
    }

    /// Sends what is in a parcel, if anything is. The channel's lock comes before the parcel's.
    pub(crate) fn send_parcel(&self, parcel: &SpinLock<Option<T>>) -> Option<Sent> {
        let mut state = self.state.0.lock();
        let buffer_parcel = |state: &mut ChannelState<T>, room| match &mut *parcel.lock() {
            None => Sent::Taken,
            value => state.buffer_value(value, room),
        };
        match self.buffer_at_once(&mut state, buffer_parcel) {
            Sent::Taken => self.send_parcel_slowly(state, parcel),
            sent => Some(sent),
        }
    }

    /// Where nobody waits and the channel is open, buffering is all there is to do; `Taken`: it is not.
    #[inline]
    fn buffer_at_once(
        &self,
        state: &mut ChannelState<T>,
        buffer: impl FnOnce(&mut ChannelState<T>, usize) -> Sent,
    ) -> Sent {
        if !state.receivers.is_empty() || state.closed {
            return Sent::Taken;
        }
        if self.capacity == 0 {
            return Sent::Full;
        }
        if state.buffer.len() + state.consumer_buffer_len_max >= self.capacity {
            state.consumer_buffer_len_max = self.consumer_buffer.0.len.load(Relaxed);
        }
        let consumer_buffer_len_max = state.consumer_buffer_len_max;
        match buffer(state, self.capacity.saturating_sub(consumer_buffer_len_max)) {
            Sent::Done => self.publish_hints(state),
            // The consumer buffer may have become smaller than it was seen.
            Sent::Full if consumer_buffer_len_max > 0 => return Sent::Taken,
            sent => return sent,
        }
        Sent::Done
    }

    #[cold]
    fn send_parcel_slowly(
        &self,
        state: SpinLockGuard<'_, ChannelState<T>>,
        parcel: &SpinLock<Option<T>>,
    ) -> Option<Sent> {
        let mut effects = MatchEffects::default();
        let mut state = self.merge_consumer_buffer(state);
        let mut value = parcel.lock();
        let sent = value.is_some().then(|| state.send(&mut value, self.capacity, Initiator::Private, &mut effects));
        drop(value);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        sent
    }

    #[cold]
    fn send_slowly(&self, state: SpinLockGuard<'_, ChannelState<T>>, value: &mut Option<T>) -> Sent {
        let mut effects = MatchEffects::default();
        let mut state = self.merge_consumer_buffer(state);
        let sent = state.send(value, self.capacity, Initiator::Private, &mut effects);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        sent
    }

    /// Whether a sender had to wait a moment ago, without a lock; it is known where there is no buffer or one place.
    pub(crate) fn seems_full(&self) -> bool {
        match self.capacity {
            0 => self.hints.0.load(Relaxed) & HINT_RECEIVER_WAITING == 0,
            1 => !self.seems_empty(),
            _ => false,
        }
    }

    /// Whether the buffer was empty a moment ago, without a lock.
    fn seems_empty(&self) -> bool {
        self.hints.0.load(Relaxed) & HINT_NOT_EMPTY == 0
    }

    /// Sends once more, after looking for a while whether room comes.
    #[cold]
    pub(crate) fn send_spinning(&self, value: &mut Option<T>) -> Sent {
        let mut spin = AdaptiveSpin::new(self.capacity);
        loop {
            let buffered_by_consumer = self.consumer_buffer.0.len.load(Relaxed);
            // Not for the first place, but for all at once: several values are then sent in a row.
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

    /// Receives once more, after looking for a while whether something comes.
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

    /// Where nobody waits, taking the first value is all there is to do.
    #[inline]
    fn receive_one(&self) -> Received<T> {
        let mut state = self.state.0.lock();
        if !state.senders.is_empty() || !state.receivers.is_empty() {
            return self.receive_slowly(state);
        }
        let Some(item) = state.buffer.pop_front() else { return self.receive_slowly(state) };
        self.publish_hints(&state);
        drop(state);
        item.consumed()
    }

    /// Whether there is nothing to receive, nor to hear of.
    #[inline]
    fn is_idle(&self) -> bool {
        // Without a look at the senders' line where there is a consumer buffer; and what base events the buffer for the consumer buffer is counted
        // there before it is missing here.
        let is_consumer_buffer_empty = || self.consumer_buffer.0.len.load(Acquire) == 0;
        is_consumer_buffer_empty() && self.hints.0.load(Acquire) & HINT_NOT_EMPTY == 0 && is_consumer_buffer_empty()
    }

    /// Takes the buffer for the empty consumer buffer, if there is one and nobody waits.
    fn fill(&self, consumer_buffer: &mut VecDeque<QueuedValue<T>>) -> bool {
        let mut state = self.state.0.lock();
        if state.buffer.is_empty() || !state.senders.is_empty() || !state.receivers.is_empty() {
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
    fn receive_slowly(&self, state: SpinLockGuard<'_, ChannelState<T>>) -> Received<T> {
        let mut effects = MatchEffects::default();
        let mut state = self.merge_consumer_buffer(state);
        let received = state.receive(self.capacity, Initiator::Private, &mut effects);
        self.publish_hints(&state);
        drop(state);
        effects.run();
        received
    }

    /// Before the lock is let go: says whether there is anything to receive or to hear of, and whether anybody waits for
    /// it.
    #[inline]
    pub(super) fn publish_hints(&self, state: &ChannelState<T>) {
        let is_there = !state.buffer.is_empty() || !state.senders.is_empty() || state.closed;
        let is_wanted = self.capacity == 0 && !state.receivers.is_empty();
        let hints = if is_there { HINT_NOT_EMPTY } else { 0 } | if is_wanted { HINT_RECEIVER_WAITING } else { 0 };
        if self.hints.0.load(Relaxed) != hints {
            self.hints.0.store(hints, Release);
        }
    }

    /// Closes: wakes all offers; what was deposited stays to be received. Whether it was open before.
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
