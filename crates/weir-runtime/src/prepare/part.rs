//! The parts of a node that are prepared before its step: its resolved call, or its bodies.

use std::sync::Arc;

use weir_host::{Argument, FunctionCode, Mode, Passing, Text};
use weir_ir::graph::{Node, NodeKind};

use crate::batching::{Gatherer, LatencyGraph};
use crate::flow_section::CallSection;
use crate::lock::FairRwLock;
use crate::operations::KeptFailure;
use crate::step::{Action, Body, VectorCall};

/// A call that is resolved to its function, before its step is created.
pub(super) struct Resolved {
    pub code: FunctionCode,
    pub path: Text,
    /// True if its answer is a `Result`.
    pub fallible: bool,
    /// Set if a failure that would end the flow is an answer.
    pub kept_failure: Option<KeptFailure>,
    /// True if it returns an `Option`, and cannot fail.
    pub optional: bool,
    /// True if it waits for the peer of a connection.
    pub awaits_peer: bool,
    /// True if the program calls it to ask a peer, and it only reads.
    pub asks_peer: bool,
    /// Its form for vectors, if it has one.
    pub vector: Option<VectorCall>,
    /// The passing mode of each parameter.
    pub passing: Vec<Passing>,
    pub locks: Box<[(Arc<FairRwLock>, Mode)]>,
    /// True if it only reads, and sees a snapshot of values that have some.
    pub sees_snapshot: bool,
    /// True if it is in an atomic step.
    pub is_in_step: bool,
    pub ticket_gate: Option<usize>,
    pub state: Option<usize>,
    pub gatherer: Option<Arc<Gatherer>>,
    /// True if the call may go on without the thread of its flow, and takes no lock because no flow changes the values that it
    /// reads: others begin meanwhile, as they do behind a call that may wait for a lock.
    pub reads_elsewhere: bool,
    /// True if it is a read, in no atomic step, of values that have snapshots, and may be sent without the thread of its flow: later ones
    /// may begin meanwhile if they are sent on the same connection.
    pub may_be_sent: bool,
    /// The section whose threads run the call, while its flow waits elsewhere.
    pub section: Option<CallSection>,
}

/// The parts of a node that are prepared before its step: its call, or its bodies.
#[derive(Default)]
pub(super) struct NodePart {
    pub call: Option<Resolved>,
    pub body: Option<Body>,
    /// The bodies of a `within` or `race`, or of a transaction.
    pub timed: Vec<Body>,
    /// True if the node runs only when it is certain that no earlier `return` ends the flow.
    pub waits_for_returns: bool,
    /// The ticket gates within.
    pub ticket_gates: Vec<usize>,
}

impl NodePart {
    /// Returns true if the node may have to wait.
    pub(super) fn waits(&self, node: &Node) -> bool {
        match (&self.call, &self.body) {
            (Some(call), _) => {
                call.waits() || call.reads_elsewhere || !call.locks.is_empty() || call.ticket_gate.is_some()
            }
            (_, Some(body)) => body.waits,
            _ => matches!(node.kind, NodeKind::Acquire { .. }) || self.timed.iter().any(|body| body.waits),
        }
    }

    /// Returns true if a step around the node sees a snapshot, unless another of its nodes does not.
    pub(super) fn sees_snapshot(&self, node: &Node) -> bool {
        match node.kind {
            NodeKind::Prim(_) | NodeKind::Switch { .. } | NodeKind::Select { .. } | NodeKind::Release { .. } => true,
            _ => self.call.as_ref().is_some_and(|call| call.sees_snapshot),
        }
    }

    fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.body.iter().chain(&self.timed)
    }

    /// Returns true if the function itself waits, so that it is worth beginning others in the meantime.
    pub(super) fn overlaps(&self) -> bool {
        self.call.as_ref().is_some_and(Resolved::waits) || self.bodies().any(|body| body.overlap_max > 0)
    }

    /// Returns true if the node is a call that reads values which no flow changes, maybe without the thread of its flow.
    pub(super) fn reads_elsewhere(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.reads_elsewhere)
    }

    /// Returns true if the node is a read that may be sent behind others.
    pub(super) fn may_be_sent(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.may_be_sent)
    }

    /// Returns the gatherer of the node's calls.
    pub(super) fn gatherer(&self) -> Option<&Arc<Gatherer>> {
        self.call.as_ref()?.gatherer.as_ref()
    }

    /// Returns the gatherer of the calls of a `map` whose iterations wait for nothing but one such call each.
    pub(super) fn gatherer_of_iterations(&self) -> Option<&Arc<Gatherer>> {
        let body = self.body.as_ref()?;
        match body.steps[body.gathered_call.as_ref()?.step as usize].action.form() {
            Action::Call(call) => call.gatherer.as_ref(),
            _ => None,
        }
    }

    /// Returns the waiting steps of one iteration, if iterations overlap: if none hands a captured value to the next.
    pub(super) fn iterations(&self) -> Option<&Arc<LatencyGraph>> {
        let overlaps = |body: &&Body| body.overlap_max > 0 && !body.handed.iter().skip(1).any(|handed| *handed);
        self.body.as_ref().filter(overlaps)?.latencies.as_ref()
    }

    /// Returns true if the node changes the value of its input.
    pub(super) fn changes(&self, node: &Node, input: usize) -> bool {
        match (&self.call, &self.body) {
            (Some(call), _) => call.passing.get(input) == Some(&Passing::Change),
            // The inputs are the body's parameters. The list is an exception, but is never changed itself.
            (_, Some(body)) => body.handed.get(input).copied().unwrap_or(false),
            _ => node.captured(input).is_some_and(|(body, parameter)| self.timed[body].handed[parameter]),
        }
    }
}

impl Resolved {
    /// Returns true if the function changes an argument in a slot of the frame.
    pub(super) fn changes_slot(&self, arguments: &[Argument]) -> bool {
        let is_changed = |(passing, argument): (&Passing, &Argument)| {
            *passing == Passing::Change && matches!(argument, Argument::Slot { .. })
        };
        self.passing.iter().zip(arguments).any(is_changed)
    }

    /// Returns true if the flow waits for the function.
    pub(super) fn waits(&self) -> bool {
        self.section.is_some() || !matches!(self.code, FunctionCode::Immediate(_))
    }
}
