//! Scheduler: the public interface to ports, thread pools and the controller.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use crate::controller;
use crate::fusion_limit::FusionLimit;
use crate::platform::SchedulerPlatform;
use crate::port_queue::PortQueue;
use crate::state::{NO_POOL, PortState, SchedulerState};
use crate::submit::{CallerFusion, Full, InlineOutcome};
use crate::thread_pool::{PoolContext, RunningPool, ThreadPool};
use crate::work::{PortId, Work};
use crate::worker::Worker;

/// Configuration of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// The number of waiting items from which on the port refuses items of sources, and ports before it wait.
    pub capacity: usize,
    /// The index of the pool that serves it.
    pub pool: usize,
    /// True if its work never blocks. Such ports may be fused: a thread runs them together with those before them, all
    /// of which a blocked thread would hold.
    pub nonblocking: bool,
}

/// A snapshot of the state of a thread pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// The pool's name.
    pub name: String,
    /// The number of threads that should work.
    pub threads: usize,
    /// The largest number of threads.
    pub threads_max: usize,
    /// The number of items executed since the start.
    pub items: u64,
    /// The number of items that wait at its ports.
    pub waiting: usize,
}

/// A snapshot of the state of a port's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The index of the port's pool.
    pub pool: usize,
    /// The number of waiting items.
    pub waiting: usize,
    /// The number of items from which on the port is full.
    pub capacity: usize,
}

/// Ports and the threads that serve them. Dropping it ends the threads, and drops the items that are not finished.
pub struct Scheduler<W: Work> {
    shared: Arc<SchedulerState<W>>,
    /// True on a system with one processor.
    single_processor: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The controller thread, while it runs.
    controller: Mutex<Option<controller::ControllerThread>>,
}

impl<W: Work> Scheduler<W> {
    /// Starts the threads, assuming that no other thread produces items. See [`Scheduler::start_with_producers`].
    ///
    /// # Errors
    /// Fails if the system does not start another thread.
    ///
    /// # Panics
    /// Panics if a port names a pool that does not exist, or if a capacity or a pool's number of threads is 0.
    pub fn start(work: W, ports: &[PortSettings], pools: Vec<ThreadPool>, period: Duration) -> std::io::Result<Self> {
        Scheduler::start_with_producers(0, work, ports, pools, period)
    }

