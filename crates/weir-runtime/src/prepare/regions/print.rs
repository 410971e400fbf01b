//! Descriptions of regions: their code, and why each ends where it ends.

use std::fmt::Write;
use std::ops::Range;

use weir_ir::graph::Graph;

use super::borders::OPERATIONS_MIN;
use super::{NoRegion, compiled, covered, runs};
use crate::region::{Region, WordTypes};
use crate::step::{Action, Body};

/// Describes the regions of a body and of the bodies within; `path` is the path of the body.
pub(crate) fn described(types: WordTypes<'_>, path: &str, graph: &Graph, body: &Body) -> String {
    let mut text = String::new();
    for (nodes, border) in runs(types, graph, body) {
        let names = named(graph, &nodes);
        let described = match &body.steps[nodes.start].action {
            Action::Region(step) => with_code(&step.region, &names, &border.to_string()),
            _ => stays(types, graph, body, nodes, &names),
        };
        // Writing to a `String` cannot fail.
        _ = writeln!(text, "{path}: {described}");
    }
    let is_covered = covered(body);
    let steps = body.steps.iter().zip(&graph.nodes).zip(is_covered);
    for ((step, node), _) in steps.filter(|(_, is_covered)| !is_covered) {
        let path = format!("{path}/{}", node.name);
        match step.action.form() {
            Action::Repeat(repeat) => text += &described(types, &path, &node.bodies()[0], &repeat.body),
            Action::Timed(timed) => {
                for ((body, _), graph) in timed.bodies.iter().zip(node.bodies()) {
                    text += &described(types, &path, graph, body);
                }
            }
            _ => {}
        }
    }
    text
}

fn named(graph: &Graph, nodes: &Range<usize>) -> String {
    let (first, last) = (&graph.nodes[nodes.start].name, &graph.nodes[nodes.end - 1].name);
    match nodes.len() {
        1 => format!("`{first}`"),
        count => format!("{count} nodes, `{first}` to `{last}`"),
    }
}

fn with_code(region: &Region, names: &str, border: &str) -> String {
    format!("region of {names}\n  It ends here because {border}.\n{region}")
}

/// Describes nodes that are no region although they could run as one piece.
fn stays(types: WordTypes<'_>, graph: &Graph, body: &Body, nodes: Range<usize>, names: &str) -> String {
    let verb = if nodes.len() == 1 { "stays a step" } else { "stay steps" };
    match compiled(types, graph, body, nodes) {
        Err(NoRegion::NotCompiled) => format!("{names}, {verb}: this combination cannot be compiled yet"),
        _ => {
            format!("{names}, {verb}: without a loop or {OPERATIONS_MIN} operations on numbers, a region is no faster")
        }
    }
}
