//! Contraction of a graph: hides its plumbing, and connects the visible nodes through the hidden ones.
//!
//! Hidden are primitives and selects, switches that choose only between hidden nodes (`a || b`), *tries* (the switch behind
//! each `?`, whose failing arm only ends the flow, or gives the failure to the caller of a `fn`), and what the compiler generates: the rounds of a `retry`, and failures
//! that are never reached.

use std::collections::BTreeSet;

use weir_host::{Resource, Type, Value};
use weir_ir::graph::{ArmTest, Control, Graph, InlinedCallId, Node, NodeId, NodeKind, Operand, Origin};
use weir_ir::prim::Prim;

use crate::drawing::DetailLevel;
use crate::names::GraphScope;

/// The source of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeSource {
    /// A visible node.
    Node(NodeId),
    /// An arm of a visible switch.
    Arm(NodeId, u32),
}

/// The visible part of a graph.
pub(crate) struct Contraction<'a> {
    graph: &'a Graph,
    may_be_given_up: bool,
    /// For each node, whether it is visible.
    seen: Vec<bool>,
    /// For each node, whether it is a hidden try.
    tries: Vec<bool>,
    /// For each node, the visible sources of its values: itself if it is visible.
    stand_ins: Vec<BTreeSet<EdgeSource>>,
    /// The nodes whose failure a hidden try passes on, each with the inlined call that the try belongs to.
    pub(crate) fallible: BTreeSet<(NodeId, Option<InlinedCallId>)>,
}

impl<'a> Contraction<'a> {
    pub(crate) fn new(scope: &GraphScope<'a>, detail: DetailLevel) -> Self {
        let graph = scope.graph;
        let tries: Vec<bool> = match detail {
            DetailLevel::Folded | DetailLevel::FoldedFns => {
                graph.nodes().map(|(id, node)| is_try(scope, id, node)).collect()
            }
            DetailLevel::Everything => vec![false; graph.nodes.len()],
        };
        let seen = seen(scope, detail, &tries);
        let mut contraction = Contraction {
            graph,
            may_be_given_up: scope.may_be_given_up,
            seen,
            tries,
            stand_ins: Vec::new(),
            fallible: BTreeSet::new(),
        };
        contraction.stand_in_all();
        contraction
    }

    /// Returns whether the node is visible.
    pub(crate) fn is_seen(&self, id: NodeId) -> bool {
        self.seen[id.0 as usize]
    }

    /// Returns whether a hidden try passes on the failure of this node.
    pub(crate) fn is_fallible(&self, id: NodeId) -> bool {
        self.fallible.range((id, None)..).next().is_some_and(|(node, _)| *node == id)
    }

    /// Returns the visible sources of a node's inputs and control.
    pub(crate) fn starts(&self, node: &Node) -> BTreeSet<EdgeSource> {
        let mut starts = self.control(node.control);
        node.inputs.iter().for_each(|input| starts.extend(self.source(input)));
        starts
    }

    /// Returns the visible nodes that this one is ordered after because both access a resource and one of them writes
    /// it. In a body that may be given up, effects also wait for what the text puts before them.
    pub(crate) fn ordered_after(&self, node: &Node) -> impl Iterator<Item = NodeId> {
        let touched = touched(node);
        let ends = |before: NodeId| self.graph.node(before).kind.ends_flow();
        node.after.iter().copied().filter(move |&before| {
            let waits_for_all = self.may_be_given_up && !ends(before);
            let of_before = self::touched(self.graph.node(before));
            self.is_seen(before) && (waits_for_all || conflict(&touched, &of_before))
        })
    }

    /// Returns the visible sources from which a node is reached past the earlier ends of the flow that it waits for.
    pub(crate) fn past_ends(&self, node: &Node) -> BTreeSet<EdgeSource> {
        let around: Vec<Control> =
            std::iter::successors(node.control, |control| self.graph.node(control.switch).control).collect();
        node.after.iter().flat_map(|&before| self.past_end(before, &around)).collect()
    }

    /// Returns the visible sources from which the end of a graph is reached past its earlier ends.
    pub(crate) fn past_all_ends(&self) -> BTreeSet<EdgeSource> {
        self.graph.nodes().flat_map(|(id, _)| self.past_end(id, &[])).collect()
    }

