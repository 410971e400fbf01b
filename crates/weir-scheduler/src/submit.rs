//! Putting items in, and working on them at once where that is cheaper than any queue.
//!
//! Where an elastic crew is at level 1, its one thread is whoever has something to do: the thread that puts items in
//! works on them itself, from call to call, as long as no other does. So a graph whose work is cheaper than a queue runs
//! as if it were a function of its source. Where items turn out to hold the source up, it keeps to the queues for a
//! while, twice as long each time.
//!
//! Where there is one processor only, any crew of one thread takes such guests: its own thread could not work beside the
//! one that puts items in, and to go from one to the other and back takes longer than most items.

use std::time::{Duration, Instant};

use crate::batch_execution::ExecutionMode;
use crate::caller_runs::CallerRuns;
use crate::execution_mode::ExclusiveGuard;
use crate::fence::thread_number;
use crate::state::SchedulerState;
use crate::thread_pool::WorkerSlot;
use crate::work::{Fusion, PortId, Work};
use crate::worker_local::BATCH;

/// How long a source that has more waits behind a batch: several times as long as queues take for a batch, and little
/// where items are so long that queues are right.
const YIELD_MAX: Duration = Duration::from_micros(50);

/// An item and the port that it begins at.
type PortItem<W> = (PortId, <W as Work>::Item);

/// The port has no room: the item comes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// What came of the work on an item by the thread that has it.
#[derive(Debug)]
pub struct InlineOutcome<W: Work, R> {
    /// The answer to who asked.
    pub answer: R,
    /// The item, where it has to go on at this port.
    pub remaining: Option<(PortId, W::Item)>,
}

/// Who works on an item that it brings, and asks for the ports that follow.
pub struct CallerFusion<'a, W: Work> {
    shared: &'a SchedulerState<W>,
    pool: usize,
    /// How many ports it was told that it may run.
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

/// How a batch of items went in.
enum SubmitOutcome<T> {
    /// There are more.
    More,
    /// There are no more.
    All,
    /// There is no room for this one.
    Full(T),
}

impl<W: Work> CallerRuns<W> {
    /// Works on items until it is time to look again.
    fn run_batch(
        &self,
        shared: &SchedulerState<W>,
        items: &mut impl Iterator<Item = PortItem<W>>,
    ) -> SubmitOutcome<PortItem<W>> {
        let begin = Instant::now();
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
            self.adapt(begin.elapsed() / count as u32);
        }
        outcome
    }

    /// Works on one item.
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

    /// Has a turn at a port that this thread was handed.
    fn run_port(&self, shared: &SchedulerState<W>, slot: &WorkerSlot, port: usize) {
        let begin = Instant::now();
        let mut local = self.local.lock();
        let count = shared.ports[port].queue.len().clamp(1, local.batch_limit);
        let next_port = local.run_batch(shared, slot, port, ExecutionMode::Exclusive);
        next_port.into_iter().for_each(|port| shared.schedule(port));
        local.flush_deferred(shared);
        self.adapt(begin.elapsed() / count as u32);
    }
}

impl<W: Work> SchedulerState<W> {
    /// Puts in what `items` yields; works on it, where this thread may.
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

    /// Works on a batch of items, where this thread may and nobody else works.
    fn submit_inline(&self, items: &mut impl Iterator<Item = PortItem<W>>) -> Option<SubmitOutcome<PortItem<W>>> {
        let pool = self.elastic_pool?;
        let _exclusive = self.try_exclusive(pool, BATCH as u32)?;
        Some(self.callers[pool].run_batch(self, items))
    }

    /// Works on an item that `run` has, where this thread may and nobody else works. It looks around only now and then: what
    /// it would see changes seldom, and who comes in between ends its right.
    #[inline]
    pub(crate) fn run_inline<R>(
        &self,
        PortId(port): PortId,
        run: impl FnOnce(&mut CallerFusion<'_, W>) -> InlineOutcome<W, R>,
    ) -> Option<R> {
        let port = &self.ports[port];
        let caller = &self.callers[port.pool];
        let begin = if caller.is_check_due() { Some(self.start_check(port.pool)?) } else { None };
        let Some(_exclusive) = self.modes[port.pool].try_exclusive_biased(thread_number()) else {
            caller.check_next();
            return None;
        };
        if !port.is_free(port.pool) {
            return None;
        }
        let answer = caller.run_one(self, port.pool, run);
        if let Some(begin) = begin {
            self.pools[port.pool].caller_slot.add_items(caller.checked(begin.elapsed()));
        }
        Some(answer)
    }

    /// The time, where this thread may work as a guest of the crew.
    #[cold]
    fn start_check(&self, pool: usize) -> Option<Instant> {
        (self.admits_caller(pool) && self.callers[pool].may_run_inline(1)).then(Instant::now)
    }

    /// Has a turn at a port that this thread was handed, where it may work there, and hands over what is left.
    pub(crate) fn schedule_inline(&self, port: usize) {
        let pool = self.ports[port].pool;
        let exclusive = self.ports[port].is_nonblocking().then(|| self.try_exclusive(pool, 1)).flatten();
        if exclusive.is_none() {
            return self.schedule(port);
        }
        self.callers[pool].run_port(self, &self.pools[pool].caller_slot, port);
    }

    /// The right of this thread to work as a guest of the crew, where that takes one and nobody works. It is for so many
    /// items at most.
    fn try_exclusive(&self, pool: usize, items: u32) -> Option<ExclusiveGuard<'_>> {
        let exclusive =
            self.admits_caller(pool).then(|| self.modes[pool].try_exclusive_biased(thread_number())).flatten()?;
        self.callers[pool].may_run_inline(items).then_some(exclusive)
    }

    /// Whether the crew takes guests, and needs one thread only.
    fn admits_caller(&self, pool: usize) -> bool {
        let running = &self.pools[pool];
        let admits = running.allows_caller_runs && running.has_one_thread();
        if admits {
            self.controller.unpark();
        }
        admits
    }

    /// Where the crew's one thread is in the way of this one, after a batch, that gets the time to work off what waits for it:
    /// else the two would go on by way of the queues for ever, however dear these are. It is in the way even of a guest, who
    /// may run only what nothing waits for.
    fn yield_to_pool(&self) {
        if self.in_flight() == 0 || !self.elastic_pool.is_some_and(|pool| self.pools[pool].has_one_thread()) {
            return;
        }
        let begin = Instant::now();
        while self.in_flight() > 0 && begin.elapsed() < YIELD_MAX {
            if self.oversubscribed { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// Puts a batch of items in, and hands their ports over afterwards: who was woken early would find little to do.
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

    /// Puts an item in at a port, where there is room.
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
