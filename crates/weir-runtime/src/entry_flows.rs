//! The flows of one entry point: its source begins them here, on the engine, unless they have to wait or are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_host::{Begun, Failure, Flows, LocalFuture, SourceProblem, Value, memory};
use weir_trace::{Detail, EventKind, RefusalReason};

use crate::admission::AdmissionLimiter;
use crate::engine::Engine;
use crate::flow::NewFlow;
use crate::instance::ProgramInstance;
use crate::overload::note_beginning;

/// The time after which a source that has no memory for a flow tries again. Chosen by judgement: most flows end sooner.
const MEMORY_PERIOD_NS: u64 = 10_000_000;

/// The entry point of one source: begins its flows on the engine.
pub(crate) struct EntryFlows {
    instance: Arc<ProgramInstance>,
    engine: Arc<dyn Engine>,
    pub entry: u32,
    /// True for a stream of a program that has services, too: it leaves them places for flows, because it can wait, and they refuse.
    is_beside_services: bool,
    /// The number of elements that the source has skipped.
    skipped: AtomicU64,
}

impl Flows for EntryFlows {
    #[inline]
    fn admits(&self, route: usize) -> bool {
        let answers = self.instance.entries[self.entry as usize].answers;
        if !answers || !self.is_overloaded(route) {
            return true;
        }
        self.record_refused(RefusalReason::Overloaded);
        false
    }

    #[inline]
    fn begin(&self, route: usize, inputs: &mut Vec<Value>) -> Begun {
        if !self.admits(route) {
            return Begun::Full;
        }
        self.begin_admitted(route, inputs)
    }

    #[inline]
    fn begin_admitted(&self, route: usize, inputs: &mut Vec<Value>) -> Begun {
        if memory::is_full() && self.refuses_for_memory() {
            self.record_refused(RefusalReason::Memory);
            return Begun::Full;
        }
        let mut new_flow = NewFlow::new(&self.instance, self.entry, route as u32, inputs);
        let begun = self.engine.begin(self.entry as usize, route, &mut new_flow);
        self.record_if_full(&begun);
        begun
    }

    fn begin_detached(&self, route: usize, inputs: &mut Vec<Value>) -> Begun {
        let takes_last = self.is_beside_services && !self.engine.in_progress().has_room_beside_others();
        if takes_last || !self.computing().has_room() || (memory::is_full() && self.refuses_for_memory()) {
            return Begun::Full;
        }
        let mut new_flow = NewFlow::new(&self.instance, self.entry, route as u32, inputs);
        let begun = self.engine.begin_detached(self.entry as usize, route, &mut new_flow);
        self.record_if_full(&begun);
        begun
    }

    fn room(&self) -> LocalFuture<()> {
        let mut room = self.engine.room(self.entry as usize);
        if self.is_beside_services {
            let in_progress = Arc::clone(self.engine.in_progress());
            room = Box::pin(async move {
                in_progress.wait_for_room_beside_others().await;
                room.await;
            });
        }
        if !self.computing().has_room() {
            let computing = Arc::clone(self.computing());
            return Box::pin(async move {
                computing.wait_for_room().await;
                room.await;
            });
        }
        if !memory::is_full() {
            return room;
        }
        let platform = Arc::clone(&self.instance.platform);
        Box::pin(async move {
            platform.at(platform.now_ns().saturating_add(MEMORY_PERIOD_NS)).synchronise().await;
            room.await;
        })
    }

    fn report(&self, problem: SourceProblem) {
        let entry = self.entry;
        let message = |failure: Failure| failure.message.as_str().into();
        let event = match problem {
            SourceProblem::ElementSkipped(failure) => {
                let count = self.skipped.fetch_add(1, Ordering::Relaxed) + 1;
                EventKind::ElementSkipped { entry, count, message: message(failure) }
            }
            SourceProblem::Retries(failure) => EventKind::SourceRetries { entry, message: message(failure) },
            SourceProblem::RequestFailed(failure) => EventKind::RequestFailed { entry, message: message(failure) },
            SourceProblem::ShedsConnections(failure) => EventKind::ConnectionsShed { entry, message: message(failure) },
        };
        self.instance.record(Detail::Log, || event);
    }
}

impl EntryFlows {
    /// The flows of the entry point with this index.
    pub(crate) fn new(instance: &Arc<ProgramInstance>, engine: &Arc<dyn Engine>, entry: u32) -> EntryFlows {
        let (instance, engine) = (Arc::clone(instance), Arc::clone(engine));
        let is_beside_services =
            !instance.entries[entry as usize].answers && instance.entries.iter().any(|entry| entry.answers);
        EntryFlows { instance, engine, entry, is_beside_services, skipped: AtomicU64::default() }
    }

    /// Returns true if work of this route, or of the event loop of this thread, waits too long to begin more of it.
    fn is_overloaded(&self, route: usize) -> bool {
        let entry = self.entry as usize;
        !note_beginning() || self.engine.is_overloaded(entry, route) || self.instance.are_calls_overloaded(entry, route)
    }

    /// Returns the limit of the flows of this entry point that compute.
    fn computing(&self) -> &Arc<AdmissionLimiter> {
        &self.instance.entries[self.entry as usize].computing
    }

    /// Returns true if the program begins no flow because its memory is full. A service refuses it; the source of a stream
    /// waits while flows are in progress, which may release memory, and otherwise lets its next flow find out.
    #[cold]
    fn refuses_for_memory(&self) -> bool {
        self.instance.entries[self.entry as usize].answers || self.instance.has_flows()
    }

    fn record_if_full(&self, begun: &Begun) {
        if matches!(begun, Begun::Full) {
            self.record_refused(RefusalReason::Full);
        }
    }

    /// Records a flow that was refused, unless its source waits for room instead.
    #[cold]
    fn record_refused(&self, reason: RefusalReason) {
        if self.instance.entries[self.entry as usize].answers {
            self.instance.record(Detail::Log, || EventKind::Refused { entry: self.entry, reason });
        }
    }
}
