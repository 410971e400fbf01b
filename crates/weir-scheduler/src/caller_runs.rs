//! Caller-runs policy: when a producing thread executes its items inline, and when it backs off to the queues.
//!
//! Inline execution is the cheapest way to run a short item, but a long item keeps its producer from producing. The
//! policy measures the mean time per item. One measurement above [`ITEM_TIME_MAX`] makes it measure the next item by
//! itself, because the system may have preempted the thread; a second one in a row makes the producer use the queues
//! for [`BACKOFF_MIN`] items, and for twice as many each time, up to [`BACKOFF_MAX`] (exponential backoff).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::work::Work;
use crate::worker_local::{BATCH, WorkerLocal};

/// The mean time per item above which the producer leaves its items to the pool. Chosen by judgement: the 131 to 156 ns
/// of a hop between two threads (`bench-operators --hops`) are less than 1 % of it.
const ITEM_TIME_MAX: Duration = Duration::from_micros(20);
/// The number of items that are queued after the first backoff. Chosen by judgement: four batches, long enough for a
/// measurement of the pool's own thread, and soon over if the long items were an exception.
const BACKOFF_MIN: u32 = 256;
/// The maximum number of items that are queued after a backoff. Chosen by judgement: one measurement per million items
/// costs nothing, and a producer whose items become short again notices it.
const BACKOFF_MAX: u32 = 1 << 20;

/// State of the caller-runs policy of one pool.
///
/// Its counters belong to the thread that has exclusive mode in the pool, so that they need no read-modify-write. A
/// thread that reads one without exclusive mode may see an old value.
pub(crate) struct CallerRuns<W: Work> {
    /// The worker-local state of the caller. The mutex is never contended: its users are in exclusive mode.
    pub(crate) local: Mutex<WorkerLocal<W>>,
    /// The number of items between two measurements: 1 while the time per item is unknown, then doubled up to a batch.
    chunk: OwnedCounter,
    /// The number of items that may still run inline before the next check.
    unchecked: OwnedCounter,
    /// Executions since they were last added to the pool's item count.
    runs: OwnedCounter,
    /// The number of items that are still to be queued.
    backoff: OwnedCounter,
    /// The number of items that the next backoff queues.
    backoff_next: OwnedCounter,
}

/// A counter that one thread at a time uses: relaxed loads and stores suffice, because the mode lock hands the access
/// over.
struct OwnedCounter(AtomicU32);

impl OwnedCounter {
    const fn new(value: u32) -> Self {
        OwnedCounter(AtomicU32::new(value))
    }

    #[inline]
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl<W: Work> CallerRuns<W> {
    pub(crate) fn new(pool: usize) -> Self {
        CallerRuns {
            local: Mutex::new(WorkerLocal::new(pool)),
            chunk: OwnedCounter::new(1),
            unchecked: OwnedCounter::new(0),
            runs: OwnedCounter::new(0),
            backoff: OwnedCounter::new(0),
            backoff_next: OwnedCounter::new(BACKOFF_MIN),
        }
    }

    /// Returns whether the caller may execute the next `items` items inline, and counts them against the backoff
    /// otherwise.
    #[inline]
    pub(crate) fn may_run_inline(&self, items: u32) -> bool {
        let backoff = self.backoff.get();
        if backoff > 0 {
            self.backoff.set(backoff.saturating_sub(items));
        }
        backoff <= items
    }

    /// Returns the number of items to execute before the time per item is measured.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk.get() as usize
    }

    /// Returns whether a check is due before the next inline execution. A check asks whether the pool still admits a
    /// caller, and measures the time of the item.
    #[inline]
    pub(crate) fn is_check_due(&self) -> bool {
        self.unchecked.get() == 0
    }

    /// Makes a check due before the next inline execution.
    pub(crate) fn check_next(&self) {
        self.unchecked.set(0);
    }

    /// Records one item that was executed inline, with the number of ports that it passed.
    #[inline]
    pub(crate) fn ran_inline(&self, runs: u32) {
        self.unchecked.set(self.unchecked.get().wrapping_sub(1));
        self.runs.set(self.runs.get() + runs);
    }

    /// Records the time of a checked item. Returns the number of executions since the last check.
    pub(crate) fn checked(&self, took: Duration) -> u64 {
        self.adapt(took);
        self.unchecked.set(if self.backoff.get() > 0 { 0 } else { self.chunk.get() - 1 });
        let runs = self.runs.get();
        self.runs.set(0);
        u64::from(runs)
    }

    /// Adapts the distance between measurements, or starts a backoff, after a measured time per item.
    pub(crate) fn adapt(&self, took: Duration) {
        let chunk = self.chunk.get();
        if took > ITEM_TIME_MAX && chunk > 1 {
            // The system may have preempted this thread: measure the next item by itself.
            self.chunk.set(1);
        } else if took > ITEM_TIME_MAX {
            let next = self.backoff_next.get();
            self.backoff.set(next);
            self.backoff_next.set((next * 2).min(BACKOFF_MAX));
        } else if chunk < BATCH as u32 {
            self.chunk.set(chunk * 2);
        } else {
            self.backoff_next.set(BACKOFF_MIN);
        }
    }
}
