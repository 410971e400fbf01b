//! Descriptions of the computations that may run beside others, and of what forbids it.

use std::ops::Range;
use std::sync::Arc;

use weir_ir::graph::Graph;

use super::borders::{RegionRules, Survey};
use super::{build, covered, runs};
use crate::region::{CodePlace, ComputationOrder, PartObstacle, Region};
use crate::step::{Action, Body};

/// A loop or call that stands behind others, and may run beside some of them if it needs nothing of them.
pub struct IndependentPart {
    /// The flow, and the path of the loop or call in it.
    pub path: String,
    /// The paths of the loops and calls beside which it may run.
    pub beside: Vec<String>,
    /// The reason why it runs after the others; `None` if it may run beside one.
    pub obstacle: Option<String>,
    /// True if the reason is that it needs the result of one before it, or that the flow may end before it.
    pub is_dependent: bool,
}

/// Adds the computations of a body that could be in regions to a list; `path` is the path of the body.
pub(crate) fn independent_parts(
    rules: RegionRules<'_>,
    path: &str,
    graph: &Graph,
    body: &Body,
    found: &mut Vec<IndependentPart>,
) {
    for (nodes, _) in runs(rules, graph, body) {
        if let Some(region) = surveyed(rules, graph, body, nodes) {
            found.extend(of_region(path, graph, &region));
        }
    }
    let is_covered = covered(body);
    for ((step, node), _) in body.steps.iter().zip(&graph.nodes).zip(is_covered).filter(|(_, is_covered)| !is_covered) {
        let path = format!("{path}{}/", node.name);
        match step.action.form() {
            Action::Repeat(repeat) => independent_parts(rules, &path, &node.bodies()[0], &repeat.body, found),
            Action::Timed(timed) => {
                let bodies = timed.bodies.iter().zip(node.bodies());
                bodies.for_each(|((body, _), graph)| independent_parts(rules, &path, graph, body, found));
            }
            _ => {}
        }
    }
}

/// Returns the region of these nodes, or the one that they would be if that paid; `None` if they have no computations that
/// could run beside others.
fn surveyed(rules: RegionRules<'_>, graph: &Graph, body: &Body, nodes: Range<usize>) -> Option<Arc<Region>> {
    if let Action::Region(step) = &body.steps[nodes.start].action {
        return Some(Arc::clone(&step.region));
    }
    let may_have_parts = Survey { rules, graph, body }.may_have_parts(nodes.clone());
    may_have_parts.then(|| build::region(rules.types, graph, body, nodes).ok().map(Arc::new))?
}

/// Returns the path of a place in a region of this graph.
pub(super) fn name_of(graph: &Graph, place: &CodePlace) -> String {
    let node = &graph.nodes[place.node].name;
    if place.within.is_empty() { node.to_string() } else { format!("{node}/{}", place.within) }
}

/// Returns the computations of a region that stand behind others.
fn of_region<'a>(path: &'a str, graph: &'a Graph, region: &'a Region) -> impl Iterator<Item = IndependentPart> + 'a {
    let name = |place: &CodePlace| name_of(graph, place);
    let part = move |order: &ComputationOrder| IndependentPart {
        path: format!("{path}{}", name(&order.place)),
        beside: order.beside.iter().map(name).collect(),
        obstacle: order.obstacle.as_ref().map(|obstacle| obstacle.described(name)),
        is_dependent: matches!(order.obstacle, Some(PartObstacle::Needs(_) | PartObstacle::Ends(_))),
    };
    region.computations.iter().map(part)
}

/// Describes which computations among these nodes may run beside others, and what forbids it for those that may not.
pub(super) fn described(rules: RegionRules<'_>, graph: &Graph, body: &Body, nodes: Range<usize>) -> String {
    let Some(region) = surveyed(rules, graph, body, nodes) else { return String::new() };
    let line = |IndependentPart { path, beside, obstacle, .. }: IndependentPart| match obstacle {
        None => format!("\n  `{path}` may run beside {}.", quoted(&beside)),
        Some(obstacle) => format!("\n  `{path}` runs after what stands before it: {obstacle}."),
    };
    of_region("", graph, &region).map(line).collect()
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
