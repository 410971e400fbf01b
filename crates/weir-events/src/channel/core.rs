//! A channel behind its locks: each operation locks, matches, unlocks, and only then tells whom it concerns.
//!
//! Senders and receivers of a buffered channel would take turns on one lock. So a receiver that finds the buffer takes
//! all of it at once: it becomes the *stash*, under a lock of its own, from which receivers take until it is empty.
//! What came first lies in the stash, what came later in the buffer. A channel with few places has no stash.
//!
//! The invariants:
//! - The stash grows only with both locks held (stash before state), and only while no sender and no receiver waits.
//!   So whoever holds the state's lock and sees its length at 0 knows that the stash is empty and stays so.
//! - Nobody is queued, and no value given back, while there is a stash: [`Core::lock`] puts it back into the buffer
//!   first. So a sender that waits still sees each place that becomes free.
//! - The stash's length may be seen too large by a sender, never too small: a sender may find the channel full and look
//!   again under both locks, but never overfills it. It looks only when it must: what it saw last, or the whole stash when
//!   it was taken, is noted in the state (`aside`), and there is no more of it than that.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::effects::Effects;
use super::entry::Item;
use super::outcome::{Received, Sent};
use super::state::State;
use crate::mutants::{Mutant, is_active};
use crate::party::Seeker;
use crate::patience::Patience;
use crate::primitives::{AtomicUsize, Held, Lock};

/// What all handles of one channel share.
pub(crate) struct Core<T> {
    state: Padded<Lock<State<T>>>,
    stash: Padded<Stash<T>>,
    /// `THERE` while there is anything to receive but the stash, or the channel is closed; `WANTED` while a receiver waits
    /// where there is no buffer. So that looking needs no lock: written under the state's, and whoever goes to wait looks
    /// again under it. On a line of its own, so that who looks does not take the lock's line from who works under it.
    signs: Padded<AtomicUsize>,
    /// How many values wait in the buffer before a sender has to.
    capacity: usize,
}

/// The buffer that was taken aside, and what senders may know of it without its lock.
struct Stash<T> {
    items: Lock<VecDeque<Item<T>>>,
    /// How many there are. Written under the lock.
    len: AtomicUsize,
}

/// On cache lines of its own, which senders and receivers do not take from each other.
#[repr(align(128))]
struct Padded<V>(V);

/// The buffer of a channel that holds fewer is not taken aside: there is too little in it for a second lock. The model has
/// small ones of either kind.
const STASHED_CAPACITY_MIN: usize = if cfg!(loom) { 2 } else { 16 };

/// See [`Core::signs`].
const THERE: usize = 1;
/// See [`Core::signs`].
const WANTED: usize = 2;

impl<T> Item<T> {
    /// It was received, and no lock is held.
    #[inline]
    fn consumed(self) -> Received<T> {
        if !self.consumed.is_nothing() {
            self.consumed.run(Ok(()));
        }
        Received::Done(self.value)
    }
}

