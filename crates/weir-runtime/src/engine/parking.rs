//! Parking: stores an item while it waits, and returns it to exactly one thread.
//!
//! Three threads may access an item at once: one that polls it, one that wakes it, and one that cancels it.
//!
//! 1. Before every poll, the thread calls [`Parking::begin`], which discards earlier wake-ups.
//! 2. If the item has to wait, the thread calls [`Parking::park`]. If the item was woken since step 1, the thread gets
//!    it back and polls again; if it was cancelled, the thread gets it back to drop it.
//! 3. [`Parking::wake`] takes a parked item out, and its caller must pass it to a thread. An earlier wake-up is
//!    recorded for step 2.
//!    An item that *yields* is not parked: it stays under way and goes into a queue. A wake-up meanwhile is recorded and
//!    puts it into no second queue, and whoever takes it out of the queue goes on with step 1, whose poll sees what has
//!    happened.
//! 4. [`Parking::give_up`] takes a parked item out; otherwise the cancellation is recorded for step 2. It is final.
//!
//! Each operation is one transition; the arrow shows what its caller gets:
//!
//! ```text
//! state    │ begin    │ park(item)              │ wake                │ give_up
//! ─────────┼──────────┼─────────────────────────┼─────────────────────┼──────────────────
//! UnderWay │ UnderWay │ Parked   → Waits        │ Woken    → None     │ GivenUp → None
//! Woken    │ UnderWay │ UnderWay → Again(item)  │ Woken    → None     │ WokenLeaving → None
//! Parked   │    –     │    –                    │ UnderWay → the item │ GivenUp → the item
//! GivenUp  │ GivenUp  │ GivenUp  → GivenUp(item)│ GivenUp  → None     │ GivenUp → None
//! ```
//!
//! An item that is *bound* (in an atomic step) cannot be dropped yet: it goes on although it was cancelled, and waits and
//! is woken as before:
//!
//! ```text
//! state        │ begin    │ park(bound item)            │ wake                │ give_up
//! ─────────────┼──────────┼─────────────────────────────┼─────────────────────┼─────────────────
//! Parked       │    –     │    –                        │ UnderWay → the item │ Leaving → None
//! GivenUp      │ GivenUp  │ Leaving → Waits             │ WokenLeaving → None │ GivenUp → None
//! WokenLeaving │ GivenUp  │ GivenUp → Again(item)       │ WokenLeaving → None │ WokenLeaving → None
//! Leaving      │    –     │    –                        │ GivenUp → the item  │ Leaving → None
//! ```
//!
//! Memory ordering: the state is behind a mutex, and every transition is one critical section. The mutex alone
//! therefore orders them, and hands the item over. A wake-up is never lost: if it comes before the critical section of
//! `park`, `park` sees `Woken`; if it comes after it, it finds the item.
//!
//! Calling `begin` *before* the poll matters: after the poll, it would erase a wake-up that arrived during the poll.

use super::sync::{Mutex, ParkingMutant, is};

/// The parking space of one item.
pub(crate) struct Parking<T>(Mutex<ParkingState<T>>);

enum ParkingState<T> {
    /// The item is with a thread, or on its way to one.
    UnderWay,
    /// The item is with a thread, and was woken since it was last polled.
    Woken,
    /// The item is stored here.
    Parked(T),
    /// The item was cancelled.
    GivenUp,
    /// The item was cancelled, is with a thread, and was woken since it was last polled.
    WokenLeaving,
    /// The item was cancelled, but is bound and stored here.
    Leaving(T),
}

/// The outcome of [`Parking::park`].
pub(crate) enum ParkOutcome<T> {
    /// The item is stored here until it is woken.
    Waits,
    /// The item was woken already, and must be polled again.
    Again(T),
    /// The item was cancelled, and must be dropped.
    GivenUp(T),
}

impl<T> Parking<T> {
    /// Returns the parking space of an item that is with a thread.
    pub(crate) fn new() -> Self {
        Parking(Mutex::new(ParkingState::UnderWay))
    }

    /// Discards earlier wake-ups. Must be called before the item is polled.
    pub(crate) fn begin(&self) {
        let mut state = self.0.lock();
        match *state {
            ParkingState::Woken => *state = ParkingState::UnderWay,
            ParkingState::WokenLeaving => *state = ParkingState::GivenUp,
            _ => {}
        }
    }

    /// Returns true if the item was cancelled.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(*self.0.lock(), ParkingState::GivenUp | ParkingState::WokenLeaving)
    }

    /// Parks the item after a poll that left it waiting.
    pub(crate) fn park(&self, item: T, is_bound: bool) -> ParkOutcome<T> {
        let mut state = self.0.lock();
        match *state {
            ParkingState::Woken if !is(ParkingMutant::ForgetsWoken) => {
                *state = ParkingState::UnderWay;
                ParkOutcome::Again(item)
            }
            ParkingState::GivenUp | ParkingState::WokenLeaving if !is_bound && !is(ParkingMutant::ForgetsGivenUp) => {
                ParkOutcome::GivenUp(item)
            }
            ParkingState::WokenLeaving if is_bound && !is(ParkingMutant::ForgetsWokenLeaving) => {
                *state = ParkingState::GivenUp;
                ParkOutcome::Again(item)
            }
            ParkingState::GivenUp | ParkingState::WokenLeaving if is_bound => {
                *state = ParkingState::Leaving(item);
                ParkOutcome::Waits
            }
            _ => {
                *state = ParkingState::Parked(item);
                ParkOutcome::Waits
            }
        }
    }

    /// Wakes the item, and returns it if it was parked.
    pub(crate) fn wake(&self) -> Option<T> {
        let mut state = self.0.lock();
        if is(ParkingMutant::LeavesParked) && matches!(*state, ParkingState::Parked(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, ParkingState::UnderWay) {
            ParkingState::Parked(item) => Some(item),
            ParkingState::UnderWay | ParkingState::Woken => {
                *state = ParkingState::Woken;
                None
            }
            ParkingState::GivenUp | ParkingState::WokenLeaving => {
                *state = ParkingState::WokenLeaving;
                None
            }
            ParkingState::Leaving(item) => {
                *state = ParkingState::GivenUp;
                Some(item)
            }
        }
    }

    /// Cancels the item, and returns it if it was parked, unless it is bound.
    pub(crate) fn give_up(&self, is_bound: impl FnOnce(&mut T) -> bool) -> Option<T> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, ParkingState::GivenUp) {
            ParkingState::Parked(mut item) => {
                if !is_bound(&mut item) {
                    return Some(item);
                }
                *state = ParkingState::Leaving(item);
            }
            ParkingState::Woken => *state = ParkingState::WokenLeaving,
            leaving @ (ParkingState::Leaving(_) | ParkingState::WokenLeaving) => *state = leaving,
            _ => {}
        }
        None
    }
}
