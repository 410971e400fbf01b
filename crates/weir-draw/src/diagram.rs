//! A diagram: the marks and edges that represent one flow.
//!
//! Marks are in topological order: every edge points forward. A mark that contains others (the body of a `for`, an
//! atomic step) precedes them. Both ends of an edge have the same parent: an edge that would cross the border of a mark
//! ends at that border.

mod reduction;
mod sections;

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Resource, Type};
use weir_ir::graph::{Graph, Node, NodeId, NodeKind};
use weir_ir::program::Flow;

use crate::contraction::{Contraction, EdgeSource};
use crate::drawing::Drawing;
use crate::looks::{self, MarkKind};
use crate::names::{self, GraphScope};

/// Stands between the `fn`s that a call is inlined from, and before its module.
const WITHIN: &str = " › ";

/// The index of a mark.
pub(crate) type MarkId = usize;

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

/// The label of an edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeLabel {
    /// This arm was chosen.
    Choice(String),
    /// A value is passed.
    Value,
    /// Both ends access a resource, in this order.
    Order,
}

/// An edge between two marks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: MarkId,
    pub(crate) to: MarkId,
    pub(crate) label: EdgeLabel,
}

impl Diagram {
    pub(crate) fn of(drawing: &Drawing<'_>, flow: &Flow<Graph>) -> Diagram {
        let scope = GraphScope {
            program: drawing.program,
            graph: &flow.body,
            parameters: flow.parameters.iter().map(|parameter| parameter.name.to_string()).collect(),
            generated: None,
        };
        let mut builder = DiagramBuilder { drawing, flow: &flow.name, diagram: Diagram::default() };
        let entry = DiagramMark { over: parameters(flow), ..mark(MarkKind::Entry, flow.name.to_string(), None) };
        builder.diagram.marks.push(entry);
        let title = if flow.result == Type::Unit { "done" } else { "answer" };
        builder.graph(&scope, 0, None, title);
        let mut diagram = builder.diagram;
        diagram.reduce();
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
}

impl DiagramBuilder<'_> {
    /// Adds the visible nodes of a graph, which starts at the mark `entry`.
    fn graph(&mut self, scope: &GraphScope<'_>, entry: MarkId, parent: Option<MarkId>, yields: &str) {
        let contraction = Contraction::new(scope, self.drawing.detail);
        let sections = self.sections(scope.graph, parent);
        let mut marks = BTreeMap::new();
        for (id, node) in scope.graph.nodes() {
            if contraction.is_seen(id) {
                let outer = node.within.and_then(|step| marks.get(&step).copied()).or(parent);
                let mark = self.node(scope, node, outer, contraction.fallible.contains(&id));
                self.diagram.marks[mark].planned = sections.get(id.0 as usize).copied();
                marks.insert(id, mark);
                self.edges_to(mark, node, &contraction, scope, &marks, entry);
            }
        }
        self.result(scope, &contraction, &marks, entry, parent, yields);
    }

    /// Returns the number of the section of each node, if the graph is that of a flow under a plan.
    fn sections(&self, graph: &Graph, parent: Option<MarkId>) -> Vec<u32> {
        let waits = |function: &str| self.drawing.leaves_thread(function);
        let plan = self.drawing.plan.filter(|_| parent.is_none());
        plan.map_or_else(Vec::new, |plan| sections::section_numbers(plan, self.flow, graph, &waits))
    }

