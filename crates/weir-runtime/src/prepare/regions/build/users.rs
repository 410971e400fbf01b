//! The users of the nodes of a region, found once: a search through the whole body for each node would take minutes for a body
//! of 100,000 nodes.

use std::ops::Range;

use weir_ir::graph::{Graph, NodeId, NodeKind, Operand};

/// The users of the nodes of a region, inside and outside of it.
#[derive(Default)]
pub(super) struct NodeUsers {
    /// The first node of the region.
    first: usize,
    /// For each node of the region, the ports that are used, each with the user.
    of_ports: Vec<Vec<(u32, usize)>>,
    /// For each node of the region that is a switch, the nodes that need to know its choice: those in its arms, and its selects.
    of_choices: Vec<Vec<usize>>,
}

impl NodeUsers {
    /// Finds the users of these nodes.
    pub(super) fn of(graph: &Graph, nodes: &Range<usize>) -> NodeUsers {
        let (of_ports, of_choices) = (vec![Vec::new(); nodes.len()], vec![Vec::new(); nodes.len()]);
        let mut users = NodeUsers { first: nodes.start, of_ports, of_choices };
        let within = |id: &NodeId| nodes.contains(&(id.0 as usize)).then(|| id.0 as usize - nodes.start);
        for (user, node) in graph.nodes.iter().enumerate() {
            for input in &node.inputs {
                if let Operand::Port(id, port) = input
                    && let Some(at) = within(id)
                {
                    users.of_ports[at].push((*port, user));
                }
            }
            if let Some(at) = node.control.and_then(|control| within(&control.switch)) {
                users.of_choices[at].push(user);
            }
            if let NodeKind::Select { switch } = &node.kind
                && let Some(at) = within(switch)
            {
                users.of_choices[at].push(user);
            }
        }
        users
    }

    /// Returns the users of a port of a node of the region.
    pub(super) fn of_port(&self, node: usize, port: usize) -> impl Iterator<Item = usize> + '_ {
        let used = node.checked_sub(self.first).and_then(|at| self.of_ports.get(at)).into_iter().flatten();
        used.filter(move |(of, _)| *of as usize == port).map(|(_, user)| *user)
    }

    /// Returns the nodes that need to know the choice of a switch of the region.
    pub(super) fn of_choice(&self, switch: usize) -> &[usize] {
        let found = switch.checked_sub(self.first).and_then(|at| self.of_choices.get(at));
        found.map_or(&[], Vec::as_slice)
    }
}
