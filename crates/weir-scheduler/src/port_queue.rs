//! The queue of one port, and whether somebody will come to empty it.
//!
//! Protocol, all of it under the inbox's lock:
//! 1. Who puts items into an inbox that is not `scheduled` lists it, and must then hand the port to its crew.
//! 2. Who was handed the port takes a batch, runs it, and then either relists the port, or leaves it unlisted because it
//!    is empty, or has it wait for room further on. From 1 to here nobody else runs the port.
//! 3. An inbox is *full* from `capacity` on. Filling it beyond is allowed to ports that finish a batch, so it holds at most
//!    `capacity` and a batch for each port that leads to it.
//! 4. A port that found the next one full is noted there as waiting; it stays listed, and is handed to its crew when the
//!    next one has room again.
//! 5. Who wants to run an item at the port without putting it in claims the port, which lists it; that succeeds only where
//!    it is not listed, and thus empty. From there on it is as in 2. A thread that has all ports of a crew to itself only
//!    has to see that the port is not listed: nobody else could run it, and what is put in meanwhile was not there first.
//!
//! What a hop between two threads touches lies in one line of cache, and each line more takes as long to come over as all
//! else that is done at a hop. So a single item lies beside the lock, and those that wait lie elsewhere.

use std::collections::VecDeque;
use std::task::Waker;

use crossbeam_utils::CachePadded;

use super::sync::{AtomicBool, Mutex, Ordering, SchedulerMutant, is};

/// The queue of one port.
pub(crate) struct PortQueue<T> {
    hot: CachePadded<HotLine<T>>,
    capacity: usize,
    /// Down to how many items it has to be emptied before those that wait for room go on.
    low_water: usize,
}

/// What changes with every item.
struct HotLine<T> {
    /// Whether the port is handed to its crew, running, or waiting for room: whether it will be looked after. Written only
    /// under the lock.
    scheduled: AtomicBool,
    state: Mutex<QueueState<T>>,
}

struct QueueState<T> {
    /// Comes before all others.
    first: Option<T>,
    more: VecDeque<T>,
    /// Those that wait until there is room, once there were some.
    waiting: Option<Box<RoomWaiters>>,
}

/// Those that wait until there is room.
#[derive(Default)]
struct RoomWaiters {
    ports: Vec<usize>,
    sources: Vec<Waker>,
}

impl<T> QueueState<T> {
    fn item_count(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_empty()
    }

    fn push(&mut self, item: T) {
        if self.is_empty() { self.first = Some(item) } else { self.more.push_back(item) }
    }

    fn pop_batch(&mut self, most: usize, batch: &mut Vec<T>) {
        if most == 0 {
            return;
        }
        let first = self.first.take();
        let further = (most - usize::from(first.is_some())).min(self.more.len());
        batch.extend(first);
        if further > 0 {
            batch.extend(self.more.drain(..further));
        }
    }
}

impl RoomWaiters {
    fn add_source(&mut self, waker: &Waker) {
        if !self.sources.iter().any(|other| other.will_wake(waker)) {
            self.sources.push(waker.clone());
        }
    }

    /// Puts those into `released` that may go on.
    fn release(&mut self, ports_may: bool, sources_may: bool, released: &mut Released) {
        if ports_may {
            released.ports.append(&mut self.ports);
        }
        if sources_may {
            released.sources.append(&mut self.sources);
        }
    }
}

/// Those that waited for room and may go on.
#[derive(Default)]
pub(crate) struct Released {
    /// To be handed to their crews.
    pub(crate) ports: Vec<usize>,
    /// To be woken.
    pub(crate) sources: Vec<Waker>,
}

/// What putting items into an inbox asks of the one who put them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PutOutcome {
    /// The port has to be handed to its crew.
    pub(crate) must_schedule: bool,
    /// The inbox is full now.
    pub(crate) is_full: bool,
}

/// What is left after a batch was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// Nothing; the port is unlisted.
    Empty,
    /// More; the port is still listed and has to be handed to its crew.
    More,
}

