//! Descriptions of regions: their code, and why each ends where it ends.

use std::fmt::Write;
use std::ops::Range;

use weir_ir::graph::Graph;

use super::borders::{OPERATIONS_MIN, RegionRules};
use super::parts::name_of;
use super::splits::{SplitObstacle, obstacle};
use super::{NoRegion, compiled, covered, parts, runs};
use crate::region::{CodePlace, Region, SPLITS_MAX};
use crate::step::{Action, Body, Repeat};

/// Describes the regions of a body and of the bodies within; `path` is the path of the body.
pub(crate) fn described(rules: RegionRules<'_>, path: &str, graph: &Graph, body: &Body) -> String {
    let mut text = String::new();
    for (nodes, border) in runs(rules, graph, body) {
        let names = named(graph, &nodes);
        let parts = parts::described(rules, graph, body, nodes.clone());
        let described = match &body.steps[nodes.start].action {
            Action::Region(step) => {
                let rounds = rounds(&step.region, graph, body);
                with_code(&step.region, &names, &format!("{border}.{rounds}{parts}"))
            }
            _ => stays(rules, graph, body, nodes, &names) + &parts,
        };
        // Writing to a `String` cannot fail.
        _ = writeln!(text, "{path}: {described}");
    }
    let is_covered = covered(body);
    let steps = body.steps.iter().zip(&graph.nodes).zip(is_covered);
    for ((step, node), _) in steps.filter(|(_, is_covered)| !is_covered) {
        let path = format!("{path}/{}", node.name);
        match step.action.form() {
            Action::Repeat(repeat) => text += &described(rules, &path, &node.bodies()[0], &repeat.body),
            Action::Timed(timed) => {
                for ((body, _), graph) in timed.bodies.iter().zip(node.bodies()) {
                    text += &described(rules, &path, graph, body);
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
    format!("region of {names}\n  It ends here because {border}\n{region}")
}

/// Describes which loops among these nodes may run their rounds on several cores, and what forbids it for the others.
fn rounds(region: &Region, graph: &Graph, body: &Body) -> String {
    let mut found = Vec::new();
    loops_among(("", None), (region, graph), (graph, body, region.nodes.clone()), &mut found);
    let described = |LoopRounds { path, obstacle, .. }: &LoopRounds| match obstacle {
        None => format!("\n  The rounds of `{path}` may run on several cores."),
        Some(obstacle) => format!("\n  The rounds of `{path}` run one after the other: {obstacle}."),
    };
    found.iter().map(described).collect()
}

/// A loop that only computes, or a `for` that would run on several cores if it only did so.
pub struct LoopRounds {
    /// The flow, and the path of the loop in it.
    pub path: String,
    /// The reason why its rounds run one after the other; `None` if they may run on several cores.
    pub obstacle: Option<String>,
    /// True if it is a `loop`, whose rounds always need each other.
    pub is_in_turn: bool,
}

/// Adds the loops in the regions of a body to a list; `path` is the path of the body.
pub(crate) fn loops(path: &str, graph: &Graph, body: &Body, found: &mut Vec<LoopRounds>) {
    for step in &body.steps {
        if let Action::Region(step) = &step.action {
            let region = &*step.region;
            loops_among((path, None), (region, graph), (graph, body, region.nodes.clone()), found);
        }
    }
    let is_covered = covered(body);
    for ((step, node), _) in body.steps.iter().zip(&graph.nodes).zip(is_covered).filter(|(_, is_covered)| !is_covered) {
        let path = format!("{path}{}/", node.name);
        match step.action.form() {
            Action::Repeat(repeat) => {
                let obstacle = obstacle(node, repeat).filter(|_| repeat.repeat == Repeat::Map);
                let path_of_loop = path.trim_end_matches('/').to_owned();
                found.extend(obstacle.map(|obstacle| LoopRounds {
                    path: path_of_loop,
                    obstacle: Some(obstacle.to_string()),
                    is_in_turn: false,
                }));
                loops(&path, &node.bodies()[0], &repeat.body, found);
            }
            Action::Timed(timed) => {
                let bodies = timed.bodies.iter().zip(node.bodies());
                bodies.for_each(|((body, _), graph)| loops(&path, graph, body, found));
            }
            _ => {}
        }
    }
}

/// Adds the loops among nodes of a body in a region to a list; `path` is the path of the body, and `around` its place in the
/// region, whose body has the other graph.
fn loops_among(
    (path, around): (&str, Option<&CodePlace>),
    (region, region_graph): (&Region, &Graph),
    (graph, body, nodes): (&Graph, &Body, Range<usize>),
    found: &mut Vec<LoopRounds>,
) {
    for index in nodes {
        let node = &graph.nodes[index];
        let Action::Repeat(repeat) = body.steps[index].action.form() else { continue };
        let (path, place) = (format!("{path}{}", node.name), CodePlace::of(index, &node.name, around));
        let of_code = || match region.fold_obstacle(&place) {
            Some(obstacle) => obstacle.described(|place| name_of(region_graph, place)),
            None if region.has_all_splits() => format!("{SPLITS_MAX} others of the same region may"),
            None if repeat.repeat == Repeat::Map => SplitObstacle::MovesElements.to_string(),
            None => SplitObstacle::NeedsLast.to_string(),
        };
        let of_text = obstacle(node, repeat).map(|obstacle| obstacle.to_string());
        let obstacle = of_text.or_else(|| (!region.splits_at(&place)).then(of_code));
        let is_in_turn = matches!(repeat.repeat, Repeat::Loop { .. });
        found.push(LoopRounds { path: path.clone(), obstacle, is_in_turn });
        let inner = &node.bodies()[0];
        let nodes = (inner, &repeat.body, 0..inner.nodes.len());
        loops_among((&format!("{path}/"), Some(&place)), (region, region_graph), nodes, found);
    }
}

/// Describes nodes that are no region although they could run as one piece.
fn stays(rules: RegionRules<'_>, graph: &Graph, body: &Body, nodes: Range<usize>, names: &str) -> String {
    let verb = if nodes.len() == 1 { "stays a step" } else { "stay steps" };
    match compiled(rules, graph, body, nodes) {
        Err(NoRegion::NotCompiled(problem)) => {
            format!("{names}, {verb}: they cannot be compiled together, because {problem}")
        }
        _ => {
            format!("{names}, {verb}: without a loop or {OPERATIONS_MIN} operations on numbers, a region is no faster")
        }
    }
}
