//! The outcomes of a frame: a result, or an early end of the flow.

use std::pin::Pin;
use std::task::{Context, Poll};

use weir_host::{Failure, Value};

use crate::step::Body;
use crate::units::Advanced;

/// An early end of a flow, before the result of its body.
#[derive(Debug)]
pub(crate) struct FlowExit {
    /// The node of the frame's body.
    pub node: usize,
    /// The path of the node within bodies below; empty if it is the node itself.
    pub within: String,
    /// The answer, or the failure.
    pub how: Result<Value, Box<Failure>>,
}

/// The outcome of running a frame.
pub(crate) enum Finished {
    /// The result of the body.
    Value(Value),
    /// The flow has ended.
    Ended(FlowExit),
    /// The frame has reached the step before which it stops, at the end of a segment.
    SegmentEnd,
}

/// The failure with which a flow ends when a wait is over, unless that gives another one.
pub(crate) struct EndingFlow {
    /// Taken when it is known.
    exit: Option<FlowExit>,
    wait: EndWait,
}

/// A wait before the end of a flow, which may give its failure.
type EndWait = Pin<Box<dyn Future<Output = Option<Failure>> + Send>>;

impl EndingFlow {
    /// Waits before the flow ends with a failure.
    pub(super) fn begin(
        ending: &mut Option<Box<EndingFlow>>,
        advanced: Advanced<Finished>,
        wait: Option<EndWait>,
        context: &mut Context<'_>,
    ) -> Advanced<Finished> {
        match (advanced, wait) {
            (Advanced::Ready(Finished::Ended(exit)), Some(wait)) => {
                ending.insert(Box::new(EndingFlow { exit: Some(exit), wait })).poll(context)
            }
            (advanced, _) => advanced,
        }
    }

    /// Goes on waiting.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Advanced<Finished> {
        let Poll::Ready(failed) = self.wait.as_mut().poll(context) else { return Advanced::Waits };
        let exit = self.exit.take().expect("a flow is not polled after its end");
        let how = failed.map_or(exit.how, |failed| Err(Box::new(failed)));
        Advanced::Ready(Finished::Ended(FlowExit { how, ..exit }))
    }
}

impl FlowExit {
    /// Returns the end of a loop that exceeds its bound, at no node within.
    pub(super) fn at_loop(failure: Box<Failure>) -> FlowExit {
        FlowExit { node: usize::MAX, within: String::new(), how: Err(failure) }
    }

    /// Returns the path of the node where the flow ended, within this body.
    pub(crate) fn path(&self, body: &Body) -> String {
        path(body, self.node, &self.within)
    }
}

/// Returns the path of a place within this body.
pub(super) fn path(body: &Body, node: usize, within: &str) -> String {
    let name = body.names.get(node).map_or("", |name| name);
    match (name.is_empty(), within.is_empty()) {
        (false, false) => format!("{name}/{within}"),
        (false, true) => name.to_owned(),
        (true, _) => within.to_owned(),
    }
}
