//! The scheduler: ports, crews, and a thread that steers how many threads each crew has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use crate::controller;
use crate::fusion_limit::FusionLimit;
use crate::port_queue::PortQueue;
use crate::state::{NO_POOL, PortState, SchedulerState};
use crate::submit::{CallerFusion, Full, InlineOutcome};
use crate::thread_pool::{PoolContext, RunningPool, ThreadPool};
use crate::work::{PortId, Work};
use crate::worker::Worker;

/// One port: how many items may wait at it, and the crew that serves it, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// From how many items on it takes no more from a source, and those before it wait.
    pub capacity: usize,
    /// The index of its crew.
    pub pool: usize,
    /// Whether its work never waits for anything. Such ports may be fused: a thread runs them in one go with those before
    /// them, which a thread that is stuck would hold too.
    pub nonblocking: bool,
}

/// What one crew is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// The crew's name.
    pub name: String,
    /// How many threads it should have.
    pub threads: usize,
    /// The most threads that it may have.
    pub threads_max: usize,
    /// How many items it has worked on since the start.
    pub items: u64,
    /// How many items wait at its ports.
    pub waiting: usize,
}

/// What one port is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The index of its crew.
    pub pool: usize,
    /// How many items wait at it.
    pub waiting: usize,
    /// How many may wait at it.
    pub capacity: usize,
}

/// Ports and the threads that serve them. Dropping it ends the threads; items that are not through are dropped.
pub struct Scheduler<W: Work> {
    shared: Arc<SchedulerState<W>>,
    /// Whether there is one processor only.
    single_processor: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    controller: Mutex<Option<controller::ControllerThread>>,
}

impl<W: Work> Scheduler<W> {
    /// Starts the threads, with nobody else busy: see [`Scheduler::start_with_producers`].
    ///
    /// # Errors
    /// Fails where the machine gives no more threads.
    ///
    /// # Panics
    /// Panics where a port names a crew that is not there, or a capacity or a crew's least number of threads is 0.
    pub fn start(work: W, ports: &[PortSettings], pools: Vec<ThreadPool>, period: Duration) -> std::io::Result<Self> {
        Scheduler::start_with_producers(0, work, ports, pools, period)
    }

    /// Starts the threads, where `producers` others are busy with putting items in. `period` is how often crews are steered, 50
    /// to 500 ms.
    ///
    /// # Errors
    /// Fails where the machine gives no more threads.
    ///
    /// # Panics
    /// Panics where a port names a crew that is not there, or a capacity or a crew's least number of threads is 0.
    pub fn start_with_producers(
        producers: usize,
        work: W,
        ports: &[PortSettings],
        pools: Vec<ThreadPool>,
        period: Duration,
    ) -> std::io::Result<Self> {
        let served = |pool: usize| ports.iter().filter(|port| port.pool == pool).count();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_controlled = pools.iter().any(|pool| pool.control.is_controlled());
        let setting = PoolContext { is_controlled, processors };
        let pools = pools.into_iter().enumerate();
        let pools: Vec<RunningPool> =
            pools.map(|(index, pool)| RunningPool::new(pool, served(index), setting)).collect();
        assert!(ports.iter().all(|port| port.pool < pools.len()), "a port names a pool that is not there");
        let oversubscribed = producers + threads_max(&pools) > processors;
        let port = |ports: &PortSettings| {
            let PortSettings { capacity, pool, nonblocking } = *ports;
            // Half empty, so that who waited does not have to wait again at once. Where threads outnumber processors, each
            // of them should do as much as it can once it has one.
            let low = if oversubscribed { 0 } else { capacity / 2 };
            let fusion_pool = if nonblocking { pool } else { NO_POOL };
            PortState { queue: PortQueue::new(capacity, low), pool, fusion_pool, fusion_limit: FusionLimit::new() }
        };
        let ports = ports.iter().map(port).collect();
        let shared = Arc::new(SchedulerState::new(work, ports, pools, (processors, oversubscribed)));
        let (threads, controller) = (Mutex::default(), Mutex::default());
        let scheduler = Scheduler { shared, single_processor: processors == 1, threads, controller };
        scheduler.start_threads()?;
        *scheduler.controller.lock() = controller::start(&scheduler.shared, period)?;
        Ok(scheduler)
    }

    fn start_threads(&self) -> std::io::Result<()> {
        for (pool, running) in self.shared.pools.iter().enumerate() {
            let threads = running.thread_target.load(Ordering::Relaxed);
            for (slot, state) in running.slots.iter().enumerate() {
                state.suspended.store(slot >= threads, Ordering::Release);
                let worker = Worker::new(self.shared.clone(), pool, slot);
                let thread = Builder::new().name(format!("weir-{}-{slot}", running.pool.name));
                let handle = thread.spawn(move || worker.run())?;
                // The seat is new, so that it has no thread yet.
                _ = state.thread.set(handle.thread().clone());
                self.threads.lock().push(handle);
            }
        }
        Ok(())
    }

    /// Puts an item in at a port.
    ///
    /// # Errors
    /// Gives the item back where the port has no room: see [`Scheduler::poll_room`].
    pub fn submit(&self, port: PortId, item: W::Item) -> Result<(), Full<W::Item>> {
        self.shared.submit(port, item)
    }

