//! The engine `event`: flows run on the event loop that they began on, and never hold it while they wait.
//!
//! Flux §3.2.2, with asynchronous functions in the place of its continuations and `select` loop, and one loop for each
//! core in the place of one for all. What holds its thread goes to the blocking pool.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use weir_host::{Begun, LocalFuture};
use weir_trace::What;

use super::{Drive, Engine, EngineRow, whole};
use crate::crowd::Crowd;
use crate::flow::Flow;
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
    fn begin(&self, _entry: usize, _route: usize, make: &mut dyn FnMut() -> Flow) -> Begun {
        if !self.waiting.has_room() {
            return Begun::Full;
        }
        let mut flow = make();
        // Whoever awaits the flow polls it again with a waker that wakes.
        match flow.advance(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Begun::Done(answer),
            Poll::Pending => {
                let member = self.waiting.enter();
                Begun::Going(Box::pin(async move {
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

    fn sections(&self, live: &Live) -> Vec<What> {
        whole(ROW.name, self.threads, &self.waiting, live)
    }

    fn close(&self) {}
}
