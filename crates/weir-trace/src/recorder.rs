//! Recorder of trace events. While no reader is attached, it costs one relaxed load per event.
//!
//! Protocol:
//! 1. A thread that has an event to record calls [`Recorder::wants`] first, so that an unwanted event is never made.
//! 2. [`Recorder::record`] appends the event to the ring of each reader that wants its detail. A full ring drops its
//!    oldest event and counts it, because a program must not wait for its observers.
//! 3. A reader waits for events on a condition variable. A thread that produces events only for a reader waits until
//!    one wants them ([`Recorder::poll_wants`]). Neither polls, so that an idle program does nothing.
//! 4. A reader that is dropped is removed, and the wanted detail is computed anew.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::event::{Detail, EventKind, TraceEvent};

/// A recorder of events. Clones share its readers.
#[derive(Clone)]
pub struct Recorder(Arc<RecorderState>);

/// A reader of recorded events.
pub struct TraceReader {
    shared: Arc<RecorderState>,
    queue: Arc<ReaderQueue>,
}

#[derive(Default)]
struct RecorderState {
    /// The finest [`Detail`] that a reader wants, as a number. Read by every thread before it records, written with
    /// `listeners` locked.
    detail: AtomicU8,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    /// The queue of each reader.
    queues: Vec<Arc<ReaderQueue>>,
    /// The wakers of tasks that wait until more detail is wanted.
    waiting: Vec<Waker>,
}

/// The events for one reader.
struct ReaderQueue {
    /// The [`Detail`] that the reader wants, as a number. Written by the reader.
    detail: AtomicU8,
    ring: Mutex<Ring>,
    arrived: Condvar,
    events_max: usize,
}

#[derive(Default)]
struct Ring {
    events: VecDeque<TraceEvent>,
    lost: u64,
    /// True if no reader waits any more.
    ended: bool,
}

impl Recorder {
    /// The default number of events that wait for a reader.
    pub const EVENTS_MAX: usize = 65_536;

    /// Creates a recorder with a first reader, which wants this detail.
    #[must_use]
    pub fn new(detail: Detail, events_max: usize) -> (Recorder, TraceReader) {
        let recorder = Recorder::off();
        let reader = recorder.reader(detail, events_max);
        (recorder, reader)
    }

    /// Creates a recorder without a reader. It records nothing.
    #[must_use]
    pub fn off() -> Recorder {
        Recorder(Arc::default())
    }

    /// Adds a reader of the events from now on. It loses the oldest ones if more than `events_max` wait.
    #[must_use]
    pub fn reader(&self, detail: Detail, events_max: usize) -> TraceReader {
        let queue = ReaderQueue {
            detail: AtomicU8::new(detail as u8),
            ring: Mutex::default(),
            arrived: Condvar::new(),
            events_max: events_max.max(1),
        };
        let reader = TraceReader { shared: Arc::clone(&self.0), queue: Arc::new(queue) };
        self.0.change(|queues| queues.push(Arc::clone(&reader.queue)));
        reader
    }

    /// Waits until a reader wants events of this detail.
    pub fn poll_wants(&self, detail: Detail, context: &Context<'_>) -> Poll<()> {
        let mut listeners = self.0.listeners();
        // With the lock held, so that a reader that is added now is not missed.
        if self.wants(detail) {
            return Poll::Ready(());
        }
        if !listeners.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            listeners.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Returns whether some reader wants events of this detail. The load is relaxed: an event at the moment of a change may
    /// be recorded or not.
    #[inline]
    #[must_use]
    pub fn wants(&self, detail: Detail) -> bool {
        self.0.detail.load(Ordering::Relaxed) >= detail as u8
    }

    /// Records an event that happened at `at_ns`. The caller has called [`Recorder::wants`].
    pub fn record(&self, at_ns: u64, kind: EventKind) {
        let detail = kind.detail() as u8;
        for queue in self.0.listeners().queues.iter().filter(|queue| queue.detail.load(Ordering::Relaxed) >= detail) {
            queue.push(TraceEvent { at_ns, kind: kind.clone() });
        }
    }
}

impl TraceReader {
    /// Changes the detail that this reader wants from now on.
    pub fn set_detail(&self, detail: Detail) {
        self.shared.change(|_| self.queue.detail.store(detail as u8, Ordering::Relaxed));
    }

    /// Takes all waiting events.
    #[must_use]
    pub fn take(&self) -> Vec<TraceEvent> {
        self.queue.ring().events.drain(..).collect()
    }

    /// Takes all waiting events, after waiting for the first one for at most `at_most`.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> Vec<TraceEvent> {
        let ring = self.queue.ring();
        let waited = self.queue.arrived.wait_timeout_while(ring, at_most, |ring| ring.events.is_empty());
        let (mut ring, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ring.events.drain(..).collect()
    }

    /// Takes all waiting events, after waiting for the first one. Returns `None` once the reader has been ended and all
    /// events have been taken.
    #[must_use]
    pub fn next(&self) -> Option<Vec<TraceEvent>> {
        let ring = self.queue.ring();
        let waited = self.queue.arrived.wait_while(ring, |ring| ring.events.is_empty() && !ring.ended);
        let mut ring = waited.unwrap_or_else(PoisonError::into_inner);
        (!ring.events.is_empty()).then(|| ring.events.drain(..).collect())
    }

