//! The engine `thread-per-flow`: every flow has a thread of its own, from its beginning to its end.
//!
//! Flux §3.2.1. Threads are made and ended all the time; it is here to be compared with, and for flows that are few and
//! long.

use std::sync::Arc;

use tokio::runtime::Handle;
use weir_host::{Begun, Failure, FailureKind, LocalFuture};
use weir_trace::EventKind;

use super::answer::{Answer, run};
use super::{Drive, Engine, EngineRow, whole};
use crate::crowd::Crowd;
use crate::flow::Beginning;
use crate::live::{Blocking, Live};
use crate::machine::Machine;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "thread-per-flow",
    doc: "a thread for each flow",
    loops: |_| 1,
    blocking: Blocking::InPlace,
    drive: Drive::Flows(|setup| {
        Ok(Arc::new(ThreadPerFlow {
            flows: Crowd::new(setup.flows_max.min(THREADS_MAX)),
            awaited: Crowd::new(usize::MAX),
            machine: Arc::clone(setup.machine),
            handle: setup.handle.clone(),
        }))
    }),
};

/// How many flows run at a time at most: a system has fewer threads than a program may have flows.
const THREADS_MAX: usize = 4_096;

struct ThreadPerFlow {
    flows: Arc<Crowd>,
    /// Those who await an answer.
    awaited: Arc<Crowd>,
    machine: Arc<dyn Machine>,
    handle: Handle,
}

impl Engine for ThreadPerFlow {
    fn begin(&self, _entry: usize, _route: usize, beginning: &mut Beginning<'_>) -> Begun {
        if !self.flows.has_room() {
            return Begun::Full;
        }
        let (answer, member, flow) = (Arc::<Answer>::default(), self.flows.enter(), beginning.flow());
        let (given, handle) = (Arc::clone(&answer), self.handle.clone());
        let body = move || {
            let inside = handle.enter();
            run(flow, &given, &handle);
            drop(inside);
            drop(member);
        };
        match self.machine.thread("weir flow", Box::new(body)) {
            Ok(_) => answer.going(self.awaited.enter()),
            Err(error) => {
                let message = format!("the system gives no thread: {error}");
                Begun::Done(Err(Failure::new(FailureKind::Limit, message)))
            }
        }
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).room())
    }

    fn drained(&self) -> LocalFuture<()> {
        let (flows, awaited) = (Arc::clone(&self.flows), Arc::clone(&self.awaited));
        Box::pin(async move {
            flows.empty().await;
            awaited.empty().await;
        })
    }

    fn sections(&self, live: &Live) -> Vec<EventKind> {
        // Each flow has a thread.
        whole(ROW.name, self.flows.extent().0 as usize, &self.flows, live)
    }

    fn close(&self) {}
}
