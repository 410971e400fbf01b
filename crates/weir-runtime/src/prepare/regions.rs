//! Forming regions: finds neighbouring nodes of a prepared body that can run as one piece, and compiles them.
//!
//! A node can be in a region if it neither waits nor meets a turn nor takes a lock, and if its function returns at once; a
//! `for`, `fold` or `loop` can if all nodes of its body can. Neighbours are in the same region if they depend on the same
//! waiting nodes, so that none of them may begin when another may not, and if they lie in the same atomic step and in the
//! arms around the first of them. A region that would become too large ends, if possible between statements that are in no
//! arm of a switch in it, and another one begins.

use std::ops::Range;
use std::sync::Arc;

use weir_ir::graph::Graph;

use crate::region::Region;
use crate::step::{Action, Body, RegionStep};
pub(super) use borders::RegionRules;
use borders::{Border, Survey};
use build::RegionProblem;

mod borders;
mod build;
mod parts;
mod print;
mod splits;

pub use parts::IndependentPart;
pub(super) use parts::independent_parts;
pub use print::LoopRounds;
pub(super) use print::{described, loops};

/// Forms the regions of a body, and those of the bodies within that belong to none.
pub(super) fn form(rules: RegionRules<'_>, graph: &Graph, body: &mut Body) {
    for (nodes, _) in runs(rules, graph, body) {
        let region = compiled(rules, graph, body, nodes.clone());
        if let Ok(region) = region {
            let step = &mut body.steps[nodes.start];
            let first = std::mem::replace(&mut step.action, Action::Nothing);
            step.action = Action::Region(Box::new(RegionStep { first, region: Arc::new(region) }));
        }
    }
    let is_covered = covered(body);
    let steps = body.steps.iter_mut().zip(&graph.nodes).zip(is_covered);
    for ((step, node), _) in steps.filter(|(_, is_covered)| !is_covered) {
        match &mut step.action {
            Action::Repeat(repeat) => form(rules, &node.bodies()[0], &mut repeat.body),
            Action::Timed(timed) => {
                let bodies = timed.bodies.iter_mut().zip(node.bodies());
                bodies.for_each(|((body, _), graph)| form(rules, graph, body));
            }
            _ => {}
        }
    }
}

/// Returns, for each node, true if it is in a region.
fn covered(body: &Body) -> Vec<bool> {
    let mut covered = vec![false; body.steps.len()];
    for step in &body.steps {
        if let Action::Region(region) = &step.action {
            covered[region.region.nodes.clone()].fill(true);
        }
    }
    covered
}

/// The reason why no region is made of nodes that could run as one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoRegion {
    /// They contain no loop, no parts that may run on several threads, and too few operations on numbers.
    DoesNotPay,
    /// They cannot be compiled: they have too many values for the registers of one region, as a single loop or its body may, or
    /// one of them cannot be compiled with the others.
    NotCompiled(RegionProblem),
}

/// Compiles the nodes of this range, if that pays.
fn compiled(rules: RegionRules<'_>, graph: &Graph, body: &Body, nodes: Range<usize>) -> Result<Region, NoRegion> {
    let survey = Survey { rules, graph, body };
    let pays = survey.pays(nodes.clone());
    if !pays && !survey.may_have_parts(nodes.clone()) {
        return Err(NoRegion::DoesNotPay);
    }
    let mut region = build::region(rules.types, graph, body, nodes).map_err(NoRegion::NotCompiled)?;
    if !pays && region.parts.is_empty() {
        return Err(NoRegion::DoesNotPay);
    }
    if cfg!(debug_assertions) {
        verify_nodes(body, region.nodes.clone());
        if let Err(mistake) = region.verify() {
            panic!("a region is built wrong: {mistake}\n{region}");
        }
    }
    Ok(region)
}

/// Checks that the nodes of a region wait for the same nodes, and that nobody waits for one of them (invariant I13).
fn verify_nodes(body: &Body, nodes: Range<usize>) {
    let depends = &body.steps[nodes.start].depends;
    for step in &body.steps[nodes] {
        assert!(step.depends == *depends, "the nodes of a region depend on different nodes");
        assert!(step.wait_number.is_none() && step.ticket_gates.is_empty(), "a node of a region waits");
    }
}

/// Returns the maximal runs of nodes that can be one region, each with the border at which it ends.
fn runs(rules: RegionRules<'_>, graph: &Graph, body: &Body) -> Vec<(Range<usize>, Border)> {
    let survey = Survey { rules, graph, body };
    let mut runs = Vec::new();
    let mut next = 0;
    while next < graph.nodes.len() {
        // A gate stands in no arm, also between nodes of an arm: no region begins with it.
        if survey.is_gate(next) {
            next += 1;
            continue;
        }
        let start = next;
        // The last node so far before which a region that becomes too large may end.
        let (mut size, mut last_end) = (0, None);
        let border = loop {
            if next == graph.nodes.len() {
                break Border::EndOfBody;
            }
            if let Some(border) = survey.obstacle(next).or_else(|| survey.parting(start, next)) {
                break border;
            }
            if next > start && survey.may_end_before(start, next) {
                last_end = Some(next);
            }
            size += survey.size(next);
            if size > rules.size_max && next > start {
                next = last_end.unwrap_or(next);
                break Border::Size(graph.nodes[next].name.to_string());
            }
            next += 1;
        };
        if next > start {
            runs.push((start..next, border));
        } else {
            next += 1;
        }
    }
    runs
}
