//! The engine `event`: flows run on the event loop that they began on, and never hold it while they wait.
//!
//! Flux §3.2.2, with asynchronous functions in the place of its continuations and `select` loop, and one loop for each
//! core in the place of one for all. What holds its thread goes to the blocking pool.

use std::sync::Arc;

use weir_host::{Begun, LocalFuture};
use weir_trace::EventKind;

use super::{Drive, Engine, EngineRow, whole};
use crate::crowd::Crowd;
use crate::flow::Beginning;
use crate::live::{Blocking, Live};

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "event",
    doc: "event loops; waiting never holds one up",
    loops: |threads| threads,
    blocking: Blocking::Elsewhere,
    drive: Drive::Flows(|setup| Ok(Arc::new(Event { threads: setup.threads, waiting: Crowd::new(setup.flows_max) }))),
};

struct Event {
    threads: usize,
    /// The flows that are not through yet.
    waiting: Arc<Crowd>,
}

impl Engine for Event {
    fn begin(&self, _entry: usize, _route: usize, beginning: &mut Beginning<'_>) -> Begun {
        if !self.waiting.has_room() {
            return Begun::Full;
        }
        match beginning.run() {
            Ok(answer) => Begun::Done(answer),
            Err(flow) => {
                let member = self.waiting.enter();
                Begun::Pending(Box::pin(async move {
                    let answer = flow.await;
                    drop(member);
                    answer
                }))
            }
        }
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.waiting).room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.waiting).empty())
    }

    fn sections(&self, live: &Live) -> Vec<EventKind> {
        whole(ROW.name, self.threads, &self.waiting, live)
    }

    fn close(&self) {}
}
