//! The engine `thread-per-flow`: every flow has a thread of its own, from its beginning to its end.
//!
//! Flux (USENIX 2006, §3.2.1). Threads are started and ended with every flow; the engine is a baseline for comparison,
//! and suits programs with few, long flows.

use std::sync::Arc;

use tokio::runtime::Handle;
use weir_host::{Begun, Failure, FailureKind, LocalFuture};
use weir_trace::EventKind;

use super::answer::{Answer, run};
use super::{Drive, Engine, EngineRow, whole_flow_section};
use crate::admission::AdmissionLimiter;
use crate::flow::NewFlow;
use crate::helpers::CoreUse;
use crate::instance::{BlockingPlacement, ProgramInstance};
use crate::platform::Platform;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "thread-per-flow",
    doc: "a thread for each flow",
    loops: |_| 1,
    blocking: BlockingPlacement::InPlace,
    drive: Drive::Flows(|setup| {
        Ok(Arc::new(ThreadPerFlowEngine {
            flows: AdmissionLimiter::new(setup.flows_max.min(THREADS_MAX)),
            awaited: AdmissionLimiter::new(usize::MAX),
            platform: Arc::clone(setup.platform),
            handle: setup.handle.clone(),
            cores: Arc::clone(&setup.planned.instance.helpers.cores),
        }))
    }),
};

/// The maximum number of flows that run at a time: a system has fewer threads than a program may have flows. Chosen by
/// judgement, well below the default limits of Linux for one process.
const THREADS_MAX: usize = 4_096;

struct ThreadPerFlowEngine {
    flows: Arc<AdmissionLimiter>,
    /// Answers that event loops await.
    awaited: Arc<AdmissionLimiter>,
    platform: Arc<dyn Platform>,
    handle: Handle,
    cores: Arc<CoreUse>,
}

impl Engine for ThreadPerFlowEngine {
    fn begin(&self, _entry: usize, _route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        if !self.flows.has_room() {
            return Begun::Full;
        }
        let (answer, permit, flow) = (Arc::<Answer>::default(), self.flows.acquire(), new_flow.flow());
        let (given, handle, cores) = (Arc::clone(&answer), self.handle.clone(), Arc::clone(&self.cores));
        let body = move || {
            let inside = handle.enter();
            cores.begin();
            let mut flow = Some(flow);
            // The system shares the processors among the threads.
            while let Some(yielded) = flow.take() {
                flow = run(yielded, &given, &handle, &cores);
            }
            cores.rest();
            drop(inside);
            drop(permit);
        };
        match self.platform.thread("weir flow", Box::new(body)) {
            Ok(_) => Begun::Pending(Box::pin(answer.pending(self.awaited.acquire()))),
            Err(error) => {
                let message = format!("the system gives no thread: {error}");
                Begun::Done(Err(Failure::new(FailureKind::Limit, message)))
            }
        }
    }

    fn in_progress(&self) -> &Arc<AdmissionLimiter> {
        &self.flows
    }

    fn room(&self, _entry: usize) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).wait_for_room())
    }

    fn drained(&self) -> LocalFuture<()> {
        let (flows, awaited) = (Arc::clone(&self.flows), Arc::clone(&self.awaited));
        Box::pin(async move {
            flows.wait_until_empty().await;
            awaited.wait_until_empty().await;
        })
    }

    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind> {
        // Each flow has a thread, so there are as many threads as flows.
        whole_flow_section(ROW.name, self.flows.occupancy().0 as usize, &self.flows, instance)
    }

    fn close(&self) {}
}
