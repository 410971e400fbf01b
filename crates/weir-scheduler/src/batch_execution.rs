//! A turn: what a thread does with a port that it was handed.
//!
//! It takes a batch from the port, and takes each item through as many further ports as it may run itself, from call to
//! call and without a queue: that is what *fusing* is here. Where an item may not go on, it is kept, and goes into the
//! next port's inbox together with those behind it.
//!
//! A thread that works alone ([`ExecutionMode::Exclusive`]) may run every port that is not listed. One that works beside others claims
//! ports, and keeps them until its batch is through, so that a claim's price is shared by the batch. How many it claims is
//! the *reach* of the port where it began, and follows what was measured: fusing pays where work is cheaper than a queue,
//! and is in the way where another thread has nothing to do because of it.
//!
//! Order: an item passes by an inbox only where that is empty and nobody runs its port, so that it overtakes nothing.

use std::task::Waker;
use std::time::{Duration, Instant};

use crate::fusion_limit::FusionLimit;
use crate::port_queue::Remaining;
use crate::state::{PortState, SchedulerState};
use crate::thread_pool::WorkerSlot;
use crate::work::{Fusion, PortId, Work};
use crate::worker_local::{BATCH, WorkerLocal};

/// No item goes through more ports than this before others have their turn.
const HOPS_MAX: u64 = 4_096;
/// From how many items on a turn is worth being timed, which costs about as much as two hops through a queue.
const TIMED_MIN: usize = 16;

/// Who works alone lets others in after about this time.
const EXCLUSIVE_MAX: Duration = Duration::from_millis(1);

/// How a thread may run ports beyond the one it was handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutionMode {
    /// It has all ports of the crew to itself.
    Exclusive,
    /// It has to claim them, and has at most this many.
    Shared(usize),
}

/// A thread that asks for the ports that follow.
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

