//! Rounds of input and output: the calls of a flow that are under way together, and the reason for which each later call
//! waits for an earlier one.
//!
//! The calls counted are those of functions that may wait or that block. The first round has the calls that wait for no
//! other, and each further round those that wait for a call of the round before. That is how engines execute a flow if all
//! calls take the same time. In a `for`, the rounds are those of one element: its elements overlap. In `fold` and `loop`,
//! they are those of one round of the loop.

use weir_host::{Library, Mode, Resource, Text};

use crate::graph::{Graph, Node, NodeId, NodeKind};
use crate::program::Origin;

/// A call of a function that may wait or that blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct IoCall {
    /// The path of the function.
    pub function: Text,
    /// The position in the text.
    pub origin: Origin,
    /// The number of its round, from 1.
    pub round: u32,
    /// True if its function answers many calls at once.
    pub is_batched: bool,
    /// The innermost repetition that the call is in.
    pub repetition: Repetition,
    /// The reason for which it does not begin in an earlier round; `None` in the first one.
    pub wait: Option<IoWait>,
}

/// The repetition of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repetition {
    /// The call is made once.
    Once,
    /// The call is made for each element of a list, and these calls are under way together.
    Together,
    /// The call is made in each round of a loop or for each element of a list, one after the other.
    InTurn,
}

/// The reason for which a call waits.
#[derive(Clone, Debug, PartialEq)]
pub struct IoWait {
    /// The index of the call that it waits for, among those of the flow.
    pub call: usize,
    /// The reason.
    pub why: WaitReason,
}

/// The kind of a dependency between two calls.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitReason {
    /// An argument is computed from the result of the earlier call.
    Argument,
    /// The result of the earlier call decides about the branch in which the later one is.
    Branch,
    /// Both use this resource, and one of them changes it.
    Order(Resource),
    /// The later call has an effect, and the flow may end because of the earlier one.
    End,
}

/// Returns the calls of a flow, in the order of its text.
#[must_use]
pub fn io_calls(graph: &Graph, library: &Library) -> Vec<IoCall> {
    let mut rounds = Rounds { library, calls: Vec::new() };
    rounds.graph(graph, &Moment::default(), Repetition::Once);
    rounds.calls
}

/// A moment in the execution of a flow: after this many rounds.
#[derive(Clone, Debug, Default)]
struct Moment {
    round: u32,
    /// The last call before it, and the reason for which it comes after that call.
    wait: Option<IoWait>,
}

impl Moment {
    fn or_later(self, other: Moment) -> Moment {
        if other.round > self.round { other } else { self }
    }

    /// Returns the same moment as seen by a node that a switch controls.
    fn in_branch(mut self) -> Moment {
        if let Some(wait) = &mut self.wait {
            wait.why = WaitReason::Branch;
        }
        self
    }
}

/// The beginning and the end of a node.
#[derive(Clone)]
struct NodeRounds {
    begins: Moment,
    ends: Moment,
}

struct Rounds<'a> {
    library: &'a Library,
    calls: Vec<IoCall>,
}

impl Rounds<'_> {
    /// Adds the calls of a graph that begins at this moment; returns its end.
    fn graph(&mut self, graph: &Graph, start: &Moment, repetition: Repetition) -> Moment {
        let mut spans: Vec<NodeRounds> = Vec::with_capacity(graph.nodes.len());
        let mut end = start.clone();
        for (_, node) in graph.nodes() {
            let begins = self.beginning(graph, node, start, &spans);
            let ends = self.node(node, &begins, repetition);
            end = end.or_later(ends.clone());
            spans.push(NodeRounds { begins, ends });
        }
        end
    }

    /// Returns the moment at which a node can begin.
    fn beginning(&self, graph: &Graph, node: &Node, start: &Moment, spans: &[NodeRounds]) -> Moment {
        let span = |id: NodeId| &spans[id.0 as usize];
        let inputs = node.inputs.iter().filter_map(|input| input.node()).chain(node.kind.named_node());
        let mut begins = start.clone();
        for input in inputs.chain(node.within) {
            begins = begins.or_later(span(input).ends.clone());
        }
        if let Some(control) = node.control {
            begins = begins.or_later(span(control.switch).ends.clone().in_branch());
        }
        for earlier in &node.after {
            let other = graph.node(*earlier);
            let mut moment = span(*earlier).ends.clone();
            if self.is_placed_after(node, other) {
                moment = span(*earlier).begins.clone();
            } else if let Some(wait) = &mut moment.wait {
                wait.why = common_resource(node, other).map_or(WaitReason::End, WaitReason::Order);
            }
            begins = begins.or_later(moment);
        }
        begins
    }

    /// Adds the calls of a node; returns its end.
    fn node(&mut self, node: &Node, begins: &Moment, repetition: Repetition) -> Moment {
        if let NodeKind::Call { function } = &node.kind {
            return if self.waits(function) { self.call(node, function, begins, repetition) } else { begins.clone() };
        }
        let inner = match &node.kind {
            NodeKind::Map { .. } if repetition != Repetition::InTurn && !is_in_turn(node) => Repetition::Together,
            NodeKind::Map { .. } | NodeKind::Fold { .. } | NodeKind::Loop { .. } => Repetition::InTurn,
            _ => repetition,
        };
        let mut end = begins.clone();
        for body in node.bodies() {
            end = end.or_later(self.graph(body, begins, inner));
        }
        end
    }

    fn call(&mut self, node: &Node, function: &Text, begins: &Moment, repetition: Repetition) -> Moment {
        let round = begins.round + 1;
        self.calls.push(IoCall {
            function: function.clone(),
            origin: node.origin,
            round,
            is_batched: self.is_batched(function),
            repetition,
            wait: begins.wait.clone(),
        });
        Moment { round, wait: Some(IoWait { call: self.calls.len() - 1, why: WaitReason::Argument }) }
    }

    fn waits(&self, function: &str) -> bool {
        let signature = self.library.function(function).map(|function| &function.signature);
        signature.is_some_and(|signature| signature.effects.waits || signature.effects.blocking)
    }

    fn is_batched(&self, function: &str) -> bool {
        self.library.function(function).is_some_and(|function| function.signature.batch.is_some())
    }

    /// Returns true if a node needs an earlier one only to be placed, because both call the same batched function.
    fn is_placed_after(&self, node: &Node, earlier: &Node) -> bool {
        match (&node.kind, &earlier.kind) {
            (NodeKind::Call { function: one }, NodeKind::Call { function: other }) => {
                one == other && self.is_batched(one)
            }
            _ => false,
        }
    }
}

/// Returns true if the elements of a `for` are processed one after the other: an effect waits for what may end the flow
/// before it.
fn is_in_turn(node: &Node) -> bool {
    node.writes() && node.may_end()
}

/// Returns the resource that both nodes use and one of them changes.
fn common_resource(node: &Node, other: &Node) -> Option<Resource> {
    let conflicts = node.uses.iter().filter(|usage| {
        let of_other = other.uses.iter().filter(|other| other.resource == usage.resource);
        let mut of_other = of_other.map(|other| other.mode);
        of_other.any(|mode| mode == Mode::Write || usage.mode == Mode::Write)
    });
    conflicts.map(|usage| usage.resource.clone()).next()
}
