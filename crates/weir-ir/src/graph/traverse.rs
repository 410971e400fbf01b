//! Traversal of graphs: tables of the bodies, inputs and earlier nodes that the operation of a node has.
//!
//! The tables are exhaustive matches on [`NodeKind`], so that a new operation is one row in each. The verifier, the printer,
//! the lowering, the engines' preparation and the drawing walk graphs by the functions that follow from them.
//!
//! A node with bodies has *own inputs* first (the list, then initial states; the limit), then its *captures*. A body has *own
//! parameters* first (states, then the element), then the captured values, in the order of the inputs.

use weir_host::Mode;

use super::{Constraint, Graph, Node, NodeId, NodeKind, Operand};

impl NodeKind {
    /// Returns the word for the operation in the printed graph, which also begins the names of nodes that are no calls.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            NodeKind::Prim(prim) => prim.name(),
            NodeKind::Call { .. } => "call",
            NodeKind::Switch { .. } => "switch",
            NodeKind::Select { .. } => "select",
            NodeKind::Map { .. } => "for",
            NodeKind::Fold { .. } => "fold",
            NodeKind::Loop { .. } => "loop",
            NodeKind::Within { .. } => "within",
            NodeKind::Race { .. } => "race",
            NodeKind::Acquire { .. } => "acquire",
            NodeKind::Release { .. } => "release",
            NodeKind::Return => "return",
            NodeKind::Fail => "fail",
        }
    }

    /// Returns the bodies: that of a `map`, `fold`, `loop` or `within`, or those of a race.
    #[must_use]
    pub fn bodies(&self) -> &[Graph] {
        match self {
            NodeKind::Map { body } | NodeKind::Fold { body, .. } | NodeKind::Loop { body, .. } => {
                std::slice::from_ref(body)
            }
            NodeKind::Within { body } => std::slice::from_ref(body),
            NodeKind::Race { bodies } => bodies,
            NodeKind::Prim(_)
            | NodeKind::Call { .. }
            | NodeKind::Switch { .. }
            | NodeKind::Select { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Release { .. }
            | NodeKind::Return
            | NodeKind::Fail => &[],
        }
    }

    /// Returns the bodies, to change them.
    pub fn bodies_mut(&mut self) -> &mut [Graph] {
        match self {
            NodeKind::Map { body } | NodeKind::Fold { body, .. } | NodeKind::Loop { body, .. } => {
                std::slice::from_mut(body)
            }
            NodeKind::Within { body } => std::slice::from_mut(body),
            NodeKind::Race { bodies } => bodies,
            NodeKind::Prim(_)
            | NodeKind::Call { .. }
            | NodeKind::Switch { .. }
            | NodeKind::Select { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Release { .. }
            | NodeKind::Return
            | NodeKind::Fail => &mut [],
        }
    }

    /// Returns the earlier node that the operation names: the switch of a select, the acquire of a release.
    #[must_use]
    pub fn named_node(&self) -> Option<NodeId> {
        match self {
            NodeKind::Select { switch } => Some(*switch),
            NodeKind::Release { acquire } => Some(*acquire),
            NodeKind::Prim(_)
            | NodeKind::Call { .. }
            | NodeKind::Switch { .. }
            | NodeKind::Map { .. }
            | NodeKind::Fold { .. }
            | NodeKind::Loop { .. }
            | NodeKind::Within { .. }
            | NodeKind::Race { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Return
            | NodeKind::Fail => None,
        }
    }

    /// Returns the constraints that an acquire takes; nothing for other operations.
    #[must_use]
    pub fn constraints(&self) -> &[Constraint] {
        if let NodeKind::Acquire { constraints } = self { constraints } else { &[] }
    }

    /// Returns the numbers of own inputs of the node and of own parameters of its bodies.
    #[must_use]
    pub fn own(&self) -> Own {
        match self {
            NodeKind::Map { .. } => Own { inputs: 1, parameters: 1 },
            NodeKind::Fold { .. } => Own { inputs: self.states() + 1, parameters: self.states() + 1 },
            NodeKind::Loop { .. } => Own { inputs: self.states(), parameters: self.states() },
            NodeKind::Within { .. } => Own { inputs: 1, parameters: 0 },
            NodeKind::Race { .. } => Own { inputs: 0, parameters: 0 },
            NodeKind::Prim(_)
            | NodeKind::Call { .. }
            | NodeKind::Switch { .. }
            | NodeKind::Select { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Release { .. }
            | NodeKind::Return
            | NodeKind::Fail => Own { inputs: usize::MAX, parameters: 0 },
        }
    }

    /// Returns the number of states that the operation hands from round to round.
    #[must_use]
    pub fn states(&self) -> usize {
        match self {
            NodeKind::Fold { states, .. } | NodeKind::Loop { states, .. } => *states as usize,
            _ => 0,
        }
    }

    /// Returns true if the operation may keep the flow waiting: a call, a body, and the ends of an atomic step.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        let by_itself = matches!(self, NodeKind::Call { .. } | NodeKind::Acquire { .. } | NodeKind::Release { .. });
        by_itself || !self.bodies().is_empty()
    }

    /// Returns true if the operation always ends the flow.
    #[must_use]
    pub fn ends_flow(&self) -> bool {
        matches!(self, NodeKind::Return | NodeKind::Fail)
    }

    /// Returns true if the operation may cancel one of its bodies before the body has ended.
    #[must_use]
    pub fn cancels_bodies(&self) -> bool {
        matches!(self, NodeKind::Within { .. } | NodeKind::Race { .. })
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
        let by_itself = match &self.kind {
            NodeKind::Prim(prim) => prim.may_fail(),
            NodeKind::Loop { .. } | NodeKind::Return | NodeKind::Fail => true,
            NodeKind::Call { .. }
            | NodeKind::Switch { .. }
            | NodeKind::Select { .. }
            | NodeKind::Map { .. }
            | NodeKind::Fold { .. }
            | NodeKind::Within { .. }
            | NodeKind::Race { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Release { .. } => false,
        };
        by_itself || self.bodies().iter().any(|body| body.nodes.iter().any(Node::may_end))
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