    /// Returns the other arms of the branches around an end of the flow, up to those in `outer`. For a `?` it is the
    /// call that did not fail. A node that is no end has none.
    fn past_end(&self, end: NodeId, outer: &[Control]) -> BTreeSet<EdgeSource> {
        let mut sources = BTreeSet::new();
        let mut at = self.graph.node(end).control.filter(|_| self.graph.node(end).kind.ends_flow());
        while let Some(Control { switch, arm }) = at.filter(|at| !outer.contains(at)) {
            match &self.graph.node(switch).kind {
                NodeKind::Switch { arms } if self.is_seen(switch) => {
                    let others = (0..).take(arms.len()).filter(|&other| other != arm && !self.ends_in(switch, other));
                    sources.extend(others.map(|other| EdgeSource::Arm(switch, other)));
                }
                _ => sources.extend(&self.stand_ins[switch.0 as usize]),
            }
            at = self.graph.node(switch).control;
        }
        sources
    }

    /// Returns true if the arm ends the flow.
    fn ends_in(&self, switch: NodeId, arm: u32) -> bool {
        self.graph.nodes.iter().any(|node| node.kind.ends_flow() && node.control == Some(Control { switch, arm }))
    }

    /// Returns the visible sources of a value.
    pub(crate) fn source(&self, source: &Operand) -> BTreeSet<EdgeSource> {
        let Operand::Port(id, port) = source else { return BTreeSet::new() };
        let node = self.graph.node(*id);
        match &node.kind {
            NodeKind::Switch { .. } if self.is_seen(*id) => {
                BTreeSet::from([EdgeSource::Arm(*id, arm_of_port(node, *port))])
            }
            _ => self.stand_ins[id.0 as usize].clone(),
        }
    }

    fn control(&self, control: Option<Control>) -> BTreeSet<EdgeSource> {
        let Some(Control { switch, arm }) = control else { return BTreeSet::new() };
        if self.is_seen(switch) {
            return BTreeSet::from([EdgeSource::Arm(switch, arm)]);
        }
        let tested = &self.stand_ins[switch.0 as usize];
        if tested.is_empty() { self.control(self.graph.node(switch).control) } else { tested.clone() }
    }

    fn stand_in_all(&mut self) {
        let graph = self.graph;
        for (id, node) in graph.nodes() {
            let stand_in = match &node.kind {
                _ if self.is_seen(id) => BTreeSet::from([EdgeSource::Node(id)]),
                NodeKind::Select { switch } => self.select(*switch, node),
                _ => node.inputs.iter().flat_map(|input| self.source(input)).collect(),
            };
            if self.tries[id.0 as usize] {
                let tested = stand_in.iter().map(|start| (node_of(*start), node.origin.inlined_call));
                self.fallible.extend(tested);
            }
            self.stand_ins.push(stand_in);
        }
    }

    /// Returns the sources of all arms, or the arm itself if its value comes from before the switch.
    fn select(&self, switch: NodeId, node: &Node) -> BTreeSet<EdgeSource> {
        let mut starts = BTreeSet::new();
        for (input, arm) in node.inputs.iter().zip(0..) {
            let within = self.source(input);
            if within.is_empty() || !self.is_seen(switch) {
                starts.extend(within);
            } else {
                starts.extend(within.into_iter().filter(|start| node_of(*start) >= switch));
            }
            if self.is_seen(switch)
                && !matches!(input, Operand::Never)
                && !starts.iter().any(|start| self.is_within(*start, switch, arm))
            {
                starts.insert(EdgeSource::Arm(switch, arm));
            }
        }
        if !self.is_seen(switch) {
            starts.extend(&self.stand_ins[switch.0 as usize]);
        }
        starts
    }

    fn is_within(&self, start: EdgeSource, switch: NodeId, arm: u32) -> bool {
        if start == EdgeSource::Arm(switch, arm) {
            return true;
        }
        let mut control = self.graph.node(node_of(start)).control;
        while let Some(at) = control {
            if at == (Control { switch, arm }) {
                return true;
            }
            control = self.graph.node(at.switch).control;
        }
        false
    }
}