impl<W: Work> WorkerLocal<W> {
    /// Works on a batch of the port; gives the port of its crew that the batch went on to, where nobody has it yet.
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
            // It may be stuck here.
            self.flush_deferred(shared);
        }
        let most = if mode == ExecutionMode::Exclusive { self.batch_limit } else { BATCH };
        shared.ports[port].queue.take_batch(most, &mut self.batch, &mut self.released);
        self.wake_released(shared);
        let mut batch = std::mem::take(&mut self.batch);
        let (count, mut ended) = (batch.len(), 0);
        let begin = self.is_timed(count, mode).then(Instant::now);
        for item in batch.drain(..) {
            match self.run_item(shared, port, item, mode) {
                Some((next, item)) => self.buffer_output(shared, next, item),
                None => ended += 1,
            }
            self.flush_item_count(slot);
        }
        self.batch = batch;
        shared.work.after_batch();
        self.flush_output(shared);
        shared.finish(ended);
        if let Some(begin) = begin {
            self.adapt(&shared.ports[port].fusion_limit, begin.elapsed(), count, mode);
        }
        if self.release_ports(shared, port) == Remaining::More {
            self.reschedule(shared, port, was_next);
        }
        self.last_next_port = self.next_port;
        self.next_port.take()
    }

    /// Lets those go on that waited for room. Where all processors have threads of the crew, a source that is woken would wait
    /// for one, and be one more thread that could run; so it is let have this one's for the moment that it needs.
    fn wake_released(&mut self, shared: &SchedulerState<W>) {
        self.released.ports.drain(..).for_each(|waiting| shared.schedule(waiting));
        if !self.released.sources.is_empty() {
            self.released.sources.drain(..).for_each(Waker::wake);
            if shared.uses_all_processors(self.pool) {
                std::thread::yield_now();
            }
        }
    }

    /// Sees to it that the port where the turn began is looked after. Where this thread was carried there, it stays as long as
    /// it has nowhere to go: at the end of the list, the port would hold up all that leads to it for as long as these take.
    fn reschedule(&mut self, shared: &SchedulerState<W>, port: usize, was_next: bool) {
        if was_next && self.next_port.is_none() {
            self.next_port = Some(port);
        } else {
            shared.schedule(port);
        }
    }

    /// Whether a turn with so many items teaches more than looking at the clock costs. Of a single item who works alone
    /// learns only that there may be more.
    fn is_timed(&self, count: usize, mode: ExecutionMode) -> bool {
        match mode {
            ExecutionMode::Exclusive => count > 1 || self.batch_limit == 1,
            ExecutionMode::Shared(_) => count >= TIMED_MIN,
        }
    }

    /// Learns from a turn with so many items.
    fn adapt(&mut self, fusion_limit: &FusionLimit, took: Duration, count: usize, mode: ExecutionMode) {
        match mode {
            ExecutionMode::Exclusive if took > EXCLUSIVE_MAX => self.batch_limit = (self.batch_limit / 2).max(1),
            ExecutionMode::Exclusive => self.batch_limit = (self.batch_limit * 2).min(BATCH),
            ExecutionMode::Shared(most) => fusion_limit.adapt(took / count.max(1) as u32, self.held.len() >= most),
        }
    }

    /// Takes an item that is in no inbox through the graph, on a thread that works alone.
    #[inline]
    pub(crate) fn run_inline(&mut self, shared: &SchedulerState<W>, port: usize, item: W::Item) {
        if let Some((next, item)) = self.run_item(shared, port, item, ExecutionMode::Exclusive) {
            self.submit_detached(shared, next, item);
        }
    }

    /// Leaves an item that is in no inbox to the threads of the crew.
    pub(crate) fn submit_detached(&mut self, shared: &SchedulerState<W>, port: usize, item: W::Item) {
        shared.add_in_flight(1);
        self.buffer_output(shared, port, item);
        self.flush_output(shared);
        self.blocked = None;
        self.next_port.take().into_iter().for_each(|port| shared.schedule(port));
        self.flush_deferred(shared);
    }

    /// Takes an item through the port, and on through all that this thread may run. Yields it where it has to wait.
    #[inline]
    fn run_item(
        &mut self,
        shared: &SchedulerState<W>,
        mut port: usize,
        mut item: W::Item,
        mode: ExecutionMode,
    ) -> Option<(usize, W::Item)> {
        let mut runs = 0;
        let left = loop {
            runs += 1;
            let fusion = &mut BatchFusion { local: self, shared, mode };
            let Some((PortId(next), on)) = shared.work.run(PortId(port), item, fusion) else { break None };
            (port, item) = (next, on);
            if runs == HOPS_MAX || !self.may_run_next(&shared.ports[port], port, mode) {
                break Some((port, item));
            }
        };
        self.runs += runs;
        left
    }

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

    /// Keeps an item for the next port's inbox.
    fn buffer_output(&mut self, shared: &SchedulerState<W>, port: usize, item: W::Item) {
        if self.output_port.is_some_and(|to| to != port) {
            self.flush_output(shared);
        }
        self.output_port = Some(port);
        self.output.push(item);
    }

    #[inline]
    fn has_claimed(&self, port: usize) -> bool {
        self.claims.get(port) == Some(&self.batch_number)
    }

    /// What is kept for a port comes before what could go on to it now, and goes into its inbox first.
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

    /// Puts what has come out for one port into its inbox.
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

    /// Hands over the ports that are still to be handed. Where threads outnumber processors, who was woken early would
    /// find little to do and hold up who woke it.
    pub(crate) fn flush_deferred(&mut self, shared: &SchedulerState<W>) {
        self.deferred.drain(..).for_each(|port| shared.schedule(port));
    }

    /// Gives back the ports of this turn, and yields what is left at the one where it began; that waits where what came out
    /// of it found no room.
    fn release_ports(&mut self, shared: &SchedulerState<W>, first: usize) -> Remaining {
        // Waiting for an earlier port could close a circle of ports that wait for each other.
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

    /// Tells what it has done to those who steer.
    #[inline]
    pub(crate) fn flush_item_count(&mut self, slot: &WorkerSlot) {
        slot.add_items(std::mem::take(&mut self.runs));
    }
}
