//! Yielding before a thread parks: a thread whose offer is queued yields its core for as long as that pays.
//!
//! On a shared core, the peer runs during the yield and completes the offer, which costs a tenth of parking. On idle
//! cores, a yield is a pause, and the peer completes the offer within a few of them. On a busy machine, however, a
//! yielded core goes to other work for a whole time slice, while a parked thread that is woken runs soon.
//!
//! The rule: yields that were in vain, or one that took as long as a time slice, are not repeated for
//! [`REST_FACTOR`] times as long as they took. They thus cost a small share of a thread's time at most.
#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "threads of the model do not yield"))]

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Maximum number of yields before a thread parks; on an idle machine they take longer than waking a thread.
const YIELDS_MAX: u32 = 64;
/// Duration of a yield from which on the core has gone to other work.
const TIME_SLICE_MIN: Duration = Duration::from_micros(50);
/// Time without yields, relative to the time that was lost by yielding.
const REST_FACTOR: u32 = 16;

thread_local! {
    static REST: Cell<Rest> = const { Cell::new(Rest { ends: None }) };
}

/// The time in which a thread parks at once.
#[derive(Clone, Copy)]
struct Rest {
    ends: Option<Instant>,
}

impl Rest {
    fn is_over(self, now: Instant) -> bool {
        self.ends.is_none_or(|ends| ends <= now)
    }

    /// Begins after yields from `start` to `end` did not pay.
    fn after(start: Instant, end: Instant) -> Self {
        Rest { ends: end.checked_add(end.duration_since(start) * REST_FACTOR) }
    }
}

/// Yields the core until the condition holds; returns false if it is time to park instead.
#[cfg(not(loom))]
pub(crate) fn yield_until(is_there: impl Fn() -> bool) -> bool {
    if is_there() {
        return true;
    }
    let start = Instant::now();
    if !REST.get().is_over(start) {
        return false;
    }
    let mut before = start;
    for _ in 0..YIELDS_MAX {
        std::thread::yield_now();
        if is_there() {
            return true;
        }
        let now = Instant::now();
        let is_slow = now.duration_since(before) >= TIME_SLICE_MIN;
        before = now;
        if is_slow {
            break;
        }
    }
    REST.set(Rest::after(start, before));
    false
}

/// The model explores every interleaving; yields would only multiply them.
#[cfg(loom)]
pub(crate) fn yield_until(is_there: impl Fn() -> bool) -> bool {
    is_there()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn yields(finds_at: u32) -> (bool, u32) {
        let checks = Cell::new(0);
        let is_there = yield_until(|| {
            checks.set(checks.get() + 1);
            checks.get() > finds_at
        });
        (is_there, checks.get() - 1)
    }

    #[test]
    fn yields_end_when_the_condition_holds() {
        REST.set(Rest { ends: None });
        assert_eq!(yields(0), (true, 0));
        assert_eq!(yields(1), (true, 1));
        let (is_there, made) = yields(u32::MAX);
        assert!(!is_there && (1..=YIELDS_MAX).contains(&made));
        assert!(REST.get().ends.is_some(), "they were in vain");
    }

    #[test]
    fn during_a_rest_a_thread_parks_at_once() {
        REST.set(Rest { ends: Instant::now().checked_add(Duration::from_secs(3600)) });
        assert_eq!(yields(u32::MAX), (false, 0));
        assert_eq!(yields(0), (true, 0));
    }

    #[test]
    fn a_rest_is_a_multiple_of_the_time_lost() {
        let start = Instant::now();
        let end = start + Duration::from_millis(1);
        let rest = Rest::after(start, end);
        assert!(!rest.is_over(end + Duration::from_millis(15)) && rest.is_over(end + Duration::from_millis(16)));
    }
}
