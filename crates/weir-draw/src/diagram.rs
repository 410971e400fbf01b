//! A diagram: the marks and edges that represent one flow.
//!
//! Marks are in topological order: every edge points forward. A mark that contains others (the body of a `for`, an
//! atomic step) precedes them. Both ends of an edge have the same parent: an edge that would cross the border of a mark
//! ends at that border.

mod edges;
mod ends;
mod fn_frames;
mod reduction;
mod sections;

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Resource, Type, Value};
use weir_ir::expr::ArmTest;
use weir_ir::graph::{Control, Graph, Node, NodeId, NodeKind};
use weir_ir::program::Flow;

use crate::contraction::{Contraction, EdgeSource};
use crate::drawing::{DetailLevel, Drawing};
use crate::looks::{self, MarkKind};
use crate::names::{self, GraphScope};
pub(crate) use edges::{Edge, EdgeLabel, MarkId};
use ends::EndOrEffect;
use fn_frames::{Container, FnFrames, fn_frame};

/// Stands between the `fn`s that a call is inlined from, and before its module.
const WITHIN: &str = " › ";

/// The diagram of one flow.
#[derive(Default)]
pub(crate) struct Diagram {
    pub(crate) marks: Vec<DiagramMark>,
    pub(crate) edges: Vec<Edge>,
    /// The names of the plan's sections, by number; empty without a plan.
    pub(crate) sections: Vec<String>,
}

/// A node of the diagram.
#[derive(Debug)]
pub(crate) struct DiagramMark {
    pub(crate) kind: MarkKind,
    /// Small text above the title: the module of a call, the parameters of an entry.
    pub(crate) over: String,
    pub(crate) title: String,
    /// The tooltip.
    pub(crate) hint: String,
    pub(crate) uses: Vec<(Resource, Mode)>,
    pub(crate) parent: Option<MarkId>,
    /// True if its failure ends the flow.
    pub(crate) fallible: bool,
    /// True if the flow may leave its thread here.
    pub(crate) leaves: bool,
    /// The section. With a plan, its number, where 0 is the rest; otherwise the number of times that the flow may have
    /// left its thread before.
    pub(crate) section: u32,
    /// The section of the node that it represents, under a plan; `None` in inner bodies.
    pub(crate) planned: Option<u32>,
}

impl DiagramMark {
    /// Returns the module of a call.
    pub(crate) fn module(&self) -> &str {
        self.over.rsplit(WITHIN).next().unwrap_or_default()
    }
}

impl Diagram {
    pub(crate) fn of(drawing: &Drawing<'_>, flow: &Flow<Graph>) -> Diagram {
        let scope = GraphScope::of_flow(drawing.program, flow);
        let mut builder =
            DiagramBuilder { drawing, flow: &flow.name, diagram: Diagram::default(), leaving_choices: Vec::new() };
        let entry = DiagramMark { over: parameters(flow), ..mark(MarkKind::Entry, flow.name.to_string(), None) };
        builder.diagram.marks.push(entry);
        let title = if flow.result == Type::Unit { "done" } else { "answer" };
        builder.graph(&scope, 0, None, title);
        builder.exits_of_frames();
        let mut diagram = builder.diagram;
        reduction::reduce(&mut diagram.edges, diagram.marks.len());
        match drawing.plan.filter(|plan| !plan.sections.is_empty()) {
            Some(plan) => diagram.assign_planned_sections(plan),
            None => diagram.assign_sections(),
        }
        diagram
    }

    /// Returns the marks directly inside a mark, or the outermost ones.
    pub(crate) fn inside(&self, parent: Option<MarkId>) -> Vec<MarkId> {
        (0..self.marks.len()).filter(|&mark| self.marks[mark].parent == parent).collect()
    }
}

struct DiagramBuilder<'a> {
    drawing: &'a Drawing<'a>,
    /// The flow's name, which plans may refer to.
    flow: &'a str,
    diagram: Diagram,
    /// The choices with which edges leave a frame.
    leaving_choices: Vec<(MarkId, EdgeLabel)>,
}

/// A body, and the marks of its nodes so far.
struct DrawnBody<'s, 'a> {
    scope: &'s GraphScope<'a>,
    contraction: Contraction<'a>,
    frames: FnFrames,
    marks: BTreeMap<NodeId, MarkId>,
    /// The mark at which the body starts.
    entry: MarkId,
    /// The mark that contains the body.
    parent: Option<MarkId>,
}

