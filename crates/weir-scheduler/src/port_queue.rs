//! Port queue: a bounded FIFO queue, with a flag that admits one consumer at a time.
//!
//! A port is *scheduled* from the moment when an item arrives until a consumer finds it empty. The flag is the right to
//! consume: it has one holder, which is the ready queue, a worker, or the list of ports that wait for room in another
//! queue.
//!
//! ```text
//!              put (must_schedule), try_claim
//!    Idle ----------------------------------------> Scheduled
//!    (empty) <----------------------------------- (ready, running, or
//!              finish_batch, queue empty             waiting for room)
//! ```
//!
//! Protocol; every step holds the mutex:
//! 1. *Put.* A producer appends items. If the port was idle, it sets `scheduled` and must push the port to the ready
//!    queue of its pool.
//! 2. *Run.* The holder of the port takes a batch and runs it. No other thread runs the port meanwhile.
//! 3. *Finish.* The holder clears `scheduled` if the queue is empty. Otherwise it schedules the port again, or
//!    registers it as waiting for room further on (step 5).
//! 4. *Full.* A queue is full from `capacity` items on, and refuses the items of a source (`try_put`). A port that
//!    finishes a batch, and an item that comes back from waiting, may exceed the capacity. A worker stops exceeding it
//!    after one batch per port that leads to it, because those ports then wait (step 5).
//! 5. *Wait.* A port that found the next queue full is registered there and stays scheduled. The consumer of that queue
//!    schedules it again when the queue is down to `low_water` items.
//!    Items that are *put back* (`put_back`), because they have computed for as long as they may, take up no room. A
//!    batch takes items of both kinds, so that neither holds up the other. The rest of a batch that ends early returns to
//!    the front (`return_rest`), and may exceed the capacity by as much.
//! 6. *Claim.* A thread that wants to run an item without queueing it claims the port: it sets `scheduled` if it is
//!    false. The queue of an idle port is empty, so that the item overtakes nothing. Steps 2 and 3 follow.
//!
//! Orderings: `scheduled` is written with the mutex held, by release stores, and read without it, by acquire loads.
//! * A thread in exclusive mode only loads `scheduled`. If it reads false, the load synchronises with the store of step
//!   3, and everything that the last consumer did happens before. No other thread can run the port, and an item that is
//!   put meanwhile came later.
//! * For every other reader without the mutex it is a hint, which step 6 checks again with the mutex held.
//!
//! A hop between two threads costs one cache-line transfer for the queue: `scheduled`, the mutex and the first item
//! share a line. Further items are stored elsewhere. Every additional line would cost as much as the rest of the hop.

use std::collections::VecDeque;
use std::task::Waker;

use crossbeam_utils::CachePadded;

use super::sync::{AtomicBool, Mutex, Ordering, SchedulerMutant, is};

/// The maximum number of returned items in a batch. Chosen by judgement: each of them computes for a whole slice, and
/// the other items of the port wait for them.
const RETURNED_MAX: usize = 4;

/// The queue of one port.
pub(crate) struct PortQueue<T> {
    /// The fields that change with every item, on a cache line of their own.
    hot: CachePadded<HotLine<T>>,
    /// The number of items from which on the queue is full.
    capacity: usize,
    /// The number of items at which ports that wait for room continue.
    low_water: usize,
}

/// The fields of a queue that change with every item.
struct HotLine<T> {
    /// True while the port is ready, running or waiting for room. Written with the mutex held.
    scheduled: AtomicBool,
    state: Mutex<QueueState<T>>,
}

/// The fields behind the mutex.
struct QueueState<T> {
    /// The item before all others.
    first: Option<T>,
    /// The other items, in order.
    more: VecDeque<T>,
    /// The items that were put back, in order.
    returned: VecDeque<T>,
    /// True if a batch of one item takes a returned one next, if both kinds are there.
    returned_is_next: bool,
    /// The ports and sources that wait for room; allocated for the first one.
    waiting: Option<Box<RoomWaiters>>,
}