    /// Ends all waits in [`TraceReader::next`], now and later.
    pub fn end(&self) {
        self.queue.ring().ended = true;
        self.queue.arrived.notify_all();
    }

    /// Returns the number of events that were dropped because the ring was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.queue.ring().lost
    }
}

impl Drop for TraceReader {
    fn drop(&mut self) {
        self.shared.change(|queues| queues.retain(|queue| !Arc::ptr_eq(queue, &self.queue)));
    }
}

impl RecorderState {
    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the readers, then computes the wanted detail and wakes the tasks that wait for it.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<ReaderQueue>>)) {
        let mut listeners = self.listeners();
        change(&mut listeners.queues);
        let finest = listeners.queues.iter().map(|queue| queue.detail.load(Ordering::Relaxed)).max();
        self.detail.store(finest.unwrap_or(Detail::Off as u8), Ordering::Relaxed);
        let waiting = std::mem::take(&mut listeners.waiting);
        drop(listeners);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl ReaderQueue {
    fn push(&self, event: TraceEvent) {
        let mut ring = self.ring();
        if ring.events.len() >= self.events_max {
            ring.events.pop_front();
            ring.lost += 1;
        }
        ring.events.push_back(event);
        drop(ring);
        self.arrived.notify_all();
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RefusalReason;

    #[test]
    fn detail_includes_what_is_coarser() {
        let (recorder, reader) = Recorder::new(Detail::Flows, 8);
        assert!(recorder.wants(Detail::Log) && recorder.wants(Detail::Flows) && !recorder.wants(Detail::Nodes));
        reader.set_detail(Detail::Off);
        assert!(!recorder.wants(Detail::Log));
    }

    #[test]
    fn a_full_ring_loses_the_oldest_and_counts_it() {
        let (recorder, reader) = Recorder::new(Detail::Log, 2);
        for entry in 0..3 {
            recorder.record(u64::from(entry), EventKind::Refused { entry, reason: RefusalReason::Full });
        }
        assert_eq!(reader.lost(), 1);
        let times: Vec<u64> = reader.take().iter().map(|event| event.at_ns).collect();
        assert_eq!(times, [1, 2]);
    }

    #[test]
    fn each_reader_is_given_what_it_wants_and_loses_for_itself() {
        let (recorder, log) = Recorder::new(Detail::Log, 8);
        let slow = recorder.reader(Detail::Flows, 1);
        let flow = crate::FlowKey { entry: 0, route: 0, sequence: 0 };
        for kind in [EventKind::FlowBegan { flow }, EventKind::Stopping, EventKind::FlowEnded { flow }] {
            recorder.record(1, kind);
        }
        assert_eq!(log.take(), [TraceEvent { at_ns: 1, kind: EventKind::Stopping }]);
        assert_eq!(slow.take(), [TraceEvent { at_ns: 1, kind: EventKind::FlowEnded { flow } }]);
        assert_eq!((log.lost(), slow.lost()), (0, 2));
    }

    #[test]
    fn what_only_a_reader_wanted_that_is_gone_is_not_recorded() {
        let (recorder, log) = Recorder::new(Detail::Log, 8);
        drop(recorder.reader(Detail::Nodes, 8));
        assert!(recorder.wants(Detail::Log) && !recorder.wants(Detail::Sections));
        drop(log);
        assert!(!recorder.wants(Detail::Log));
    }

    #[test]
    fn who_waits_for_a_listener_is_woken_by_one_who_wants_as_much() {
        struct WakeCount(AtomicU8);
        impl std::task::Wake for WakeCount {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (recorder, woken) = (Recorder::off(), Arc::new(WakeCount(AtomicU8::new(0))));
        let waker = Waker::from(Arc::clone(&woken));
        let wanted = || recorder.poll_wants(Detail::Sections, &Context::from_waker(&waker)).is_ready();
        assert!(!wanted() && !wanted());
        let log = recorder.reader(Detail::Log, 8);
        assert!(woken.0.load(Ordering::Relaxed) == 1 && !wanted(), "a change, but of too little");
        log.set_detail(Detail::Flows);
        assert!(woken.0.load(Ordering::Relaxed) == 2 && wanted());
    }

    #[test]
    fn a_reader_that_is_ended_yields_what_is_left() {
        let (recorder, reader) = Recorder::new(Detail::Log, 2);
        recorder.record(7, EventKind::Stopping);
        reader.end();
        assert_eq!(reader.next(), Some(vec![TraceEvent { at_ns: 7, kind: EventKind::Stopping }]));
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn the_end_wakes_a_reader() {
        let (_recorder, reader) = Recorder::new(Detail::Log, 2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| reader.next());
            reader.end();
            assert_eq!(waits.join().unwrap(), None);
        });
    }

    #[test]
    fn a_reader_waits_for_what_another_thread_records() {
        let (recorder, reader) = Recorder::new(Detail::Log, 2);
        let writer = std::thread::spawn(move || recorder.record(7, EventKind::Stopping));
        assert_eq!(reader.wait(Duration::from_secs(60)), [TraceEvent { at_ns: 7, kind: EventKind::Stopping }]);
        writer.join().unwrap();
    }
}
