//! Whether the threads of a crew work beside each other, or one at a time.
//!
//! A crew of one thread has nobody to share its ports with, so that it needs no queue and no claim between them. But that
//! thread may be the crew's own or one that puts items in, and the crew may grow at any time.
//!
//! Protocol:
//! 1. Who works *beside* others joins first and leaves when it sleeps or is suspended, both under the lock.
//! 2. Who works *alone* holds the lock all the time, and nobody has joined. A thread that joins waits for it, and thread
//!    that works alone lets go after each batch.
//! 3. Who works alone again and again, each time for a moment, becomes the favourite (`bias`) and needs the lock no more.
//!    Who has the lock and wants to work ends that first. Only the first who became the favourite becomes it again: an
//!    earlier one that comes late would write the word of a later one, and there is one source's thread most often.

use super::bias::Bias;
use super::sync::{Mutant, Mutex, MutexGuard, Patience, has_fence_of_all, is, lock_within, unlock_fair};

/// Who has worked alone so often, and nobody else in between, becomes the favourite. To end that costs as much as so many
/// times the lock, so that at most twice as much is paid as would have been without. Tests come there soon.
const TIMES_OF_FAVOURITE: u32 = if cfg!(debug_assertions) { 4 } else { 1_024 };

/// The places of one crew.
pub(crate) struct Places {
    inside: Mutex<Inside>,
    bias: Bias,
    /// How often a thread works alone before it becomes the favourite; nothing where the system has no fence for it.
    times_of_favourite: Option<u32>,
}

#[derive(Default)]
struct Inside {
    /// How many threads work beside each other.
    beside: usize,
    /// Who worked alone for a moment last, and how often in a row.
    last: usize,
    times: u32,
    /// Who was the first to become the favourite.
    favourite: Option<usize>,
}

/// The right to work alone, until it is dropped.
pub(crate) enum Alone<'a> {
    /// By the lock.
    Locked(#[expect(dead_code, reason = "held, and given back when dropped")] Locked<'a>),
    /// As the favourite.
    Favourite(#[expect(dead_code, reason = "held, and returned when dropped")] Favourite<'a>),
}

/// The lock that is held.
pub(crate) struct Locked<'a>(Option<MutexGuard<'a, Inside>>);

/// The favourite is inside.
pub(crate) struct Favourite<'a>(&'a Bias);

impl Places {
    pub(crate) fn new() -> Self {
        Places::leaning_after(has_fence_of_all().then_some(TIMES_OF_FAVOURITE))
    }

    /// Places where who works alone so often becomes the favourite.
    pub(crate) fn leaning_after(times_of_favourite: Option<u32>) -> Self {
        Places { inside: Mutex::new(Inside::default()), bias: Bias::new(), times_of_favourite }
    }

    /// This thread works beside others from now on.
    pub(crate) fn join(&self) {
        let mut inside = self.inside.lock();
        let mut patience = Patience::default();
        while !self.bias.end() {
            patience.pause();
        }
        inside.times = 0;
        inside.beside += usize::from(!is(Mutant::JoinsUncounted));
    }

    /// This thread does not any more.
    pub(crate) fn leave(&self) {
        self.inside.lock().beside -= usize::from(!is(Mutant::JoinsUncounted));
    }

    /// The right to work alone for a while, where nobody works.
    pub(crate) fn alone(&self) -> Option<Alone<'_>> {
        let mut locked = self.locked()?;
        locked.inside().times = 0;
        Some(Alone::Locked(locked))
    }

    /// The right to work alone for a moment, where nobody works. `thread` is the number of this thread.
    #[inline]
    pub(crate) fn alone_again(&self, thread: usize) -> Option<Alone<'_>> {
        if self.bias.enter(thread) {
            return Some(Alone::Favourite(Favourite(&self.bias)));
        }
        self.alone_perhaps_again(thread)
    }

    #[cold]
    fn alone_perhaps_again(&self, thread: usize) -> Option<Alone<'_>> {
        let mut locked = self.locked()?;
        let inside = locked.inside();
        inside.times = if inside.last == thread { inside.times.saturating_add(1) } else { 1 };
        inside.last = thread;
        let often = self.times_of_favourite.is_some_and(|times| inside.times >= times);
        if !often || (*inside.favourite.get_or_insert(thread) != thread && !is(Mutant::AnyFavourite)) {
            return Some(Alone::Locked(locked));
        }
        inside.times = 0;
        self.bias.lean(thread);
        Some(Alone::Favourite(Favourite(&self.bias)))
    }

    /// The lock, where nobody works.
    fn locked(&self) -> Option<Locked<'_>> {
        let inside = lock_within(&self.inside)?;
        if inside.beside > 0 && !is(Mutant::AloneUnlooked) {
            return None;
        }
        let mut patience = Patience::default();
        while !self.bias.end() {
            // It may be this thread itself.
            if patience.is_over() {
                return None;
            }
            patience.pause();
        }
        Some(Locked(Some(inside)))
    }
}

impl Locked<'_> {
    fn inside(&mut self) -> &mut Inside {
        self.0.as_mut().expect("taken only when it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Who waits comes next: it would not get the lock from a thread that takes it again at once.
        self.0.take().into_iter().for_each(unlock_fair);
    }
}

impl Drop for Favourite<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}
