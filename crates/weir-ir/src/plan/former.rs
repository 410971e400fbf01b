//! Call sites that passes removed: a plan may still name them, and means the sites that took their place.

use super::{Located, NodePattern, Plan};
use crate::graph::{Graph, Program};
use crate::program::Flow;

impl Plan {
    /// Returns the plan for this program: a pattern that names a call site which passes merged into another one names that
    /// other one too, unless a section names it already.
    #[must_use]
    pub fn following(mut self, program: &Program) -> Plan {
        for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
            for former in &flow.former_sites {
                let Some(now) = &former.now else { continue };
                let named = self.section_of(&flow.name, &former.site);
                if let (Some(index), None) = (named, self.section_of(&flow.name, now)) {
                    let nodes = &mut self.sections[index].nodes;
                    let at = nodes.first().map_or(0..0, |pattern| pattern.at.clone());
                    nodes.push(Located { value: NodePattern::new(&format!("{}: {now}", flow.name)), at });
                }
            }
        }
        self
    }
}

/// Returns true if the pattern names a call site of the flow that passes removed.
pub(super) fn names_former_site(pattern: &NodePattern, flow: &Flow<Graph>) -> bool {
    flow.former_sites.iter().any(|former| pattern.names(&flow.name, &former.site))
}
