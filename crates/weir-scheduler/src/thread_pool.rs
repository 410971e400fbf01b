//! A crew: threads that share a list of ports which have work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;

use crate::idle_set::IdleSet;
use crate::ready_queue::ReadyQueue;
use crate::thread_count::ElasticSettings;

/// How a crew is made up.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPool {
    /// What it is called in the names of its threads and in snapshots.
    pub name: String,
    /// How the number of its threads is found.
    pub control: ThreadControl,
}

/// How the number of a crew's threads is found.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadControl {
    /// Always this many.
    Fixed(usize),
    /// By measured throughput: see [`crate::ThreadCountController`].
    Elastic(ElasticSettings),
    /// By the length of the queues, as the controllers of SEDA's stages do: one more where `queue_length` items wait at the
    /// end of a period, one fewer where none does.
    QueueLength {
        /// The fewest threads.
        threads_min: usize,
        /// The most threads.
        threads_max: usize,
        /// From how many waiting items on another thread is added.
        queue_length: usize,
    },
    /// Drawn anew each period, between one thread and as many as another control may ask for, whose crew it is otherwise.
    /// For tests: whatever the levels do, nothing may be lost, doubled or overtaken.
    Random {
        /// The other control.
        like: Box<ThreadControl>,
        /// Where the numbers begin: the same seed gives the same levels.
        seed: u64,
    },
}

impl ThreadControl {
    /// Whether the throughput decides.
    pub(crate) fn is_elastic(&self) -> bool {
        match self {
            ThreadControl::Elastic(_) => true,
            ThreadControl::Random { like, .. } => like.is_elastic(),
            ThreadControl::Fixed(_) | ThreadControl::QueueLength { .. } => false,
        }
    }

    /// Whether it is drawn.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, ThreadControl::Random { .. })
    }

    /// Whether somebody has to look after it.
    pub(crate) fn is_controlled(&self) -> bool {
        !matches!(self, ThreadControl::Fixed(_))
    }

    /// The most threads that it may ask for.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        match self {
            ThreadControl::Fixed(threads) => *threads,
            ThreadControl::Elastic(settings) => settings.threads_max,
            ThreadControl::QueueLength { threads_max, .. } => *threads_max,
            ThreadControl::Random { like, .. } => like.threads_max(),
        }
    }

    /// The number of threads that it begins with.
    #[must_use]
    pub fn threads_min(&self) -> usize {
        match self {
            ThreadControl::Fixed(threads) => *threads,
            ThreadControl::Elastic(settings) => settings.threads_min,
            ThreadControl::QueueLength { threads_min, .. } => *threads_min,
            ThreadControl::Random { .. } => 1,
        }
    }
}

/// What a crew works beside.
#[derive(Clone, Copy)]
pub(crate) struct PoolContext {
    /// Whether somebody looks after the crews.
    pub(crate) is_controlled: bool,
    /// How many threads the system runs at once. On a single one threads cannot work beside each other, whatever crew they
    /// are of; they can only hold each other up.
    pub(crate) processors: usize,
}

/// A crew at work.
pub(crate) struct RunningPool {
    pub(crate) pool: ThreadPool,
    /// The ports that have work, each at most once.
    pub(crate) ready: ReadyQueue,
    /// A line of cache of its own: who has work for the crew looks there each time.
    pub(crate) idle: CachePadded<IdleSet>,
    /// One for each thread that there may be.
    pub(crate) slots: Vec<CachePadded<WorkerSlot>>,
    /// That of the thread that puts items in, when it works on them itself.
    pub(crate) caller_slot: CachePadded<WorkerSlot>,
    /// Whether who puts items in may work on them itself while the crew needs one thread only.
    pub(crate) allows_caller_runs: bool,
    /// Whether its one thread is always alone: no guest comes, and nobody puts another in the place of one that is stuck.
    pub(crate) is_always_exclusive: bool,
    /// How many threads there should be, threads that are stuck in a port's work not counted.
    pub(crate) thread_target: AtomicUsize,
}

/// What a thread shares with those who steer it; nobody else touches it on the way, so that no line of cache is shared.
#[derive(Default)]
pub(crate) struct WorkerSlot {
    /// Told to stop at the next port. Written by the steering thread.
    pub(crate) suspended: AtomicBool,
    /// Told to end at the next port. Written by the steering thread.
    pub(crate) ended: AtomicBool,
    /// How many items it has worked on. Written by the thread.
    pub(crate) items: AtomicU64,
    /// Odd while it works on a port, even while it looks for one. Written by the thread.
    pub(crate) epoch: AtomicU64,
    pub(crate) thread: OnceLock<Thread>,
}

impl WorkerSlot {
    /// So many items more were worked on. By the thread alone.
    #[inline]
    pub(crate) fn add_items(&self, items: u64) {
        self.items.store(self.items.load(Ordering::Relaxed) + items, Ordering::Relaxed);
    }
}

impl RunningPool {
    pub(crate) fn new(pool: ThreadPool, ports: usize, setting: PoolContext) -> Self {
        let threads = pool.control.threads_min();
        assert!(threads > 0, "the pool {} has no threads", pool.name);
        // Threads that are stuck are replaced, so that there are twice as many seats as threads.
        let slots = (0..pool.control.threads_max() * 2).map(|_| CachePadded::default()).collect();
        let (ready, idle) = (ReadyQueue::new(ports), CachePadded::new(IdleSet::new()));
        let allows_caller_runs = pool.control.is_elastic() || setting.processors == 1;
        let is_always_exclusive =
            pool.control == ThreadControl::Fixed(1) && !setting.is_controlled && !allows_caller_runs;
        let (caller_slot, thread_target) = (CachePadded::default(), AtomicUsize::new(threads));
        RunningPool { pool, ready, idle, slots, caller_slot, allows_caller_runs, is_always_exclusive, thread_target }
    }

    /// Whether there should be one thread only.
    pub(crate) fn has_one_thread(&self) -> bool {
        self.thread_target.load(Ordering::Relaxed) == 1
    }

    /// Hands a port to whoever comes first.
    pub(crate) fn schedule(&self, port: usize) {
        self.ready.push(port);
        self.idle.wake();
    }

    /// How many items its threads have worked on.
    pub(crate) fn items(&self) -> u64 {
        let slots = self.slots.iter().chain([&self.caller_slot]);
        slots.map(|slot| slot.items.load(Ordering::Relaxed)).sum()
    }
}
