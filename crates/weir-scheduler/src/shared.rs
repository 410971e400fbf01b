//! What all threads of a scheduler share: the ports, the crews, and how many items are under way.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};

use crate::crew::Running;
use crate::guest::Guest;
use crate::inbox::Inbox;
use crate::places::Places;
use crate::reach::Reach;
use crate::rest::Rest;
use crate::work::Work;

/// Not the index of a crew.
pub(crate) const NO_CREW: usize = usize::MAX;

/// A port at work.
pub(crate) struct Port<T> {
    pub(crate) inbox: Inbox<T>,
    pub(crate) crew: usize,
    /// The crew whose threads may run it in one go with other ports: its own, or [`NO_CREW`].
    pub(crate) fuses_in: usize,
    pub(crate) reach: Reach,
}

impl<T> Port<T> {
    /// Whether threads may run it in one go with other ports.
    pub(crate) fn is_brief(&self) -> bool {
        self.fuses_in != NO_CREW
    }

    /// Whether a thread that has the crew to itself may run it now.
    #[inline]
    pub(crate) fn is_free(&self, crew: usize) -> bool {
        self.fuses_in == crew && !self.inbox.is_listed()
    }
}

/// What all threads share.
pub(crate) struct Shared<W: Work> {
    pub(crate) work: W,
    pub(crate) ports: Vec<Port<W::Item>>,
    pub(crate) crews: Vec<Running>,
    /// Whether there may be more threads than processors.
    pub(crate) crowded: bool,
    /// How many threads the system runs at once.
    processors: usize,
    /// By crew: who works there.
    pub(crate) places: Vec<CachePadded<Places>>,
    /// By crew: who puts items in, and is a guest of the crew while it works alone.
    pub(crate) guests: Vec<CachePadded<Guest<W>>>,
    /// The first elastic crew, whose guests bring items in batches.
    pub(crate) elastic: Option<usize>,
    /// Whether who steers rests; read by everybody who takes something up.
    pub(crate) rest: CachePadded<Rest>,
    /// How many items have been put in and are not through. Many threads write it, and read what is around it.
    in_flight: CachePadded<AtomicUsize>,
    drained: (Mutex<()>, Condvar),
}

impl<W: Work> Shared<W> {
    pub(crate) fn new(
        work: W,
        ports: Vec<Port<W::Item>>,
        crews: Vec<Running>,
        (processors, crowded): (usize, bool),
    ) -> Self {
        let elastic = crews.iter().position(|running| running.crew.control.is_elastic());
        let places = crews.iter().map(|_| CachePadded::new(Places::new())).collect();
        let guests = (0..crews.len()).map(|crew| CachePadded::new(Guest::new(crew))).collect();
        let drained = (Mutex::new(()), Condvar::new());
        let (in_flight, rest) = (CachePadded::default(), CachePadded::new(Rest::new()));
        Shared { work, ports, crews, crowded, processors, places, guests, elastic, rest, in_flight, drained }
    }

    /// So many items more are put in.
    pub(crate) fn begun(&self, count: usize) {
        self.in_flight.fetch_add(count, Ordering::AcqRel);
    }

    /// How many items have been put in and are not through.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Has who steers rest until something is put in or `is_ended`.
    pub(crate) fn rest(&self, is_ended: impl Fn() -> bool) {
        self.rest.rest(|| Rest::look(&self.in_flight) > 0 || is_ended());
    }

    /// Holds this thread until everything that was put in is through.
    pub(crate) fn drain(&self) {
        let mut guard = self.drained.0.lock();
        while self.in_flight() > 0 {
            self.drained.1.wait(&mut guard);
        }
    }

    pub(crate) fn hand(&self, port: usize) {
        self.crews[self.ports[port].crew].hand(port);
    }

    /// So many items are through.
    pub(crate) fn through(&self, count: usize) {
        if count > 0 && self.in_flight.fetch_sub(count, Ordering::AcqRel) == count {
            // Who waits checks under this lock, so that the last item cannot slip between its check and its wait.
            drop(self.drained.0.lock());
            self.drained.1.notify_all();
        }
    }

    /// Whether the crew should have as many threads as there are processors.
    pub(crate) fn is_full(&self, crew: usize) -> bool {
        self.crews[crew].level.load(Ordering::Relaxed) >= self.processors
    }

    /// How many items wait at the ports of a crew.
    pub(crate) fn waiting(&self, crew: usize) -> usize {
        self.ports.iter().filter(|port| port.crew == crew).map(|port| port.inbox.len()).sum()
    }
}