impl DiagramBuilder<'_> {
    /// Adds the visible nodes of a graph, which starts at the mark `entry`: that of the flow, or of a body of the node `around`,
    /// which has a mark.
    fn graph(&mut self, scope: &GraphScope<'_>, entry: MarkId, around: Option<(&Node, MarkId)>, yields: &str) {
        let parent = around.map(|(_, mark)| mark);
        let contraction = Contraction::new(scope, self.drawing.detail);
        let frames = FnFrames::of(scope, &contraction, self.drawing.detail);
        let mut body = DrawnBody { scope, contraction, frames, marks: BTreeMap::new(), entry, parent };
        let sections = self.sections(scope.graph, around.map(|(node, _)| node));
        let first_edge = self.diagram.edges.len();
        for (id, node) in scope.graph.nodes() {
            if body.contraction.is_seen(id) {
                let section = sections.get(id.0 as usize).copied().flatten();
                let mark = self.node_mark(&mut body, id, node, section);
                body.marks.insert(id, mark);
                self.edges_to(&body, mark, node);
            }
        }
        self.edges_to_frames(&body, first_edge);
        self.mark_fallible(&body);
        self.result(&body, yields, first_edge);
    }

    /// Returns the number of the section of each node under a plan; in an inner body, of those that the plan names.
    fn sections(&self, graph: &Graph, around: Option<&Node>) -> Vec<Option<u32>> {
        let waits = |function: &str| self.drawing.leaves_thread(function);
        let Some(plan) = self.drawing.plan else { return Vec::new() };
        match around {
            None => sections::section_numbers(plan, self.flow, graph, &waits).into_iter().map(Some).collect(),
            Some(around) => sections::named_sections(plan, self.flow, around, graph),
        }
    }

    /// Returns the mark of a node: its own, or that of the `fn` that it is folded into. Begins the frames around it.
    fn node_mark(&mut self, body: &mut DrawnBody<'_, '_>, id: NodeId, node: &Node, section: Option<u32>) -> MarkId {
        let folds = self.drawing.detail == DetailLevel::FoldedFns;
        let around = body.frames.around(id).to_vec();
        for &frame in around.iter().take(if folds { 1 } else { around.len() }) {
            if body.frames.frame(frame).mark.is_none() {
                let holder = self.holder(body, body.frames.holder_of_frame(frame));
                let mark = if folds { self.folded_fn(body, frame, holder) } else { fn_frame(body, frame, holder) };
                self.diagram.marks.push(DiagramMark { planned: section, ..mark });
                body.frames.frame(frame).mark = Some(self.diagram.marks.len() - 1);
            }
        }
        if let Some(&frame) = around.first().filter(|_| folds) {
            return body.frames.frame(frame).mark.unwrap_or(body.entry);
        }
        let holder = self.holder(body, body.frames.holder(id, node));
        let mark = self.node(body, (id, node), holder);
        self.diagram.marks[mark].planned = section;
        mark
    }

    /// Returns the mark that contains what is in this container.
    fn holder(&self, body: &DrawnBody<'_, '_>, container: Container) -> Option<MarkId> {
        let mark = match container {
            Container::Body => None,
            Container::Frame(frame) => body.frames.mark(frame),
            Container::Step(step) => body.marks.get(&step).copied(),
        };
        // A step that is folded into a `fn` is no frame.
        let mark = mark.and_then(|mark| self.line(mark).into_iter().find(|&at| self.diagram.marks[at].kind.is_frame()));
        mark.or(body.parent)
    }

    fn node(&mut self, body: &DrawnBody<'_, '_>, (id, node): (NodeId, &Node), parent: Option<MarkId>) -> MarkId {
        let scope = body.scope;
        let mut drawn = drawn(body, (id, node), parent);
        drawn.leaves = self.leaves_thread(node);
        let id = self.diagram.marks.len();
        self.diagram.marks.push(drawn);
        for inner in scope.bodies(node) {
            let title = match node.cancels_bodies() || names::is_retry(node) {
                true => "begin".to_owned(),
                false => inner.parameters.first().cloned().unwrap_or_default(),
            };
            let entry = self.diagram.marks.len();
            self.diagram.marks.push(mark(MarkKind::Entry, title, Some(id)));
            self.graph(&inner, entry, Some((node, id)), "");
        }
        id
    }

    /// Returns whether the flow may leave its thread in a call, or in the wait between two tries, which is hidden.
    fn leaves_thread(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Call { function, .. } => self.drawing.leaves_thread(function),
            NodeKind::Loop { body, .. } if names::is_retry(node) => {
                let generated = body.nodes.iter().filter(|inner| inner.origin == node.origin);
                generated.into_iter().any(|inner| self.leaves_thread(inner))
            }
            _ => false,
        }
    }

    fn edges_to(&mut self, body: &DrawnBody<'_, '_>, mark: MarkId, node: &Node) {
        let before = self.diagram.edges.len();
        for start in body.contraction.starts(node) {
            self.link_to_node(body, start, (mark, node));
        }
        for earlier in body.contraction.ordered_after(node) {
            self.join(body.marks[&earlier], mark, EdgeLabel::Order);
        }
        for start in body.contraction.past_ends(node) {
            self.link(body, start, mark);
        }
        let values = self.diagram.edges[before..].iter().any(|edge| edge.to == mark && edge.label != EdgeLabel::Order);
        if !values && self.diagram.marks[mark].parent == self.diagram.marks[body.entry].parent {
            self.join(body.entry, mark, EdgeLabel::Value);
        }
    }

    /// Adds an edge from the entry to each frame of a `fn` that nothing leads to.
    fn edges_to_frames(&mut self, body: &DrawnBody<'_, '_>, first_edge: usize) {
        let mut reached: BTreeSet<MarkId> = self.diagram.edges[first_edge..].iter().map(|edge| edge.to).collect();
        for frame in body.frames.marks() {
            if reached.insert(frame) && self.diagram.marks[frame].parent == self.diagram.marks[body.entry].parent {
                self.join(body.entry, frame, EdgeLabel::Value);
            }
        }
    }

    /// Marks the nodes whose failure a `?` passes on: the call itself, or the `fn` around it if the `?` is outside of that.
    fn mark_fallible(&mut self, body: &DrawnBody<'_, '_>) {
        for (node, call) in &body.contraction.fallible {
            let mark = body.frames.outermost_beyond(body.scope, *node, *call).unwrap_or(body.marks[node]);
            if self.diagram.marks[mark].kind != MarkKind::Fork {
                self.diagram.marks[mark].fallible = true;
            }
        }
    }

    /// Adds the end of the body, and the edges to all of its ends.
    fn result(&mut self, body: &DrawnBody<'_, '_>, yields: &str, first_edge: usize) {
        let is_mark_of_node = |this: &Self, mark: MarkId| this.diagram.marks[mark].kind != MarkKind::Fork;
        let nodes = body.marks.iter().filter(|(id, mark)| {
            let node = body.scope.graph.node(**id);
            (node.kind.ends_flow() || self.has_effect(node)) && is_mark_of_node(self, **mark)
        });
        let mut marks: Vec<EndOrEffect> =
            nodes.map(|(id, mark)| EndOrEffect { mark: *mark, node: Some(*id) }).collect();
        let has_result = body.scope.graph.result != weir_ir::graph::Operand::Never;
        if has_result {
            let end = self.diagram.marks.len();
            self.diagram.marks.push(mark(MarkKind::Answer, yields.to_owned(), body.parent));
            let starts = body.contraction.source(&body.scope.graph.result);
            for start in starts.iter().chain(&body.contraction.past_all_ends()) {
                self.link(body, *start, end);
            }
            marks.push(EndOrEffect { mark: end, node: None });
        }
        self.edges_to_ends(body.scope, &marks, (body.entry, first_edge));
        if let Some(end) = marks.last().filter(|_| has_result)
            && !self.diagram.edges[first_edge..].iter().any(|edge| edge.to == end.mark)
        {
            let last = (body.entry..end.mark).rev().find(|&mark| self.diagram.marks[mark].parent == body.parent);
            self.join(last.unwrap_or(body.entry), end.mark, EdgeLabel::Value);
        }
    }

    fn link(&mut self, body: &DrawnBody<'_, '_>, start: EdgeSource, to: MarkId) {
        match start {
            EdgeSource::Node(node) => self.join(body.marks[&node], to, EdgeLabel::Value),
            EdgeSource::Arm(switch, arm) => {
                let from = body.marks[&switch];
                // A switch may be folded into its `fn`.
                let is_fork = self.diagram.marks[from].kind == MarkKind::Fork;
                let label = if is_fork { choice(body.scope, switch, arm) } else { EdgeLabel::Value };
                self.join(from, to, label);
            }
        }
    }

    /// Adds the edge from a source of a node. A failure that is handled outside of the `fn` that it arises in is a choice of
    /// that `fn`, folded or not.
    fn link_to_node(&mut self, body: &DrawnBody<'_, '_>, start: EdgeSource, (mark, node): (MarkId, &Node)) {
        match start {
            EdgeSource::Arm(switch, arm) if handles(body.scope, node, Control { switch, arm }) => {
                let from = body.marks[&switch];
                let label = choice(body.scope, switch, arm);
                let of_frame = self.ends_of_edge(from, mark).filter(|(start, _)| *start != from);
                match of_frame {
                    Some((frame, end)) if frame != end => {
                        self.leaving_choices.push((from, label.clone()));
                        self.diagram.edges.push(Edge { from: frame, to: end, label });
                    }
                    _ => self.join(from, mark, label),
                }
            }
            start => self.link(body, start, mark),
        }
    }

    /// Adds an edge between the outermost marks that contain one end and not the other.
    fn join(&mut self, from: MarkId, to: MarkId, label: EdgeLabel) {
        let Some((start, end)) = self.ends_of_edge(from, to) else { return };
        let is_inner_choice = start != from && matches!(label, EdgeLabel::Choice(_));
        if is_inner_choice {
            self.leaving_choices.push((from, label.clone()));
        }
        // A choice inside a mark is no choice of that mark.
        let label = if start == from || label == EdgeLabel::Order { label } else { EdgeLabel::Value };
        if start != end {
            self.diagram.edges.push(Edge { from: start, to: end, label });
        }
    }

    /// Adds ends to each frame that choices leave without anything else in the frame, one for each choice, and edges to them.
    fn exits_of_frames(&mut self) {
        let mut exits: BTreeMap<(Option<MarkId>, EdgeLabel), MarkId> = BTreeMap::new();
        let taken: BTreeSet<(MarkId, EdgeLabel)> =
            self.diagram.edges.iter().map(|edge| (edge.from, edge.label.clone())).collect();
        for (from, label) in std::mem::take(&mut self.leaving_choices) {
            let frame = self.diagram.marks[from].parent;
            if !taken.contains(&(from, label.clone())) {
                let exit = *exits.entry((frame, label.clone())).or_insert_with(|| {
                    self.diagram.marks.push(mark(MarkKind::Answer, String::new(), frame));
                    self.diagram.marks.len() - 1
                });
                self.diagram.edges.push(Edge { from, to: exit, label });
            }
        }
    }

    /// Returns the outermost marks that contain one of these and not the other.
    fn ends_of_edge(&self, from: MarkId, to: MarkId) -> Option<(MarkId, MarkId)> {
        let parent = |mark: MarkId| self.diagram.marks[mark].parent;
        let holders: BTreeSet<Option<MarkId>> = self.line(to).into_iter().map(parent).collect();
        let start = self.line(from).into_iter().find(|&mark| holders.contains(&parent(mark)))?;
        let end = self.line(to).into_iter().find(|&mark| parent(mark) == parent(start))?;
        Some((start, end))
    }

    /// Returns the mark and everything that contains it, innermost first.
    fn line(&self, mark: MarkId) -> Vec<MarkId> {
        std::iter::successors(Some(mark), |&mark| self.diagram.marks[mark].parent).collect()
    }
}

