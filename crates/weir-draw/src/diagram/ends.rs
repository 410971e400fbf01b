//! Edges from effects to the ends behind them: a flow answers, or fails, after what the text puts before.

use weir_host::Mode;
use weir_ir::graph::{Control, NodeId};

use super::reduction::{Bits, below};
use super::{DiagramBuilder, EdgeLabel, MarkId};
use crate::looks::MarkKind;
use crate::names::GraphScope;

/// An end of a body, or an effect in it.
pub(super) struct EndOrEffect {
    pub(super) mark: MarkId,
    /// The node; `None` for the end of the body.
    pub(super) node: Option<NodeId>,
}

impl DiagramBuilder<'_> {
    /// Adds an edge from each effect to the ends behind it that no path leads to. `marks` are the effects and ends of a body
    /// that starts at the mark `entry` and whose first edge is `first_edge`, in their order.
    pub(super) fn edges_to_ends(
        &mut self,
        scope: &GraphScope<'_>,
        marks: &[EndOrEffect],
        (entry, first_edge): (MarkId, usize),
    ) {
        let ends: Vec<bool> = marks
            .iter()
            .map(|of| matches!(self.diagram.marks[of.mark].kind, MarkKind::Answer | MarkKind::Failure))
            .collect();
        let reached = below(&self.diagram.edges[first_edge..], entry..self.diagram.marks.len());
        let reached = |mark: MarkId| &reached[mark - entry];
        let mut added = Vec::new();
        for (index, end) in marks.iter().enumerate().filter(|(index, _)| ends[*index]) {
            // The effects from which a new edge leads to this end.
            let mut linked = Bits::default();
            for (_, effect) in marks[..index].iter().enumerate().rev().filter(|(index, _)| !ends[*index]) {
                let start = self.ends_of_edge(effect.mark, end.mark);
                let Some(start) = start.and_then(|(start, to)| (to == end.mark).then_some(start)) else { continue };
                let is_known = reached(start).contains(end.mark - entry) || reached(start).meets(&linked);
                if !is_known && !linked.contains(start - entry) && !excludes(scope, effect.node, end.node) {
                    linked.add(start - entry);
                    added.push((effect.mark, end.mark));
                }
            }
        }
        added.into_iter().for_each(|(from, to)| self.join(from, to, EdgeLabel::Order));
    }

    /// Returns whether a node has an effect, or waits.
    pub(super) fn has_effect(&self, node: &weir_ir::graph::Node) -> bool {
        node.uses.iter().any(|of| of.mode == Mode::Write) || self.leaves_thread(node) || node.kind.has_limit()
    }
}

/// Returns whether two nodes are in different arms of a switch.
fn excludes(scope: &GraphScope<'_>, one: Option<NodeId>, other: Option<NodeId>) -> bool {
    let controls = |node: Option<NodeId>| {
        let first = node.and_then(|node| scope.graph.node(node).control);
        std::iter::successors(first, |control: &Control| scope.graph.node(control.switch).control)
    };
    controls(one).any(|of| controls(other).any(|control| of.switch == control.switch && of.arm != control.arm))
}
