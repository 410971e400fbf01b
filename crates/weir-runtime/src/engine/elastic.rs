//! The engine `elastic`: threads join where there is work, and the number of threads follows the measured throughput.
//!
//! A flow runs where that is cheapest:
//!
//! * Flows of a source that runs on every event loop, like a service or a source of connections, stay on the loop that polled
//!   their sockets, and run there at once, like under `event` ([`EventEngine`]). Any other thread would have to be woken for
//!   each event. *Rejected:* that a helper on an idle core takes over a flow whose turn did not suffice. Beside 16 requests
//!   that compute for ever, small requests had a p99 of 3.9 ms instead of 0.18, and were 75,000 a second instead of 135,000
//!   (`bench-web -- --case endless --connections 16`, quiet, 2026-11-28): the helpers took the cores from the event loops.
//! * Flows of a stream, and those that a plan cuts, pass through sections, which any thread runs: the dynamic threading model of
//!   the Streams paper (PLDI 2017, §4). Ports, thread pools and the controller of thread counts are those of `weir-scheduler`,
//!   which states its differences from the paper. No thread count is too low for progress, because a flow that waits leaves its
//!   thread.
//!
//! The paper puts a queue before every operator, and finds (§5.1, §5.2) that a dedicated thread for each operator, or
//! none at all, is often faster. Here only a call with a private state has a queue, because only such a call has to
//! wait for other flows. All other calls are fused, and run in parallel on different flows. Sections of a plan that
//! never wait are fused at run time, if their work is cheaper than a queue. If one thread performs best, the event loop
//! of the source runs the flows itself (caller-runs), as long as flows are short. A blocking call
//! runs on the blocking pool, and its flow waits without a thread: threads that only wait would stand in the way of the
//! sections that compute, and the controller could not tell the two apart.
//!
//! A stream whose calls have no private state is thus a single section, and `weir top` shows one
//! row for it; more rows would need more queues, which only add cost. Bodies of `for` and `loop` are not divided
//! either: an item of a port is a flow, not an iteration. Iterations as items of their own would let one long flow use
//! several threads, but gain nothing if many flows are in progress.

use std::io;
use std::sync::Arc;

use weir_host::{Begun, LocalFuture};
use weir_ir::plan::Granularity;
use weir_scheduler::{ElasticSettings, ThreadControl};
use weir_trace::EventKind;

use super::event::EventEngine;
use super::sections::start_sections;
use super::{Drive, Engine, EngineRow, EngineSetup, ThreadingModel, WHOLE};
use crate::admission::AdmissionLimiter;
use crate::flow::NewFlow;
use crate::instance::{BlockingPlacement, EntryInstance, EntryLoops, ProgramInstance};

/// The relative difference of throughput up to which the controller sees no trend: the paper's SENS, with the paper's
/// value.
const SENSITIVITY: f64 = 0.05;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "elastic",
    doc: "requests stay on event loops; any thread runs any section of a stream",
    loops: |threads| threads,
    blocking: BlockingPlacement::Elsewhere,
    drive: Drive::Sections(ThreadingModel {
        granularity: Granularity::States,
        shares_threads: true,
        keeps_on_loops: true,
        control: |threads, _| {
            ThreadControl::Elastic(ElasticSettings { threads_min: 1, threads_max: threads, sensitivity: SENSITIVITY })
        },
    }),
};

struct ElasticEngine {
    /// Runs the flows that stay on their event loops.
    on_loops: EventEngine,
    /// Runs the others; `None` if there are none.
    in_sections: Option<Arc<dyn Engine>>,
}

/// Starts the engine.
pub(super) fn start(threading: ThreadingModel, setup: &EngineSetup<'_>) -> io::Result<Arc<dyn Engine>> {
    let instance = setup.planned.instance;
    let flows = AdmissionLimiter::new(setup.flows_max);
    let has_sections = instance.entries.iter().any(|entry| entry.loops == EntryLoops::First);
    let in_sections = has_sections.then(|| start_sections(threading, setup, Arc::clone(&flows))).transpose()?;
    let on_loops = EventEngine { threads: setup.planned.threads, waiting: flows, instance: Arc::clone(instance) };
    Ok(Arc::new(ElasticEngine { on_loops, in_sections }))
}

impl ElasticEngine {
    /// Returns the engine that runs the flows of this entry point.
    #[inline]
    fn of(&self, entry: usize) -> &dyn Engine {
        let sections = self.in_sections.as_ref();
        match sections.filter(|_| self.on_loops.instance.entries[entry].loops == EntryLoops::First) {
            Some(sections) => &**sections,
            None => &self.on_loops,
        }
    }
}

impl Engine for ElasticEngine {
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.of(entry).begin(entry, route, new_flow)
    }

    fn begin_detached(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.of(entry).begin_detached(entry, route, new_flow)
    }

    fn is_overloaded(&self, entry: usize, route: usize) -> bool {
        self.of(entry).is_overloaded(entry, route)
    }

    fn background(&self) -> LocalFuture<()> {
        match &self.in_sections {
            Some(sections) => sections.background(),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn in_progress(&self) -> &Arc<AdmissionLimiter> {
        &self.on_loops.waiting
    }

    fn room(&self, entry: usize) -> LocalFuture<()> {
        self.of(entry).room(entry)
    }

    fn drained(&self) -> LocalFuture<()> {
        let on_loops = self.on_loops.drained();
        let in_sections = self.in_sections.as_ref().map(|sections| sections.drained());
        Box::pin(async move {
            on_loops.await;
            if let Some(in_sections) = in_sections {
                in_sections.await;
            }
        })
    }

    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind> {
        let mut sections = self.in_sections.as_ref().map_or_else(Vec::new, |sections| sections.sections(instance));
        let stays = |entry: &EntryInstance| entry.loops != EntryLoops::First;
        if instance.entries.iter().any(stays) {
            let (waiting, waiting_max) = self.on_loops.waiting.occupancy();
            sections.push(EventKind::Section {
                section: WHOLE.into(),
                engine: ROW.name,
                pool: ROW.name.into(),
                threads: self.on_loops.threads as u64,
                threads_max: self.on_loops.threads as u64,
                waiting,
                waiting_max,
                passed: instance.completed_flows(stays),
            });
        }
        sections
    }

    fn close(&self) {
        self.in_sections.iter().for_each(|sections| sections.close());
    }

    fn abandon(&self) {
        self.in_sections.iter().for_each(|sections| sections.abandon());
    }
}
