//! A counter that many threads add to and few read: every thread adds to a stripe of it, most often its own.
//!
//! A word that two threads write goes over from the one's cache to the other's and back with every flow, which takes longer
//! than a small flow. So threads are numbered as they come, and each has the stripe of its number, as far as there are
//! stripes; beyond, some share one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

/// How many stripes a counter has: more than threads write one, most often.
const STRIPES: usize = 8;

/// The counter.
#[derive(Default)]
pub(crate) struct StripedCounter([CachePadded<AtomicU64>; STRIPES]);

/// The number of the thread that comes next.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Not the number of a thread.
const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// The stripe of this thread.
    static STRIPE: Cell<usize> = const { Cell::new(UNKNOWN) };
}

/// The stripe of this thread.
#[inline]
fn stripe() -> usize {
    let known = STRIPE.get();
    if known < STRIPES { known } else { number_thread() }
}

#[cold]
fn number_thread() -> usize {
    let stripe = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    STRIPE.set(stripe);
    stripe
}

impl StripedCounter {
    /// Counts one more. In the order of all sequentially consistent operations, so that who has counted and then sees that
    /// nobody waits is counted by who waits afterwards.
    #[inline]
    pub(crate) fn add(&self) {
        self.0[stripe()].fetch_add(1, Ordering::SeqCst);
    }

    /// How many have been counted: at least those before this call, at most those before its end.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.load(Ordering::SeqCst)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_more_threads_count_than_there_are_stripes_is_counted_once() {
        let counter = StripedCounter::default();
        thread::scope(|scope| {
            for _ in 0..3 * STRIPES {
                scope.spawn(|| (0..100).for_each(|_| counter.add()));
            }
        });
        assert_eq!(counter.sum(), 300 * STRIPES as u64);
    }
}
