//! Parking: where an item lies while it waits, and how it comes back exactly once.
//!
//! Three parties meet here: the thread that polls the item, whoever wakes it, and whoever gives it up. Protocol:
//! 1. The thread wipes away what it knows of earlier wake-ups ([`Parking::begin`]), and then polls the item.
//! 2. Where the item has to wait, the thread parks it. Had it been woken since 1, it gets it back and polls again; had it
//!    been given up, it gets it back to drop it.
//! 3. A wake-up that finds the item parked takes it out, and must bring it back to a thread. One that comes earlier is
//!    noted for 2.
//! 4. Giving up takes a parked item out, and is noted for 2 otherwise. It is for ever.

use super::sync::{Mutex, ParkingMutant, is};

/// The place of one item.
pub(crate) struct Parking<T>(Mutex<ParkingState<T>>);

enum ParkingState<T> {
    /// With a thread, or on its way to one.
    UnderWay,
    /// The same, and woken since it was last polled.
    Woken,
    /// Here, and nobody else has it.
    Parked(T),
    /// Nobody wants it any more.
    GivenUp,
}

/// The answer to who parks an item.
pub(crate) enum ParkOutcome<T> {
    /// It lies here until it is woken.
    Waits,
    /// It was woken already: it is to be polled again.
    Again(T),
    /// It was given up: it is to be dropped.
    GivenUp(T),
}

impl<T> Parking<T> {
    /// A place of an item that is under way.
    pub(crate) fn new() -> Self {
        Parking(Mutex::new(ParkingState::UnderWay))
    }

    /// Wipes earlier wake-ups away: the item is about to be polled.
    pub(crate) fn begin(&self) {
        let mut state = self.0.lock();
        if matches!(*state, ParkingState::Woken) {
            *state = ParkingState::UnderWay;
        }
    }

    /// Whether the item was given up.
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

    /// Wakes the item; yields it where it was parked.
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

    /// Gives the item up; yields it where it was parked.
    pub(crate) fn give_up(&self) -> Option<T> {
        match std::mem::replace(&mut *self.0.lock(), ParkingState::GivenUp) {
            ParkingState::Parked(item) => Some(item),
            _ => None,
        }
    }
}