impl<T: Send + 'static> Core<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Core {
            state: Padded(Lock::new(State::new())),
            stash: Padded(Stash { items: Lock::new(VecDeque::new()), len: AtomicUsize::new(0) }),
            signs: Padded(AtomicUsize::new(0)),
            capacity,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Locks the state, with everything that is buffered in its buffer.
    pub(super) fn lock(&self) -> Held<'_, State<T>> {
        self.whole(self.state.0.lock())
    }

    /// Locks the state, for what has nothing to do with what is buffered.
    pub(super) fn lock_beside_stash(&self) -> Held<'_, State<T>> {
        self.state.0.lock()
    }

    /// The locked state with what is in the stash before what is in its buffer.
    #[inline]
    fn whole<'a>(&'a self, state: Held<'a, State<T>>) -> Held<'a, State<T>> {
        if self.capacity < STASHED_CAPACITY_MIN
            || self.stash.0.len.load(Relaxed) == 0
            || is_active(Mutant::IgnoreTheStash)
        {
            return state;
        }
        self.whole_again(state)
    }

    /// The state with the stash, whose lock comes first.
    #[cold]
    fn whole_again<'a>(&'a self, state: Held<'a, State<T>>) -> Held<'a, State<T>> {
        drop(state);
        let mut stash = self.stash.0.items.lock();
        let mut state = self.state.0.lock();
        stash.append(&mut state.buffer);
        std::mem::swap(&mut *stash, &mut state.buffer);
        self.stash.0.len.store(0, Release);
        state
    }

    /// Values in the buffer and with waiting senders.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        self.note(&state);
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
        let buffered = state.buffer.len() + self.stash.0.len.load(Relaxed);
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
    pub(crate) fn send_parcel(&self, parcel: &Lock<Option<T>>) -> Option<Sent> {
        let mut state = self.state.0.lock();
        let buffer_parcel = |state: &mut State<T>, room| match &mut *parcel.lock() {
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
    fn buffer_at_once(&self, state: &mut State<T>, buffer: impl FnOnce(&mut State<T>, usize) -> Sent) -> Sent {
        if !state.receivers.is_empty() || state.closed {
            return Sent::Taken;
        }
        if self.capacity == 0 {
            return Sent::Full;
        }
        if state.buffer.len() + state.aside >= self.capacity {
            state.aside = self.stash.0.len.load(Relaxed);
        }
        let aside = state.aside;
        match buffer(state, self.capacity.saturating_sub(aside)) {
            Sent::Done => self.note(state),
            // The stash may have become smaller than it was seen.
            Sent::Full if aside > 0 => return Sent::Taken,
            sent => return sent,
        }
        Sent::Done
    }

    #[cold]
    fn send_parcel_slowly(&self, state: Held<'_, State<T>>, parcel: &Lock<Option<T>>) -> Option<Sent> {
        let mut effects = Effects::default();
        let mut state = self.whole(state);
        let mut value = parcel.lock();
        let sent = value.is_some().then(|| state.send(&mut value, self.capacity, Seeker::Private, &mut effects));
        drop(value);
        self.note(&state);
        drop(state);
        effects.run();
        sent
    }

    #[cold]
    fn send_slowly(&self, state: Held<'_, State<T>>, value: &mut Option<T>) -> Sent {
        let mut effects = Effects::default();
        let mut state = self.whole(state);
        let sent = state.send(value, self.capacity, Seeker::Private, &mut effects);
        self.note(&state);
        drop(state);
        effects.run();
        sent
    }

    /// Whether a sender had to wait a moment ago, without a lock; it is known where there is no buffer or one place.
    pub(crate) fn seems_full(&self) -> bool {
        match self.capacity {
            0 => self.signs.0.load(Relaxed) & WANTED == 0,
            1 => !self.seems_empty(),
            _ => false,
        }
    }

    /// Whether the buffer was empty a moment ago, without a lock.
    fn seems_empty(&self) -> bool {
        self.signs.0.load(Relaxed) & THERE == 0
    }

    /// Sends once more, after looking for a while whether room comes.
    #[cold]
    pub(crate) fn send_patiently(&self, value: &mut Option<T>) -> Sent {
        let mut patience = Patience::new(self.capacity);
        loop {
            let stashed = self.stash.0.len.load(Relaxed);
            // Not for the first place, but for all at once: several values are then sent in a row.
            let has_room = || self.seems_empty() || self.stash.0.len.load(Relaxed) != stashed;
            if !patience.look_for(has_room) {
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
    pub(crate) fn receive_patiently(&self) -> Received<T> {
        let mut patience = Patience::new(self.capacity);
        while patience.look_for(|| !self.is_idle()) {
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
        if self.capacity < STASHED_CAPACITY_MIN {
            return self.receive_one();
        }
        let mut stash = self.stash.0.items.lock();
        if stash.is_empty() && !self.fill(&mut stash) {
            drop(stash);
            return self.receive_slowly(self.state.0.lock());
        }
        let Some(item) = stash.pop_front() else { return Received::Empty };
        self.stash.0.len.store(stash.len(), Release);
        drop(stash);
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
        self.note(&state);
        drop(state);
        item.consumed()
    }

    /// Whether there is nothing to receive, nor to hear of.
    #[inline]
    fn is_idle(&self) -> bool {
        // Without a look at the senders' line where there is a stash; and what leaves the buffer for the stash is counted
        // there before it is missing here.
        let is_stash_empty = || self.stash.0.len.load(Acquire) == 0;
        is_stash_empty() && self.signs.0.load(Acquire) & THERE == 0 && is_stash_empty()
    }

    /// Takes the buffer for the empty stash, if there is one and nobody waits.
    fn fill(&self, stash: &mut VecDeque<Item<T>>) -> bool {
        let mut state = self.state.0.lock();
        if state.buffer.is_empty() || !state.senders.is_empty() || !state.receivers.is_empty() {
            return false;
        }
        std::mem::swap(stash, &mut state.buffer);
        state.aside = if is_active(Mutant::ForgetWhatIsAside) { 0 } else { stash.len() };
        self.stash.0.len.store(stash.len(), Release);
        self.note(&state);
        true
    }

    #[cold]
    fn receive_slowly(&self, state: Held<'_, State<T>>) -> Received<T> {
        let mut effects = Effects::default();
        let mut state = self.whole(state);
        let received = state.receive(self.capacity, Seeker::Private, &mut effects);
        self.note(&state);
        drop(state);
        effects.run();
        received
    }

    /// Before the lock is let go: says whether there is anything to receive or to hear of, and whether anybody waits for
    /// it.
    #[inline]
    pub(super) fn note(&self, state: &State<T>) {
        let is_there = !state.buffer.is_empty() || !state.senders.is_empty() || state.closed;
        let is_wanted = self.capacity == 0 && !state.receivers.is_empty();
        let signs = if is_there { THERE } else { 0 } | if is_wanted { WANTED } else { 0 };
        if self.signs.0.load(Relaxed) != signs {
            self.signs.0.store(signs, Release);
        }
    }

    /// Closes: wakes all offers; what was deposited stays to be received. Whether it was open before.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.lock();
        let was_open = !state.closed;
        let all = state.close();
        self.note(&state);
        drop(state);
        all.into_iter().for_each(Effects::run);
        was_open
    }
}
