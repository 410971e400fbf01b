//! The graph: nodes with typed ports, control flow turned into data, resources as explicit edges.
//!
//! *Control.* A [`NodeKind::Switch`] chooses one of its arms; a node in an arm has the arm as its [`Node::control`] and
//! runs only if that arm was chosen; a [`NodeKind::Select`] takes the value of the arm that was (Ohua thesis §3.2,
//! `ctrl` and `select`). A node in an arm that was not chosen is *skipped*, and so are all nodes that it controls. It
//! is skipped only when all nodes that it would have waited for have run or were skipped, so that orders through it are
//! preserved.
//!
//! *Order.* Nodes are listed in the order of the program, which is a topological order of all edges. A node may run as
//! soon as the nodes that its inputs, its control and its [`Node::after`] edges name have run or were skipped. `after`
//! holds the order of resources (calls that touch one resource keep their order, unless all only read it) and of ends
//! (a node with an effect waits for every earlier node that may end the flow).
//!
//! *Ends.* [`NodeKind::Return`], [`NodeKind::Fail`] and a node that fails end the flow. Nodes listed earlier still run,
//! and an earlier end wins over a later one; no node that is listed later begins.
//!
//! *Bodies.* `map`, `fold` and `loop` hold a graph of their own, run once for each element or round. An end within it
//! ends the whole flow. A captured value that the body changes by `&mut` is passed from one iteration to the next, and
//! returned at the end. `within` and `race` hold graphs that may be cancelled: such a value is moved into them and
//! never returned.

use std::collections::BTreeSet;

use weir_host::{Mode, Resource, Text, Type, Value};

mod conditions;
mod kind;
mod parts;
mod predecessors;
mod traverse;

pub use crate::expr::{ArmTest, Constraint};
use crate::program;
pub use crate::program::{InlinedCall, InlinedCallId, Origin};
pub use conditions::arms_of_truth;
pub(crate) use conditions::{Conditions, may_hold_condition};
pub use kind::{NodeKind, Own, SwitchArm};
pub(crate) use parts::PartUses;
pub(crate) use predecessors::{NodeSet, Predecessors};

/// A program whose bodies are graphs.
pub type Program = program::Program<Graph>;

/// A graph, or the body of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The types of the parameters. A body has the element, or states and element, or states, or nothing of its
    /// own; then its captures, in the order of the node's further inputs.
    pub parameters: Vec<Type>,
    /// The constants that inputs name.
    pub constants: Vec<Value>,
    /// The nodes, in the order of the program.
    pub nodes: Vec<Node>,
    /// The value that the graph yields unless a node ends the flow first.
    pub result: Operand,
}

/// The index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// An input of a node: the value of a port, a parameter, a constant or a shared value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operand {
    /// An output port of an earlier node.
    Port(NodeId, u32),
    /// A parameter of the graph.
    Parameter(u32),
    /// One of the graph's constants.
    Constant(u32),
    /// A shared value of the program.
    Shared(Text),
    /// No value: the arm of a `select` that never yields, or the result of a graph that always ends the flow.
    #[default]
    Never,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name in plans and messages, unique in the flow: `thumbnail/image.to_jpeg`, `switch#2`.
    pub name: Text,
    /// The operation of the node.
    pub kind: NodeKind,
    /// The inputs, in the order that the operation defines.
    pub inputs: Vec<Operand>,
    /// The types of the output ports. A switch has the payloads of its arms, one after the other.
    pub outputs: Vec<Type>,
    /// The arm of a switch that the node belongs to, if any.
    pub control: Option<Control>,
    /// The nodes that must run first to keep the order of a resource or an end, in ascending order.
    pub after: Vec<NodeId>,
    /// The resources that it touches, in the canonical order. A node with a body has all that the body touches.
    pub uses: Vec<ResourceUse>,
    /// The innermost [`NodeKind::Acquire`] whose atomic step contains the node.
    pub within: Option<NodeId>,
    /// The later switch that evaluates this primitive as part of its condition, if one does: see the pass
    /// `fused-conditions`. The node then makes no value of its own.
    pub condition_of: Option<NodeId>,
    /// The position in the text.
    pub origin: Origin,
}

/// An arm of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Control {
    /// The switch.
    pub switch: NodeId,
    /// The index of the arm.
    pub arm: u32,
}

/// An access of a node to a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceUse {
    /// The resource.
    pub resource: Resource,
    /// Shared with other readers, or exclusive.
    pub mode: Mode,
    /// True if an enclosing [`NodeKind::Acquire`] holds the resource already.
    pub held: bool,
}

impl Graph {
    /// Returns the node with this index.
    ///
    /// # Panics
    /// Panics on an index of another graph.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Returns the nodes with their indices.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().zip(0..).map(|(node, index)| (NodeId(index), node))
    }
}

impl Program {
    /// Returns the session-scoped resources: those that steps hold per session, and no step holds as a whole.
    ///
    /// A call takes such a resource last, holds it for the duration of the call and waits for nothing meanwhile.
    #[must_use]
    pub fn session_scoped(&self) -> BTreeSet<Resource> {
        let (mut sessions, mut whole) = (BTreeSet::new(), BTreeSet::new());
        for flow in self.entries.iter().flat_map(|entry| &entry.flows) {
            flow.body.each_node(&mut |node| {
                for constraint in node.kind.constraints() {
                    let scope = if constraint.per_session { &mut sessions } else { &mut whole };
                    scope.insert(constraint.resource.clone());
                }
            });
        }
        &sessions - &whole
    }
}
