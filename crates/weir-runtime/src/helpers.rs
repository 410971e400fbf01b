//! Helpers: the threads that run forks on cores that are otherwise idle.
//!
//! The threads of an engine say when they begin and end to rest ([`CoreUse`]), so that a core is known to be idle without
//! asking the system. A fork is offered only while the working threads and the helpers are fewer than the cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use tokio::runtime::Handle;

use crate::blocking_pool::BlockingPool;
use crate::platform::Platform;

/// The number of cores, and of threads of the engine that work on one.
pub(crate) struct CoreUse {
    cores: usize,
    working: CachePadded<AtomicUsize>,
}

impl CoreUse {
    /// Returns the use of this number of cores, on which no thread works.
    pub(crate) fn new(cores: usize) -> Arc<CoreUse> {
        Arc::new(CoreUse { cores, working: CachePadded::default() })
    }

    /// Notes that a thread begins to work.
    pub(crate) fn begin(&self) {
        self.working.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a thread begins to rest.
    pub(crate) fn rest(&self) {
        self.working.fetch_sub(1, Ordering::Relaxed);
    }

    /// Runs something on this thread, which rested before and rests afterwards.
    pub(crate) fn working<R>(&self, work: impl FnOnce() -> R) -> R {
        self.begin();
        let result = work();
        self.rest();
        result
    }

    /// Runs what this thread waits in, during which it rests.
    pub(crate) fn resting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.rest();
        let result = wait();
        self.begin();
        result
    }
}

/// The rule by which flows use several cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPolicy {
    /// The plan's: if a core is idle, and the rounds that are left seem to take long enough.
    #[default]
    AsPlanned,
    /// At every safe point, whatever it costs. For tests: no fork may change an answer.
    Always,
    /// At every safe point, and flows wait for helpers that have not begun what they were offered. For tests, too: flows are
    /// often faster than helpers.
    AlwaysOnHelpers,
    /// At every safe point; of the forks every other one is run at once, by the thread that offers it, and the others are left
    /// to be taken back. For tests of very many programs, too: nothing depends on the speed of threads, and none starts.
    AlwaysInPlace,
}

/// The threads that run forks.
pub(crate) struct Helpers {
    pool: BlockingPool,
    /// The number of forks that run at a time; 0 if flows are not forked.
    most: usize,
    counts: Arc<ForkCounts>,
    policy: ForkPolicy,
    pub(crate) cores: Arc<CoreUse>,
}

/// The numbers of forks. Hints: all accesses are relaxed.
#[derive(Default)]
struct ForkCounts {
    /// The forks that run, without those that wait for forks of their own.
    running: AtomicUsize,
    /// The forks that were offered and that no helper has taken up.
    offered: AtomicUsize,
}

/// The number of threads for each fork that may run at a time. Chosen by judgement: a helper that waits for a fork of its own
/// leaves its place to another thread, which is rare, and without a thread a fork is run by the flow that has offered it.
const THREADS_PER_FORK: usize = 4;

/// The number of forks that a test offers at a time.
const OFFERED_MAX: usize = 16;

impl Helpers {
    /// Returns helpers for at most this many forks at a time. Their threads start when they are needed.
    pub(crate) fn new(most: usize, policy: ForkPolicy, cores: usize, platform: &Arc<dyn Platform>) -> Helpers {
        Helpers {
            pool: BlockingPool::new("helper", THREADS_PER_FORK * most.max(1), platform),
            most,
            counts: Arc::default(),
            policy,
            cores: CoreUse::new(cores),
        }
    }

    /// Returns true if flows may be forked.
    pub(crate) fn has_any(&self) -> bool {
        self.most > 0
    }

    /// Returns true if a core is idle. A hint: two flows may see the same core.
    pub(crate) fn want_work(&self) -> bool {
        let offered = self.counts.offered.load(Ordering::Relaxed);
        if self.fork_always() {
            return offered < OFFERED_MAX;
        }
        let running = self.counts.running.load(Ordering::Relaxed);
        let busy = running + self.cores.working.load(Ordering::Relaxed);
        offered == 0 && running < self.most && busy < self.cores.cores
    }

    /// Returns true if forks are made whatever they cost.
    pub(crate) fn fork_always(&self) -> bool {
        self.policy != ForkPolicy::AsPlanned
    }

    /// Returns true if flows leave what they have offered to helpers.
    pub(crate) fn keep_offers(&self) -> bool {
        self.policy == ForkPolicy::AlwaysOnHelpers
    }

    /// Offers a fork, which a helper runs inside the runtime of this event loop.
    pub(crate) fn offer(&self, event_loop: &Handle, run: impl FnOnce() + Send + 'static) {
        let counts = Arc::clone(&self.counts);
        if self.policy == ForkPolicy::AlwaysInPlace {
            if counts.running.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                run();
            }
            return;
        }
        counts.offered.fetch_add(1, Ordering::Relaxed);
        let job = move || {
            counts.offered.fetch_sub(1, Ordering::Relaxed);
            counts.running.fetch_add(1, Ordering::Relaxed);
            run();
            counts.running.fetch_sub(1, Ordering::Relaxed);
        };
        self.pool.add(event_loop, Box::new(job));
    }

    /// Runs what a helper waits in. Another helper may take its place meanwhile.
    pub(crate) fn resting(&self, wait: impl FnOnce()) {
        self.counts.running.fetch_sub(1, Ordering::Relaxed);
        wait();
        self.counts.running.fetch_add(1, Ordering::Relaxed);
    }
}
