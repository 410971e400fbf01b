//! Section mapping: assigns each mark of a diagram to a section, of a plan or by the calls that may leave their thread.

use weir_ir::graph::{Graph, Node, NodeId, NodeKind};
use weir_ir::plan::{Granularity, Plan, REST, SectionKey, map_sections};

use super::Diagram;

impl Diagram {
    /// Assigns the sections of a plan. A mark that represents no node of the flow, such as the end, or a node of an inner body
    /// that the plan does not name, belongs to the section of the mark around it, or of its predecessor.
    pub(super) fn assign_planned_sections(&mut self, plan: &Plan) {
        let names = plan.sections.iter().map(|section| section.name.value.to_string());
        self.sections = std::iter::once(REST.to_owned()).chain(names).collect();
        for index in 0..self.marks.len() {
            let before = self.edges.iter().find(|edge| edge.to == index).map(|edge| edge.from);
            let around = self.marks[index].parent.or(before).map_or(0, |around| self.marks[around].section);
            let mark = &mut self.marks[index];
            mark.section = mark.planned.unwrap_or(around);
        }
    }

    /// Assigns sections without a plan: a new one starts after each mark that may leave its thread.
    pub(super) fn assign_sections(&mut self) {
        let mut left = vec![0; self.marks.len()];
        let mut incoming = vec![Vec::new(); self.marks.len()];
        self.edges.iter().for_each(|edge| incoming[edge.to].push(edge.from));
        for index in 0..self.marks.len() {
            let outside = self.marks[index].parent.map_or(0, |parent| self.marks[parent].section);
            let section = incoming[index].iter().map(|&from| left[from]).fold(outside, u32::max);
            self.marks[index].section = section;
            left[index] = section + u32::from(self.marks[index].leaves);
            let mut parent = self.marks[index].parent;
            while let Some(outer) = parent {
                left[outer] = left[outer].max(left[index]);
                parent = self.marks[outer].parent;
            }
        }
    }
}

/// Returns the number of each node's section: 0 for the rest, and otherwise its place in the plan, counted from 1.
/// `waits` tells whether a function may wait without holding its thread.
pub(super) fn section_numbers(plan: &Plan, flow: &str, body: &Graph, waits: &dyn Fn(&str) -> bool) -> Vec<u32> {
    let waits = |id: NodeId| calls_out(body.node(id), waits);
    let keys = map_sections(plan, flow, body, Granularity::Whole, waits);
    let number = |key| if let SectionKey::Named(index) = key { index as u32 + 1 } else { 0 };
    keys.into_iter().map(number).collect()
}

/// Returns, for each node of a body of the node `around`, the number of the section to which the plan assigns it by names.
pub(super) fn named_sections(plan: &Plan, flow: &str, around: &Node, body: &Graph) -> Vec<Option<u32>> {
    let named = |node: &Node| plan.section_of_inner_node(flow, around, node).map(|index| index as u32 + 1);
    body.nodes.iter().map(named).collect()
}

/// Returns true if a node, or one in its bodies, may have to wait for an event loop.
fn calls_out(node: &Node, waits: &dyn Fn(&str) -> bool) -> bool {
    let own = match &node.kind {
        NodeKind::Call { function, .. } => waits(function),
        kind => kind.has_limit(),
    };
    own || node.bodies().iter().flat_map(|body| &body.nodes).any(|node| calls_out(node, waits))
}
