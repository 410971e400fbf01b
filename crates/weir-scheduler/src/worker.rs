//! What a thread of a crew does: take a port that has work, have a turn at it, carry on what came out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch_execution::ExecutionMode;
use crate::execution_mode::ExclusiveGuard;
use crate::state::SchedulerState;
use crate::thread_pool::{RunningPool, WorkerSlot};
use crate::work::Work;
use crate::worker_local::WorkerLocal;

/// How often a thread looks for work before it sleeps.
const LOOKS_MAX: usize = 104;
/// How often it does so before it lets others have the processor in between: about the microseconds that a thread takes to
/// be woken.
const LOOKS_SPINNING: usize = 100;

/// One thread of a crew.
pub(crate) struct Worker<W: Work> {
    shared: Arc<SchedulerState<W>>,
    slot: usize,
    local: WorkerLocal<W>,
    /// Whether it is counted among those who work beside each other.
    in_shared_mode: bool,
}

impl<W: Work> Worker<W> {
    pub(crate) fn new(shared: Arc<SchedulerState<W>>, pool: usize, slot: usize) -> Self {
        Worker { shared, slot, local: WorkerLocal::new(pool), in_shared_mode: false }
    }

    /// Works until it is told to end.
    pub(crate) fn run(mut self) {
        let shared = self.shared.clone();
        let pool = &shared.pools[self.local.pool];
        let slot: &WorkerSlot = &pool.slots[self.slot];
        let mut next_port = None;
        let mut chained = 0;
        while !slot.ended.load(Ordering::Acquire) {
            // What was carried is warm, but others wait too: a ring of ports would never let go.
            if chained > shared.ports.len() {
                next_port.take().into_iter().for_each(|port| pool.schedule(port));
            }
            // What is carried is carried to its end: at the end of the list it could hold up all that leads to it.
            if next_port.is_none() && slot.suspended.load(Ordering::Acquire) {
                self.local.flush_deferred(&shared);
                self.leave_shared();
                suspend(pool, slot);
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
    }

    /// Looks for a port for a few microseconds, without a pause that would be longer than a hop takes. Where threads
    /// outnumber processors, who looks holds up who works, and lets that come first.
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
            if looks < LOOKS_SPINNING { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        None
    }

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

    /// The right to work alone, where the crew has one thread. Nobody could take it from a thread that is stuck, so that
    /// it is for ports whose work is brief.
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

    fn sleep(&mut self, pool: &RunningPool, slot: &WorkerSlot) {
        self.local.flush_deferred(&self.shared);
        self.leave_shared();
        pool.idle.sleep(self.slot, || {
            !pool.ready.is_empty() || slot.suspended.load(Ordering::Acquire) || slot.ended.load(Ordering::Acquire)
        });
    }

    fn leave_shared(&mut self) {
        if std::mem::replace(&mut self.in_shared_mode, false) {
            self.shared.modes[self.local.pool].leave_shared();
        }
    }
}

fn suspend(pool: &RunningPool, slot: &WorkerSlot) {
    // It may have been woken for work that it does not do now.
    if !pool.ready.is_empty() {
        pool.idle.wake();
    }
    while slot.suspended.load(Ordering::Acquire) && !slot.ended.load(Ordering::Acquire) {
        std::thread::park();
    }
}
