//! What each node waits for beyond its inputs, worked out as nodes are listed.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Resource};

use crate::graph::{Kind, Node, NodeId, Source};

/// More waiting than this goes through a gate.
const EDGES_MAX: usize = 8;

/// What nodes keep their order on: a resource, or a frame's own value that some node changes or moves away.
///
/// A value is known by where it lies, not by its variable: a step's result is another name for a value within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Resource(Resource),
    Local(Source),
}

/// The accesses of one key since its last writer, and that writer.
#[derive(Clone, Debug, Default)]
struct Accesses {
    writer: Option<NodeId>,
    readers: Vec<NodeId>,
}

/// What has been listed so far, as far as later nodes wait for it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    accesses: BTreeMap<Key, Accesses>,
    /// The nodes that may end the flow, or the gate that stands for them.
    ends: Vec<NodeId>,
    /// The nodes since the last `acquire` that may wait.
    waits: Vec<NodeId>,
    /// The uses of frame values by the node that is being drafted.
    locals: BTreeMap<Source, Mode>,
}

impl Order {
    /// The node that is being drafted looks at this frame value, or changes it or moves it away.
    pub(crate) fn touch(&mut self, value: &Source, mode: Mode) {
        if matches!(value, Source::Port(..) | Source::Parameter(_)) {
            let entry = self.locals.entry(value.clone()).or_insert(mode);
            *entry = mode.max(*entry);
        }
    }

    /// The ends that a gate should stand for before this node is listed, where they are many.
    pub(crate) fn gate(&self, node: &Node) -> Option<Vec<NodeId>> {
        (node.writes() && self.ends.len() > EDGES_MAX).then(|| self.ends.clone())
    }

    /// From here on this gate stands for all earlier ends.
    pub(crate) fn gated(&mut self, gate: NodeId) {
        self.ends = vec![gate];
    }

    /// Records the node and gives what it waits for, without what its inputs and its control say already.
    pub(crate) fn place(&mut self, id: NodeId, node: &Node) -> Vec<NodeId> {
        let mut after = BTreeSet::new();
        for (key, mode) in self.keys(node) {
            self.access(key, mode, id, &mut after);
        }
        if node.writes() {
            after.extend(&self.ends);
        }
        self.steps(id, node, &mut after);
        if node.may_end() {
            self.ends.push(id);
        }
        for input in &node.inputs {
            if let Source::Port(from, _) = input {
                after.remove(from);
            }
        }
        if let Some(control) = node.control {
            after.remove(&control.switch);
        }
        after.into_iter().collect()
    }

    fn keys(&mut self, node: &Node) -> Vec<(Key, Mode)> {
        let locals = std::mem::take(&mut self.locals).into_iter().map(|(value, mode)| (Key::Local(value), mode));
        let uses = node.uses.iter().map(|usage| (Key::Resource(usage.resource.clone()), usage.mode));
        let held: &[_] = match &node.kind {
            Kind::Acquire { constraints } => constraints,
            _ => &[],
        };
        let held = held.iter().map(|constraint| (Key::Resource(constraint.resource.clone()), constraint.mode));
        locals.chain(uses).chain(held).collect()
    }

    fn access(&mut self, key: Key, mode: Mode, id: NodeId, after: &mut BTreeSet<NodeId>) {
        let accesses = self.accesses.entry(key).or_default();
        match mode {
            Mode::Read => {
                after.extend(accesses.writer);
                accesses.readers.push(id);
            }
            Mode::Write => {
                after.extend(accesses.readers.drain(..));
                after.extend(accesses.writer.replace(id));
            }
        }
    }

    /// Atomic steps: see the protocol of [`mod@crate::lower`], 3.
    fn steps(&mut self, id: NodeId, node: &Node, after: &mut BTreeSet<NodeId>) {
        match &node.kind {
            Kind::Acquire { .. } => {
                after.extend(self.waits.drain(..));
                self.waits.push(id);
            }
            Kind::Release { acquire } => {
                after.extend(self.waits.drain(..).filter(|waiting| waiting >= acquire));
                self.waits.push(id);
            }
            Kind::Call { .. }
            | Kind::Map { .. }
            | Kind::Fold { .. }
            | Kind::Loop { .. }
            | Kind::Within { .. }
            | Kind::Race { .. } => {
                after.extend(node.within);
                self.waits.push(id);
            }
            Kind::Return | Kind::Fail => after.extend(node.within),
            Kind::Prim(_) | Kind::Switch { .. } | Kind::Select { .. } => {}
        }
    }
}