/// Returns the label of an edge from an arm of a switch.
fn choice(scope: &GraphScope<'_>, switch: NodeId, arm: u32) -> EdgeLabel {
    EdgeLabel::Choice(names::shorten(&scope.arm(scope.graph.node(switch), arm)))
}

/// Returns true if the arm is that of a failure, and the node runs only if the arm is chosen.
fn handles(scope: &GraphScope<'_>, node: &Node, arm: Control) -> bool {
    let switch = scope.graph.node(arm.switch);
    let (NodeKind::Switch { arms }, Some(subject)) = (&switch.kind, switch.inputs.first()) else { return false };
    let is_failure = arms.get(arm.arm as usize).is_some_and(|arm| arm.test == ArmTest::Tag(Value::ERR));
    let mut controls = std::iter::successors(node.control, |control| scope.graph.node(control.switch).control);
    is_failure && matches!(scope.ty(subject), Some(Type::Result(_))) && controls.any(|control| control == arm)
}

fn mark(kind: MarkKind, title: String, parent: Option<MarkId>) -> DiagramMark {
    DiagramMark {
        kind,
        over: String::new(),
        title,
        hint: String::new(),
        uses: Vec::new(),
        parent,
        fallible: false,
        leaves: false,
        section: 0,
        planned: None,
    }
}

