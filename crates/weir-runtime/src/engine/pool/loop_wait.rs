//! Flows that wait for peers on the event loop that has begun them, and continue there when they are woken.
//!
//! Such a flow needs no thread while it waits, and passing it to a thread and back would take longer than most flows need
//! for what they do with an answer of a peer.
//!
//! 1. The task that awaits the answer polls the flow as it would under the engine `event`, but without blocking the loop
//!    ([`ActiveFlow::advance_without_blocking`]), and only while the flows of its route are brief.
//!    If the last flow of the route waited for peers, the next one does not run before, as under `event`.
//! 2. If the flow comes to anything else that it has to wait for, or takes long, it goes to the queue, and its task awaits
//!    the answer of a thread from then on.
//!
//! The flow keeps its place among the queued flows meanwhile, so that their limit bounds the flows that wait here, too.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Begun, Failure, Value};

use super::super::answer::{Answer, PendingAnswer};
use super::{BRIEF_NS, FlowPermits, FlowQueue, HeldFlow, PASSES_OF_WAITING, QueuedFlow};
use crate::admission::Permit;
use crate::flow::{ActiveFlow, NextPlace};

/// A flow that the event loop has begun. Dropping it cancels the flow: on the loop, it is in no atomic step.
enum LoopFlow {
    /// It waits for peers.
    OnLoop(Box<WaitingFlow>),
    /// It was passed to the threads.
    OnThread(PendingAnswer),
    /// Its answer was taken.
    Ended,
}

struct WaitingFlow {
    flow: ActiveFlow,
    queue: Arc<FlowQueue>,
    /// True if the flow has not run yet.
    is_new: bool,
    /// Its permits, and that of its answer, which is awaited.
    permits: (FlowPermits, Permit),
}

/// Returns the future of a flow that waits for peers, or of one that is new and probably will.
pub(super) fn begin(queue: &Arc<FlowQueue>, flow: ActiveFlow, is_new: bool, permits: (FlowPermits, Permit)) -> Begun {
    let waiting = WaitingFlow { flow, queue: Arc::clone(queue), is_new, permits };
    Begun::Pending(Box::pin(LoopFlow::OnLoop(Box::new(waiting))))
}

impl Future for LoopFlow {
    type Output = Result<Value, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this {
                LoopFlow::OnLoop(waiting) => match waiting.advance(context) {
                    Ok(answer) => {
                        *this = LoopFlow::Ended;
                        return Poll::Ready(answer);
                    }
                    Err(NextPlace::WhenWoken) => return Poll::Pending,
                    Err(NextPlace::OnThread) => {}
                },
                LoopFlow::OnThread(answer) => return Pin::new(answer).poll(context),
                LoopFlow::Ended => return Poll::Pending,
            }
            if let LoopFlow::OnLoop(waiting) = mem::replace(this, LoopFlow::Ended) {
                *this = LoopFlow::OnThread(waiting.pass_to_thread());
            }
        }
    }
}

impl WaitingFlow {
    /// Advances the flow on the event loop, if flows of its route are brief.
    fn advance(&mut self, context: &mut Context<'_>) -> Result<Result<Value, Failure>, NextPlace> {
        let (queue, key) = (&self.queue, self.flow.key());
        let Some(predictor) = queue.predictors[key.entry as usize][key.route as usize].as_ref() else {
            return Err(NextPlace::OnThread);
        };
        if !predictor.is_brief() {
            return Err(NextPlace::OnThread);
        }
        let began_ns = queue.platform.now_ns();
        let advanced = self.flow.advance_without_blocking(context);
        let was_new = mem::replace(&mut self.is_new, false);
        if was_new {
            self.flow.split().0.counters(key).note_waits(advanced == Err(NextPlace::WhenWoken));
        }
        let took_ns = queue.platform.now_ns().saturating_sub(began_ns);
        // A flow that only registers its task earns no credit for others.
        let brief_ns = PASSES_OF_WAITING * BRIEF_NS;
        if was_new || advanced != Err(NextPlace::WhenWoken) || took_ns >= brief_ns {
            queue.record(predictor, took_ns, brief_ns);
        }
        advanced
    }

    /// Passes the flow to the threads, and returns the future of its answer.
    fn pass_to_thread(self) -> PendingAnswer {
        let WaitingFlow { flow, queue, is_new, permits: (permits, awaited) } = self;
        let answer = Arc::<Answer>::default();
        let held = HeldFlow { flow, answer: Arc::clone(&answer), permits };
        queue.add(QueuedFlow { held, begun: !is_new });
        answer.pending(awaited)
    }
}
