//! Appending of nodes: a node is drafted with its inputs, then ordered after the nodes that it must wait for.

use weir_host::{Mode, Text, Type, Value};

use super::GraphBuilder;
use crate::expr::{Atom, Let};
use crate::graph::{Node, NodeId, NodeKind, Operand};
use crate::prim::Prim;
use crate::program::Origin;

impl GraphBuilder<'_> {
    /// Returns a node that has not been appended yet, without its `after` edges.
    pub(super) fn draft(&mut self, kind: NodeKind, name: &str, operands: &[Atom], binding: &Let) -> Node {
        let inputs = operands.iter().map(|operand| self.atom(operand)).collect();
        for operand in operands {
            if self.is_move_only(operand) || operand.variable().is_some_and(|var| self.changed.contains(&var)) {
                let value = self.atom(operand);
                self.order.touch(&value, Mode::Read);
            }
        }
        Node {
            name: self.unique(name),
            kind,
            inputs,
            outputs: vec![binding.bound.ty.clone()],
            control: self.control,
            after: Vec::new(),
            uses: Vec::new(),
            within: self.within,
            condition_of: None,
            origin: binding.origin,
        }
    }

    pub(super) fn list(&mut self, node: Node) -> Operand {
        Operand::Port(self.list_id(node), 0)
    }

    pub(super) fn list_id(&mut self, mut node: Node) -> NodeId {
        let library = self.definitions.library;
        if let Some(ends) = self.order.gate(&node, library) {
            let gate = self.gate(ends);
            self.order.gated(&node, library, gate);
        }
        let id = NodeId(u32::try_from(self.graph.nodes.len()).expect("a program of fewer than 2^32 nodes"));
        node.after = self.order.place(id, &node, library);
        self.graph.nodes.push(node);
        id
    }

    /// Appends a gate: a node that stands for the many that it waits for, so that the number of edges is not quadratic.
    pub(super) fn gate(&mut self, after: Vec<NodeId>) -> NodeId {
        let unit = self.constant(Value::Unit);
        let id = NodeId(u32::try_from(self.graph.nodes.len()).expect("a program of fewer than 2^32 nodes"));
        let name = self.unique("gate");
        self.graph.nodes.push(Node {
            name,
            kind: NodeKind::Prim(Prim::Copy),
            inputs: vec![unit],
            outputs: vec![Type::Unit],
            control: None,
            after,
            uses: Vec::new(),
            within: None,
            condition_of: None,
            origin: Origin::default(),
        });
        id
    }

    pub(super) fn unique(&mut self, name: &str) -> Text {
        let count = self.names.entry(name.into()).or_insert(0);
        *count += 1;
        if *count == 1 { name.into() } else { format!("{name}#{count}").into() }
    }

    pub(super) fn atom(&mut self, atom: &Atom) -> Operand {
        match atom {
            Atom::Var(var) => self.variables.get(var).expect("the verifier has seen the definition").clone(),
            Atom::Value(value) => self.constant(value.clone()),
            Atom::Shared(name) => Operand::Shared(name.clone()),
        }
    }

    pub(super) fn constant(&mut self, value: Value) -> Operand {
        let constants = &mut self.graph.constants;
        let index = *self.constant_indices.entry(value).or_insert_with_key(|value| {
            constants.push(value.clone());
            constants.len() - 1
        });
        Operand::Constant(u32::try_from(index).expect("a program of fewer than 2^32 constants"))
    }

    /// Records that the next node accesses this value exclusively.
    pub(super) fn alone(&mut self, operand: &Atom) {
        let value = self.atom(operand);
        self.order.touch(&value, Mode::Write);
    }

    /// Records that the next node takes this value, exclusively if it is move-only.
    pub(super) fn moves(&mut self, operand: &Atom) {
        if self.is_move_only(operand) {
            self.alone(operand);
        }
    }

    pub(super) fn is_move_only(&self, operand: &Atom) -> bool {
        let ty = operand.variable().and_then(|var| self.types.get(&var));
        ty.is_some_and(|ty| self.definitions.is_move_only(ty))
    }
}