fn drawn(body: &DrawnBody<'_, '_>, (id, node): (NodeId, &Node), parent: Option<MarkId>) -> DiagramMark {
    let scope = body.scope;
    let mut drawn = match &node.kind {
        NodeKind::Call { function, .. } => {
            let (module, name) = function.rsplit_once('.').unwrap_or(("", function));
            DiagramMark {
                over: within_fns(&node.name, module, &body.frames.fns_around(scope, id)),
                hint: scope.call(function, &node.inputs),
                uses: worth_showing(node),
                ..mark(MarkKind::Call, name.to_owned(), parent)
            }
        }
        _ => {
            let (kind, title) = looks::mark(scope, node);
            mark(kind, title, parent)
        }
    };
    if drawn.hint.is_empty() {
        drawn.hint = node.name.to_string();
    }
    drawn
}

/// Returns the module of a call behind the `fn`s that it is inlined from and that have no frame, as far as there is room; the
/// innermost ones stay. `name` is the path of the call, such as `login/checked/text.length`.
fn within_fns(name: &str, module: &str, framed: &[&str]) -> String {
    let mut framed = framed.iter().peekable();
    let path = name.rsplit_once('/').map_or("", |(path, _)| path);
    let functions = path.split('/').filter(|function| {
        let is_framed = framed.peek().is_some_and(|framed| function.split('#').next() == Some(**framed));
        if is_framed {
            framed.next();
        }
        !is_framed && !function.is_empty()
    });
    let mut shown = module.to_owned();
    for function in functions.collect::<Vec<_>>().into_iter().rev() {
        let longer = format!("{function}{WITHIN}{shown}");
        if longer.chars().count() > names::LENGTH_MAX {
            return format!("…{WITHIN}{shown}");
        }
        shown = longer;
    }
    shown
}

