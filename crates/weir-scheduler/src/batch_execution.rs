//! Batch execution: a worker takes a batch from a port and runs each item through as many consecutive ports as fusion
//! allows.
//!
//! *Fusion*: an item passes from port to port by a function call, without a queue, as long as [`ExecutionMode`] allows
//! it.
//! * In exclusive mode the thread owns the pool and may run every port that is not scheduled.
//! * In shared mode it claims each port and keeps its claims until the end of the batch, so that one claim serves all
//!   items. The fusion limit of the start port bounds the number of claims (`fusion_limit`).
//!
//! An item that cannot go on is buffered, and put into the queue of the next port together with the items behind it.
//!
//! A batch ends after at most [`BATCH_TIME_MAX`]: the items that it has not run go back to the front of their queue, and
//! the output goes on to the next port, where another thread may be idle.
//!
//! Order: an item bypasses a queue only if the queue is empty and no other thread runs the port, so that it overtakes
//! nothing.

use std::num::NonZeroUsize;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::platform::SchedulerPlatform;
use crate::port_queue::Remaining;
use crate::state::{PortState, SchedulerState};
use crate::thread_pool::WorkerSlot;
use crate::work::{Fusion, PortId, RunOutcome, Work};
use crate::worker_local::{BATCH, WorkerLocal};

/// The maximum number of ports that an item passes before its thread yields to other work. Chosen by judgement: it
/// bounds a cycle of ports, and is longer than any chain of ports in the benchmarks (1,000).
const HOPS_MAX: u64 = 4_096;
/// The duration after which a batch ends. Chosen by judgement: the threads of the next ports, a source that waits for
/// exclusive mode, and a worker that enters shared mode wait for one batch at most, and beside it the microsecond that a
/// batch costs is little.
const BATCH_TIME_MAX: Duration = Duration::from_micros(200);
/// The factor by which the number of items that have run grows from one look at the clock to the next, unless items may
/// block: reading it costs about as much as two hops between fused ports.
const LOOK_FACTOR: usize = 8;

/// The ports that a worker may run beside the one that it started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutionMode {
    /// It owns all ports of the pool.
    Exclusive,
    /// It claims ports, and holds at most this many.
    Shared(usize),
}

/// Fusion on behalf of a worker that runs a batch.
pub(crate) struct BatchFusion<'a, W: Work> {
    local: &'a mut WorkerLocal<W>,
    shared: &'a SchedulerState<W>,
    mode: ExecutionMode,
}

impl<W: Work> Fusion for BatchFusion<'_, W> {
    #[inline]
    fn may_fuse(&mut self, PortId(port): PortId) -> bool {
        let may = self.local.may_run_next(&self.shared.ports[port], port, self.mode);
        self.local.runs += u64::from(may);
        may
    }
}

/// The clock of a batch, which ends if the items up to the next look would take too long, at the pace of those before.
struct BatchClock {
    /// `None` for a single item, for which reading the clock does not pay.
    begin: Option<Instant>,
    ran: usize,
    /// The number of items after which the clock is read again.
    next_look: usize,
    /// The factor by which that number grows.
    factor: usize,
}

impl BatchClock {
    fn start(platform: &impl SchedulerPlatform, items: usize, is_nonblocking: bool) -> BatchClock {
        let factor = if is_nonblocking { LOOK_FACTOR } else { 1 };
        BatchClock { begin: (items > 1).then(|| platform.now()), ran: 0, next_look: 1, factor }
    }

    /// Counts an item that has run, and returns true if the batch is to end.
    #[inline]
    fn is_over(&mut self, platform: &impl SchedulerPlatform) -> bool {
        self.ran += 1;
        let Some(begin) = self.begin.filter(|_| self.ran == self.next_look) else { return false };
        self.next_look = (self.next_look * self.factor).max(self.next_look + 1);
        platform.elapsed(begin) * self.factor as u32 > BATCH_TIME_MAX
    }

    /// Returns the time that an item has taken, if the batch was timed.
    fn time_per_item(&self, platform: &impl SchedulerPlatform) -> Option<Duration> {
        self.begin.map(|begin| platform.elapsed(begin) / self.ran.max(1) as u32)
    }
}

