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
mod parts;
mod predecessors;
mod traverse;

pub use crate::expr::{ArmTest, Constraint};
use crate::prim::Prim;
use crate::program;
pub use crate::program::Origin;
pub use conditions::arms_of_truth;
pub(crate) use conditions::{Conditions, may_hold_condition};
pub(crate) use parts::PartUses;
pub(crate) use predecessors::{NodeSet, Predecessors};
pub use traverse::Own;

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

/// The operation of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// Applies a primitive to its inputs.
    Prim(Prim),
    /// Calls the host function of this path. Of a function that can fail, the output is a `Result`.
    Call {
        /// The function's path.
        function: Text,
    },
    /// Tests its one input and chooses the first arm whose test holds.
    Switch {
        /// The arms; each has as many output ports as its payload has fields.
        arms: Vec<SwitchArm>,
    },
    /// Takes the input of the arm that the switch chose.
    Select {
        /// The switch.
        switch: NodeId,
    },
    /// Runs the body for each element of its first input, and yields the list of the results.
    Map {
        /// The body.
        body: Box<Graph>,
    },
    /// Folds its first input, beginning with the states that are its next inputs. The body yields the next state, or the
    /// tuple of the next states, and so does the node.
    Fold {
        /// The body.
        body: Box<Graph>,
        /// The number of states, at least 1.
        states: u32,
    },
    /// Runs the body with the states that are its first inputs, and then with those of each result, until it is done. The
    /// body yields the tuple of the next states and `done`; the node yields the last state, or the tuple of the states.
    Loop {
        /// The body.
        body: Box<Graph>,
        /// The number of states, at least 1.
        states: u32,
        /// The number of rounds after which it fails with [`weir_host::FailureKind::Limit`].
        at_most: u64,
    },
    /// Runs the body for as long as its first input, a `Duration`, allows; yields `Some` of its result, or `None`.
    Within {
        /// The body.
        body: Box<Graph>,
    },
    /// Runs the bodies concurrently, and yields the result of the first that ends. Its inputs are the captures of the
    /// first body, then those of the second, and so on.
    Race {
        /// The bodies.
        bodies: Vec<Graph>,
    },
    /// Begins an atomic step: waits for the constraints, in their order. Its input, if it has one, is the session.
    Acquire {
        /// The constraints that the step holds, in the canonical order.
        constraints: Vec<Constraint>,
    },
    /// Ends an atomic step. An end of the flow also ends it.
    Release {
        /// The node that began it.
        acquire: NodeId,
    },
    /// Ends the flow with its input as the answer.
    Return,
    /// Ends the flow with its input, a failure.
    Fail,
}

/// One arm of a switch node.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchArm {
    /// The test that chooses this arm.
    pub test: ArmTest,
    /// The number of payload fields that it outputs.
    pub payload: u32,
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
