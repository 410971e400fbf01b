//! A diagram: marks and edges, as a reader should see them.
//!
//! Marks lie in one list, in an order in which every edge points forward; a mark with others inside it (the body of a
//! `for`, an atomic step) comes before them. Both ends of an edge have the same parent: an edge that crosses the border
//! of a mark is drawn to the border.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Resource, Type};
use weir_ir::graph::{Graph, Node, NodeId, NodeKind};
use weir_ir::plan::{Plan, REST};
use weir_ir::program::Flow;

use crate::Drawing;
use crate::contraction::{Contraction, EdgeSource};
use crate::names::{self, GraphScope};

/// The index of a mark.
pub(crate) type MarkId = usize;

/// What a reader should see of one flow.
#[derive(Default)]
pub(crate) struct Diagram {
    pub(crate) marks: Vec<DiagramMark>,
    pub(crate) edges: Vec<Edge>,
    /// The names of the plan's sections, by their numbers; empty without a plan.
    pub(crate) sections: Vec<String>,
}

/// What a mark is, and so how it kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// Where the flow, or the body, begins.
    Entry,
    /// A call of a host function.
    Call,
    /// Plumbing.
    Prim,
    /// A switch.
    Fork,
    /// An end with an answer.
    Answer,
    /// An end with a failure.
    Failure,
    /// A body that is run for each element or round.
    Repeat,
    /// An atomic step.
    Step,
}

/// Something with a place in the picture.
#[derive(Debug)]
pub(crate) struct DiagramMark {
    pub(crate) kind: MarkKind,
    /// Small, above the title: the module of a call, the parameters of an entry.
    pub(crate) over: String,
    pub(crate) title: String,
    /// Shown on demand.
    pub(crate) hint: String,
    pub(crate) uses: Vec<(Resource, Mode)>,
    pub(crate) parent: Option<MarkId>,
    /// Whether its failure ends the flow.
    pub(crate) fallible: bool,
    /// Whether the flow may leave its thread here.
    pub(crate) leaves: bool,
    /// Its section: of a plan, the section's number, where 0 is the rest; else how many times the flow may have left its
    /// thread before.
    pub(crate) section: u32,
    /// Whether the plan names it.
    pub(crate) planned: Option<u32>,
}

/// What an edge label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeLabel {
    /// This arm was chosen.
    Choice(String),
    /// A value is passed.
    Value,
    /// Both touch a resource, in this order.
    Order,
}

