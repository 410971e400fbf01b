//! Worker thread: pops a port that has work, runs a batch of it, and follows the output to the next port.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch_execution::ExecutionMode;
use crate::execution_mode::ExclusiveGuard;
use crate::state::SchedulerState;
use crate::thread_pool::{RunningPool, WorkerSlot};
use crate::work::Work;
use crate::worker_local::WorkerLocal;

/// The number of attempts to find work before a worker sleeps: [`SPINS`] that spin, and four that yield the processor.
/// Chosen by judgement: each further attempt keeps the processor busy, and is less likely to succeed.
const LOOKS_MAX: usize = 104;
/// The number of attempts that spin; the others yield the processor. Spinning lasts for some microseconds, about as
/// long as waking a sleeping thread takes (6 to 8 µs one way on two idle cores).
const SPINS: usize = 100;

/// One worker of a thread pool.
pub(crate) struct Worker<W: Work> {
    shared: Arc<SchedulerState<W>>,
    slot: usize,
    local: WorkerLocal<W>,
    /// True while it is counted in shared mode.
    in_shared_mode: bool,
}

impl<W: Work> Worker<W> {
    pub(crate) fn new(shared: Arc<SchedulerState<W>>, pool: usize, slot: usize) -> Self {
        Worker { shared, slot, local: WorkerLocal::new(pool), in_shared_mode: false }
    }

    /// Runs ports until the worker slot tells it to end.
    pub(crate) fn run(mut self) {
        let shared = self.shared.clone();
        let pool = &shared.pools[self.local.pool];
        let slot: &WorkerSlot = &pool.slots[self.slot];
        let mut next_port = None;
        let mut chained = 0;
        shared.work.after_sleep(self.local.pool);
        while !slot.ended.load(Ordering::Acquire) {
            // The items of the next port are in the cache, but other ports wait too, and a cycle of ports would never
            // end.
            if chained > shared.ports.len() {
                next_port.take().into_iter().for_each(|port| pool.schedule(port));
            }
            // A suspended worker first follows its output to the end: at the end of the ready queue, the port could
            // hold up all ports before it.
            if next_port.is_none() && slot.suspended.load(Ordering::Acquire) {
                self.local.flush_deferred(&shared);
                self.leave_shared();
                shared.work.before_sleep(self.local.pool);
                suspend(pool, slot);
                shared.work.after_sleep(self.local.pool);
                chained = 0;
                continue;
            }
            chained = if next_port.is_some() { chained + 1 } else { 0 };
            match next_port.take().or_else(|| self.find_work(pool)) {
                Some(port) => {
                    shared.controller.unpark();
                    next_port = self.run_batch(&shared, pool, slot, port);
                }
                None => self.sleep(pool, slot),
            }
        }
        self.local.flush_deferred(&shared);
        self.leave_shared();
        next_port.into_iter().for_each(|port| pool.schedule(port));
        shared.work.before_sleep(self.local.pool);
    }

    /// Looks for a ready port for a few microseconds, without a pause that is longer than a hop. If threads outnumber
    /// processors, it yields to threads that work.
    fn find_work(&self, pool: &RunningPool) -> Option<usize> {
        if self.shared.oversubscribed {
            return pool.ready.pop().or_else(|| {
                std::thread::yield_now();
                pool.ready.pop()
            });
        }
        for looks in 0..LOOKS_MAX {
            if let Some(found) = pool.ready.pop() {
                return Some(found);
            }
            if looks < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        None
    }

    /// Runs a batch of the port, in exclusive mode if possible. Returns the port to follow to.
    fn run_batch(
        &mut self,
        shared: &SchedulerState<W>,
        pool: &RunningPool,
        slot: &WorkerSlot,
        port: usize,
    ) -> Option<usize> {
        let epoch = slot.epoch.load(Ordering::Relaxed);
        slot.epoch.store(epoch + 1, Ordering::Relaxed);
        let next_port = if pool.is_always_exclusive && shared.ports[port].is_nonblocking() {
            self.local.run_batch(shared, slot, port, ExecutionMode::Exclusive)
        } else if let Some(_exclusive) = self.try_exclusive(shared, pool, port) {
            self.local.run_batch(shared, slot, port, ExecutionMode::Exclusive)
        } else {
            self.run_batch_shared(shared, pool, slot, port)
        };
        slot.epoch.store(epoch + 2, Ordering::Relaxed);
        next_port
    }

    /// Enters exclusive mode if the pool needs one thread. Only for work that does not block, because no other thread
    /// can take the mode from a stuck thread.
    fn try_exclusive<'a>(
        &mut self,
        shared: &'a SchedulerState<W>,
        pool: &RunningPool,
        port: usize,
    ) -> Option<ExclusiveGuard<'a>> {
        if !pool.has_one_thread() || !shared.ports[port].is_nonblocking() {
            return None;
        }
        self.leave_shared();
        shared.modes[self.local.pool].try_exclusive()
    }

    /// Runs a batch of the port in shared mode.
    fn run_batch_shared(
        &mut self,
        shared: &SchedulerState<W>,
        pool: &RunningPool,
        slot: &WorkerSlot,
        port: usize,
    ) -> Option<usize> {
        if !std::mem::replace(&mut self.in_shared_mode, true) {
            shared.modes[self.local.pool].enter_shared();
        }
        let fusion_limit = &shared.ports[port].fusion_limit;
        let mode = ExecutionMode::Shared(if shared.ports[port].is_nonblocking() { fusion_limit.get() } else { 1 });
        let next_port = self.local.run_batch(shared, slot, port, mode);
        if pool.idle.has_sleepers() && !pool.ready.is_empty() {
            fusion_limit.shrink();
        }
        next_port
    }

    /// Sleeps until woken, with no deferred wake-up and in no mode.
    fn sleep(&mut self, pool: &RunningPool, slot: &WorkerSlot) {
        self.local.flush_deferred(&self.shared);
        self.leave_shared();
        self.shared.work.before_sleep(self.local.pool);
        pool.idle.sleep(self.slot, || {
            !pool.ready.is_empty() || slot.suspended.load(Ordering::Acquire) || slot.ended.load(Ordering::Acquire)
        });
        self.shared.work.after_sleep(self.local.pool);
    }

    /// Leaves shared mode if this worker is in it.
    fn leave_shared(&mut self) {
        if std::mem::replace(&mut self.in_shared_mode, false) {
            self.shared.modes[self.local.pool].leave_shared();
        }
    }
}

/// Parks the worker until it is resumed or has to end.
fn suspend(pool: &RunningPool, slot: &WorkerSlot) {
    // This worker may have consumed a wake-up that another one needs.
    if !pool.ready.is_empty() {
        pool.idle.wake();
    }
    while slot.suspended.load(Ordering::Acquire) && !slot.ended.load(Ordering::Acquire) {
        std::thread::park();
    }
}
