//! The outcomes of a frame: a result, or an early end of the flow.

use weir_host::{Failure, Value};

use crate::step::Body;

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
