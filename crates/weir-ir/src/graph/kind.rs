//! Operations of nodes: what each is, and the two tables by which graphs are walked.
//!
//! The two tables, exhaustive matches on [`NodeKind`], have a row for each operation: one of its bodies, one of all else. The
//! verifier, the printer, the parser, the lowering, the engines' preparation and the drawing follow them.
//!
//! A node with bodies has *own inputs* first (the list or the limit, then initial states), then its *captures*. A body has
//! *own parameters* first (states, then the element), then the captured values, in the order of the inputs.

use weir_host::{Library, Signature, Text};

use super::{ArmTest, Constraint, Graph, NodeId};
use crate::body_types::BodyTypes;
use crate::prim::Prim;
use crate::program::LoopExit;

/// The operation of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// Applies a primitive to its inputs.
    Prim(Prim),
    /// Calls the host function of this path. Of a function that can fail, the output is a `Result`.
    Call {
        /// The function's path.
        function: Text,
        /// True if its output is a `Result` of the failure with which the call would end the flow.
        keeps_failure: bool,
        /// True if the call may end the flow with a failure for which effects wait: the function has [`weir_host::Effects::may_end`],
        /// and the call is in no atomic step, whose effects such a failure takes back.
        may_end: bool,
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
        /// The way in which it ends before its list does.
        exit: LoopExit,
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
    /// Runs the body, which is a transaction, again as long as the database refuses it, a bounded number of times; yields its result.
    /// The body is told whether an attempt is the last one.
    Transaction {
        /// The body.
        body: Box<Graph>,
    },
    /// Begins an atomic step: waits for the constraints, in their order. Its input, if it has one, is the session.
    Acquire {
        /// The constraints that the step holds, in the canonical order.
        constraints: Vec<Constraint>,
        /// The shared values that get back their values if what the step has begun is taken back.
        restores: Vec<Text>,
        /// True if the flow may be cancelled within the step.
        cancellable: bool,
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

/// The properties of an operation by which graphs are walked.
struct KindRow {
    /// The word in the printed graph.
    word: &'static str,
    /// The types around its bodies; `None` for operations without bodies.
    bodies: Option<BodyTypes>,
    /// The states that it hands from round to round.
    states: u32,
    /// The earlier node that it names.
    named_node: Option<NodeId>,
    may_wait: bool,
    /// True if it may end the flow by itself.
    may_end: bool,
    ends_flow: bool,
    cancels_bodies: bool,
}

impl KindRow {
    /// Returns the row of an operation without bodies that neither waits nor ends the flow.
    const fn plain(word: &'static str) -> KindRow {
        KindRow {
            word,
            bodies: None,
            states: 0,
            named_node: None,
            may_wait: false,
            may_end: false,
            ends_flow: false,
            cancels_bodies: false,
        }
    }

    /// Returns the row of an operation with bodies, which hands on so many states.
    const fn repeated(word: &'static str, states: u32, types: BodyTypes) -> KindRow {
        KindRow { bodies: Some(types), states, may_wait: true, ..KindRow::plain(word) }
    }

    /// Returns the row of an operation that may cancel its bodies.
    const fn cancelling(word: &'static str, types: BodyTypes) -> KindRow {
        KindRow { bodies: Some(types), may_wait: true, cancels_bodies: true, ..KindRow::plain(word) }
    }
}

/// The table of bodies, for shared and for mutable references.
macro_rules! bodies {
    ($kind:expr, $one:path) => {
        match $kind {
            NodeKind::Map { body }
            | NodeKind::Fold { body, states: _, exit: _ }
            | NodeKind::Loop { body, states: _, at_most: _ }
            | NodeKind::Within { body }
            | NodeKind::Transaction { body } => $one(body),
            NodeKind::Race { bodies } => bodies,
            NodeKind::Prim(_)
            | NodeKind::Call { .. }
            | NodeKind::Switch { .. }
            | NodeKind::Select { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Release { .. }
            | NodeKind::Return
            | NodeKind::Fail => Default::default(),
        }
    };
}

impl NodeKind {
    /// The table of all other properties.
    fn row(&self) -> KindRow {
        match self {
            NodeKind::Prim(prim) => KindRow { may_end: prim.may_fail(), ..KindRow::plain(prim.name()) },
            NodeKind::Call { may_end, .. } => KindRow { may_wait: true, may_end: *may_end, ..KindRow::plain("call") },
            NodeKind::Switch { arms: _ } => KindRow::plain("switch"),
            NodeKind::Select { switch } => KindRow { named_node: Some(*switch), ..KindRow::plain("select") },
            NodeKind::Map { body: _ } => KindRow::repeated("for", 0, BodyTypes::MAP),
            NodeKind::Fold { body: _, states, exit: _ } => KindRow::repeated("fold", *states, BodyTypes::FOLD),
            NodeKind::Loop { body: _, states, at_most: _ } => {
                KindRow { may_end: true, ..KindRow::repeated("loop", *states, BodyTypes::LOOP) }
            }
            NodeKind::Within { body: _ } => KindRow::cancelling("within", BodyTypes::WITHIN),
            NodeKind::Race { bodies: _ } => KindRow::cancelling("race", BodyTypes::RESULT),
            NodeKind::Transaction { body: _ } => KindRow::repeated("transaction", 0, BodyTypes::TRANSACTION),
            NodeKind::Acquire { .. } => KindRow { may_wait: true, ..KindRow::plain("acquire") },
            NodeKind::Release { acquire } => {
                KindRow { named_node: Some(*acquire), may_wait: true, ..KindRow::plain("release") }
            }
            NodeKind::Return => KindRow { may_end: true, ends_flow: true, ..KindRow::plain("return") },
            NodeKind::Fail => KindRow { may_end: true, ends_flow: true, ..KindRow::plain("fail") },
        }
    }

    /// Returns the operations that the printed graph shows by their word and their numbers alone, without their bodies.
    pub(crate) fn without_details() -> [NodeKind; 9] {
        [
            NodeKind::Switch { arms: Vec::new() },
            NodeKind::Map { body: Box::default() },
            NodeKind::Fold { body: Box::default(), states: 1, exit: LoopExit::Never },
            NodeKind::Loop { body: Box::default(), states: 1, at_most: 1 },
            NodeKind::Within { body: Box::default() },
            NodeKind::Race { bodies: Vec::new() },
            NodeKind::Transaction { body: Box::default() },
            NodeKind::Return,
            NodeKind::Fail,
        ]
    }

    /// Returns the number of states and the bound on rounds, if the operation has them.
    pub(crate) fn numbers(&self) -> (Option<u32>, Option<u64>) {
        match self {
            NodeKind::Fold { states, .. } => (Some(*states), None),
            NodeKind::Loop { states, at_most, .. } => (Some(*states), Some(*at_most)),
            _ => (None, None),
        }
    }

    /// Returns the number of states and the bound on rounds, to change them.
    pub(crate) fn numbers_mut(&mut self) -> (Option<&mut u32>, Option<&mut u64>) {
        match self {
            NodeKind::Fold { states, .. } => (Some(states), None),
            NodeKind::Loop { states, at_most, .. } => (Some(states), Some(at_most)),
            _ => (None, None),
        }
    }

    /// Returns the way in which a fold ends before its list does; `Never` for any other operation.
    #[must_use]
    pub fn exit(&self) -> LoopExit {
        if let NodeKind::Fold { exit, .. } = self { *exit } else { LoopExit::Never }
    }

    /// Returns the same, to change it.
    pub(crate) fn exit_mut(&mut self) -> Option<&mut LoopExit> {
        if let NodeKind::Fold { exit, .. } = self { Some(exit) } else { None }
    }

    /// Returns the bodies, if there can be any number of them: the printed graph then has a heading above each.
    pub(crate) fn branches_mut(&mut self) -> Option<&mut Vec<Graph>> {
        if let NodeKind::Race { bodies } = self { Some(bodies) } else { None }
    }

    /// Returns true if there can be any number of bodies.
    #[must_use]
    pub fn has_branches(&self) -> bool {
        matches!(self, NodeKind::Race { .. })
    }

    /// Returns the word for the operation in the printed graph, which also begins the names of nodes that are no calls.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.row().word
    }

    /// Returns the bodies: that of a `map`, `fold`, `loop`, `within` or transaction, or those of a race.
    #[must_use]
    pub fn bodies(&self) -> &[Graph] {
        bodies!(self, std::slice::from_ref)
    }

    /// Returns the bodies, to change them.
    pub fn bodies_mut(&mut self) -> &mut [Graph] {
        bodies!(self, std::slice::from_mut)
    }

    /// Returns the earlier node that the operation names: the switch of a select, the acquire of a release.
    #[must_use]
    pub fn named_node(&self) -> Option<NodeId> {
        self.row().named_node
    }

    /// Returns the constraints that an acquire takes; nothing for other operations.
    #[must_use]
    pub fn constraints(&self) -> &[Constraint] {
        if let NodeKind::Acquire { constraints, .. } = self { constraints } else { &[] }
    }

    /// Returns the numbers of own inputs of the node and of own parameters of its bodies.
    #[must_use]
    pub fn own(&self) -> Own {
        let KindRow { bodies, states, .. } = self.row();
        match bodies {
            Some(types) => {
                let states = states as usize;
                Own { inputs: types.operands() + states, parameters: states + types.parameters() }
            }
            None => Own { inputs: usize::MAX, parameters: 0 },
        }
    }

    /// Returns true if the operation ends when a time limit expires.
    #[must_use]
    pub fn has_limit(&self) -> bool {
        self.body_types().is_some_and(BodyTypes::has_limit)
    }

    /// Returns the types around the bodies, if the operation has bodies.
    pub(crate) fn body_types(&self) -> Option<BodyTypes> {
        self.row().bodies
    }

    /// Returns the number of states that the operation hands from round to round.
    #[must_use]
    pub fn states(&self) -> usize {
        self.row().states as usize
    }

    /// Returns true if the operation may keep the flow waiting: a call, a body, and the ends of an atomic step.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.row().may_wait
    }

    /// Returns true if the operation waits for nothing but locks and processors: no call in it waits, blocks its thread or
    /// gathers.
    #[must_use]
    pub fn is_immediate(&self, library: &Library) -> bool {
        let immediate = match self {
            NodeKind::Call { function, .. } => library.function(function).is_some_and(|function| {
                let Signature { effects, batch, .. } = &function.signature;
                !effects.waits && !effects.blocking && batch.is_none()
            }),
            _ => true,
        };
        immediate && self.bodies().iter().flat_map(|body| &body.nodes).all(|node| node.kind.is_immediate(library))
    }

    /// Returns true if the operation always ends the flow.
    #[must_use]
    pub fn ends_flow(&self) -> bool {
        self.row().ends_flow
    }

    /// Returns true if the operation itself may end the flow, apart from the nodes of its bodies.
    pub(super) fn may_end(&self) -> bool {
        self.row().may_end
    }

    /// Returns true if the operation may cancel one of its bodies before the body has ended.
    #[must_use]
    pub fn cancels_bodies(&self) -> bool {
        self.row().cancels_bodies
    }
}

/// The numbers of a node's own inputs and of its bodies' own parameters; captures follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The own inputs of the node; all of them if it has no body.
    pub inputs: usize,
    /// The own parameters of each body.
    pub parameters: usize,
}