    fn node(&mut self, scope: &GraphScope<'_>, node: &Node, parent: Option<MarkId>, fallible: bool) -> MarkId {
        let mut drawn = DiagramMark { fallible, ..drawn(scope, node, parent) };
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
            self.graph(&inner, entry, Some(id), "");
        }
        id
    }

    /// Returns whether the flow may leave its thread in a call, or in the wait between two tries, which is hidden.
    fn leaves_thread(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Call { function } => self.drawing.leaves_thread(function),
            NodeKind::Loop { body, .. } if names::is_retry(node) => {
                let generated = body.nodes.iter().filter(|inner| inner.origin == node.origin);
                generated.into_iter().any(|inner| self.leaves_thread(inner))
            }
            _ => false,
        }
    }

    fn edges_to(
        &mut self,
        mark: MarkId,
        node: &Node,
        contraction: &Contraction<'_>,
        scope: &GraphScope<'_>,
        marks: &BTreeMap<NodeId, MarkId>,
        entry: MarkId,
    ) {
        let before = self.diagram.edges.len();
        for start in contraction.starts(node) {
            self.link(start, mark, scope, marks);
        }
        for earlier in contraction.ordered_after(node) {
            self.join(marks[&earlier], mark, EdgeLabel::Order);
        }
        for start in contraction.past_ends(node) {
            self.link(start, mark, scope, marks);
        }
        let values = self.diagram.edges[before..].iter().any(|edge| edge.to == mark && edge.label != EdgeLabel::Order);
        if !values && self.diagram.marks[mark].parent == self.diagram.marks[entry].parent {
            self.join(entry, mark, EdgeLabel::Value);
        }
    }

    fn result(
        &mut self,
        scope: &GraphScope<'_>,
        contraction: &Contraction<'_>,
        marks: &BTreeMap<NodeId, MarkId>,
        entry: MarkId,
        parent: Option<MarkId>,
        yields: &str,
    ) {
        if scope.graph.result == weir_ir::graph::Operand::Never {
            return;
        }
        let end = self.diagram.marks.len();
        self.diagram.marks.push(mark(MarkKind::Answer, yields.to_owned(), parent));
        let starts = contraction.source(&scope.graph.result);
        for start in starts.iter().chain(&contraction.past_all_ends()) {
            self.link(*start, end, scope, marks);
        }
        if starts.is_empty() {
            // A flow without an answer is done after its last effect.
            let last = (entry..end).rev().find(|&mark| self.diagram.marks[mark].parent == parent);
            self.join(last.unwrap_or(entry), end, EdgeLabel::Value);
        }
    }

    fn link(&mut self, start: EdgeSource, to: MarkId, scope: &GraphScope<'_>, marks: &BTreeMap<NodeId, MarkId>) {
        match start {
            EdgeSource::Node(node) => self.join(marks[&node], to, EdgeLabel::Value),
            EdgeSource::Arm(switch, arm) => {
                let name = names::shorten(&scope.arm(scope.graph.node(switch), arm));
                self.join(marks[&switch], to, EdgeLabel::Choice(name));
            }
        }
    }

    /// Adds an edge between the outermost marks that contain one end and not the other.
    fn join(&mut self, from: MarkId, to: MarkId, label: EdgeLabel) {
        let holders: BTreeSet<Option<MarkId>> =
            self.line(to).into_iter().map(|mark| self.diagram.marks[mark].parent).collect();
        let Some(start) = self.line(from).into_iter().find(|&mark| holders.contains(&self.diagram.marks[mark].parent))
        else {
            return;
        };
        let level = self.diagram.marks[start].parent;
        let Some(end) = self.line(to).into_iter().find(|&mark| self.diagram.marks[mark].parent == level) else {
            return;
        };
        // A choice inside a mark is no choice of that mark.
        let label = if start == from || label == EdgeLabel::Order { label } else { EdgeLabel::Value };
        if start != end {
            self.diagram.edges.push(Edge { from: start, to: end, label });
        }
    }

    /// Returns the mark and everything that contains it, innermost first.
    fn line(&self, mark: MarkId) -> Vec<MarkId> {
        std::iter::successors(Some(mark), |&mark| self.diagram.marks[mark].parent).collect()
    }
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

fn drawn(scope: &GraphScope<'_>, node: &Node, parent: Option<MarkId>) -> DiagramMark {
    let mut drawn = match &node.kind {
        NodeKind::Call { function } => call(scope, node, function, parent),
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

fn call(scope: &GraphScope<'_>, node: &Node, function: &str, parent: Option<MarkId>) -> DiagramMark {
    let (module, name) = function.rsplit_once('.').unwrap_or(("", function));
    DiagramMark {
        over: within_fns(&node.name, module),
        hint: scope.call(function, &node.inputs),
        uses: worth_showing(node),
        ..mark(MarkKind::Call, name.to_owned(), parent)
    }
}

/// Returns the module of a call behind the `fn`s that it is inlined from (Flux's abstract nodes), as far as there is room;
/// the innermost ones stay. `name` is the path of the call, such as `login/checked/text.length`.
fn within_fns(name: &str, module: &str) -> String {
    let mut shown = module.to_owned();
    for function in name.split('/').rev().skip(1) {
        let longer = format!("{function}{WITHIN}{shown}");
        if longer.chars().count() > names::LENGTH_MAX {
            return format!("…{WITHIN}{shown}");
        }
        shown = longer;
    }
    shown
}

/// Returns the resources of a call. Omits a read of the library's own resource by a call on a shared value, which is
/// obvious.
fn worth_showing(node: &Node) -> Vec<(Resource, Mode)> {
    let on_shared = node.uses.iter().any(|usage| matches!(usage.resource, Resource::Shared(_)));
    let obvious = |usage: &&weir_ir::graph::ResourceUse| {
        on_shared && usage.mode == Mode::Read && matches!(usage.resource, Resource::World(_))
    };
    let shown = node.uses.iter().filter(|usage| !obvious(usage));
    shown.map(|usage| (usage.resource.clone(), usage.mode)).collect()
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