impl<T> PortQueue<T> {
    pub(crate) fn new(capacity: usize, low_water: usize) -> Self {
        assert!(capacity > 0, "a queue without room would never be emptied");
        let state = QueueState { first: None, more: VecDeque::with_capacity(capacity), waiting: None };
        let hot = HotLine { scheduled: AtomicBool::new(false), state: Mutex::new(state) };
        PortQueue { hot: CachePadded::new(hot), capacity, low_water }
    }

    /// Whether the port is listed. It may be so at any time; that it is not so any more is for its holder to say.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.hot.scheduled.load(Ordering::Acquire)
    }

    /// Lists the port for this thread to run, where it is not listed.
    pub(crate) fn try_claim(&self) -> bool {
        if self.is_scheduled() {
            return false;
        }
        let _state = self.hot.state.lock();
        let claimed = !self.is_scheduled() || is(SchedulerMutant::BlindClaim);
        self.hot.scheduled.store(true, Ordering::Release);
        claimed
    }

    /// Puts one item in, where there is room.
    pub(crate) fn try_put(&self, item: T) -> Result<PutOutcome, T> {
        let mut state = self.hot.state.lock();
        if state.item_count() >= self.capacity {
            return Err(item);
        }
        state.push(item);
        Ok(self.mark_scheduled(&state))
    }

    /// Puts one item in, beyond the capacity if need be.
    pub(crate) fn put(&self, item: T) -> PutOutcome {
        let mut state = self.hot.state.lock();
        state.push(item);
        self.mark_scheduled(&state)
    }

    /// Puts a batch in, beyond the capacity if need be.
    pub(crate) fn put_batch(&self, batch: &mut Vec<T>) -> PutOutcome {
        let mut state = self.hot.state.lock();
        if batch.len() == 1 {
            batch.pop().into_iter().for_each(|item| state.push(item));
        } else {
            state.more.extend(batch.drain(..));
        }
        self.mark_scheduled(&state)
    }

    fn mark_scheduled(&self, state: &QueueState<T>) -> PutOutcome {
        let must_schedule = !self.is_scheduled();
        self.hot.scheduled.store(true, Ordering::Release);
        PutOutcome { must_schedule, is_full: state.item_count() >= self.capacity }
    }

    /// Takes at most `most` items, and into `released` those that waited for the room that this makes.
    pub(crate) fn take_batch(&self, most: usize, batch: &mut Vec<T>, released: &mut Released) {
        let mut state = self.hot.state.lock();
        state.pop_batch(most, batch);
        let left = state.item_count();
        if let Some(waiting) = &mut state.waiting {
            waiting.release(left <= self.low_water, left < self.capacity, released);
        }
    }

    /// After a batch: unlists the port where it is empty.
    pub(crate) fn finish_batch(&self) -> Remaining {
        let state = self.hot.state.lock();
        if state.is_empty() || is(SchedulerMutant::BlindUnschedule) {
            self.hot.scheduled.store(false, Ordering::Release);
            return Remaining::Empty;
        }
        Remaining::More
    }

    /// Notes that `port` waits for room here; false where there is room already.
    pub(crate) fn wait_for_room(&self, port: usize) -> bool {
        let mut state = self.hot.state.lock();
        let full = state.item_count() >= self.capacity;
        if full {
            state.waiting.get_or_insert_default().ports.push(port);
        }
        full
    }

    /// Whether there is room; where there is none, `waker` is woken when there is.
    pub(crate) fn has_room_or_wait(&self, waker: &Waker) -> bool {
        let mut state = self.hot.state.lock();
        let room = state.item_count() < self.capacity;
        if !room {
            state.waiting.get_or_insert_default().add_source(waker);
        }
        room
    }

    /// For how many items there is room.
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    /// From how many items on it is full.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many items wait.
    pub(crate) fn len(&self) -> usize {
        self.hot.state.lock().item_count()
    }
}
