//! Submission: puts items into port queues, or executes them inline where that is cheaper (caller-runs).
//!
//! A pool that needs one thread can do without queues: the producer executes its items inline, as if the graph were a
//! function that it calls, while no other thread runs in the pool. Two kinds of pools allow it:
//! * an *elastic* pool while its number of threads is 1;
//! * any pool of one thread on a system with *one processor*, where its worker could not run beside the producer, and
//!   switching between the two takes longer than most items.
//!
//! A producer whose items take long backs off to the queues (`caller_runs`).

use std::time::{Duration, Instant};

use crate::batch_execution::ExecutionMode;
use crate::caller_runs::CallerRuns;
use crate::execution_mode::ExclusiveGuard;
use crate::platform::SchedulerPlatform;
use crate::state::SchedulerState;
use crate::thread_pool::WorkerSlot;
use crate::work::{Fusion, PortId, Work};
use crate::worker_local::BATCH;

/// The longest time that a producer waits for the worker of its pool to finish. It is several times what queues take
/// for a batch, and short in comparison with items for which queues pay. Without the wait, producer and worker could go
/// on through the queues forever: the elastic engine then had 0.17 of the throughput of inline execution.
const YIELD_MAX: Duration = Duration::from_micros(50);

/// An item and its first port.
type PortItem<W> = (PortId, <W as Work>::Item);

/// Error: the port has no room for this item.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// Result of an item that its caller executes inline.
#[derive(Debug)]
pub struct InlineOutcome<W: Work, R> {
    /// The caller's result.
    pub answer: R,
    /// The item and its next port, if it must go on through a queue.
    pub remaining: Option<(PortId, W::Item)>,
}

/// Fusion on behalf of a caller that executes an item inline.
pub struct CallerFusion<'a, W: Work> {
    shared: &'a SchedulerState<W>,
    pool: usize,
    /// The ports that were run or granted so far.
    runs: u32,
}

impl<W: Work> Fusion for CallerFusion<'_, W> {
    #[inline]
    fn may_fuse(&mut self, PortId(port): PortId) -> bool {
        let may = self.shared.ports[port].is_free(self.pool);
        self.runs += u32::from(may);
        may
    }
}

/// Progress of submitting a sequence of items.
enum SubmitOutcome<T> {
    /// The batch is complete and there may be more items.
    More,
    /// There are no more items.
    All,
    /// The port of this item has no room.
    Full(T),
}

impl<W: Work> CallerRuns<W> {
    /// Executes items inline until the next measurement, in exclusive mode.
    fn run_batch(
        &self,
        shared: &SchedulerState<W>,
        items: &mut impl Iterator<Item = PortItem<W>>,
    ) -> SubmitOutcome<PortItem<W>> {
        let begin = shared.platform().now();
        let (mut local, chunk) = (self.local.lock(), self.chunk());
        let mut count = 0;
        let outcome = loop {
            let Some((id @ PortId(index), item)) = items.next() else { break SubmitOutcome::All };
            if shared.ports[index].is_free(local.pool) {
                local.run_inline(shared, index, item);
            } else if let Err(Full(item)) = shared.submit(id, item) {
                break SubmitOutcome::Full((id, item));
            }
            count += 1;
            if count == chunk {
                break SubmitOutcome::More;
            }
        };
        shared.work.after_batch();
        let pool = local.pool;
        local.flush_item_count(&shared.pools[pool].caller_slot);
        if count > 0 {
            self.adapt(shared.platform().elapsed(begin) / count as u32);
        }
        outcome
    }

    /// Executes one item inline, in exclusive mode.
    #[inline]
    fn run_one<R>(
        &self,
        shared: &SchedulerState<W>,
        pool: usize,
        run: impl FnOnce(&mut CallerFusion<'_, W>) -> InlineOutcome<W, R>,
    ) -> R {
        let mut fusion = CallerFusion { shared, pool, runs: 1 };
        let InlineOutcome { answer, remaining } = run(&mut fusion);
        self.ran_inline(fusion.runs);
        if let Some((PortId(next), item)) = remaining {
            self.local.lock().submit_detached(shared, next, item);
        }
        answer
    }

    /// Runs a batch of a port that this thread has taken over from the ready queue, in exclusive mode.
    fn run_port(&self, shared: &SchedulerState<W>, slot: &WorkerSlot, port: usize) {
        let begin = shared.platform().now();
        let mut local = self.local.lock();
        let next_port = local.run_batch(shared, slot, port, ExecutionMode::Exclusive);
        next_port.into_iter().for_each(|port| shared.schedule(port));
        local.flush_deferred(shared);
        self.adapt(shared.platform().elapsed(begin) / local.ran.max(1) as u32);
    }
}

impl<W: Work> SchedulerState<W> {
    /// Submits all items, inline where this thread may.
    pub(crate) fn submit_all(&self, items: &mut impl Iterator<Item = PortItem<W>>) -> Result<(), Full<PortItem<W>>> {
        loop {
            let outcome = self.submit_inline(items).unwrap_or_else(|| self.submit_batch(items));
            match outcome {
                SubmitOutcome::More => self.yield_to_pool(),
                SubmitOutcome::All => return Ok(()),
                SubmitOutcome::Full(item) => return Err(Full(item)),
            }
        }
    }

