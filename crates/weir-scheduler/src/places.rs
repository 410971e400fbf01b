//! Whether the threads of a crew work beside each other, or one at a time.
//!
//! A crew of one thread has nobody to share its ports with, so that it needs no queue and no claim between them. But that
//! thread may be the crew's own or one that puts items in, and the crew may grow at any time.
//!
//! Protocol:
//! 1. Who works *beside* others joins first and leaves when it sleeps or is suspended, both under the lock.
//! 2. Who works *alone* holds the lock all the time, and nobody has joined. A thread that joins waits for it, and thread
//!    that works alone lets go after each batch.

use std::time::Duration;

use super::sync::{Mutant, Mutex, MutexGuard, is, lock_within, unlock_fair};

/// How long who would work alone waits for who does: about a batch. It also ends a wait for oneself.
const PATIENCE: Duration = Duration::from_millis(1);

/// The places of one crew.
pub(crate) struct Places<T>(Mutex<Inside<T>>);

struct Inside<T> {
    /// How many threads work beside each other.
    beside: usize,
    /// What only who works alone may use.
    alone: T,
}

/// The right to work alone, until it is dropped.
pub(crate) struct Alone<'a, T>(Option<MutexGuard<'a, Inside<T>>>);

impl<T> Places<T> {
    pub(crate) fn new(alone: T) -> Self {
        Places(Mutex::new(Inside { beside: 0, alone }))
    }

    /// This thread works beside others from now on.
    pub(crate) fn join(&self) {
        self.0.lock().beside += usize::from(!is(Mutant::JoinsUncounted));
    }

    /// This thread does not any more.
    pub(crate) fn leave(&self) {
        self.0.lock().beside -= usize::from(!is(Mutant::JoinsUncounted));
    }

    /// The right to work alone, where nobody works.
    pub(crate) fn alone(&self) -> Option<Alone<'_, T>> {
        let inside = lock_within(&self.0, PATIENCE)?;
        (inside.beside == 0 || is(Mutant::AloneUnlooked)).then_some(Alone(Some(inside)))
    }
}

impl<T> Alone<'_, T> {
    /// What only who works alone may use.
    pub(crate) fn get(&mut self) -> &mut T {
        &mut self.0.as_mut().expect("taken only when it is dropped").alone
    }
}

impl<T> Drop for Alone<'_, T> {
    fn drop(&mut self) {
        // Who waits comes next: it would not get the lock from a thread that takes it again at once.
        self.0.take().into_iter().for_each(unlock_fair);
    }
}
