//! Pipelines: a `for` whose calls are in several sections hands them on, and its flow stays in one section, its home. A loop in
//! its rounds cannot be handed on: the flow moves to the section of such a loop, unless that is its home, and runs it there.

use super::Plan;
use crate::graph::{Graph, Node};

/// A loop in the rounds of a `for` that keeps them from overlapping.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldingLoop<'a> {
    /// The `for`.
    pub rounds: &'a Node,
    /// The loop.
    pub inner: &'a Node,
    /// The reason.
    pub reason: HoldReason,
}

/// The reason why a loop keeps the rounds around it from overlapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// The loop is in another section than that in which the flow stays, which moves there and back in each round. Each is the
    /// index of a section of the plan, or that of the rest.
    OtherSection {
        /// The section of the loop.
        of_loop: Option<usize>,
        /// The section in which the flow stays.
        home: Option<usize>,
    },
    /// Each round of the loop needs the one before, and the flow moves with it through several sections.
    DependentRounds,
    /// Its calls of this section take turns: each waits until the one before has returned, which costs two hops.
    CallsInTurns(Option<usize>),
}

impl Plan {
    /// Returns the section in which a flow stays while it runs the rounds of this `for`, which belongs to the section `own`: that
    /// of the first loop in its rounds that belongs to another one.
    #[must_use]
    pub fn home_of_rounds(&self, flow: &str, node: &Node, own: Option<usize>) -> Option<usize> {
        node.is_for().then(|| self.other_section_inside(flow, node, own)).flatten()
    }

    /// Returns the section of the first loop in the bodies of a node that belongs to another section than `own`.
    fn other_section_inside(&self, flow: &str, node: &Node, own: Option<usize>) -> Option<usize> {
        loops_in(node).find_map(|inner| {
            let planned = self.section_of_inner_node(flow, node, inner).filter(|planned| Some(*planned) != own);
            planned.or_else(|| self.other_section_inside(flow, inner, own))
        })
    }

    /// Returns the loops of a flow that keep the rounds of the `for`s around them from overlapping. A call that `is_queued` takes
    /// its turn in the queue of its section: the next one follows before it has returned.
    #[must_use]
    pub fn holding_loops<'a>(
        &self,
        flow: &str,
        body: &'a Graph,
        is_queued: impl Fn(&Node) -> bool,
    ) -> Vec<HoldingLoop<'a>> {
        let mut found = Vec::new();
        for node in &body.nodes {
            self.add_holding_loops((flow, &is_queued), node, self.section_of_node(flow, node), &mut found);
        }
        found
    }

    fn add_holding_loops<'a>(
        &self,
        (flow, is_queued): (&str, &impl Fn(&Node) -> bool),
        node: &'a Node,
        own: Option<usize>,
        found: &mut Vec<HoldingLoop<'a>>,
    ) {
        let home = self.home_of_rounds(flow, node, own).or(own);
        for inner in loops_in(node) {
            let of_loop = self.section_of_inner_node(flow, node, inner).or(own);
            let reason = match of_loop == home {
                false => Some(HoldReason::OtherSection { of_loop, home }),
                true if inner.is_for() => self.calls_in_turns((flow, is_queued), inner, of_loop),
                true => self.divides(flow, inner, of_loop).then_some(HoldReason::DependentRounds),
            };
            found.extend(reason.filter(|_| node.is_for()).map(|reason| HoldingLoop { rounds: node, inner, reason }));
            self.add_holding_loops((flow, is_queued), inner, of_loop, found);
        }
    }

    /// Returns the reason if a `for` in the section `own` makes calls that belong to another section, each of which waits until
    /// the one before has returned.
    fn calls_in_turns(
        &self,
        (flow, is_queued): (&str, impl Fn(&Node) -> bool),
        node: &Node,
        own: Option<usize>,
    ) -> Option<HoldReason> {
        let calls = node.bodies().iter().flat_map(|body| &body.nodes).filter(|call| call.bodies().is_empty());
        let in_turns = calls.filter(|call| call.takes_turns() && !is_queued(call));
        let mut sections = in_turns.map(|call| self.section_of(flow, &call.name).or(own));
        sections.find(|section| *section != own).map(HoldReason::CallsInTurns)
    }

    /// Returns true if a node in the bodies of a node belongs to another section than `own`.
    fn divides(&self, flow: &str, node: &Node, own: Option<usize>) -> bool {
        node.bodies().iter().flat_map(|body| &body.nodes).any(|inner| {
            let planned = self.section_of_inner_node(flow, node, inner).or(own);
            planned != own || self.divides(flow, inner, own)
        })
    }
}

/// Returns the nodes with bodies in the bodies of a node to which a flow may move.
fn loops_in(node: &Node) -> impl Iterator<Item = &Node> {
    let inner = node.bodies().iter().flat_map(|body| &body.nodes);
    inner.filter(|inner| !inner.bodies().is_empty() && inner.within.is_none())
}
