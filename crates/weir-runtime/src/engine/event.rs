//! The engine `event`: flows run on the event loop that they began on, and never block it while they wait.
//!
//! Flux (USENIX 2006, §3.2.2), with asynchronous functions instead of its continuations and its `select` loop, and one
//! event loop for each core instead of a single one. Functions that block their thread run on the blocking pool. Flows
//! that compute take turns ([`loop_turns`](super::loop_turns)).
//!
//! A flow runs when it begins, and most flows end then. One that waits must be polled again by the task that awaits its answer,
//! to register the task; therefore, if the last flow of a service's route waited, the next one runs only when it is polled. A
//! flow that waits for batched calls alone does not run again for that: it registers the task with their batches.
//!
//! The engine `elastic` runs the flows of services and connections in the same way.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker, ready};

use tokio::runtime::Handle;
use tokio::task::spawn_local;
use weir_host::{Begun, Failure, FailureKind, LocalFuture, Value};
use weir_trace::EventKind;

use super::loop_turns::{Turn, are_turns_overloaded, run_shared};
use super::{Drive, Engine, EngineRow, whole_flow_section};
use crate::admission::{AdmissionLimiter, Permit};
use crate::flow::{ActiveFlow, NewFlow};
use crate::instance::{BlockingPlacement, ProgramInstance};
use crate::units::{Advanced, Units};

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "event",
    doc: "event loops; waiting never holds one up",
    loops: |threads| threads,
    blocking: BlockingPlacement::Elsewhere,
    drive: Drive::Flows(|setup| {
        Ok(Arc::new(EventEngine {
            threads: setup.planned.threads,
            waiting: AdmissionLimiter::new(setup.flows_max),
            instance: Arc::clone(setup.planned.instance),
        }))
    }),
};

/// A flow that waits, or waits for its turn. Dropping it cancels the flow; if that is inside an atomic step, a task of the
/// event loop goes on until the step has ended.
struct PendingFlow {
    /// `None` once it was passed to such a task.
    flow: Option<ActiveFlow>,
    /// Its place among the flows that compute, if it has yielded.
    turn: Option<Turn>,
    permit: Option<Permit>,
    /// True if the flow has not run yet.
    is_new: bool,
    /// True if the flow has run and waits, but for no task.
    waits_for_no_task: bool,
    /// True if the flow is to end as soon as it may be given up.
    is_cancelled: bool,
}

impl Future for PendingFlow {
    type Output = Result<Value, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let pending = self.get_mut();
        let Some(flow) = &mut pending.flow else { return Poll::Ready(Err(cancelled())) };
        if mem::take(&mut pending.waits_for_no_task) && flow.awaits_batches(context) {
            return Poll::Pending;
        }
        let length = flow.slice();
        let advanced = match &pending.turn {
            Some(turn) => {
                ready!(turn.poll(context));
                turn.take(flow.platform());
                flow.advance(&Units::slice(length), context)
            }
            None => run_shared(length, |units| flow.advance(units, context)),
        };
        pending.turn = None;
        let was_new = mem::replace(&mut pending.is_new, false);
        match advanced {
            Advanced::Ready(answer) => {
                if was_new {
                    let key = flow.key();
                    flow.split().0.counters(key).note_waits(false);
                }
                return Poll::Ready(answer);
            }
            _ if pending.is_cancelled && flow.request_give_up() => return Poll::Ready(Err(cancelled())),
            Advanced::Waits => {}
            // Polled to register the task.
            Advanced::Yields => {
                let turn = wait_for_turn(flow);
                _ = pending.turn.insert(turn).poll(context);
            }
        }
        Poll::Pending
    }
}

impl Drop for PendingFlow {
    fn drop(&mut self) {
        let (mut flow, turn, permit) = (self.flow.take(), self.turn.take(), self.permit.take());
        // At the end of the event loop there is no runtime any more.
        if flow.as_mut().is_some_and(|flow| !flow.request_give_up())
            && !self.is_cancelled
            && Handle::try_current().is_ok()
        {
            drop(spawn_local(PendingFlow {
                flow,
                turn,
                permit,
                is_new: false,
                waits_for_no_task: false,
                is_cancelled: true,
            }));
        }
    }
}

/// The event loops, and the flows that run on them as one piece.
pub(super) struct EventEngine {
    pub(super) threads: usize,
    /// Limits the flows that wait.
    pub(super) waiting: Arc<AdmissionLimiter>,
    pub(super) instance: Arc<ProgramInstance>,
}

impl Engine for EventEngine {
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        if !self.waiting.has_room() {
            return Begun::Full;
        }
        let entry = &self.instance.entries[entry];
        let counters = &entry.flows[route].1;
        if entry.answers && counters.waits.load(Ordering::Relaxed) {
            return self.pending(new_flow.flow(), None, true);
        }
        let mut flow = new_flow.borrow();
        let mut context = Context::from_waker(Waker::noop());
        let yields = match run_shared(new_flow.slice(), |units| flow.advance(units, &mut context)) {
            Advanced::Ready(answer) => return Begun::Done(answer),
            Advanced::Waits => false,
            Advanced::Yields => true,
        };
        let mut flow = flow.into_owned(&self.instance);
        let turn = yields.then(|| wait_for_turn(&mut flow));
        counters.note_waits(turn.is_none());
        self.pending(flow, turn, false)
    }

    fn is_overloaded(&self, entry: usize, route: usize) -> bool {
        are_turns_overloaded(&self.instance.entries[entry].flows[route].1.queues, &*self.instance.platform)
    }

    fn in_progress(&self) -> &Arc<AdmissionLimiter> {
        &self.waiting
    }

    fn room(&self, _entry: usize) -> LocalFuture<()> {
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

impl EventEngine {
    /// Returns the future of a flow's answer.
    fn pending(&self, flow: ActiveFlow, turn: Option<Turn>, is_new: bool) -> Begun {
        let permit = Some(self.waiting.acquire());
        let waits_for_no_task = !is_new && turn.is_none();
        let flow = Some(flow);
        Begun::Pending(Box::pin(PendingFlow { flow, turn, permit, is_new, waits_for_no_task, is_cancelled: false }))
    }
}

/// Puts a flow that has yielded into the queue of its event loop.
fn wait_for_turn(flow: &mut ActiveFlow) -> Turn {
    let (instance, state) = flow.split();
    Turn::wait(state.turns_mut(), &*instance.platform)
}

/// Returns the failure of a flow that was cancelled, which nobody awaits.
fn cancelled() -> Failure {
    Failure::new(FailureKind::Cancelled, "the flow was cancelled")
}