    /// Submits a batch inline, if this thread may.
    fn submit_inline(&self, items: &mut impl Iterator<Item = PortItem<W>>) -> Option<SubmitOutcome<PortItem<W>>> {
        let pool = self.elastic_pool?;
        let _exclusive = self.try_exclusive(pool, BATCH as u32)?;
        Some(self.callers[pool].run_batch(self, items))
    }

    /// Executes an item inline, if this thread may. The pool's state is checked only now and then: it seldom changes,
    /// and a thread that needs the pool revokes the bias.
    #[inline]
    pub(crate) fn run_inline<R>(
        &self,
        PortId(port): PortId,
        run: impl FnOnce(&mut CallerFusion<'_, W>) -> InlineOutcome<W, R>,
    ) -> Option<R> {
        let port = &self.ports[port];
        let caller = &self.callers[port.pool];
        let begin = if caller.is_check_due() { Some(self.start_check(port.pool)?) } else { None };
        let Some(_exclusive) = self.modes[port.pool].try_exclusive_biased(self.platform().thread_number()) else {
            caller.check_next();
            return None;
        };
        if !port.is_free(port.pool) {
            return None;
        }
        let answer = caller.run_one(self, port.pool, run);
        if let Some(begin) = begin {
            self.pools[port.pool].caller_slot.add_items(caller.checked(self.platform().elapsed(begin)));
        }
        Some(answer)
    }

    /// Returns the time, as the start of a check, if this thread may execute an item inline.
    #[cold]
    fn start_check(&self, pool: usize) -> Option<Instant> {
        (self.admits_caller(pool) && self.callers[pool].may_run_inline(1)).then(|| self.platform().now())
    }

    /// Runs a batch of a scheduled port on this thread if it may, and schedules the port for the pool otherwise.
    pub(crate) fn schedule_inline(&self, port: usize) {
        let pool = self.ports[port].pool;
        let exclusive = self.ports[port].is_nonblocking().then(|| self.try_exclusive(pool, 1)).flatten();
        if exclusive.is_none() {
            return self.schedule(port);
        }
        self.callers[pool].run_port(self, &self.pools[pool].caller_slot, port);
    }

    /// Enters exclusive mode for at most `items` items, if the pool admits a caller and the policy does not back off.
    fn try_exclusive(&self, pool: usize, items: u32) -> Option<ExclusiveGuard<'_>> {
        let exclusive = self
            .admits_caller(pool)
            .then(|| self.modes[pool].try_exclusive_biased(self.platform().thread_number()))
            .flatten()?;
        self.callers[pool].may_run_inline(items).then_some(exclusive)
    }

    /// Returns whether the pool allows caller-runs now, and unparks the controller if so.
    fn admits_caller(&self, pool: usize) -> bool {
        let running = &self.pools[pool];
        let admits = running.allows_caller_runs && running.has_one_thread();
        if admits {
            self.controller.unpark();
        }
        admits
    }

    /// Waits for a moment after a batch until the pool's only worker has finished. While that worker runs, this thread
    /// cannot enter exclusive mode, and even inline it may only run ports for which no item waits.
    fn yield_to_pool(&self) {
        if self.in_flight() == 0 || !self.elastic_pool.is_some_and(|pool| self.pools[pool].has_one_thread()) {
            return;
        }
        let begin = self.platform().now();
        while self.in_flight() > 0 && self.platform().elapsed(begin) < YIELD_MAX {
            if self.oversubscribed { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// Submits a batch through the queues. Ports are scheduled at its end: a worker that is woken earlier finds little
    /// to do.
    fn submit_batch(&self, items: &mut impl Iterator<Item = PortItem<W>>) -> SubmitOutcome<PortItem<W>> {
        self.add_in_flight(BATCH);
        let (mut count, mut schedule) = (0, Vec::new());
        let outcome = loop {
            let Some((id @ PortId(port), item)) = items.next() else { break SubmitOutcome::All };
            match self.ports[port].queue.try_put(item) {
                Ok(put) if put.must_schedule => schedule.push(port),
                Ok(_) => {}
                Err(item) => break SubmitOutcome::Full((id, item)),
            }
            count += 1;
            if count == BATCH {
                break SubmitOutcome::More;
            }
        };
        schedule.into_iter().for_each(|port| self.schedule(port));
        self.finish(BATCH - count);
        outcome
    }

    /// Submits an item through the queue of its port, if there is room.
    pub(crate) fn submit(&self, port: PortId, item: W::Item) -> Result<(), Full<W::Item>> {
        self.add_in_flight(1);
        match self.ports[port.0].queue.try_put(item) {
            Ok(put) => {
                if put.must_schedule {
                    self.schedule(port.0);
                }
                Ok(())
            }
            Err(item) => {
                self.finish(1);
                Err(Full(item))
            }
        }
    }
}