/// The ports and sources that wait for room in a queue.
#[derive(Default)]
struct RoomWaiters {
    ports: Vec<usize>,
    sources: Vec<Waker>,
}

impl<T> QueueState<T> {
    /// Returns the number of items that take up room.
    fn item_count(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn is_empty(&self) -> bool {
        self.item_count() == 0 && self.returned.is_empty()
    }

    fn push(&mut self, item: T) {
        if self.item_count() == 0 { self.first = Some(item) } else { self.more.push_back(item) }
    }

    /// Moves a batch out, the returned items last; returns their number.
    fn pop_batch(&mut self, most: usize, batch: &mut Vec<T>) -> usize {
        let returned = if self.returned.is_empty() { 0 } else { self.share_of_returned(most) };
        self.pop_new(most - returned, batch);
        batch.extend(self.returned.drain(..returned));
        returned
    }

    fn push_front(&mut self, item: T) {
        self.first.replace(item).into_iter().for_each(|second| self.more.push_front(second));
    }

    /// Returns the number of returned items in a batch of at most `most` items. Neither kind of items holds up the
    /// other: a batch of one takes them in turn.
    #[cold]
    fn share_of_returned(&mut self, most: usize) -> usize {
        let share = match (most, self.item_count()) {
            (_, 0) => most,
            (1, _) => {
                self.returned_is_next = !self.returned_is_next;
                usize::from(!self.returned_is_next)
            }
            _ => most / 2,
        };
        share.min(RETURNED_MAX).min(self.returned.len())
    }

    fn pop_new(&mut self, most: usize, batch: &mut Vec<T>) {
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

    /// Moves the waiters that may continue to `released`.
    fn release(&mut self, ports_may: bool, sources_may: bool, released: &mut Released) {
        if ports_may {
            released.ports.append(&mut self.ports);
        }
        if sources_may {
            released.sources.append(&mut self.sources);
        }
    }
}

/// The ports and sources that waited for room and may continue.
#[derive(Default)]
pub(crate) struct Released {
    /// Ports to be scheduled.
    pub(crate) ports: Vec<usize>,
    /// Wakers of sources.
    pub(crate) sources: Vec<Waker>,
}

/// The outcome of putting items into a queue, for the thread that did so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PutOutcome {
    /// The port was idle: the caller must push it to the ready queue.
    pub(crate) must_schedule: bool,
    /// The queue is full.
    pub(crate) is_full: bool,
}

/// The state of a port's queue after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// Empty: the port is idle.
    Empty,
    /// Not empty: the port is still scheduled, and the caller must push it to the ready queue.
    More,
}

impl<T> PortQueue<T> {
    /// Creates an empty queue.
    pub(crate) fn new(capacity: usize, low_water: usize) -> Self {
        assert!(capacity > 0, "a queue without room would never be emptied");
        let state = QueueState {
            first: None,
            more: VecDeque::with_capacity(capacity),
            returned: VecDeque::new(),
            returned_is_next: false,
            waiting: None,
        };
        let hot = HotLine { scheduled: AtomicBool::new(false), state: Mutex::new(state) };
        PortQueue { hot: CachePadded::new(hot), capacity, low_water }
    }

