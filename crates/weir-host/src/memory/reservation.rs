//! Room that is taken before it is allocated.

use std::sync::atomic::Ordering;

use super::limits::{PROGRAM_LIMIT, signed};
use super::thread_account::TOTAL;

/// Room that was reserved before it is allocated. Dropping it gives back the rest.
#[derive(Debug)]
pub struct Reservation(i64);

impl Reservation {
    /// Reserves room of the program, without waiting; `None` if there is not enough.
    #[must_use]
    pub fn of(bytes: u64) -> Option<Reservation> {
        let bytes = signed(bytes);
        let used = TOTAL.fetch_add(bytes, Ordering::Relaxed);
        let reservation = Reservation(bytes);
        (used.saturating_add(bytes) <= PROGRAM_LIMIT.load(Ordering::Relaxed)).then_some(reservation)
    }

    /// Reserves room of the program that leaves as much free as it takes, as a flow has to; `None` if there is not enough.
    #[must_use]
    pub fn leaving_as_much(bytes: u64) -> Option<Reservation> {
        let reservation = Reservation::beyond_limit(bytes);
        let left = PROGRAM_LIMIT.load(Ordering::Relaxed).saturating_sub(TOTAL.load(Ordering::Relaxed));
        (signed(bytes) <= left).then_some(reservation)
    }

    /// Reserves room of the program, also if there is not enough.
    #[must_use]
    pub fn beyond_limit(bytes: u64) -> Reservation {
        let bytes = signed(bytes);
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
        Reservation(bytes)
    }

    /// Gives back what has been allocated meanwhile.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(self.0);
        self.0 -= bytes;
        TOTAL.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        TOTAL.fetch_sub(self.0, Ordering::Relaxed);
    }
}
