//! A striped counter: many threads add to it, each usually to a stripe of its own, and few read it.
//!
//! A word that two threads write moves between their caches with every flow, which takes longer than a short flow.
//! Threads are therefore numbered when they first count, and each uses the stripe of its number; threads beyond the
//! number of stripes share one. These numbers choose a stripe and nothing else: no behaviour of a program depends on
//! them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

/// The number of stripes of a counter. Chosen by judgement: more than the threads that usually write one counter, at a
/// cache line each.
pub(crate) const STRIPES: usize = 8;

/// The counter.
#[derive(Default)]
pub(crate) struct StripedCounter([CachePadded<AtomicU64>; STRIPES]);

/// The number of the thread that counts next for the first time.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Stands for a thread without a number.
const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// Returns the stripe of this thread.
    static STRIPE: Cell<usize> = const { Cell::new(UNKNOWN) };
}

/// Returns the stripe of this thread.
#[inline]
pub(crate) fn stripe() -> usize {
    // Inlined, unlike `get`.
    let known = STRIPE.try_with(Cell::get).unwrap_or(UNKNOWN);
    if known < STRIPES { known } else { number_thread() }
}

#[cold]
fn number_thread() -> usize {
    let stripe = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    STRIPE.set(stripe);
    stripe
}

impl StripedCounter {
    /// Adds one, with `SeqCst`: if a thread counts and then reads that no task waits, every task that begins to wait
    /// afterwards sees the count.
    #[inline]
    pub(crate) fn add(&self) {
        self.0[stripe()].fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the count: at least that of the beginning of this call, at most that of its end.
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