/// A line from one mark to another.
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
        };
        let mut builder = DiagramBuilder { drawing, flow: &flow.name, diagram: Diagram::default() };
        let entry = DiagramMark { over: parameters(flow), ..mark(MarkKind::Entry, flow.name.to_string(), None) };
        builder.diagram.marks.push(entry);
        let title = if flow.result == Type::Unit { "done" } else { "answer" };
        builder.graph(&scope, 0, None, title);
        let mut diagram = builder.diagram;
        diagram.reduce();
        match drawing.plan.filter(|plan| !plan.sections.is_empty()) {
            Some(plan) => diagram.cut_as_planned(plan),
            None => diagram.cut(),
        }
        diagram
    }

    /// The marks inside this one, or the outermost ones.
    pub(crate) fn inside(&self, parent: Option<MarkId>) -> Vec<MarkId> {
        (0..self.marks.len()).filter(|&mark| self.marks[mark].parent == parent).collect()
    }

    /// Drops what follows from other edges: a second path, of the same arm where the edge is a choice.
    fn reduce(&mut self) {
        self.edges.sort();
        self.edges.dedup();
        let below = self.below();
        let outgoing = self.outgoing();
        let follows = |edge: &Edge| {
            outgoing[edge.from].iter().map(|&other| &self.edges[other]).any(|other| {
                let same_start = !matches!(edge.label, EdgeLabel::Choice(_)) || other.label == edge.label;
                let stronger =
                    other.to == edge.to && other.label < edge.label && !matches!(edge.label, EdgeLabel::Choice(_));
                stronger || (same_start && other.to != edge.to && below[other.to].contains(edge.to))
            })
        };
        let kept: Vec<Edge> = self.edges.iter().filter(|edge| !follows(edge)).cloned().collect();
        self.edges = kept;
    }

    fn outgoing(&self) -> Vec<Vec<usize>> {
        let mut outgoing = vec![Vec::new(); self.marks.len()];
        self.edges.iter().enumerate().for_each(|(index, edge)| outgoing[edge.from].push(index));
        outgoing
    }

    /// For each mark, all that can be reached from it.
    fn below(&self) -> Vec<Bits> {
        let mut below = vec![Bits::default(); self.marks.len()];
        for edge in self.edges.iter().rev() {
            // Sorted by `from`, and every edge points forward: what is below `to` is known.
            let reached = below[edge.to].clone();
            below[edge.from].add(edge.to);
            below[edge.from].add_all(&reached);
        }
        below
    }

    /// Gives every mark the section that the plan names it into; what does no work goes with what is before it.
    fn cut_as_planned(&mut self, plan: &Plan) {
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

    /// Counts the sections.
    fn cut(&mut self) {
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

struct DiagramBuilder<'a> {
    drawing: &'a Drawing<'a>,
    /// The flow's name, which a plan may say.
    flow: &'a str,
    diagram: Diagram,
}

impl DiagramBuilder<'_> {
    /// Adds the seen nodes of a graph, which begins at the mark `entry`.
    fn graph(&mut self, scope: &GraphScope<'_>, entry: MarkId, parent: Option<MarkId>, yields: &str) {
        let contraction = Contraction::new(scope, self.drawing.detail);
        let mut marks = BTreeMap::new();
        for (id, node) in scope.graph.nodes() {
            if contraction.is_seen(id) {
                let outer = node.within.and_then(|step| marks.get(&step).copied()).or(parent);
                let mark = self.node(scope, node, outer, contraction.fallible.contains(&id));
                marks.insert(id, mark);
                self.edges_to(mark, node, &contraction, scope, &marks, entry);
            }
        }
        self.result(scope, &contraction, &marks, entry, parent, yields);
    }

    fn node(&mut self, scope: &GraphScope<'_>, node: &Node, parent: Option<MarkId>, fallible: bool) -> MarkId {
        let mut drawn = DiagramMark { fallible, ..drawn(scope, node, parent) };
        let named =
            self.drawing.plan.filter(|_| parent.is_none()).and_then(|plan| plan.section_of(self.flow, &node.name));
        drawn.planned = named.and_then(|index| u32::try_from(index + 1).ok());
        if let NodeKind::Call { function } = &node.kind {
            drawn.leaves = self.drawing.leaves_thread(function);
        }
        let id = self.diagram.marks.len();
        self.diagram.marks.push(drawn);
        for inner in scope.bodies(node) {
            let title = match node.cancels_bodies() {
                true => "begin".to_owned(),
                false => inner.parameters.first().cloned().unwrap_or_default(),
            };
            let entry = self.diagram.marks.len();
            self.diagram.marks.push(mark(MarkKind::Entry, title, Some(id)));
            self.graph(&inner, entry, Some(id), "");
        }
        id
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
        for start in &starts {
            self.link(*start, end, scope, marks);
        }
        if starts.is_empty() {
            // Nothing is answered: it is done when its last effect is.
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

    /// An edge between the outermost marks that hold one end and not the other.
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
        // The arm that was chosen within a mark is no choice of the mark.
        let label = if start == from || label == EdgeLabel::Order { label } else { EdgeLabel::Value };
        if start != end {
            self.diagram.edges.push(Edge { from: start, to: end, label });
        }
    }

    /// The mark and all that hold it, innermost first.
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
    let plain = |kind, title: String| mark(kind, title, parent);
    let input = |index: usize| node.inputs.get(index).map(|input| scope.describe(input)).unwrap_or_default();
    let mut drawn = match &node.kind {
        NodeKind::Call { function } => call(scope, node, function, parent),
        NodeKind::Prim(prim) => plain(MarkKind::Prim, prim.name().to_owned()),
        NodeKind::Select { .. } => plain(MarkKind::Prim, "select".into()),
        NodeKind::Switch { .. } => plain(MarkKind::Fork, subject(scope, node)),
        NodeKind::Map { .. } => plain(MarkKind::Repeat, format!("for each in {}", input(0))),
        NodeKind::Fold { .. } => plain(MarkKind::Repeat, format!("fold {}", input(0))),
        NodeKind::Loop { at_most, .. } => plain(MarkKind::Repeat, format!("loop, at most {at_most} times")),
        NodeKind::Within { .. } => plain(MarkKind::Repeat, format!("within {}", input(0))),
        NodeKind::Race { .. } => plain(MarkKind::Repeat, "race".into()),
        NodeKind::Acquire { constraints } => {
            let held: Vec<String> = constraints.iter().map(|held| names::resource(&held.resource).to_owned()).collect();
            plain(MarkKind::Step, format!("atomic {}", held.join(", ")))
        }
        NodeKind::Release { .. } => plain(MarkKind::Prim, "release".into()),
        NodeKind::Return => plain(MarkKind::Answer, "answer".into()),
        NodeKind::Fail => plain(MarkKind::Failure, "fails".into()),
    };
    if drawn.hint.is_empty() {
        drawn.hint = node.name.to_string();
    }
    drawn
}

fn call(scope: &GraphScope<'_>, node: &Node, function: &str, parent: Option<MarkId>) -> DiagramMark {
    let (module, name) = function.rsplit_once('.').unwrap_or(("", function));
    DiagramMark {
        over: module.to_owned(),
        hint: scope.call(function, &node.inputs),
        uses: worth_showing(node),
        ..mark(MarkKind::Call, name.to_owned(), parent)
    }
}

/// The resources of a call. That a call on a shared value also kinds at its library's part of the world goes without saying.
fn worth_showing(node: &Node) -> Vec<(Resource, Mode)> {
    let on_shared = node.uses.iter().any(|usage| matches!(usage.resource, Resource::Shared(_)));
    let obvious = |usage: &&weir_ir::graph::ResourceUse| {
        on_shared && usage.mode == Mode::Read && matches!(usage.resource, Resource::World(_))
    };
    let shown = node.uses.iter().filter(|usage| !obvious(usage));
    shown.map(|usage| (usage.resource.clone(), usage.mode)).collect()
}

/// What a fork asks; nothing where it takes apart what a call just gave.
fn subject(scope: &GraphScope<'_>, node: &Node) -> String {
    let Some(subject) = node.inputs.first() else { return String::new() };
    let described = scope.describe(subject);
    match subject {
        weir_ir::graph::Operand::Port(id, _) if matches!(scope.graph.node(*id).kind, NodeKind::Call { .. }) => {
            String::new()
        }
        _ => described,
    }
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

/// A set of marks.
#[derive(Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn add(&mut self, index: usize) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn add_all(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}