    /// Returns whether the port is scheduled. Without the mutex, true is always a hint; false is certain only for a
    /// thread in exclusive mode.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.hot.scheduled.load(Ordering::Acquire)
    }

    /// Claims the port for the calling thread if it is idle.
    pub(crate) fn try_claim(&self) -> bool {
        if self.is_scheduled() {
            return false;
        }
        let _state = self.hot.state.lock();
        let claimed = !self.is_scheduled() || is(SchedulerMutant::BlindClaim);
        self.hot.scheduled.store(true, Ordering::Release);
        claimed
    }

    /// Appends an item, or gives it back if the queue is full.
    pub(crate) fn try_put(&self, item: T) -> Result<PutOutcome, T> {
        let mut state = self.hot.state.lock();
        if state.item_count() >= self.capacity {
            return Err(item);
        }
        state.push(item);
        Ok(self.mark_scheduled(&state))
    }

    /// Appends an item even if the queue is full.
    pub(crate) fn put(&self, item: T) -> PutOutcome {
        let mut state = self.hot.state.lock();
        state.push(item);
        self.mark_scheduled(&state)
    }

    /// Appends a batch even if the queue is full.
    pub(crate) fn put_batch(&self, batch: &mut Vec<T>) -> PutOutcome {
        let mut state = self.hot.state.lock();
        if batch.len() == 1 {
            batch.pop().into_iter().for_each(|item| state.push(item));
        } else {
            state.more.extend(batch.drain(..));
        }
        self.mark_scheduled(&state)
    }

    /// Puts an item back that was taken from this queue or has bypassed it. It takes up no room: otherwise items that
    /// compute for long, which only this port can finish, could keep ports and sources waiting for room for ever.
    pub(crate) fn put_back(&self, item: T) -> PutOutcome {
        let mut state = self.hot.state.lock();
        state.returned.push_back(item);
        self.mark_scheduled(&state)
    }

    /// Sets `scheduled` after a put.
    fn mark_scheduled(&self, state: &QueueState<T>) -> PutOutcome {
        let must_schedule = !self.is_scheduled();
        self.hot.scheduled.store(true, Ordering::Release);
        PutOutcome { must_schedule, is_full: state.item_count() >= self.capacity }
    }

    /// Moves at most `most` items to `batch`, and the ports and sources that waited for that much room to `released`.
    /// Returns the number of items that were put back once; they are the last of the batch.
    pub(crate) fn take_batch(&self, most: usize, batch: &mut Vec<T>, released: &mut Released) -> usize {
        let mut state = self.hot.state.lock();
        let returned = state.pop_batch(most, batch);
        let left = state.item_count();
        if let Some(waiting) = &mut state.waiting {
            waiting.release(left <= self.low_water, left < self.capacity, released);
        }
        returned
    }

    /// Returns the rest of a batch to the front, whose order it keeps; the last `returned` items had been put back once.
    /// Called by the holder of the port.
    pub(crate) fn return_rest(&self, rest: &mut std::vec::Drain<'_, T>, returned: usize) {
        let mut state = self.hot.state.lock();
        for index in 0..rest.len() {
            match rest.next_back() {
                Some(item) if index < returned => state.returned.push_front(item),
                item => item.into_iter().for_each(|item| state.push_front(item)),
            }
        }
    }

    /// Ends the run of a batch: makes the port idle if its queue is empty.
    pub(crate) fn finish_batch(&self) -> Remaining {
        let state = self.hot.state.lock();
        if state.is_empty() || is(SchedulerMutant::BlindUnschedule) {
            self.hot.scheduled.store(false, Ordering::Release);
            return Remaining::Empty;
        }
        Remaining::More
    }

    /// Registers `port` as waiting for room here. Returns false if there is room.
    pub(crate) fn wait_for_room(&self, port: usize) -> bool {
        let mut state = self.hot.state.lock();
        let full = state.item_count() >= self.capacity;
        if full {
            state.waiting.get_or_insert_default().ports.push(port);
        }
        full
    }

    /// Returns whether there is room; otherwise registers `waker`, which is woken once there is.
    pub(crate) fn has_room_or_wait(&self, waker: &Waker) -> bool {
        let mut state = self.hot.state.lock();
        let room = state.item_count() < self.capacity;
        if !room {
            state.waiting.get_or_insert_default().add_source(waker);
        }
        room
    }

    /// Returns the number of items that fit.
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    /// Returns the number of items from which on the queue is full.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of waiting items.
    pub(crate) fn len(&self) -> usize {
        self.hot.state.lock().item_count()
    }
}
