//! Traversal of graphs: functions that walk nodes by the tables of their operations.

use weir_host::{Library, Mode, Resource};

use super::{Constraint, Graph, Node, NodeId, NodeKind, Operand, ResourceUse};

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

    /// Returns the nodes that the node comes after directly: those that it waits for, and the beginning of its atomic step.
    pub fn comes_after(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.waits_for().chain(self.within)
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

    /// Returns true if the node may end the flow with a failure that effects wait for. Faults of calls do not count: see
    /// [`crate::expr::Op::may_end`].
    #[must_use]
    pub fn may_end(&self) -> bool {
        self.kind.may_end() || self.bodies().iter().any(|body| body.nodes.iter().any(Node::may_end))
    }

    /// Returns true if the flow may end in the node with an answer: the node is a `return`, or has one in a body.
    #[must_use]
    pub fn may_return(&self) -> bool {
        matches!(self.kind, NodeKind::Return)
            || self.bodies().iter().any(|body| body.nodes.iter().any(Node::may_return))
    }

    /// Returns true if the node runs only when it is certain that no earlier `return` ends the flow: it reads or changes
    /// something outside the program, or calls a function that waits, blocks its thread or gathers.
    #[must_use]
    pub fn waits_for_returns(&self, library: &Library) -> bool {
        let outside = |usage: &ResourceUse| matches!(usage.resource, Resource::World(_));
        self.uses.iter().any(outside) || !self.kind.is_immediate(library)
    }

    /// Returns true if the node changes a resource.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.uses.iter().any(|usage| usage.mode == Mode::Write)
    }

    /// Returns the shared values that the node reads and does not change.
    pub(crate) fn shared_reads(&self) -> impl Iterator<Item = &Resource> {
        let reads = self.uses.iter().filter(|usage| usage.mode == Mode::Read);
        reads.map(|usage| &usage.resource).filter(|resource| matches!(resource, Resource::Shared(_)))
    }
}

impl Graph {
    /// Returns the nodes within an atomic step, with those of inner steps.
    pub fn nodes_within(&self, acquire: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let is_within = move |node: &Node| {
            let around = |within: &NodeId| self.node(*within).within;
            std::iter::successors(node.within, around).any(|within| within == acquire)
        };
        self.nodes().filter(move |(_, node)| is_within(node)).map(|(id, _)| id)
    }

    /// Returns true if the atomic step around a node consists of this node alone, is in no other step of the graph, and holds only
    /// what the node itself uses. The constraints of a module that the node accesses have its name, or begin with it and a dot.
    #[must_use]
    pub fn is_whole_step(&self, id: NodeId) -> bool {
        let node = self.node(id);
        let Some(acquire) = node.within else { return false };
        let is_use = |used: &ResourceUse, held: &Constraint| match (&used.resource, &held.resource) {
            (Resource::World(module), Resource::Constraint(name)) => {
                name.strip_prefix(module.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            (used_resource, resource) => used_resource == resource && used.mode >= held.mode,
        };
        let is_used = |held: &Constraint| node.uses.iter().any(|used| is_use(used, held));
        let step = self.node(acquire);
        step.within.is_none()
            && step.kind.constraints().iter().all(|held| !held.per_session && is_used(held))
            && self.nodes_within(acquire).all(|within| within == id)
    }

    /// Returns the nodes listed before an atomic step that anything within it comes after.
    #[must_use]
    pub fn needed_from_outside(&self, acquire: NodeId) -> Vec<NodeId> {
        let mut outside: Vec<NodeId> = self.node(acquire).comes_after().collect();
        let mut seen = vec![false; self.nodes.len()];
        let mut work: Vec<NodeId> = self.nodes_within(acquire).collect();
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            for earlier in self.node(id).comes_after() {
                match earlier.cmp(&acquire) {
                    std::cmp::Ordering::Less => outside.push(earlier),
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => work.push(earlier),
                }
            }
        }
        outside
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
