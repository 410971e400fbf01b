//! A recorder of events that costs one load where nobody listens.
//!
//! Protocol: whoever has something to record asks [`Recorder::wants`] first, so that an event nobody wants is never made.
//! Events wait in a ring of bounded length; where it is full the oldest is lost and counted, for a program must not wait
//! for those who watch it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::event::{Event, What};

/// How much is recorded; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing.
    Off,
    /// What a person should hear of: sources, failures, refusals.
    Log,
    /// Once in a period, what each section and each route is doing.
    Sections,
    /// Every flow's beginning and end.
    Flows,
    /// Every node.
    Nodes,
}

/// Where a program records what happens in it. Cloned freely.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

/// Takes recorded events out.
pub struct Reader(Arc<Shared>);

struct Shared {
    /// A [`Detail`] as its number; read by every thread before it records, written by readers.
    detail: AtomicU8,
    ring: Mutex<Ring>,
    arrived: Condvar,
    events_max: usize,
}

#[derive(Default)]
struct Ring {
    events: VecDeque<Event>,
    lost: u64,
}

impl Recorder {
    /// How many events wait for a reader where nothing else is said.
    pub const EVENTS_MAX: usize = 65_536;

    /// A recorder of this detail, and its reader.
    #[must_use]
    pub fn new(detail: Detail, events_max: usize) -> (Recorder, Reader) {
        let shared = Arc::new(Shared {
            detail: AtomicU8::new(detail as u8),
            ring: Mutex::default(),
            arrived: Condvar::new(),
            events_max: events_max.max(1),
        });
        (Recorder(Arc::clone(&shared)), Reader(shared))
    }

    /// A recorder that records nothing.
    #[must_use]
    pub fn off() -> Recorder {
        Recorder::new(Detail::Off, 1).0
    }

    /// Whether events of this detail are recorded.
    #[inline]
    #[must_use]
    pub fn wants(&self, detail: Detail) -> bool {
        self.0.detail.load(Ordering::Relaxed) >= detail as u8
    }

    /// Records what happened at `at_ns`. Whether somebody wants it is the caller's to ask.
    pub fn record(&self, at_ns: u64, what: What) {
        let mut ring = self.0.ring();
        if ring.events.len() >= self.0.events_max {
            ring.events.pop_front();
            ring.lost += 1;
        }
        ring.events.push_back(Event { at_ns, what });
        drop(ring);
        self.0.arrived.notify_all();
    }
}

impl Reader {
    /// Changes what is recorded from now on.
    pub fn set_detail(&self, detail: Detail) {
        self.0.detail.store(detail as u8, Ordering::Relaxed);
    }

    /// Takes all events that wait.
    #[must_use]
    pub fn take(&self) -> Vec<Event> {
        self.0.ring().events.drain(..).collect()
    }

    /// Takes all events that wait, and waits for the first at most `at_most`.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> Vec<Event> {
        let ring = self.0.ring();
        let waited = self.0.arrived.wait_timeout_while(ring, at_most, |ring| ring.events.is_empty());
        let (mut ring, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ring.events.drain(..).collect()
    }

    /// How many events were lost because nobody took them in time.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.ring().lost
    }
}

impl Shared {
    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            recorder.record(u64::from(entry), What::Refused { entry });
        }
        assert_eq!(reader.lost(), 1);
        let times: Vec<u64> = reader.take().iter().map(|event| event.at_ns).collect();
        assert_eq!(times, [1, 2]);
    }

    #[test]
    fn a_reader_waits_for_what_another_thread_records() {
        let (recorder, reader) = Recorder::new(Detail::Log, 2);
        let writer = std::thread::spawn(move || recorder.record(7, What::Stopping));
        assert_eq!(reader.wait(Duration::from_secs(60)), [Event { at_ns: 7, what: What::Stopping }]);
        writer.join().unwrap();
    }
}
