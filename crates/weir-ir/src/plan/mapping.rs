//! Section mapping: the section of each node of a flow, under a plan and the granularity of an engine.
//!
//! Three rules give the section of a node:
//!
//! 1. A node that a pattern of the plan names belongs to the section of that pattern. A body without a name whose nodes all
//!    have names belongs to the section of the first of them.
//! 2. A node that does no work of its own (a primitive, a switch), or that waits without a thread, joins the preceding
//!    section if every flow that reaches the node has passed that section, and the following section otherwise.
//! 3. Every other node is placed by the engine's [`Granularity`]: all in one section, around calls that have a private
//!    state, or one section for each call.

use std::iter::successors;

use weir_host::Mode;

use super::{Plan, is_stateless};
use crate::graph::{Control, Graph, Node, NodeId, NodeKind};

/// The size of the sections that an engine makes of nodes that no pattern of the plan names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// One section for everything.
    Whole,
    /// A section for each call that has a private state, and one for each run of calls between them. Calls without
    /// state gain nothing from a queue, because different flows run through them side by side.
    States,
    /// A section for each call.
    Calls,
}

/// The section of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionKey {
    /// A section of the plan, by its index.
    Named(usize),
    /// The section of everything that no pattern names.
    Rest,
    /// A single call that no pattern names.
    Call(NodeId),
    /// A run of calls without state that no pattern names, by its first node.
    Stateless(NodeId),
}

/// Returns the section of each node of a flow. `waits` tells whether a node may wait without holding its thread.
pub fn map_sections(
    plan: &Plan,
    flow: &str,
    body: &Graph,
    granularity: Granularity,
    waits: impl Fn(NodeId) -> bool,
) -> Vec<SectionKey> {
    let mut mapper = SectionMapper { plan, flow, body, granularity, keys: Vec::new(), passed: [0; 2] };
    for (id, node) in body.nodes() {
        let works = !waits(id) && node.works();
        let is_named = plan.section_of_node(flow, node).is_some();
        if is_named || works || mapper.joins_previous(node) {
            let key = mapper.key(id, works);
            mapper.assign(key, id.0 as usize + 1);
        }
    }
    if mapper.keys.len() < body.nodes.len() {
        let key = mapper.key(NodeId(mapper.keys.len() as u32), false);
        mapper.assign(key, body.nodes.len());
    }
    mapper.keys
}

/// A flow whose nodes are being mapped in their order.
struct SectionMapper<'a> {
    plan: &'a Plan,
    flow: &'a str,
    body: &'a Graph,
    granularity: Granularity,
    /// The sections of the nodes mapped so far.
    keys: Vec<SectionKey>,
    /// Two nodes of the last run of nodes in one section: the one inside the fewest switch arms, and the last one.
    passed: [usize; 2],
}

impl SectionMapper<'_> {
    /// Returns the section of a node. A node that waits needs no thread: it joins the section before it, where its wait
    /// overlaps with others.
    fn key(&self, id: NodeId, works: bool) -> SectionKey {
        let node = self.body.node(id);
        match (self.plan.section_of_node(self.flow, node), self.keys.last()) {
            (Some(section), _) => SectionKey::Named(section),
            (None, Some(before)) if !works => *before,
            (None, _) if self.granularity == Granularity::Whole => SectionKey::Rest,
            (None, _) if self.granularity == Granularity::Calls || !is_stateless(node) => SectionKey::Call(id),
            (None, Some(before @ SectionKey::Stateless(_))) => *before,
            (None, _) => SectionKey::Stateless(id),
        }
    }

    /// Assigns all nodes before `until` that have no section yet.
    fn assign(&mut self, key: SectionKey, until: usize) {
        for index in self.keys.len()..until {
            if self.keys.last() != Some(&key) {
                self.passed = [index; 2];
            }
            self.keys.push(key);
            self.pass(index);
        }
    }

    /// Returns true if every flow that reaches the node has been in the last section. A flow that takes one arm of a switch
    /// must not enter a section that only another arm needs.
    fn joins_previous(&self, node: &Node) -> bool {
        if self.keys.is_empty() {
            return node.works();
        }
        self.passed.iter().any(|before| match self.body.nodes[*before].control {
            None => true,
            Some(arm) => self.arms(node).any(|around| around == arm),
        })
    }

    /// Returns the switch arms around a node, from the innermost.
    fn arms(&self, node: &Node) -> impl Iterator<Item = Control> {
        successors(node.control, |arm| self.body.nodes[arm.switch.0 as usize].control)
    }

    /// Records that the last run of nodes in one section has grown by a node.
    fn pass(&mut self, index: usize) {
        let depth = |index: usize| self.arms(&self.body.nodes[index]).count();
        let [fewest, _] = self.passed;
        let has_fewer = self.body.nodes[fewest].control.is_some() && depth(index) < depth(fewest);
        self.passed = [if has_fewer { index } else { fewest }, index];
    }
}

impl Plan {
    /// Returns the index of the section to which patterns assign a node: its own, or, for a body without a name whose nodes
    /// all have names, that of the first of them. Nodes that do no work of their own need no name. A `for` whose nodes are in
    /// several sections is in none of them: it hands its rounds to all, and holds up none.
    #[must_use]
    pub fn section_of_node(&self, flow: &str, node: &Node) -> Option<usize> {
        self.section_of(flow, &node.name).or_else(|| {
            let works = node.bodies().iter().flat_map(|body| &body.nodes).filter(|node| node.works());
            let mut sections = works.map(|inner| self.section_of_inner_node(flow, node, inner));
            let first = sections.next()??;
            sections.all(|section| section.is_some_and(|section| !node.is_for() || section == first)).then_some(first)
        })
    }

    /// Returns the index of the section to which patterns assign a node in a body of the node `around`.
    #[must_use]
    pub fn section_of_inner_node(&self, flow: &str, around: &Node, node: &Node) -> Option<usize> {
        if around.is_for() { self.section_in_rounds(flow, node) } else { self.section_of_node(flow, node) }
    }

    /// Returns the index of the section to which patterns assign a node in the rounds of a `for`. Another `for` there that has no
    /// loop of its own belongs to the section of the first call in it that the plan names and that rounds make in turns: its
    /// calls without a name would otherwise have to wait for that section in each round.
    #[must_use]
    pub fn section_in_rounds(&self, flow: &str, node: &Node) -> Option<usize> {
        self.section_of_node(flow, node).or_else(|| {
            let inner = || node.bodies().iter().flat_map(|body| &body.nodes);
            let is_innermost = node.is_for() && inner().all(|inner| inner.bodies().is_empty());
            let mut in_turns = inner().filter(|inner| is_innermost && inner.takes_turns());
            in_turns.find_map(|inner| self.section_of(flow, &inner.name))
        })
    }
}

impl Node {
    /// Returns true for a node that does work of its own, unlike primitives and switches.
    #[must_use]
    pub fn works(&self) -> bool {
        matches!(self.kind, NodeKind::Call { .. }) || !self.bodies().is_empty()
    }

    pub(super) fn is_for(&self) -> bool {
        matches!(self.kind, NodeKind::Map { .. })
    }

    /// Returns true if rounds make this call one after the other, because it has private state or writes a resource.
    pub(super) fn takes_turns(&self) -> bool {
        !is_stateless(self) || self.uses.iter().any(|used| used.mode == Mode::Write)
    }
}
