//! The engine `event`: flows run on the event loop that they began on, and never block it while they wait.
//!
//! Flux (USENIX 2006, §3.2.2), with asynchronous functions instead of its continuations and its `select` loop, and one
//! event loop for each core instead of a single one. Functions that block their thread run on the blocking pool.

use std::sync::Arc;

use weir_host::{Begun, LocalFuture};
use weir_trace::EventKind;

use super::{Drive, Engine, EngineRow, whole_flow_section};
use crate::admission::AdmissionLimiter;
use crate::flow::NewFlow;
use crate::instance::{BlockingPlacement, ProgramInstance};

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "event",
    doc: "event loops; waiting never holds one up",
    loops: |threads| threads,
    blocking: BlockingPlacement::Elsewhere,
    drive: Drive::Flows(|setup| {
        Ok(Arc::new(EventEngine { threads: setup.planned.threads, waiting: AdmissionLimiter::new(setup.flows_max) }))
    }),
};

struct EventEngine {
    threads: usize,
    /// Limits the flows that wait.
    waiting: Arc<AdmissionLimiter>,
}

impl Engine for EventEngine {
    fn begin(&self, _entry: usize, _route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        if !self.waiting.has_room() {
            return Begun::Full;
        }
        match new_flow.run() {
            Ok(answer) => Begun::Done(answer),
            Err(flow) => {
                let permit = self.waiting.acquire();
                Begun::Pending(Box::pin(async move {
                    let answer = flow.await;
                    drop(permit);
                    answer
                }))
            }
        }
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.waiting).wait_for_room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.waiting).wait_until_empty())
    }

    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind> {
        whole_flow_section(ROW.name, self.threads, &self.waiting, instance)
    }

    fn close(&self) {}
}
