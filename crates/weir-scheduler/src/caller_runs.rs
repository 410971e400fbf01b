//! The thread that puts items in, as a worker: how long its items hold it up, and when it leaves them to others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::work::Work;
use crate::worker_local::{BATCH, WorkerLocal};

/// The mean time for an item from which on the source is held up: a queue is cheap against that.
const ITEM_TIME_MAX: Duration = Duration::from_micros(20);
/// After having been held up, the source keeps to queues for so many items at first.
const BACKOFF_MIN: u32 = 256;
/// And for so many at most.
const BACKOFF_MAX: u32 = 1 << 20;

/// The thread that puts items in, as a worker of the crew. Its words are for who has the right to work alone there, so that
/// nothing of them is exchanged; who reads one without may be late.
pub(crate) struct CallerRuns<W: Work> {
    /// Nobody waits for them: who takes them works alone.
    pub(crate) local: Mutex<WorkerLocal<W>>,
    /// How many items it brings before it looks how long they take: few, while that is not known.
    chunk: OwnedCounter,
    /// How many more it brings one by one before it looks around.
    unchecked: OwnedCounter,
    /// How often an item was worked on since that was last told.
    runs: OwnedCounter,
    /// For how many items more it keeps to queues.
    backoff: OwnedCounter,
    backoff_next: OwnedCounter,
}

/// A number that one thread at a time uses.
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

    /// Whether it may work itself on the next so many items, as far as it knows.
    #[inline]
    pub(crate) fn may_run_inline(&self, items: u32) -> bool {
        let backoff = self.backoff.get();
        if backoff > 0 {
            self.backoff.set(backoff.saturating_sub(items));
        }
        backoff <= items
    }

    /// How many items it is to bring before it looks how long they took.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk.get() as usize
    }

    /// Whether it is to look around before it brings one more item: whether it may still work, and how long that takes.
    #[inline]
    pub(crate) fn is_check_due(&self) -> bool {
        self.unchecked.get() == 0
    }

    /// It is to look around before the next item.
    pub(crate) fn check_next(&self) {
        self.unchecked.set(0);
    }

    /// It has brought an item by itself, which was worked on so often.
    #[inline]
    pub(crate) fn ran_inline(&self, runs: u32) {
        self.unchecked.set(self.unchecked.get().wrapping_sub(1));
        self.runs.set(self.runs.get() + runs);
    }

    /// It has looked how long an item took that it has brought by itself; yields how often items were worked on since it
    /// last did.
    pub(crate) fn checked(&self, took: Duration) -> u64 {
        self.adapt(took);
        self.unchecked.set(if self.backoff.get() > 0 { 0 } else { self.chunk.get() - 1 });
        let runs = self.runs.get();
        self.runs.set(0);
        u64::from(runs)
    }

    /// Learns how long an item took.
    pub(crate) fn adapt(&self, took: Duration) {
        let chunk = self.chunk.get();
        if took > ITEM_TIME_MAX && chunk > 1 {
            // The system may have taken the processor away: the next item tells more.
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
