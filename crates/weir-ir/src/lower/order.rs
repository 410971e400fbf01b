//! The `after` edges of nodes: what each node waits for beyond its inputs, computed as nodes are appended.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Mode, Resource};

use crate::graph::{Node, NodeId, NodeKind, Operand};

/// The number of edges to earlier ends above which a gate node replaces them.
const EDGES_MAX: usize = 8;

/// The key of an ordered access: a resource, or a value of the frame that some node changes or moves away.
///
/// A value is identified by its operand, not by its variable: a step's result is another name for a value within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OrderKey {
    Resource(Resource),
    Local(Operand),
}

/// The last writer of one key, and the readers since.
#[derive(Clone, Debug, Default)]
struct Accesses {
    writer: Option<NodeId>,
    readers: Vec<NodeId>,
    /// The last of the readers that later readers wait for.
    immediate_reader: Option<NodeId>,
}

/// Accesses, ends and waiting nodes so far, as far as later nodes must wait for them.
#[derive(Debug, Default)]
pub(crate) struct OrderTracker {
    accesses: BTreeMap<OrderKey, Accesses>,
    /// The nodes that may end the flow, or the gate that stands for them.
    ends: Vec<NodeId>,
    /// The earlier nodes that may return an answer, or the gate that stands for them.
    returns: Vec<NodeId>,
    /// The nodes since the last `acquire` that may wait.
    waits: Vec<NodeId>,
    /// The frame values that the next node accesses.
    locals: BTreeMap<Operand, Mode>,
    /// `true` in a body that may be given up while it waits: a node that may wait is an end there, so that no effect
    /// happens that the text puts behind a wait which never ended.
    may_be_given_up: bool,
}

impl OrderTracker {
    /// Creates a tracker for one body.
    pub(crate) fn new(may_be_given_up: bool) -> Self {
        OrderTracker { may_be_given_up, ..OrderTracker::default() }
    }

    /// Records that the next node reads this frame value, or changes it or moves it away.
    pub(crate) fn touch(&mut self, value: &Operand, mode: Mode) {
        if matches!(value, Operand::Port(..) | Operand::Parameter(_)) {
            let entry = self.locals.entry(value.clone()).or_insert(mode);
            *entry = mode.max(*entry);
        }
    }

    /// Returns the earlier ends that a node waits for: see the protocol of [`mod@crate::lower`], 3.
    fn awaited_ends(&mut self, node: &Node, library: &Library) -> Option<&mut Vec<NodeId>> {
        if node.writes() {
            Some(&mut self.ends)
        } else if !self.returns.is_empty() && node.waits_for_returns(library) {
            Some(&mut self.returns)
        } else {
            None
        }
    }

    /// Returns the ends that a gate should stand for before this node is appended, if they are too many.
    pub(crate) fn gate(&mut self, node: &Node, library: &Library) -> Option<Vec<NodeId>> {
        self.awaited_ends(node, library).filter(|ends| ends.len() > EDGES_MAX).cloned()
    }

    /// Replaces the earlier ends that a node waits for by the gate.
    pub(crate) fn gated(&mut self, node: &Node, library: &Library, gate: NodeId) {
        self.awaited_ends(node, library).into_iter().for_each(|ends| *ends = vec![gate]);
    }

    /// Records the node and returns the nodes it waits for, except those that its inputs and its control imply.
    pub(crate) fn place(&mut self, id: NodeId, node: &Node, library: &Library) -> Vec<NodeId> {
        let mut after = BTreeSet::new();
        for (key, mode) in self.keys(node) {
            self.access(key, mode, id, &mut after);
        }
        self.reads_of_shared(id, node, library, &mut after);
        after.extend(self.awaited_ends(node, library).into_iter().flat_map(|ends| ends.iter()));
        self.steps(id, node, &mut after);
        if node.may_end() || (self.may_be_given_up && node.kind.may_wait()) {
            self.ends.push(id);
        }
        if node.may_return() {
            self.returns.push(id);
        }
        for input in &node.inputs {
            if let Operand::Port(from, _) = input {
                after.remove(from);
            }
        }
        if let Some(control) = node.control {
            after.remove(&control.switch);
        }
        after.into_iter().collect()
    }

    fn keys(&mut self, node: &Node) -> Vec<(OrderKey, Mode)> {
        let locals = std::mem::take(&mut self.locals).into_iter().map(|(value, mode)| (OrderKey::Local(value), mode));
        let uses = node.uses.iter().map(|usage| (OrderKey::Resource(usage.resource.clone()), usage.mode));
        let held = node
            .kind
            .constraints()
            .iter()
            .map(|constraint| (OrderKey::Resource(constraint.resource.clone()), constraint.mode));
        locals.chain(uses).chain(held).collect()
    }

    fn access(&mut self, key: OrderKey, mode: Mode, id: NodeId, after: &mut BTreeSet<NodeId>) {
        let accesses = self.accesses.entry(key).or_default();
        match mode {
            Mode::Read => {
                after.extend(accesses.writer);
                accesses.readers.push(id);
            }
            Mode::Write => {
                after.extend(accesses.readers.drain(..));
                after.extend(accesses.writer.replace(id));
                accesses.immediate_reader = None;
            }
        }
    }

    /// Orders the reads of each shared value: see the protocol of [`mod@crate::lower`], 2.
    fn reads_of_shared(&mut self, id: NodeId, node: &Node, library: &Library, after: &mut BTreeSet<NodeId>) {
        let mut is_immediate = None;
        for resource in node.shared_reads() {
            let accesses = self.accesses.entry(OrderKey::Resource(resource.clone())).or_default();
            after.extend(accesses.immediate_reader);
            if *is_immediate.get_or_insert_with(|| node.kind.is_immediate(library)) {
                accesses.immediate_reader = Some(id);
            }
        }
    }

    /// Orders atomic steps: see the protocol of [`mod@crate::lower`], 4.
    fn steps(&mut self, id: NodeId, node: &Node, after: &mut BTreeSet<NodeId>) {
        if let NodeKind::Release { acquire } = &node.kind {
            after.extend(self.waits.drain(..).filter(|waiting| waiting >= acquire));
        } else if let NodeKind::Acquire { .. } = &node.kind {
            after.extend(self.waits.drain(..));
        } else if node.kind.may_wait() || node.kind.ends_flow() {
            after.extend(node.within);
        }
        if node.kind.may_wait() {
            self.waits.push(id);
        }
    }
}
