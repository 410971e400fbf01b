//! Uses of the parts of values in one graph: which nodes read a certain field or element, and which do not.

use std::collections::BTreeMap;

use weir_host::{Library, Passing, Signature, World};

use super::{Control, Graph, NodeId, NodeKind, Operand};
use crate::prim::Prim;

/// A part of a value: a field of a record, or an element of a list or map.
pub(crate) struct Part<'g> {
    /// The record, list or map.
    pub whole: &'g Operand,
    place: Place<'g>,
}

/// The place of a part in its value.
#[derive(Clone, Copy)]
enum Place<'g> {
    Field(u32),
    /// The element at this position, or under this key.
    Element(&'g Operand),
}

/// A use of a value: an input of a node, or the result of the graph.
#[derive(Clone, Copy)]
struct ValueUse {
    /// The node; for the graph's result, the number of nodes.
    node: NodeId,
    input: usize,
}

/// The uses of all values of one graph.
pub(crate) struct PartUses<'g> {
    graph: &'g Graph,
    library: &'g Library,
    /// The number of parameters that belong to one run of the graph; the others are captured.
    own: usize,
    /// The arms around each node, from the outermost.
    arms: Vec<Vec<Control>>,
    uses: BTreeMap<&'g Operand, Vec<ValueUse>>,
}

impl<'g> PartUses<'g> {
    pub(crate) fn new(graph: &'g Graph, own: usize, library: &'g Library) -> Self {
        let mut all = PartUses { graph, library, own, arms: Vec::new(), uses: BTreeMap::new() };
        for (id, node) in graph.nodes() {
            let outer = node.control.map(|control| all.arms[control.switch.0 as usize].clone());
            all.arms.push(outer.into_iter().flatten().chain(node.control).collect());
            for (input, source) in node.inputs.iter().enumerate() {
                all.uses.entry(source).or_default().push(ValueUse { node: id, input });
            }
        }
        let end = NodeId(u32::try_from(graph.nodes.len()).expect("a program of fewer than 2^32 nodes"));
        all.uses.entry(&graph.result).or_default().push(ValueUse { node: end, input: 0 });
        all
    }

    /// Returns the part that the node reads, if it is a primitive that reads one part of a value.
    pub(crate) fn part(&self, id: NodeId) -> Option<Part<'g>> {
        let node = self.graph.node(id);
        match (&node.kind, &node.inputs[..]) {
            (NodeKind::Prim(Prim::Field(index) | Prim::DetachField(index)), [whole]) => {
                Some(Part { whole, place: Place::Field(*index) })
            }
            (NodeKind::Prim(Prim::Index | Prim::DetachElement), [whole, key]) => {
                Some(Part { whole, place: Place::Element(key) })
            }
            _ => None,
        }
    }

    /// Returns true if the value is made by this run of the graph, and the place of the part stays the same.
    pub(crate) fn is_steady(&self, part: &Part<'_>) -> bool {
        let is_own = match part.whole {
            Operand::Port(..) => true,
            Operand::Parameter(index) => (*index as usize) < self.own,
            Operand::Constant(_) | Operand::Shared(_) | Operand::Never => false,
        };
        let stays = match part.place {
            Place::Field(_) => true,
            Place::Element(key) => !self.uses(key).any(|of| self.may_change(of)),
        };
        is_own && stays
    }

    /// Returns the nodes that may read the part in a flow in which the node runs, other than the node itself. The number of
    /// nodes stands for the graph's result.
    pub(crate) fn other_readers(&self, id: NodeId, part: &Part<'_>) -> Vec<NodeId> {
        let others = self.uses(part.whole).filter(|other| (other.node, other.input) != (id, 0));
        let readers = others.filter(|other| !self.is_exclusive(*other, id) && self.reads(*other, part));
        readers.map(|other| other.node).collect()
    }

    /// Returns true if a node uses the value without reading the part, in a flow in which the node `id` runs.
    pub(crate) fn has_other_uses(&self, id: NodeId, part: &Part<'_>) -> bool {
        let mut others = self.uses(part.whole).filter(|other| other.node != id);
        others.any(|other| !self.is_exclusive(other, id) && !self.reads(other, part))
    }

    fn uses(&self, value: &Operand) -> impl Iterator<Item = ValueUse> {
        self.uses.get(value).into_iter().flatten().copied()
    }

    /// Returns true if the use and the node are in different arms of one switch.
    fn is_exclusive(&self, of: ValueUse, id: NodeId) -> bool {
        let Some(arms) = self.arms.get(of.node.0 as usize) else { return false };
        // A select uses an input only if the arm of the input was chosen.
        let selected = match &self.graph.node(of.node).kind {
            NodeKind::Select { switch } => u32::try_from(of.input).ok().map(|arm| Control { switch: *switch, arm }),
            _ => None,
        };
        let mut arms = arms.iter().copied().chain(selected);
        arms.any(|one| self.arms[id.0 as usize].iter().any(|other| one.switch == other.switch && one.arm != other.arm))
    }

    /// Returns true if the use may read the part, or pass it on.
    fn reads(&self, of: ValueUse, part: &Part<'_>) -> bool {
        let Some(node) = self.graph.nodes.get(of.node.0 as usize) else { return true };
        match (&node.kind, part.place) {
            (NodeKind::Prim(Prim::Field(other) | Prim::DetachField(other)), Place::Field(index)) => *other == index,
            (NodeKind::Prim(Prim::WithField(other)), Place::Field(index)) if of.input == 0 => {
                *other != index && self.result_is_read(of.node, part)
            }
            (NodeKind::Prim(Prim::Length), Place::Element(_)) => false,
            (NodeKind::Call { function, .. }, Place::Element(key)) if of.input == 0 => {
                let signature = self.library.function(function).map(|function| &function.signature);
                !signature.is_some_and(replaces_element) || node.inputs.get(1) != Some(key)
            }
            _ => true,
        }
    }

    /// Returns true if a use of a node's result may read the same part of it.
    fn result_is_read(&self, id: NodeId, part: &Part<'_>) -> bool {
        self.uses(&Operand::Port(id, 0)).any(|of| self.reads(of, part))
    }

    /// Returns true if the use may change the value in its slot.
    fn may_change(&self, of: ValueUse) -> bool {
        let Some(node) = self.graph.nodes.get(of.node.0 as usize) else { return false };
        match &node.kind {
            NodeKind::Call { function, .. } => {
                let signature = self.library.function(function).map(|function| &function.signature);
                let parameter = signature.and_then(|signature| signature.parameters.get(of.input));
                parameter.is_none_or(|parameter| parameter.passing == Passing::Change)
            }
            kind => !kind.bodies().is_empty(),
        }
    }
}

/// A function whose result is its first argument with the element at the second replaced by the third.
fn replaces_element(signature: &Signature) -> bool {
    let takes = signature.parameters.first().is_some_and(|whole| whole.passing.takes());
    signature.effects.replaces_element
        && signature.effects.world == World::Pure
        && takes
        && signature.parameters.len() == 3
}
