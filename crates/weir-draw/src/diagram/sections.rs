//! Section mapping: assigns each mark of a diagram to a section, of a plan or by the calls that may leave their thread.

use weir_ir::plan::{Plan, REST};

use super::{Diagram, MarkKind};

impl Diagram {
    /// Assigns the sections of a plan. A mark that does no work belongs to the section of its predecessor.
    pub(super) fn assign_planned_sections(&mut self, plan: &Plan) {
        let names = plan.sections.iter().map(|section| section.name.value.to_string());
        self.sections = std::iter::once(REST.to_owned()).chain(names).collect();
        for index in 0..self.marks.len() {
            let before = self.edges.iter().find(|edge| edge.to == index).map(|edge| edge.from);
            let before = before.or(self.marks[index].parent).map_or(0, |before| self.marks[before].section);
            let mark = &mut self.marks[index];
            mark.section =
                mark.planned.unwrap_or(if mark.kind == MarkKind::Call && mark.parent.is_none() { 0 } else { before });
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
