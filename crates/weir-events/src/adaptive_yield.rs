//! Yielding before a thread parks: a thread whose offer is queued yields its core for as long as that pays.
//!
//! On a shared core, the peer runs during the yield and completes the offer, which costs a tenth of parking. On idle
//! cores, a yield is a pause, and the peer completes the offer within a few of them. It does not pay in two cases, in
//! which threads *rest*, that is, park at once:
//!
//! - The peer takes long. After yields in vain, the thread rests for [`VAIN_REST_FACTOR`] times as long as they took.
//! - The machine is busy, and the core goes to other work for whole time slices. A single slow yield is an interruption,
//!   and costs less than a rest. If another one follows soon, all threads rest for as long as it took, and twice as long
//!   each time that a slow yield follows soon after a rest.
//!
//! Yields that do not pay thus cost a small share of a thread's time at most.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Maximum number of yields before a thread parks; on an idle machine they take longer than waking a thread.
const YIELDS_MAX: u32 = 64;
/// Rest of a thread, relative to the duration of its yields in vain.
const VAIN_REST_FACTOR: u32 = 16;
/// Duration of a yield from which on the core has gone to other work.
const TIME_SLICE_MIN: Duration = Duration::from_micros(50);
/// Longest rest of all threads, relative to the duration of a slow yield; a power of two.
const BUSY_REST_FACTOR_MAX: u64 = 64;
/// Longest time that a slow yield counts for: a machine may be suspended during a yield.
const SLOW_YIELD_MAX: Duration = Duration::from_millis(20);
/// Distance of a slow yield from the one or the rest before it, relative to its duration, below which the machine is
/// busy.
const SOON_FACTOR: u64 = 4;

/// The rest of all threads. Two threads may report at once; then one of the reports is lost, or the two are mixed.
static BUSY_REST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

thread_local! {
    /// End of the rest of this thread, after yields in vain.
    static VAIN_REST: Cell<u64> = const { Cell::new(0) };
}

/// The rest of all threads after a slow yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BusyRest {
    /// Its end, in nanoseconds of [`now`].
    ends: u64,
    /// Its duration relative to that of the slow yield.
    factor: u64,
}

impl BusyRest {
    fn load() -> Self {
        BusyRest { ends: BUSY_REST[0].load(Relaxed), factor: BUSY_REST[1].load(Relaxed) }
    }

    fn store(self) {
        BUSY_REST[0].store(self.ends, Relaxed);
        BUSY_REST[1].store(self.factor, Relaxed);
    }

    fn after_slow_yield(self, start: u64, end: u64) -> Self {
        // A thread that began to yield before this rest reports the same interruption once more.
        let Some(distance) = start.checked_sub(self.ends) else { return self };
        let lost = (end - start).min(nanoseconds(SLOW_YIELD_MAX));
        let is_soon = distance < lost * SOON_FACTOR;
        let factor = if is_soon { (self.factor * 2).clamp(1, BUSY_REST_FACTOR_MAX) } else { 0 };
        BusyRest { ends: end + lost * factor, factor }
    }
}

/// Yields the core until the condition holds; returns false if it is time to park instead.
pub(crate) fn yield_until(is_there: impl Fn() -> bool) -> bool {
    if is_there() {
        return true;
    }
    let start = now();
    if start < VAIN_REST.get() || start < BUSY_REST[0].load(Relaxed) {
        return false;
    }
    let mut before = start;
    for _ in 0..YIELDS_MAX {
        std::thread::yield_now();
        if is_there() {
            return true;
        }
        let after = now();
        if after - before >= nanoseconds(TIME_SLICE_MIN) {
            BusyRest::load().after_slow_yield(before, after).store();
            return false;
        }
        before = after;
    }
    VAIN_REST.set(before + (before - start) * u64::from(VAIN_REST_FACTOR));
    false
}

/// Returns the time since the first call in the process, in nanoseconds: a number, so that threads can share it.
fn now() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    nanoseconds(FIRST.get_or_init(Instant::now).elapsed())
}

/// Nanoseconds of 584 years fit.
const fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: u64 = 3_000_000;

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
        assert_eq!(yields(0), (true, 0));
        let (is_there, made) = yields(u32::MAX);
        assert!(!is_there && made <= YIELDS_MAX);
        assert!(VAIN_REST.get().max(BUSY_REST[0].load(Relaxed)) > 0, "they were in vain, or one was slow");
    }

    #[test]
    fn during_a_rest_a_thread_parks_at_once() {
        VAIN_REST.set(u64::MAX);
        assert_eq!(yields(u32::MAX), (false, 0));
        assert_eq!(yields(0), (true, 0));
    }

    #[test]
    fn a_single_interruption_causes_no_rest() {
        let before = BusyRest { ends: SLICE, factor: BUSY_REST_FACTOR_MAX };
        let start = SLICE + SOON_FACTOR * SLICE;
        let rest = before.after_slow_yield(start, start + SLICE);
        assert_eq!(rest, BusyRest { ends: start + SLICE, factor: 0 });
    }

    #[test]
    fn rests_become_longer_while_the_machine_is_busy() {
        let mut rest = BusyRest { ends: 0, factor: 0 };
        let mut factors = Vec::new();
        for _ in 0..9 {
            rest = rest.after_slow_yield(rest.ends, rest.ends + SLICE);
            factors.push(rest.factor);
        }
        assert_eq!(factors, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn an_interruption_counts_once_and_a_suspended_machine_causes_no_long_rest() {
        let rest = BusyRest { ends: 10 * SLICE, factor: 4 };
        assert_eq!(rest.after_slow_yield(9 * SLICE, 11 * SLICE), rest);
        let hour = nanoseconds(Duration::from_secs(3600));
        let later = rest.after_slow_yield(10 * SLICE, hour);
        assert!(later.ends <= hour + BUSY_REST_FACTOR_MAX * nanoseconds(SLOW_YIELD_MAX));
    }
}
