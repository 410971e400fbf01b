//! Traversal of graphs: the bodies, inputs and earlier nodes that the operation of a node has.
//!
//! Two tables, exhaustive matches on [`NodeKind`], have a row for each operation: one of its bodies, one of all else. The
//! verifier, the printer, the lowering, the engines' preparation and the drawing walk graphs by the functions that follow
//! from them.
//!
//! A node with bodies has *own inputs* first (the list, then initial states; the limit), then its *captures*. A body has *own
//! parameters* first (states, then the element), then the captured values, in the order of the inputs.

use weir_host::Mode;

use super::{Constraint, Graph, Node, NodeId, NodeKind, Operand};

/// The properties of an operation by which graphs are walked.
struct Row {
    word: &'static str,
    own: Own,
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

impl Row {
    /// Returns the row of an operation without bodies that neither waits nor ends the flow.
    const fn plain(word: &'static str) -> Row {
        Row {
            word,
            own: Own { inputs: usize::MAX, parameters: 0 },
            states: 0,
            named_node: None,
            may_wait: false,
            may_end: false,
            ends_flow: false,
            cancels_bodies: false,
        }
    }

    /// Returns the row of an operation with bodies, which have these states and `element` more parameters of their own.
    const fn repeated(word: &'static str, states: u32, element: usize) -> Row {
        let own = states as usize + element;
        Row { own: Own { inputs: own, parameters: own }, states, may_wait: true, ..Row::plain(word) }
    }

    /// Returns the row of an operation that may cancel its bodies, with so many inputs of its own.
    const fn cancelling(word: &'static str, inputs: usize) -> Row {
        Row { own: Own { inputs, parameters: 0 }, may_wait: true, cancels_bodies: true, ..Row::plain(word) }
    }
}

/// The table of bodies, for shared and for mutable references.
macro_rules! bodies {
    ($kind:expr, $one:path) => {
        match $kind {
            NodeKind::Map { body }
            | NodeKind::Fold { body, states: _ }
            | NodeKind::Loop { body, states: _, at_most: _ }
            | NodeKind::Within { body } => $one(body),
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
    fn row(&self) -> Row {
        match self {
            NodeKind::Prim(prim) => Row { may_end: prim.may_fail(), ..Row::plain(prim.name()) },
            NodeKind::Call { function: _ } => Row { may_wait: true, ..Row::plain("call") },
            NodeKind::Switch { arms: _ } => Row::plain("switch"),
            NodeKind::Select { switch } => Row { named_node: Some(*switch), ..Row::plain("select") },
            NodeKind::Map { body: _ } => Row::repeated("for", 0, 1),
            NodeKind::Fold { body: _, states } => Row::repeated("fold", *states, 1),
            NodeKind::Loop { body: _, states, at_most: _ } => {
                Row { may_end: true, ..Row::repeated("loop", *states, 0) }
            }
            NodeKind::Within { body: _ } => Row::cancelling("within", 1),
            NodeKind::Race { bodies: _ } => Row::cancelling("race", 0),
            NodeKind::Acquire { constraints: _ } => Row { may_wait: true, ..Row::plain("acquire") },
            NodeKind::Release { acquire } => {
                Row { named_node: Some(*acquire), may_wait: true, ..Row::plain("release") }
            }
            NodeKind::Return => Row { may_end: true, ends_flow: true, ..Row::plain("return") },
            NodeKind::Fail => Row { may_end: true, ends_flow: true, ..Row::plain("fail") },
        }
    }

    /// Returns the operations that the printed graph shows by their word alone, without their bodies.
    pub(crate) fn without_details() -> [NodeKind; 6] {
        [
            NodeKind::Switch { arms: Vec::new() },
            NodeKind::Map { body: Box::default() },
            NodeKind::Within { body: Box::default() },
            NodeKind::Race { bodies: Vec::new() },
            NodeKind::Return,
            NodeKind::Fail,
        ]
    }

    /// Returns the word for the operation in the printed graph, which also begins the names of nodes that are no calls.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.row().word
    }

    /// Returns the bodies: that of a `map`, `fold`, `loop` or `within`, or those of a race.
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
        if let NodeKind::Acquire { constraints } = self { constraints } else { &[] }
    }

    /// Returns the numbers of own inputs of the node and of own parameters of its bodies.
    #[must_use]
    pub fn own(&self) -> Own {
        self.row().own
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

    /// Returns true if the operation always ends the flow.
    #[must_use]
    pub fn ends_flow(&self) -> bool {
        self.row().ends_flow
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

impl Node {
    /// Returns the graphs within the node.
    #[must_use]
    pub fn bodies(&self) -> &[Graph] {
        self.kind.bodies()
    }

    /// Returns the body that captures this input and the index of the parameter there; `None` for an own input.
    #[must_use]
    pub fn captured(&self, input: usize) -> Option<(usize, usize)> {
        let own = self.kind.own();
        let mut capture = input.checked_sub(own.inputs)?;
        for (index, body) in self.bodies().iter().enumerate() {
            let captures = body.parameters.len().saturating_sub(own.parameters);
            match capture.checked_sub(captures) {
                Some(rest) => capture = rest,
                None => return Some((index, own.parameters + capture)),
            }
        }
        None
    }

    /// Returns the nodes that the node waits for directly: those of its inputs, its control and its order.
    pub fn waits_for(&self) -> impl Iterator<Item = NodeId> + '_ {
        let inputs = self.inputs.iter().filter_map(Operand::node);
        let control = self.control.map(|control| control.switch);
        inputs.chain(self.kind.named_node()).chain(control).chain(self.after.iter().copied())
    }

    /// Returns true if the node may cancel one of its bodies before the body has ended.
    #[must_use]
    pub fn cancels_bodies(&self) -> bool {
        self.kind.cancels_bodies()
    }

    /// Returns the first output port of a switch's arm.
    #[must_use]
    pub fn first_port(&self, arm: u32) -> u32 {
        match &self.kind {
            NodeKind::Switch { arms } => arms.iter().take(arm as usize).map(|arm| arm.payload).sum(),
            _ => 0,
        }
    }

    /// Returns true if the node may end the flow. Faults of calls do not count: see [`crate::expr::Op::may_end`].
    #[must_use]
    pub fn may_end(&self) -> bool {
        self.kind.row().may_end || self.bodies().iter().any(|body| body.nodes.iter().any(Node::may_end))
    }

    /// Returns true if the node changes a resource.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.uses.iter().any(|usage| usage.mode == Mode::Write)
    }
}

impl Operand {
    /// Returns the node whose port it is, if it is one.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Operand::Port(node, _) => Some(*node),
            Operand::Parameter(_) | Operand::Constant(_) | Operand::Shared(_) | Operand::Never => None,
        }
    }
}

impl Graph {
    /// Visits every node of the graph and of all graphs within, each before its bodies.
    pub fn each_node<'a>(&'a self, see: &mut impl FnMut(&'a Node)) {
        for node in &self.nodes {
            see(node);
            node.bodies().iter().for_each(|body| body.each_node(see));
        }
    }
}