fn node_of(start: EdgeSource) -> NodeId {
    match start {
        EdgeSource::Node(node) | EdgeSource::Arm(node, _) => node,
    }
}

fn seen(scope: &GraphScope<'_>, detail: DetailLevel, tries: &[bool]) -> Vec<bool> {
    let graph = scope.graph;
    let mut seen = vec![false; graph.nodes.len()];
    let mut controls_seen = vec![false; graph.nodes.len()];
    let in_try = |node: &Node| node.control.is_some_and(|control| tries[control.switch.0 as usize]);
    // In reverse order, because a switch precedes the nodes that it controls.
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        seen[index] = match &node.kind {
            NodeKind::Release { .. } => false,
            _ if detail == DetailLevel::Everything => true,
            NodeKind::Prim(_) | NodeKind::Select { .. } => false,
            _ if scope.generated == Some(node.origin) => false,
            NodeKind::Switch { .. } => controls_seen[index] && !tries[index],
            NodeKind::Fail => !in_try(node) && !is_never_reached(graph, node),
            _ => true,
        };
        if let (true, Some(control)) = (seen[index] || controls_seen[index], node.control) {
            controls_seen[control.switch.0 as usize] = true;
        }
    }
    seen
}

/// Returns whether this is the failure of a `match` without a fitting arm, which the checker rules out: unlike a failure of
/// the program, it has the place of the `match`.
fn is_never_reached(graph: &Graph, node: &Node) -> bool {
    let of_switch = node.control.is_some_and(|control| graph.node(control.switch).origin == node.origin);
    of_switch && node.origin != Origin::default() && matches!(node.inputs.first(), Some(Operand::Constant(_)))
}

/// Returns whether this is the switch behind a `?`: its failing arm only ends the flow, or gives the failure to the caller
/// of a `fn`.
fn is_try(scope: &GraphScope<'_>, id: NodeId, node: &Node) -> bool {
    let (NodeKind::Switch { arms }, Some(subject)) = (&node.kind, node.inputs.first()) else { return false };
    if !matches!(scope.ty(subject), Some(Type::Result(_))) || !matches!(subject, Operand::Port(..)) {
        return false;
    }
    let Some(failing) = arms.iter().position(|arm| arm.test == ArmTest::Tag(Value::ERR)) else { return false };
    let failure = Operand::Port(id, node.first_port(failing as u32));
    let within = scope.graph.nodes().skip(id.0 as usize).filter(|(_, node)| {
        node.control.is_some_and(|control| control.switch == id && control.arm as usize == failing)
    });
    let (mut ends, mut passed_on) = (0, vec![failure]);
    for (id, node) in within {
        let of_failure = node.inputs.first().is_some_and(|input| passed_on.contains(input));
        match node.kind {
            NodeKind::Fail => ends += 1,
            NodeKind::Prim(Prim::Propagate) if of_failure => passed_on.push(Operand::Port(id, 0)),
            NodeKind::Prim(Prim::Variant(Value::ERR)) if of_failure => ends += 1,
            NodeKind::Prim(_) => {}
            _ => return false,
        }
    }
    ends == 1
}

fn arm_of_port(switch: &Node, port: u32) -> u32 {
    let NodeKind::Switch { arms } = &switch.kind else { return 0 };
    let last = u32::try_from(arms.len()).unwrap_or(u32::MAX);
    (0..last).rev().find(|&arm| switch.first_port(arm) <= port && arms[arm as usize].payload > 0).unwrap_or(0)
}

fn touched(node: &Node) -> Vec<(&Resource, weir_host::Mode)> {
    let uses = node.uses.iter().map(|usage| (&usage.resource, usage.mode));
    uses.chain(node.kind.constraints().iter().map(|constraint| (&constraint.resource, constraint.mode))).collect()
}

fn conflict(one: &[(&Resource, weir_host::Mode)], other: &[(&Resource, weir_host::Mode)]) -> bool {
    one.iter().any(|(resource, mode)| {
        let reads = weir_host::Mode::Read;
        other.iter().any(|(second, second_mode)| resource == second && !(*mode == reads && *second_mode == reads))
    })
}