impl<W: Work> WorkerLocal<W> {
    /// Runs a batch of the port. Returns the port of the same pool that received the output, if it is scheduled but not
    /// in the ready queue: only this worker knows that it has work.
    pub(crate) fn run_batch(
        &mut self,
        shared: &SchedulerState<W>,
        slot: &WorkerSlot,
        port: usize,
        mode: ExecutionMode,
    ) -> Option<usize> {
        self.batch_number += 1;
        let was_next = self.last_next_port.take() == Some(port);
        self.start_port = port;
        self.held.push(port);
        if !shared.ports[port].is_nonblocking() {
            // A blocking item may hold this thread for long, so the deferred wake-ups are delivered first.
            self.flush_deferred(shared);
        }
        let returned = shared.ports[port].queue.take_batch(BATCH, &mut self.batch, &mut self.released);
        self.wake_released(shared);
        let mut batch = std::mem::take(&mut self.batch);
        let most = shared.work.before_batch(PortId(port), &mut batch).map_or(usize::MAX, NonZeroUsize::get);
        let mut clock = BatchClock::start(shared.platform(), batch.len(), shared.ports[port].is_nonblocking());
        let (mut ended, mut yielded) = (0, false);
        let mut items = batch.drain(..);
        while let Some(item) = items.next() {
            match self.run_item(shared, port, item, mode) {
                RunOutcome::Next(PortId(next), item) => self.buffer_output(shared, next, item),
                RunOutcome::Yields(PortId(port), item) => {
                    yielded = true;
                    put_back(shared, port, item);
                }
                RunOutcome::Finished => ended += 1,
            }
            self.flush_item_count(slot);
            if (clock.is_over(shared.platform()) || clock.ran >= most) && items.len() > 0 {
                shared.ports[port].queue.return_rest(&mut items, returned);
                break;
            }
        }
        drop(items);
        (self.batch, self.ran) = (batch, clock.ran);
        shared.work.after_batch();
        self.flush_output(shared);
        shared.finish(ended);
        if let (ExecutionMode::Shared(most), Some(each)) = (mode, clock.time_per_item(shared.platform())) {
            shared.ports[port].fusion_limit.adapt(each, self.held.len() >= most);
        }
        if self.release_ports(shared, port) == Remaining::More {
            self.reschedule(shared, port, was_next);
        }
        self.last_next_port = self.next_port;
        if yielded && ended > 0 {
            self.let_producers_run(shared);
        }
        self.next_port.take()
    }

    /// Yields the processor for a moment if the pool uses all of them and its threads never rest, because items compute. Those
    /// that have ended are awaited by a producer, which the system would otherwise let run only when it ends the turn of a
    /// thread: some milliseconds later.
    #[cold]
    fn let_producers_run(&mut self, shared: &SchedulerState<W>) {
        if shared.oversubscribed && shared.uses_all_processors(self.pool) {
            self.flush_deferred(shared);
            std::thread::yield_now();
        }
    }

    /// Schedules the ports and wakes the sources that waited for room. If the pool uses all processors, no processor is
    /// free for a woken source, so this thread yields its own for a moment.
    fn wake_released(&mut self, shared: &SchedulerState<W>) {
        self.released.ports.drain(..).for_each(|waiting| shared.schedule(waiting));
        if !self.released.sources.is_empty() {
            self.released.sources.drain(..).for_each(Waker::wake);
            if shared.uses_all_processors(self.pool) {
                std::thread::yield_now();
            }
        }
    }

    /// Makes sure that the rest of the start port's queue will be run. If the worker followed its output to this port,
    /// and its batch has not led it to another one, it continues with this port: ports that lead to it may be waiting
    /// for room in its queue, and at the end of the ready queue the port would make them wait for all other ready
    /// ports.
    fn reschedule(&mut self, shared: &SchedulerState<W>, port: usize, was_next: bool) {
        if was_next && self.next_port.is_none() {
            self.next_port = Some(port);
        } else {
            shared.schedule(port);
        }
    }

    /// Runs an item that is in no queue, in exclusive mode.
    #[inline]
    pub(crate) fn run_inline(&mut self, shared: &SchedulerState<W>, port: usize, item: W::Item) {
        match self.run_item(shared, port, item, ExecutionMode::Exclusive) {
            RunOutcome::Next(PortId(next), item) => self.submit_detached(shared, next, item),
            RunOutcome::Yields(PortId(port), item) => {
                shared.add_in_flight(1);
                put_back(shared, port, item);
            }
            RunOutcome::Finished => {}
        }
    }

    /// Puts an item that is in no queue into the queue of a port, and lets the pool's workers run it.
    pub(crate) fn submit_detached(&mut self, shared: &SchedulerState<W>, port: usize, item: W::Item) {
        shared.add_in_flight(1);
        self.buffer_output(shared, port, item);
        self.flush_output(shared);
        self.blocked = None;
        self.next_port.take().into_iter().for_each(|port| shared.schedule(port));
        self.flush_deferred(shared);
    }