    /// Puts items in until there are no more. Where the crew of their ports is elastic and needs one thread only, the
    /// caller's thread works on them itself; see [`PortSettings::nonblocking`].
    ///
    /// # Errors
    /// Gives the first item back whose port has no room: see [`Scheduler::poll_room`]. Those after it are not taken.
    pub fn submit_all(
        &self,
        items: &mut impl Iterator<Item = (PortId, W::Item)>,
    ) -> Result<(), Full<(PortId, W::Item)>> {
        self.shared.submit_all(items)
    }

    /// Works on an item at a port right here, as [`Scheduler::submit_all`] would, without its ever being one: `run` makes it and
    /// runs it. `None` where this thread may not work at the port now; then it was not run. It is no batch: where `run` keeps
    /// something back for [`Work::after_batch`], it has to call that.
    #[inline]
    pub fn run_inline<R>(
        &self,
        port: PortId,
        run: impl FnOnce(&mut CallerFusion<'_, W>) -> InlineOutcome<W, R>,
    ) -> Option<R> {
        self.shared.run_inline(port, run)
    }

    /// Puts an item in at a port, beyond its capacity if need be: one that left the port to wait for something and comes
    /// back, and which nobody could give back to.
    pub fn resume(&self, port: PortId, item: W::Item) {
        if self.resume_deferred(port, item) {
            self.schedule(port);
        }
    }

    /// The same for a batch.
    pub fn resume_batch(&self, port: PortId, items: &mut Vec<W::Item>) {
        self.shared.add_in_flight(items.len());
        if self.shared.ports[port.0].queue.put_batch(items).must_schedule {
            self.shared.schedule(port.0);
        }
    }

    /// The same, but wakes nobody; where it says so, the port has to be handed over ([`Scheduler::schedule`]), and nothing at it
    /// is worked on before.
    #[must_use]
    pub fn resume_deferred(&self, port: PortId, item: W::Item) -> bool {
        self.shared.add_in_flight(1);
        self.shared.ports[port.0].queue.put(item).must_schedule
    }

    /// Hands a port over to its crew.
    pub fn schedule(&self, PortId(port): PortId) {
        self.shared.schedule(port);
    }

    /// The same, but works at the port right here first, where this thread may: as [`Scheduler::run_inline`] for items that are in
    /// the port. Not to be called from what is worked on.
    pub fn schedule_inline(&self, PortId(port): PortId) {
        self.shared.schedule_inline(port);
    }

    /// Whether there is one processor only, so that threads cannot work beside each other.
    #[must_use]
    pub fn is_single_processor(&self) -> bool {
        self.single_processor
    }

    /// Whether threads outnumber processors, so that who is woken holds up who woke it.
    #[must_use]
    pub fn is_oversubscribed(&self) -> bool {
        self.shared.oversubscribed
    }

    /// How many items a port has room for.
    #[must_use]
    pub fn room(&self, port: PortId) -> usize {
        self.shared.ports[port.0].queue.room()
    }

    /// Waits until a port has room. A waker is woken once; nothing is reserved.
    pub fn poll_room(&self, port: PortId, context: &Context<'_>) -> Poll<()> {
        let room = self.shared.ports[port.0].queue.has_room_or_wait(context.waker());
        if room { Poll::Ready(()) } else { Poll::Pending }
    }

    /// What is done at the ports.
    #[must_use]
    pub fn work(&self) -> &W {
        &self.shared.work
    }

    /// Holds this thread until everything that was put in is through.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// What a port is doing.
    #[must_use]
    pub fn queue_snapshot(&self, port: PortId) -> QueueSnapshot {
        let port = &self.shared.ports[port.0];
        QueueSnapshot { pool: port.pool, waiting: port.queue.len(), capacity: port.queue.capacity() }
    }

    /// Ends the threads, and waits until they have. What they have in hand is done; the rest stays where it is.
    pub fn close(&self) {
        let controller = self.controller.lock().take();
        controller.into_iter().for_each(|controller| controller.end(&self.shared));
        for running in &self.shared.pools {
            for slot in &running.slots {
                slot.ended.store(true, Ordering::Release);
                slot.thread.get().into_iter().for_each(std::thread::Thread::unpark);
            }
            running.idle.wake_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        // A thread that panicked has said so already.
        threads.into_iter().for_each(|thread| _ = thread.join());
    }

    /// What the crews are doing.
    #[must_use]
    pub fn pool_snapshots(&self) -> Vec<PoolSnapshot> {
        let pools = self.shared.pools.iter().enumerate();
        pools
            .map(|(index, running)| PoolSnapshot {
                name: running.pool.name.clone(),
                threads: running.thread_target.load(Ordering::Relaxed),
                threads_max: running.pool.control.threads_max(),
                items: running.items(),
                waiting: self.shared.waiting_items(index),
            })
            .collect()
    }
}

/// How many threads there may be.
fn threads_max(pools: &[RunningPool]) -> usize {
    pools.iter().map(|running| running.pool.control.threads_max()).sum()
}

impl<W: Work> Drop for Scheduler<W> {
    fn drop(&mut self) {
        self.close();
    }
}
