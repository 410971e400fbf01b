//! What all threads of a scheduler share: the ports, the crews, and how many items are under way.

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

/// Not the index of a crew.
pub(crate) const NO_POOL: usize = usize::MAX;

/// A port at work.
pub(crate) struct PortState<T> {
    pub(crate) queue: PortQueue<T>,
    pub(crate) pool: usize,
    /// The crew whose threads may run it in one go with other ports: its own, or [`NO_POOL`].
    pub(crate) fusion_pool: usize,
    pub(crate) fusion_limit: FusionLimit,
}

impl<T> PortState<T> {
    /// Whether threads may run it in one go with other ports.
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.fusion_pool != NO_POOL
    }

    /// Whether a thread that has the crew to itself may run it now.
    #[inline]
    pub(crate) fn is_free(&self, pool: usize) -> bool {
        self.fusion_pool == pool && !self.queue.is_scheduled()
    }
}

/// What all threads share.
pub(crate) struct SchedulerState<W: Work> {
    pub(crate) work: W,
    pub(crate) ports: Vec<PortState<W::Item>>,
    pub(crate) pools: Vec<RunningPool>,
    /// Whether there may be more threads than processors.
    pub(crate) oversubscribed: bool,
    /// How many threads the system runs at once.
    processors: usize,
    /// By crew: who works there.
    pub(crate) modes: Vec<CachePadded<ModeLock>>,
    /// By crew: who puts items in, and is a guest of the crew while it works alone.
    pub(crate) callers: Vec<CachePadded<CallerRuns<W>>>,
    /// The first elastic crew, whose guests bring items in batches.
    pub(crate) elastic_pool: Option<usize>,
    /// Whether who steers rests; read by everybody who takes something up.
    pub(crate) controller: CachePadded<ControllerParking>,
    /// How many items have been put in and are not through. Many threads write it, and read what is around it.
    in_flight: CachePadded<AtomicUsize>,
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

    /// So many items more are put in.
    pub(crate) fn add_in_flight(&self, count: usize) {
        self.in_flight.fetch_add(count, Ordering::AcqRel);
    }

    /// How many items have been put in and are not through.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Has who steers rest until something is put in or `is_ended`.
    pub(crate) fn park_controller(&self, is_ended: impl Fn() -> bool) {
        self.controller.park_unless(|| ControllerParking::read_in_flight(&self.in_flight) > 0 || is_ended());
    }

    /// Holds this thread until everything that was put in is through.
    pub(crate) fn drain(&self) {
        let mut guard = self.drained.0.lock();
        while self.in_flight() > 0 {
            self.drained.1.wait(&mut guard);
        }
    }

    pub(crate) fn schedule(&self, port: usize) {
        self.pools[self.ports[port].pool].schedule(port);
    }

    /// So many items are through.
    pub(crate) fn finish(&self, count: usize) {
        if count > 0 && self.in_flight.fetch_sub(count, Ordering::AcqRel) == count {
            // Who waits checks under this lock, so that the last item cannot slip between its check and its wait.
            drop(self.drained.0.lock());
            self.drained.1.notify_all();
        }
    }

    /// Whether the crew should have as many threads as there are processors.
    pub(crate) fn uses_all_processors(&self, pool: usize) -> bool {
        self.pools[pool].thread_target.load(Ordering::Relaxed) >= self.processors
    }

    /// How many items wait at the ports of a crew.
    pub(crate) fn waiting_items(&self, pool: usize) -> usize {
        self.ports.iter().filter(|port| port.pool == pool).map(|port| port.queue.len()).sum()
    }
}