    /// Runs the item at the port and on through all ports that this thread may fuse.
    #[inline]
    fn run_item(
        &mut self,
        shared: &SchedulerState<W>,
        mut port: usize,
        mut item: W::Item,
        mode: ExecutionMode,
    ) -> RunOutcome<W::Item> {
        let mut runs = 0;
        let left = loop {
            runs += 1;
            let fusion = &mut BatchFusion { local: self, shared, mode };
            match shared.work.run(PortId(port), item, fusion) {
                RunOutcome::Next(PortId(next), on) => (port, item) = (next, on),
                left => break left,
            }
            if runs == HOPS_MAX || !self.may_run_next(&shared.ports[port], port, mode) {
                break RunOutcome::Next(PortId(port), item);
            }
        };
        self.runs += runs;
        left
    }

    /// Returns whether this thread may run the port now, and claims it in shared mode.
    #[inline]
    fn may_run_next(&mut self, port: &PortState<W::Item>, index: usize, mode: ExecutionMode) -> bool {
        match mode {
            ExecutionMode::Exclusive => port.is_free(self.pool),
            ExecutionMode::Shared(_) if port.fusion_pool != self.pool => false,
            ExecutionMode::Shared(fusion_limit) => {
                self.has_claimed(index) || (self.held.len() < fusion_limit && self.try_claim(port, index))
            }
        }
    }

    /// Buffers an item for the queue of the next port.
    fn buffer_output(&mut self, shared: &SchedulerState<W>, port: usize, item: W::Item) {
        if self.output_port.is_some_and(|to| to != port) {
            self.flush_output(shared);
        }
        self.output_port = Some(port);
        self.output.push(item);
    }

    /// Returns whether the port has been claimed for this batch.
    #[inline]
    fn has_claimed(&self, port: usize) -> bool {
        self.claims.get(port) == Some(&self.batch_number)
    }

    /// Claims a port, unless items for it are buffered: these come first.
    fn try_claim(&mut self, port: &PortState<W::Item>, index: usize) -> bool {
        let claimed = self.output_port != Some(index) && port.queue.try_claim();
        if claimed {
            if self.claims.len() <= index {
                self.claims.resize(index + 1, 0);
            }
            self.claims[index] = self.batch_number;
            self.held.push(index);
        }
        claimed
    }

    /// Puts the buffered output into the queue of its port. Keeps the port as the next one of this worker if it belongs
    /// to the same pool and no other worker will run it.
    fn flush_output(&mut self, shared: &SchedulerState<W>) {
        let Some(next) = self.output_port.take() else { return };
        let put = shared.ports[next].queue.put_batch(&mut self.output);
        if put.is_full {
            self.blocked = Some(next);
        }
        if put.must_schedule {
            let own = shared.ports[next].pool == self.pool;
            match if own { self.next_port.replace(next) } else { Some(next) } {
                Some(other) if shared.oversubscribed && shared.ports[self.start_port].is_nonblocking() => {
                    self.deferred.push(other)
                }
                other => other.into_iter().for_each(|port| shared.schedule(port)),
            }
        }
        if put.is_full {
            self.flush_deferred(shared);
        }
    }

    /// Schedules the ports whose wake-ups were deferred. If threads outnumber processors, a worker that is woken early
    /// finds little to do and takes the processor from the one that woke it.
    pub(crate) fn flush_deferred(&mut self, shared: &SchedulerState<W>) {
        self.deferred.drain(..).for_each(|port| shared.schedule(port));
    }

    /// Releases the ports of this batch. Returns the state of the start port, or registers it as waiting if its output
    /// found a full queue.
    fn release_ports(&mut self, shared: &SchedulerState<W>, first: usize) -> Remaining {
        // A port waits only for a later one: waiting for an earlier port could close a cycle of waiting ports.
        let blocked = self.blocked.take().filter(|next| *next > first);
        let waits = blocked.is_some_and(|next| shared.ports[next].queue.wait_for_room(first));
        let left = if waits { Remaining::Empty } else { shared.ports[first].queue.finish_batch() };
        for port in self.held.drain(..).skip(1) {
            if shared.ports[port].queue.finish_batch() == Remaining::More {
                shared.schedule(port);
            }
        }
        left
    }

    /// Adds the executions of this worker to its pool's item count, which the controller reads.
    #[inline]
    pub(crate) fn flush_item_count(&mut self, slot: &WorkerSlot) {
        slot.add_items(std::mem::take(&mut self.runs));
    }
}

/// Puts an item back into the queue of a port, because it has computed for as long as it may.
#[cold]
fn put_back<W: Work>(shared: &SchedulerState<W>, port: usize, item: W::Item) {
    if shared.ports[port].queue.put_back(item).must_schedule {
        shared.schedule(port);
    }
}