/// Returns the resources of a call. Omits a read of the library's own resource by a call on a shared value, which is
/// obvious, and reads that only order the call with a barrier, such as `time.sleep`.
fn worth_showing(node: &Node) -> Vec<(Resource, Mode)> {
    let on_shared = node.uses.iter().any(|usage| matches!(usage.resource, Resource::Shared(_)));
    let obvious = |usage: &&weir_ir::graph::ResourceUse| {
        on_shared && usage.mode == Mode::Read && matches!(usage.resource, Resource::World(_))
    };
    let shown = node.uses.iter().filter(|usage| !obvious(usage) && !is_of_barrier(node, usage));
    shown.map(|usage| (usage.resource.clone(), usage.mode)).collect()
}

/// Returns whether a call has this access because its flow calls a barrier, which is in another module.
pub(crate) fn is_of_barrier(node: &Node, usage: &weir_ir::graph::ResourceUse) -> bool {
    let (NodeKind::Call { function, .. }, Resource::World(module)) = (&node.kind, &usage.resource) else {
        return false;
    };
    let is_of_module = function.rsplit_once('.').is_some_and(|(of, _)| of == module.as_str());
    usage.mode == Mode::Read && !is_of_module
}

fn parameters(flow: &Flow<Graph>) -> String {
    let defaults = flow.route.iter().flat_map(|route| &route.parameters).map(|parameter| parameter.default.as_ref());
    let defaults: Vec<_> = defaults.collect();
    let shown = flow.parameters.iter().enumerate().map(|(index, parameter)| {
        let default = defaults.get(index).copied().flatten().map(|value| format!(" = {value}")).unwrap_or_default();
        format!("{}: {}{default}", parameter.name, parameter.ty)
    });
    shown.collect::<Vec<_>>().join(", ")
}
