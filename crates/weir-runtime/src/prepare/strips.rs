//! Pairs of a `map` and the `fold` over its rows that go through a long list strip by strip (`frame/strips.rs`).
//!
//! Such a pair comes from the pass `lifted-calls`, or from the text. Rounds of the `map` then run behind rounds of the `fold` that the
//! program lists after them. That is not seen under these conditions ([`StripSearch::is_unseen`]):
//!
//! * The `map` only reads, and changes no private state. Neither the `fold` nor any other node that may run meanwhile writes what it
//!   reads: each node that comes after the `map` also comes after the `fold`.
//! * A later round of the `map` ends the flow only if nothing else could end it before, or have an effect: its rounds cannot fail, as
//!   those of calls that keep their failures, or the `fold` and the nodes between the two can neither fail nor write.
//!
//! Nothing else uses the rows, and no value of a round of the `map` is passed on to the next one.

use weir_host::{Library, Mode};
use weir_ir::graph::{Graph, Node, NodeId, NodeKind, Operand};
use weir_ir::program::LoopExit;

use super::order::{StepOrder, touched};
use super::part::NodePart;
use super::steps::OVERLAP_GATHERED_MAX;
use crate::step::{Body, StripRole};

/// The largest number of elements of a strip: of as many iterations as overlap where batches are the largest. Chosen by judgement:
/// between two strips all calls are waited for, which should be rare, and the rows of one strip should be few.
pub(crate) const STRIP_MAX: usize = OVERLAP_GATHERED_MAX;

/// The search for the pairs of one graph.
pub(super) struct StripSearch<'a> {
    pub graph: &'a Graph,
    pub parts: &'a [NodePart],
    pub order: &'a StepOrder,
    pub library: &'a Library,
    /// The largest number of elements of a strip.
    pub length_max: usize,
}

impl StripSearch<'_> {
    /// Returns the part of each node.
    pub(super) fn roles(&self) -> Vec<StripRole> {
        let mut roles = vec![StripRole::None; self.parts.len()];
        for (fold, node) in self.graph.nodes() {
            let (NodeKind::Fold { exit, .. }, Some(Operand::Port(map, 0))) = (&node.kind, node.inputs.first()) else {
                continue;
            };
            let (map, may_be_left) = (*map, *exit != LoopExit::Never);
            if let Some(body) = self.overlapping_body(map)
                && self.takes_all_rows(map, fold)
                && self.is_unseen(map, fold)
            {
                let length = self.length(body);
                roles[map.0 as usize] = StripRole::Rows { map: map.0, fold: fold.0, length };
                roles[fold.0 as usize] = StripRole::Folds { map: map.0, may_be_left };
            }
        }
        roles
    }

    /// Returns the number of elements of a strip: as many iterations as overlap, so that batches are full, and a multiple of that if
    /// they are few.
    fn length(&self, body: &Body) -> u32 {
        let overlap = body.overlap_max as usize;
        let multiple = self.length_max / overlap * overlap;
        let length = if multiple > 0 { multiple } else { self.length_max };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// Returns the body of a node, if it is that of a `map` whose iterations overlap.
    fn overlapping_body(&self, map: NodeId) -> Option<&Body> {
        let is_map = matches!(self.graph.node(map).kind, NodeKind::Map { .. });
        let body = self.parts[map.0 as usize].body.as_ref().filter(|_| is_map)?;
        (body.overlap_max > 0 && !body.handed.contains(&true)).then_some(body)
    }

    /// Returns true if a `fold` takes the rows of a `map` whenever that runs, and nothing else does.
    fn takes_all_rows(&self, map: NodeId, fold: NodeId) -> bool {
        let rows = Operand::Port(map, 0);
        let (of_map, of_fold) = (self.graph.node(map), self.graph.node(fold));
        let uses = self.graph.nodes.iter().flat_map(|node| &node.inputs).filter(|input| **input == rows).count();
        let is_in_step = of_map.within.is_some() || of_fold.within.is_some();
        uses == 1 && self.graph.result != rows && of_map.control == of_fold.control && !is_in_step
    }

    /// Returns true if nobody can tell that rounds of a `map` run behind rounds of the `fold`.
    fn is_unseen(&self, map: NodeId, fold: NodeId) -> bool {
        let at = map.0 as usize;
        let (of_map, of_fold) = (self.graph.node(map), self.graph.node(fold));
        let read = |resource| touched(of_map, &self.parts[at]).any(|(read, _)| read == resource);
        let mut of_fold_touched = touched(of_fold, &self.parts[fold.0 as usize]);
        !self.takes_turns(map)
            && !of_map.writes()
            && !of_fold_touched.any(|(resource, mode)| mode == Mode::Write && read(resource))
            && self.graph.nodes().all(|(id, node)| id == fold || !comes_after(node, map) || comes_after(node, fold))
            && (!self.may_fail_within(of_map) || self.only_computes(map, fold))
    }

    /// Returns true if a node waits at a ticket gate, or if other iterations of the body wait for it.
    fn takes_turns(&self, id: NodeId) -> bool {
        let at = id.0 as usize;
        !self.parts[at].ticket_gates.is_empty() || self.order.signals_orders[at] != 0
    }

    /// Returns true if the `fold` and the nodes between it and the `map` can neither fail nor write.
    fn only_computes(&self, map: NodeId, fold: NodeId) -> bool {
        let between = &self.graph.nodes[map.0 as usize + 1..=fold.0 as usize];
        between.iter().all(|node| !node.writes() && !self.may_fail(node))
    }

    /// Returns true if a node may end the flow. Faults of calls do not count.
    fn may_fail(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Prim(prim) => prim.may_fail(),
            NodeKind::Call { function, keeps_failure, .. } => {
                let function = self.library.function(function);
                !keeps_failure && !function.is_some_and(|function| function.signature.effects.total)
            }
            NodeKind::Switch { .. } | NodeKind::Select { .. } => false,
            NodeKind::Map { .. } | NodeKind::Fold { .. } => self.may_fail_within(node),
            NodeKind::Loop { .. } | NodeKind::Within { .. } | NodeKind::Race { .. } => true,
            NodeKind::Transaction { .. } => true,
            NodeKind::Acquire { .. } | NodeKind::Release { .. } | NodeKind::Return | NodeKind::Fail => true,
        }
    }

    fn may_fail_within(&self, node: &Node) -> bool {
        node.bodies().iter().flat_map(|body| &body.nodes).any(|node| self.may_fail(node))
    }
}

/// Returns true if a node comes directly after another one.
fn comes_after(node: &Node, earlier: NodeId) -> bool {
    node.comes_after().any(|before| before == earlier)
}
