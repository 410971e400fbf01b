//! Thread pool: the workers that serve a set of ports, with their ready queue and idle set.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;

use crate::idle_set::IdleSet;
use crate::ready_queue::ReadyQueue;
use crate::thread_count::ElasticSettings;

/// Configuration of a thread pool.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPool {
    /// Its name in thread names and snapshots.
    pub name: String,
    /// The policy for the number of its threads.
    pub control: ThreadControl,
}

/// Policy for the number of threads of a pool.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadControl {
    /// A constant number.
    Fixed(usize),
    /// By measured throughput: see [`crate::ThreadCountController`].
    Elastic(ElasticSettings),
    /// By queue length, as in the stages of SEDA: one thread more if `queue_length` items wait at the end of a period,
    /// one fewer if none does.
    QueueLength {
        /// The minimum number of threads.
        threads_min: usize,
        /// The maximum number of threads.
        threads_max: usize,
        /// The number of waiting items from which on a thread is added.
        queue_length: usize,
    },
    /// A new random number each period, between 1 and the maximum of another policy, whose properties apply otherwise.
    /// For tests: whatever the number of threads does, no item may be lost, duplicated or overtaken.
    Random {
        /// The other policy.
        like: Box<ThreadControl>,
        /// The seed: equal seeds give equal numbers.
        seed: u64,
    },
}

impl ThreadControl {
    /// Returns whether measured throughput decides.
    pub(crate) fn is_elastic(&self) -> bool {
        match self {
            ThreadControl::Elastic(_) => true,
            ThreadControl::Random { like, .. } => like.is_elastic(),
            ThreadControl::Fixed(_) | ThreadControl::QueueLength { .. } => false,
        }
    }

    /// Returns whether the number is random.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, ThreadControl::Random { .. })
    }

    /// Returns whether the controller adjusts the pool.
    pub(crate) fn is_controlled(&self) -> bool {
        !matches!(self, ThreadControl::Fixed(_))
    }

    /// Returns the largest number of threads.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        match self {
            ThreadControl::Fixed(threads) => *threads,
            ThreadControl::Elastic(settings) => settings.threads_max,
            ThreadControl::QueueLength { threads_max, .. } => *threads_max,
            ThreadControl::Random { like, .. } => like.threads_max(),
        }
    }

    /// Returns the number of threads at the start.
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

/// The properties of the system and the scheduler that a pool depends on.
#[derive(Clone, Copy)]
pub(crate) struct PoolContext {
    /// True if the controller thread runs.
    pub(crate) is_controlled: bool,
    /// The number of threads that the system runs at once. On one processor, threads of different pools can only delay
    /// each other.
    pub(crate) processors: usize,
}

/// State of a thread pool.
pub(crate) struct RunningPool {
    /// Its configuration.
    pub(crate) pool: ThreadPool,
    /// The ports that have work, each at most once.
    pub(crate) ready: ReadyQueue,
    /// Its sleeping workers. On a cache line of its own: every thread that has work for the pool reads it.
    pub(crate) idle: CachePadded<IdleSet>,
    /// One slot for each worker.
    pub(crate) slots: Vec<CachePadded<WorkerSlot>>,
    /// The slot of a producer that executes items inline.
    pub(crate) caller_slot: CachePadded<WorkerSlot>,
    /// True if a producer may execute items inline while the pool needs one thread.
    pub(crate) allows_caller_runs: bool,
    /// True if the pool's one worker is always alone: it has no callers, and is not replaced when it is stuck.
    pub(crate) is_always_exclusive: bool,
    /// The number of threads that should work. Stuck threads are not counted.
    pub(crate) thread_target: AtomicUsize,
}

/// Worker slot: the words that a worker shares with the controller. No other thread uses them, so that their cache line
/// stays with the worker.
#[derive(Default)]
pub(crate) struct WorkerSlot {
    /// True if the worker has to stop at the next port. Written by the controller.
    pub(crate) suspended: AtomicBool,
    /// True if the worker has to end at the next port. Written by the thread that closes the scheduler.
    pub(crate) ended: AtomicBool,
    /// The number of executed items. Written by the worker.
    pub(crate) items: AtomicU64,
    /// Odd while the worker runs a batch, even while it looks for work. Written by the worker.
    pub(crate) epoch: AtomicU64,
    /// The worker's thread, once it has been started.
    pub(crate) thread: OnceLock<Thread>,
}

impl WorkerSlot {
    /// Counts executed items. Called by the worker only, so that a relaxed load and store suffice.
    #[inline]
    pub(crate) fn add_items(&self, items: u64) {
        self.items.store(self.items.load(Ordering::Relaxed) + items, Ordering::Relaxed);
    }
}

impl RunningPool {
    /// Creates the state of a pool that serves `ports` ports.
    pub(crate) fn new(pool: ThreadPool, ports: usize, setting: PoolContext) -> Self {
        let threads = pool.control.threads_min();
        assert!(threads > 0, "the pool {} has no threads", pool.name);
        // A stuck worker is replaced by another one, so that there are twice as many workers as threads.
        let slots = (0..pool.control.threads_max() * 2).map(|_| CachePadded::default()).collect();
        let (ready, idle) = (ReadyQueue::new(ports), CachePadded::new(IdleSet::new()));
        let allows_caller_runs = pool.control.is_elastic() || setting.processors == 1;
        let is_always_exclusive =
            pool.control == ThreadControl::Fixed(1) && !setting.is_controlled && !allows_caller_runs;
        let (caller_slot, thread_target) = (CachePadded::default(), AtomicUsize::new(threads));
        RunningPool { pool, ready, idle, slots, caller_slot, allows_caller_runs, is_always_exclusive, thread_target }
    }

    /// Returns whether one thread should work.
    pub(crate) fn has_one_thread(&self) -> bool {
        self.thread_target.load(Ordering::Relaxed) == 1
    }

    /// Pushes a port to the ready queue, and wakes a sleeping worker.
    pub(crate) fn schedule(&self, port: usize) {
        self.ready.push(port);
        self.idle.wake();
    }

    /// Returns the number of items that the pool has executed.
    pub(crate) fn items(&self) -> u64 {
        let slots = self.slots.iter().chain([&self.caller_slot]);
        slots.map(|slot| slot.items.load(Ordering::Relaxed)).sum()
    }
}
