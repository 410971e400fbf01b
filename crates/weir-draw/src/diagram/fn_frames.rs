//! Frames of `fn`s: the nodes of an inlined call become the contents of a frame, or are folded into one mark (Flux's
//! abstract nodes).
//!
//! The nodes of a graph are in topological order, and a frame holds a run of neighbouring ones, so that edges between frames
//! point forward. If a pass has moved nodes, a call may have several frames. A frame with one node would be noise: such a
//! node shows the name of the `fn` itself.

use std::collections::{BTreeMap, BTreeSet};

use weir_ir::graph::{InlinedCallId, Node, NodeId, NodeKind};

use super::{DiagramBuilder, DiagramMark, DrawnBody, MarkId, WITHIN, mark, worth_showing};
use crate::contraction::Contraction;
use crate::drawing::DetailLevel;
use crate::looks::MarkKind;
use crate::names::{self, GraphScope};

/// The number of nodes from which on a `fn` gets a frame.
const NODES_MIN: usize = 2;

/// The frames of a graph.
#[derive(Default)]
pub(super) struct FnFrames {
    frames: Vec<FnFrame>,
    /// The frames around each node, outermost first.
    around: BTreeMap<NodeId, Vec<usize>>,
}

/// The frame of a `fn`.
pub(super) struct FnFrame {
    /// The inlined calls that it stands for: those of `fn`s that only call the next one, and the innermost.
    calls: Vec<InlinedCallId>,
    nodes: BTreeSet<NodeId>,
    /// The atomic step around the frame.
    step: Option<NodeId>,
    /// The frame around it.
    outer: Option<usize>,
    /// Its mark, when its first node has been reached.
    pub(super) mark: Option<MarkId>,
}

/// The innermost thing that holds a node or a frame.
#[derive(Clone, Copy)]
pub(super) enum Container {
    /// The whole body.
    Body,
    /// A frame, by its index.
    Frame(usize),
    /// An atomic step.
    Step(NodeId),
}

impl FnFrames {
    pub(super) fn of(scope: &GraphScope<'_>, contraction: &Contraction<'_>, detail: DetailLevel) -> FnFrames {
        let around_body = calls_around(scope, scope.inlined_call);
        let calls = |node: &Node| {
            let calls = calls_around(scope, node.origin.inlined_call);
            calls.strip_prefix(&*around_body).map(<[_]>::to_vec).unwrap_or_default()
        };
        let seen = scope.graph.nodes().filter(|(id, _)| contraction.is_seen(*id));
        let nodes: Vec<(NodeId, Vec<InlinedCallId>)> = seen.map(|(id, node)| (id, calls(node))).collect();
        let mut found = FnFrames::default();
        match detail {
            DetailLevel::FoldedFns => found.find(scope, &nodes, (0, None), 1),
            DetailLevel::Folded | DetailLevel::Everything => found.find(scope, &nodes, (0, None), NODES_MIN),
        }
        for (index, frame) in found.frames.iter().enumerate() {
            for node in &frame.nodes {
                found.around.entry(*node).or_default().push(index);
            }
        }
        found
    }