    /// Starts the threads, beside `producers` other threads that produce items. The controller measures the pools once
    /// per `period`, 50 to 500 ms.
    ///
    /// # Errors
    /// Fails if the system does not start another thread.
    ///
    /// # Panics
    /// Panics if a port names a pool that does not exist, or if a capacity or a pool's number of threads is 0.
    pub fn start_with_producers(
        producers: usize,
        work: W,
        ports: &[PortSettings],
        pools: Vec<ThreadPool>,
        period: Duration,
    ) -> std::io::Result<Self> {
        let served = |pool: usize| ports.iter().filter(|port| port.pool == pool).count();
        let processors = work.platform().processors();
        let is_controlled = pools.iter().any(|pool| pool.control.is_controlled());
        let setting = PoolContext { is_controlled, processors };
        let pools = pools.into_iter().enumerate();
        let pools: Vec<RunningPool> =
            pools.map(|(index, pool)| RunningPool::new(pool, served(index), setting)).collect();
        assert!(ports.iter().all(|port| port.pool < pools.len()), "a port names a pool that is not there");
        let oversubscribed = producers + threads_max(&pools) > processors;
        let port = |ports: &PortSettings| {
            let PortSettings { capacity, pool, nonblocking } = *ports;
            // Half the capacity, so that a released waiter does not wait again at once. If threads outnumber
            // processors, each of them should do as much as it can while it has one: the queue is emptied first.
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
                // The slot is new, so that it has no thread yet.
                _ = state.thread.set(handle.thread().clone());
                self.threads.lock().push(handle);
            }
        }
        Ok(())
    }

    /// Submits an item to a port.
    ///
    /// # Errors
    /// Returns the item if the port has no room: see [`Scheduler::poll_room`].
    pub fn submit(&self, port: PortId, item: W::Item) -> Result<(), Full<W::Item>> {
        self.shared.submit(port, item)
    }

    /// Submits all items. If their pool is elastic and needs one thread only, the calling thread executes them inline;
    /// see [`PortSettings::nonblocking`].
    ///
    /// # Errors
    /// Returns the first item whose port has no room: see [`Scheduler::poll_room`]. Later items stay in the iterator.
    pub fn submit_all(
        &self,
        items: &mut impl Iterator<Item = (PortId, W::Item)>,
    ) -> Result<(), Full<(PortId, W::Item)>> {
        self.shared.submit_all(items)
    }

    /// Executes an item inline, as [`Scheduler::submit_all`] does, without queueing it: `run` creates the item and runs
    /// it. Returns `None`, and does not call `run`, if this thread may not run the port now. The call is not a batch:
    /// if `run` defers anything to [`Work::after_batch`], it must call that itself.
    #[inline]
    pub fn run_inline<R>(
        &self,
        port: PortId,
        run: impl FnOnce(&mut CallerFusion<'_, W>) -> InlineOutcome<W, R>,
    ) -> Option<R> {
        self.shared.run_inline(port, run)
    }

    /// Submits an item even if the port is full: an item that left the port to wait, which no producer could take back.
    pub fn resume(&self, port: PortId, item: W::Item) {
        if self.resume_deferred(port, item) {
            self.schedule(port);
        }
    }

    /// Submits a batch even if the port is full.
    pub fn resume_batch(&self, port: PortId, items: &mut Vec<W::Item>) {
        self.shared.add_in_flight(items.len());
        if self.shared.ports[port.0].queue.put_batch(items).must_schedule {
            self.shared.schedule(port.0);
        }
    }

    /// Submits an item even if the port is full, and wakes no thread. If it returns true, the caller must schedule the
    /// port ([`Scheduler::schedule`]); the port does not run before.
    #[must_use]
    pub fn resume_deferred(&self, port: PortId, item: W::Item) -> bool {
        self.shared.add_in_flight(1);
        self.shared.ports[port.0].queue.put(item).must_schedule
    }

    /// Schedules a port: one of its pool's workers will run it.
    pub fn schedule(&self, PortId(port): PortId) {
        self.shared.schedule(port);
    }

    /// Schedules a port whose items are in its queue, and runs a batch of it on this thread first, if it may. Not to be
    /// called by work that runs at a port.
    pub fn schedule_inline(&self, PortId(port): PortId) {
        self.shared.schedule_inline(port);
    }

    /// Returns whether a producer may run a port itself now ([`Scheduler::schedule_inline`]): on a single processor, where no
    /// two threads can run at once, or because its elastic pool needs one thread. A hint.
    #[must_use]
    pub fn may_run_inline(&self, PortId(port): PortId) -> bool {
        let pool = &self.shared.pools[self.shared.ports[port].pool];
        self.single_processor || (pool.allows_caller_runs && pool.has_one_thread())
    }

    /// Returns whether threads outnumber processors, so that a woken thread takes the processor from another one.
    #[must_use]
    pub fn is_oversubscribed(&self) -> bool {
        self.shared.oversubscribed
    }

    /// Returns the number of items that fit into a port's queue.
    #[must_use]
    pub fn room(&self, port: PortId) -> usize {
        self.shared.ports[port.0].queue.room()
    }

    /// Waits until a port has room. The waker is woken once, and no room is reserved.
    pub fn poll_room(&self, port: PortId, context: &Context<'_>) -> Poll<()> {
        let room = self.shared.ports[port.0].queue.has_room_or_wait(context.waker());
        if room { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns the work at the ports.
    #[must_use]
    pub fn work(&self) -> &W {
        &self.shared.work
    }

    /// Blocks this thread until all submitted items are finished.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Returns the state of a port's queue.
    #[must_use]
    pub fn queue_snapshot(&self, port: PortId) -> QueueSnapshot {
        let port = &self.shared.ports[port.0];
        QueueSnapshot { pool: port.pool, waiting: port.queue.len(), capacity: port.queue.capacity() }
    }

    /// Ends the threads and waits for them. Batches that run are finished; other items stay in their queues.
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
        // A panic of the thread has been reported by the panic hook.
        threads.into_iter().for_each(|thread| _ = thread.join());
    }

    /// Returns the state of all pools.
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

/// Returns the largest number of threads of all pools together.
fn threads_max(pools: &[RunningPool]) -> usize {
    pools.iter().map(|running| running.pool.control.threads_max()).sum()
}

impl<W: Work> Drop for Scheduler<W> {
    fn drop(&mut self) {
        self.close();
    }
}
