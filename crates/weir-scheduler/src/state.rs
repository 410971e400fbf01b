//! State that all threads of a scheduler share: ports, thread pools, and the number of items in flight.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};

use crate::caller_runs::CallerRuns;
use crate::controller_parking::ControllerParking;
use crate::execution_mode::ModeLock;
use crate::fusion_limit::FusionLimit;
use crate::port_queue::PortQueue;
use crate::thread_pool::RunningPool;
use crate::work::Work;

/// The `fusion_pool` of a port that no pool may fuse.
pub(crate) const NO_POOL: usize = usize::MAX;

/// State of one port.
pub(crate) struct PortState<T> {
    pub(crate) queue: PortQueue<T>,
    /// The index of the pool that serves it.
    pub(crate) pool: usize,
    /// The pool whose threads may fuse it with other ports: its own, or [`NO_POOL`] if its work may block.
    pub(crate) fusion_pool: usize,
    pub(crate) fusion_limit: FusionLimit,
}

impl<T> PortState<T> {
    /// Returns whether its work never blocks, so that it may be fused.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.fusion_pool != NO_POOL
    }

    /// Returns whether a thread that is in exclusive mode in `pool` may run it now.
    #[inline]
    pub(crate) fn is_free(&self, pool: usize) -> bool {
        self.fusion_pool == pool && !self.queue.is_scheduled()
    }
}

/// State that all threads of a scheduler share.
pub(crate) struct SchedulerState<W: Work> {
    pub(crate) work: W,
    pub(crate) ports: Vec<PortState<W::Item>>,
    pub(crate) pools: Vec<RunningPool>,
    /// True if there may be more threads than processors.
    pub(crate) oversubscribed: bool,
    /// The number of threads that the system runs at once.
    processors: usize,
    /// The mode lock of every pool.
    pub(crate) modes: Vec<CachePadded<ModeLock>>,
    /// The caller-runs policy of every pool.
    pub(crate) callers: Vec<CachePadded<CallerRuns<W>>>,
    /// The first elastic pool, to which batches are submitted inline.
    pub(crate) elastic_pool: Option<usize>,
    /// The parking place of the controller. Read by every worker that takes up a port.
    pub(crate) controller: CachePadded<ControllerParking>,
    /// The items that were submitted and are not finished. On a cache line of its own, because all threads write it.
    in_flight: CachePadded<AtomicUsize>,
    /// Notified when `in_flight` becomes 0.
    drained: (Mutex<()>, Condvar),
}

impl<W: Work> SchedulerState<W> {
    pub(crate) fn new(
        work: W,
        ports: Vec<PortState<W::Item>>,
        pools: Vec<RunningPool>,
        (processors, oversubscribed): (usize, bool),
    ) -> Self {
        let elastic_pool = pools.iter().position(|running| running.pool.control.is_elastic());
        let modes = pools.iter().map(|_| CachePadded::new(ModeLock::new())).collect();
        let callers = (0..pools.len()).map(|pool| CachePadded::new(CallerRuns::new(pool))).collect();
        let drained = (Mutex::new(()), Condvar::new());
        let (in_flight, controller) = (CachePadded::default(), CachePadded::new(ControllerParking::new()));
        SchedulerState {
            work,
            ports,
            pools,
            oversubscribed,
            processors,
            modes,
            callers,
            elastic_pool,
            controller,
            in_flight,
            drained,
        }
    }

    /// Returns the platform that the work runs on.
    #[inline]
    pub(crate) fn platform(&self) -> &W::WorkPlatform {
        self.work.platform()
    }

    /// Counts items that are about to be submitted.
    pub(crate) fn add_in_flight(&self, count: usize) {
        self.in_flight.fetch_add(count, Ordering::AcqRel);
    }

    /// Returns the number of items that were submitted and are not finished.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Parks the controller until an item is taken up, unless an item is in flight or `is_ended` returns true.
    pub(crate) fn park_controller(&self, is_ended: impl Fn() -> bool) {
        self.controller.park_unless(|| ControllerParking::read_in_flight(&self.in_flight) > 0 || is_ended());
    }

    /// Blocks this thread until no item is in flight.
    pub(crate) fn drain(&self) {
        let mut guard = self.drained.0.lock();
        while self.in_flight() > 0 {
            self.drained.1.wait(&mut guard);
        }
    }

    /// Pushes a port to the ready queue of its pool, and wakes a worker.
    pub(crate) fn schedule(&self, port: usize) {
        self.pools[self.ports[port].pool].schedule(port);
    }

    /// Counts items that are finished.
    pub(crate) fn finish(&self, count: usize) {
        if count > 0 && self.in_flight.fetch_sub(count, Ordering::AcqRel) == count {
            // A thread in `drain` checks with this mutex held, so that the last item cannot finish between its check
            // and its wait.
            drop(self.drained.0.lock());
            self.drained.1.notify_all();
        }
    }

    /// Returns whether the pool should have as many threads as there are processors.
    pub(crate) fn uses_all_processors(&self, pool: usize) -> bool {
        self.pools[pool].thread_target.load(Ordering::Relaxed) >= self.processors
    }

    /// Returns the number of items in the queues of a pool.
    pub(crate) fn waiting_items(&self, pool: usize) -> usize {
        self.ports.iter().filter(|port| port.pool == pool).map(|port| port.queue.len()).sum()
    }
}
