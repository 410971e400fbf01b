//! Parking: keeps an item while it waits, and returns it to exactly one party.
//!
//! Three parties meet here: the thread that polls the item, whoever wakes it, and whoever gives it up.
//!
//! 1. Before every poll, the thread calls [`Parking::begin`], which forgets earlier wake-ups.
//! 2. If the item has to wait, the thread calls [`Parking::park`]. If the item was woken since step 1, the thread gets
//!    it back and polls again; if it was given up, the thread gets it back to drop it.
//! 3. [`Parking::wake`] takes a parked item out, and its caller must bring it back to a thread. A wake-up that comes
//!    earlier is noted for step 2.
//! 4. [`Parking::give_up`] takes a parked item out, and is noted for step 2 otherwise. It is final.
//!
//! Each operation is one transition; the arrow shows what its caller gets:
//!
//! ```text
//! state    │ begin    │ park(item)              │ wake                │ give_up
//! ─────────┼──────────┼─────────────────────────┼─────────────────────┼──────────────────
//! UnderWay │ UnderWay │ Parked   → Waits        │ Woken    → None     │ GivenUp → None
//! Woken    │ UnderWay │ UnderWay → Again(item)  │ Woken    → None     │ GivenUp → None
//! Parked   │    –     │    –                    │ UnderWay → the item │ GivenUp → the item
//! GivenUp  │ GivenUp  │ GivenUp  → GivenUp(item)│ GivenUp  → None     │ GivenUp → None
//! ```
//!
//! Memory ordering: the state is behind a mutex, and every transition is one critical section. So the mutex alone orders
//! them, and hands the item over. A wake-up is never lost, because it either comes
//! before the critical section of `park`, which then sees `Woken`, or after it, and then finds the item.
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
    /// The item lies here.
    Parked(T),
    /// The item is not wanted any more.
    GivenUp,
}

/// The outcome of [`Parking::park`].
pub(crate) enum ParkOutcome<T> {
    /// The item lies here until it is woken.
    Waits,
    /// The item was woken already, and is to be polled again.
    Again(T),
    /// The item was given up, and is to be dropped.
    GivenUp(T),
}

impl<T> Parking<T> {
    /// Returns the parking space of an item that is under way.
    pub(crate) fn new() -> Self {
        Parking(Mutex::new(ParkingState::UnderWay))
    }

    /// Forgets earlier wake-ups; to be called before the item is polled.
    pub(crate) fn begin(&self) {
        let mut state = self.0.lock();
        if matches!(*state, ParkingState::Woken) {
            *state = ParkingState::UnderWay;
        }
    }

    /// Returns true if the item was given up.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(*self.0.lock(), ParkingState::GivenUp)
    }

    /// Parks the item after a poll that left it waiting.
    pub(crate) fn park(&self, item: T) -> ParkOutcome<T> {
        let mut state = self.0.lock();
        match *state {
            ParkingState::Woken if !is(ParkingMutant::ForgetsWoken) => {
                *state = ParkingState::UnderWay;
                ParkOutcome::Again(item)
            }
            ParkingState::GivenUp if !is(ParkingMutant::ForgetsGivenUp) => ParkOutcome::GivenUp(item),
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
            ParkingState::GivenUp => {
                *state = ParkingState::GivenUp;
                None
            }
        }
    }

    /// Gives the item up, and returns it if it was parked.
    pub(crate) fn give_up(&self) -> Option<T> {
        match std::mem::replace(&mut *self.0.lock(), ParkingState::GivenUp) {
            ParkingState::Parked(item) => Some(item),
            _ => None,
        }
    }
}