    /// Returns the frames around a node, outermost first.
    pub(super) fn around(&self, node: NodeId) -> &[usize] {
        self.around.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(super) fn frame(&mut self, index: usize) -> &mut FnFrame {
        &mut self.frames[index]
    }

    /// Returns the mark of a frame.
    pub(super) fn mark(&self, index: usize) -> Option<MarkId> {
        self.frames[index].mark
    }

    /// Returns the marks of all frames.
    pub(super) fn marks(&self) -> impl Iterator<Item = MarkId> {
        self.frames.iter().filter_map(|frame| frame.mark)
    }

    /// Returns the mark of the outermost frame around a node that is not around the code of `call`.
    pub(super) fn outermost_beyond(
        &self,
        scope: &GraphScope<'_>,
        node: NodeId,
        call: Option<InlinedCallId>,
    ) -> Option<MarkId> {
        let around_call = calls_around(scope, call);
        let frames = self.around(node).iter().map(|&index| &self.frames[index]);
        let mut beyond = frames.filter(|frame| frame.calls.iter().any(|of| !around_call.contains(of)));
        beyond.find_map(|frame| frame.mark)
    }

    /// Returns the names of the `fn`s whose frames, or bodies in them, contain a node.
    pub(super) fn fns_around<'a>(&self, scope: &GraphScope<'a>, node: NodeId) -> Vec<&'a str> {
        let of_body = calls_around(scope, scope.inlined_call);
        let framed = self.around(node).iter().flat_map(|&index| &self.frames[index].calls);
        of_body.iter().chain(framed).map(|&call| function(scope, call)).collect()
    }

    /// Returns the names of the `fn`s that a frame stands for.
    fn title(&self, scope: &GraphScope<'_>, index: usize) -> String {
        let names = self.frames[index].calls.iter().map(|&call| function(scope, call));
        names.collect::<Vec<_>>().join(WITHIN)
    }

    /// Returns what holds a node.
    pub(super) fn holder(&self, id: NodeId, node: &Node) -> Container {
        self.inner(self.around(id).last().copied(), node.within)
    }

    /// Returns what holds a frame.
    pub(super) fn holder_of_frame(&self, index: usize) -> Container {
        self.inner(self.frames[index].outer, self.frames[index].step)
    }

    /// Returns the inner one of a frame and an atomic step around the same thing.
    fn inner(&self, frame: Option<usize>, step: Option<NodeId>) -> Container {
        match (frame, step) {
            (Some(frame), Some(step)) if self.frames[frame].nodes.contains(&step) => Container::Step(step),
            (Some(frame), _) => Container::Frame(frame),
            (None, Some(step)) => Container::Step(step),
            (None, None) => Container::Body,
        }
    }

    /// Finds the runs of nodes that get frames, outer ones first: those of at least `least` nodes with the same inlined call at
    /// this depth. All nodes of a run are in the same atomic step outside of it.
    fn find(
        &mut self,
        scope: &GraphScope<'_>,
        nodes: &[(NodeId, Vec<InlinedCallId>)],
        (depth, outer): (usize, Option<usize>),
        least: usize,
    ) {
        let mut begin = 0;
        while begin < nodes.len() {
            let call = nodes[begin].1.get(depth);
            let mut members = BTreeSet::from([nodes[begin].0]);
            let step = step_outside(scope, nodes[begin].0, &members);
            let mut end = begin + 1;
            while end < nodes.len()
                && nodes[end].1.get(depth) == call
                && step_outside(scope, nodes[end].0, &members) == step
            {
                members.insert(nodes[end].0);
                end += 1;
            }
            let run = &nodes[begin..end];
            begin = end;
            let has_body = |(node, _): &(NodeId, _)| !scope.graph.node(*node).bodies().is_empty();
            if call.is_none() || (run.len() < least && !run.iter().any(has_body)) {
                continue;
            }
            let same =
                |at: &usize| run[0].1.get(*at).is_some() && run.iter().all(|of| of.1.get(*at) == run[0].1.get(*at));
            let inner = (depth + 1..).find(|at| !same(at)).unwrap_or(depth + 1);
            let calls = run[0].1[depth..inner].to_vec();
            self.frames.push(FnFrame { calls, nodes: members, step, outer, mark: None });
            self.find(scope, run, (inner, Some(self.frames.len() - 1)), least);
        }
    }
}

/// Returns the innermost atomic step around a node that is not among these.
fn step_outside(scope: &GraphScope<'_>, node: NodeId, members: &BTreeSet<NodeId>) -> Option<NodeId> {
    let steps = std::iter::successors(scope.graph.node(node).within, |&step| scope.graph.node(step).within);
    steps.into_iter().find(|step| !members.contains(step))
}

/// Returns the inlined calls around an operation of this call, and the call itself, outermost first.
fn calls_around(scope: &GraphScope<'_>, call: Option<InlinedCallId>) -> Vec<InlinedCallId> {
    let origin = weir_ir::graph::Origin { inlined_call: call, ..Default::default() };
    let mut calls: Vec<InlinedCallId> = scope.program.inlined_calls_around(origin).map(|(id, _)| id).collect();
    calls.reverse();
    calls
}

/// Returns the name of the `fn` of an inlined call.
fn function<'a>(scope: &GraphScope<'a>, call: InlinedCallId) -> &'a str {
    scope.program.inlined_calls.get(call.0 as usize).map_or("", |call| &call.function)
}

/// Returns the mark of a frame around the nodes of a `fn`.
pub(super) fn fn_frame(body: &DrawnBody<'_, '_>, index: usize, parent: Option<MarkId>) -> DiagramMark {
    mark(MarkKind::Fn, names::shorten(&body.frames.title(body.scope, index)), parent)
}

impl DiagramBuilder<'_> {
    /// Returns the mark that stands for all nodes of a `fn`.
    pub(super) fn folded_fn(&self, body: &DrawnBody<'_, '_>, index: usize, parent: Option<MarkId>) -> DiagramMark {
        let title = body.frames.title(body.scope, index);
        let nodes = || body.frames.frames[index].nodes.iter().map(|&id| body.scope.graph.node(id));
        let mut uses = Vec::new();
        for of in nodes().flat_map(worth_showing) {
            if !uses.contains(&of) {
                uses.push(of);
            }
        }
        DiagramMark {
            over: "fn".to_owned(),
            uses,
            leaves: nodes().any(|node| self.leaves_thread(node)),
            fallible: nodes().any(|node| matches!(node.kind, NodeKind::Fail)),
            hint: title.clone(),
            ..mark(MarkKind::Call, names::shorten(&title), parent)
        }
    }
}
