//! The moment at which each node of a graph begins and ends, counted in rounds of calls.

use std::collections::BTreeSet;

use weir_host::{Library, Mode, Resource, Text};

use super::ending_arms::{EndingArms, are_exclusive, before_skipped};
use super::executed_body::ExecutedBody;
use super::repeated::Repetition;
use super::statements::{
    expected_read, follows_statements, has_commits, has_statements, is_begin, is_commit, is_placed, is_settle,
    table_of, writes_table, writes_tables,
};
use super::transactions::{RunningTransaction, awaits_change};
use super::{Ahead, IoCall, IoWait, TurnReason, WaitReason};
use crate::graph::{Graph, Node, NodeId, NodeKind, Operand};

/// Returns the calls of a flow, in the order of its text.
pub(super) fn calls(graph: &Graph, library: &Library, awaited: &BTreeSet<Text>) -> Vec<IoCall> {
    let mut moments = Moments {
        library,
        awaited,
        settles: has_commits(graph),
        has_unsettled: false,
        transaction: RunningTransaction::default(),
        calls: Vec::new(),
        graphs: 0,
    };
    let body = ExecutedBody {
        start: Moment::default(),
        parameters: vec![Moment::default(); graph.parameters.len()],
        captures: Vec::new(),
        own_parameters: graph.parameters.len(),
        repetition: Repetition::default(),
        arms: Vec::new(),
    };
    moments.graph(graph, &body);
    moments.calls
}

/// A moment in the execution of a flow: after this many rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) round: u32,
    /// The last call before it, and the reason for which it comes after that call.
    wait: Option<IoWait>,
}

impl Moment {
    fn or_later(self, other: Moment) -> Moment {
        if other.round > self.round { other } else { self }
    }

    /// Returns the same moment with another reason.
    fn because(mut self, why: impl FnOnce(WaitReason) -> WaitReason) -> Moment {
        self.wait = self.wait.map(|wait| IoWait { why: why(wait.why), ..wait });
        self
    }
}

/// The moments of a node.
#[derive(Clone)]
struct NodeMoments {
    begins: Moment,
    ends: Moment,
    /// The moment at which all that its value is computed from is there.
    value: Moment,
}

/// The nodes of a graph that come before another.
struct Seen<'a> {
    moments: &'a [NodeMoments],
    ending: &'a EndingArms,
}

impl Seen<'_> {
    fn of(&self, id: NodeId) -> &NodeMoments {
        &self.moments[id.0 as usize]
    }
}

struct Moments<'a> {
    library: &'a Library,
    /// True if the flow waits for the commit of what it writes.
    settles: bool,
    /// The tables whose changes transactions wait for.
    awaited: &'a BTreeSet<Text>,
    /// True if the flow has written something, or committed a transaction, that may not be durable.
    has_unsettled: bool,
    transaction: RunningTransaction,
    calls: Vec<IoCall>,
    /// The number of graphs so far.
    graphs: u32,
}

impl Moments<'_> {
    /// Adds the calls of a graph; returns its end.
    fn graph(&mut self, graph: &Graph, body: &ExecutedBody) -> Moment {
        let number = self.graphs;
        self.graphs += 1;
        let mut moments: Vec<NodeMoments> = Vec::with_capacity(graph.nodes.len());
        let ending = EndingArms::of(graph);
        let mut end = body.start.clone();
        let mut statements: Vec<NodeId> = Vec::new();
        for (id, node) in graph.nodes() {
            let value = value(node, body, &moments);
            let seen = Seen { moments: &moments, ending: &ending };
            let mut begins = self.beginning(graph, (id, node), value.clone(), (body, &seen));
            if follows_statements(graph, node) {
                let skips = |earlier| ending.skipped_for(graph, earlier, id).is_some();
                let comes_behind = |earlier: &&NodeId| !skips(**earlier) && !are_exclusive(graph, **earlier, id);
                for earlier in statements.iter().rev().filter(comes_behind) {
                    begins = begins.or_later(seen.of(*earlier).ends.clone().because(|_| WaitReason::Statement));
                }
            }
            let reads_or_writes = table_of(graph, node).is_some();
            let is_statement = reads_or_writes && !self.is_gathered(node);
            if is_begin(node) {
                self.transaction = RunningTransaction::default();
            }
            if let Some(read) = expected_read(node) {
                self.transaction.ask(read, begins.clone());
            }
            let ends = match &node.kind {
                NodeKind::Call { function } if is_settle(function) && !self.settles_here(graph, (&ending, node)) => {
                    begins.clone()
                }
                NodeKind::Call { function } if is_statement || self.waits(function) => {
                    let ends_flow = ending.contain(graph, node);
                    self.call(node, function, &begins, (graph, number, body, ends_flow))
                }
                kind if kind.bodies().is_empty() => begins.clone(),
                _ => self.bodies(graph, node, &begins, (number, body, &moments)),
            };
            end = end.or_later(ends.clone());
            if is_statement {
                statements.push(id);
            }
            self.has_unsettled |= writes_table(graph, node) || is_commit(node);
            // The value of a call is there when those before it have ended that it comes after.
            let is_call = matches!(node.kind, NodeKind::Call { .. });
            let value = if is_call || ends.round > begins.round { ends.clone() } else { value };
            moments.push(NodeMoments { begins, ends, value });
        }
        end
    }

    /// Returns the moment at which a node can begin whose inputs are there at `value`.
    fn beginning(
        &self,
        graph: &Graph,
        (id, node): (NodeId, &Node),
        value: Moment,
        (body, seen): (&ExecutedBody, &Seen<'_>),
    ) -> Moment {
        let of = |id: NodeId| seen.of(id);
        let mut begins = value;
        if let Some(control) = node.control {
            let at = graph.node(control.switch).origin;
            let chosen = of(control.switch).ends.clone().because(|why| match why {
                branch @ WaitReason::Branch(_) => branch,
                _ => WaitReason::Branch(at),
            });
            begins = begins.or_later(chosen);
        }
        if let Some(acquire) = node.within {
            begins = begins.or_later(of(acquire).ends.clone());
        }
        if let NodeKind::Acquire { .. } = node.kind {
            // The reason of the body around it is not that of the step.
            begins = begins.or_later(body.start.clone());
            let needed = graph.needed_from_outside(id);
            let is_before = |outside: &NodeId| !node.after.contains(outside) && !are_exclusive(graph, *outside, id);
            for outside in needed.into_iter().filter(is_before) {
                let why = || Box::new(self.needed_inside(graph, (id, outside), (body, seen)));
                let decides = seen.ending.skipped_for(graph, outside, id);
                let ends = of(decides.unwrap_or(outside)).ends.clone();
                begins = begins.or_later(ends.because(|_| WaitReason::Atomic { at: node.origin, why: why() }));
            }
        }
        if let NodeKind::Release { acquire } = node.kind {
            for inner in graph.nodes_within(acquire).take_while(|inner| *inner < id) {
                let skipped = seen.ending.skipped_for(graph, inner, id);
                begins = begins.or_later(of(skipped.unwrap_or(inner)).ends.clone());
            }
        }
        for earlier in &node.after {
            let ends = seen.ending.skipped_for(graph, *earlier, id);
            begins = begins.or_later(match ends {
                _ if are_exclusive(graph, *earlier, id) => {
                    let before = before_skipped(graph, *earlier, id).into_iter();
                    before.fold(Moment::default(), |all, needed| all.or_later(of(needed).ends.clone()))
                }
                Some(decides) => of(decides).ends.clone().because(|_| end(node, graph.node(*earlier))),
                None => self.after(graph, node, (*earlier, of(*earlier)), body),
            });
        }
        begins.or_later(body.start.clone())
    }

    /// Returns the reason for which a node of an atomic step comes after a node outside.
    fn needed_inside(
        &self,
        graph: &Graph,
        (acquire, outside): (NodeId, NodeId),
        (body, seen): (&ExecutedBody, &Seen<'_>),
    ) -> WaitReason {
        let needs_outside = |node: &&Node| node.waits_for().any(|needed| needed == outside);
        let inner = graph.nodes_within(acquire).map(|id| graph.node(id)).find(needs_outside);
        let behind = || graph.nodes.iter().skip(acquire.0 as usize).find(needs_outside);
        let Some(inner) = inner.or_else(behind) else { return WaitReason::Argument };
        if inner.after.contains(&outside) {
            let after = self.after(graph, inner, (outside, seen.of(outside)), body);
            return after.wait.map_or(WaitReason::Argument, |wait| wait.why);
        }
        match inner.control {
            Some(control) if control.switch == outside => WaitReason::Branch(graph.node(outside).origin),
            _ => WaitReason::Argument,
        }
    }

    /// Returns the moment at which a node can begin for an earlier one that it comes after.
    fn after(&self, graph: &Graph, node: &Node, (id, earlier): (NodeId, &NodeMoments), body: &ExecutedBody) -> Moment {
        let other = graph.node(id);
        if !body.repetition.may_be_given_up && self.is_placed_after(node, other) {
            return earlier.begins.clone();
        }
        let why = match common_resource(graph, node, other) {
            _ if self.is_barrier(other) => WaitReason::Barrier,
            Some(read @ WaitReason::Order { earlier_writes: false, later_writes: false, .. }) => {
                if has_statements(graph, node) && has_statements(graph, other) { WaitReason::Statement } else { read }
            }
            Some(order) => order,
            None if other.may_end() => end(node, other),
            None if body.repetition.may_be_given_up => WaitReason::GivenUp,
            None => WaitReason::Statement,
        };
        earlier.ends.clone().because(|_| why)
    }

    /// Adds the calls of a node's bodies; returns their end.
    fn bodies(
        &mut self,
        graph: &Graph,
        node: &Node,
        begins: &Moment,
        (number, outer, moments): (u32, &ExecutedBody, &[NodeMoments]),
    ) -> Moment {
        let (word, at) = (node.kind.word(), node.origin);
        let own = node.kind.own();
        let (own_inputs, captured) = node.inputs.split_at(own.inputs.min(node.inputs.len()));
        let of_own =
            own_inputs.iter().fold(Moment::default(), |all, input| all.or_later(of_operand(input, outer, moments)));
        let mut captured = captured.iter();
        let mut end = begins.clone();
        let repeats = matches!(node.kind, NodeKind::Map { .. } | NodeKind::Fold { .. } | NodeKind::Loop { .. });
        for body in node.bodies() {
            if repeats {
                self.transaction.repeat(body, self.awaited);
                self.has_unsettled |= writes_tables(body);
            }
            let count = body.parameters.len().saturating_sub(own.parameters);
            let captures: Vec<&Operand> = captured.by_ref().take(count).collect();
            let mut parameters = vec![of_own.clone(); own.parameters];
            parameters.extend(captures.iter().map(|capture| of_operand(capture, outer, moments)));
            let inner = ExecutedBody {
                start: begins.clone().because(|why| match why {
                    WaitReason::Branch(_) | WaitReason::Atomic { .. } | WaitReason::Enclosing { .. } => why,
                    why => WaitReason::Enclosing { word, at, why: Box::new(why) },
                }),
                parameters,
                captures: captures.iter().map(|capture| outer.common(graph, number, capture)).collect(),
                own_parameters: own.parameters,
                repetition: outer.repetition.inside(graph, node, self.library),
                arms: outer.arms_around(graph, number, node),
            };
            end = end.or_later(self.graph(body, &inner).because(|_| WaitReason::Argument));
        }
        end
    }

    fn call(
        &mut self,
        node: &Node,
        function: &Text,
        begins: &Moment,
        (graph, number, body, ends_flow): (&Graph, u32, &ExecutedBody, bool),
    ) -> Moment {
        // A node that ends the flow behind it is executed once.
        let once = Repetition::default();
        let repetition = if ends_flow { &once } else { &body.repetition };
        let asked_early = self.transaction.asked(&node.name, begins);
        let asked = asked_early.as_ref().unwrap_or(begins);
        let is_placed = is_placed(function) && !awaits_change(graph, node, self.awaited);
        let ahead = match () {
            () if is_placed && self.transaction.has_begun() => Some(Ahead::Placed),
            () if is_placed && repetition.for_each => Some(Ahead::PlacedBehindFirst),
            () if asked_early.is_some() => Some(Ahead::AskedEarly),
            () => None,
        };
        let round = asked.round + 1;
        let signature = self.library.function(function).map(|function| &function.signature);
        let batch = signature.and_then(|signature| signature.batch);
        let others =
            node.inputs.iter().enumerate().filter(|(index, _)| batch.is_some_and(|batch| batch.gathered != *index));
        let table = table_of(graph, node).cloned();
        let of_statement = repetition.for_each && batch.is_none() && table.is_some();
        let of_statement = of_statement.then_some(TurnReason::Statements);
        let in_turn = repetition.in_turn_of(graph, node, self.library).or(of_statement);
        self.calls.push(IoCall {
            function: function.clone(),
            table,
            origin: node.origin,
            round,
            batch_max: batch.map(|batch| batch.at_most),
            common: others.map(|(_, input)| body.common(graph, number, input)).collect(),
            for_each: repetition.for_each,
            in_turn: in_turn.filter(|_| ahead.is_none()),
            ahead,
            wait: asked.wait.clone(),
            arms: body.arms_around(graph, number, node),
        });
        if ahead == Some(Ahead::Placed) {
            return begins.clone();
        }
        self.transaction.answered(graph, node);
        let answered = Moment { round, wait: Some(IoWait { call: self.calls.len() - 1, why: WaitReason::Argument }) };
        answered.or_later(begins.clone())
    }

    /// Returns true if a node that waits for the commit has something to wait for.
    fn settles_here(&mut self, graph: &Graph, (ending, node): (&EndingArms, &Node)) -> bool {
        let has_unsettled = self.has_unsettled;
        if !ending.contain(graph, node) {
            self.has_unsettled = false;
        }
        has_unsettled
    }

    fn waits(&self, function: &str) -> bool {
        if is_settle(function) {
            return self.settles;
        }
        let signature = self.library.function(function).map(|function| &function.signature);
        signature.is_some_and(|signature| signature.effects.waits || signature.effects.blocking)
    }

    /// Returns true if a node is a call that everything behind it in the text waits for.
    fn is_barrier(&self, node: &Node) -> bool {
        let NodeKind::Call { function } = &node.kind else { return false };
        self.library.function(function).is_some_and(|function| function.signature.effects.barrier)
    }

    /// Returns true if a node is a call of a function that answers many calls at once.
    fn is_gathered(&self, node: &Node) -> bool {
        let NodeKind::Call { function } = &node.kind else { return false };
        self.library.function(function).is_some_and(|function| function.signature.batch.is_some())
    }

    /// Returns true if a node needs an earlier one only to be placed, because both call the same batched function.
    fn is_placed_after(&self, node: &Node, earlier: &Node) -> bool {
        match (&node.kind, &earlier.kind) {
            (NodeKind::Call { function: one }, NodeKind::Call { function: other }) => {
                one == other && self.is_gathered(node)
            }
            _ => false,
        }
    }
}

/// Returns the reason for which a node waits for an earlier one at which the flow may end.
fn end(node: &Node, earlier: &Node) -> WaitReason {
    if node.writes() { WaitReason::End(earlier.origin) } else { WaitReason::Return(earlier.origin) }
}

/// Returns the moment at which the inputs of a node are there.
fn value(node: &Node, body: &ExecutedBody, moments: &[NodeMoments]) -> Moment {
    let named = node.kind.named_node().map(|id| moments[id.0 as usize].value.clone());
    let inputs = node.inputs.iter().map(|input| of_operand(input, body, moments));
    inputs.chain(named).fold(Moment::default(), Moment::or_later)
}

/// Returns the moment at which the value of an operand is there.
fn of_operand(operand: &Operand, body: &ExecutedBody, moments: &[NodeMoments]) -> Moment {
    match operand {
        Operand::Port(id, _) => moments[id.0 as usize].value.clone(),
        Operand::Parameter(index) => body.parameters.get(*index as usize).cloned().unwrap_or_default(),
        Operand::Constant(_) | Operand::Shared(_) | Operand::Never => Moment::default(),
    }
}

/// Returns the order of a resource that both nodes use: of one that one of them changes, or else of a shared value.
fn common_resource(graph: &Graph, node: &Node, other: &Node) -> Option<WaitReason> {
    let earlier = touched(graph, other);
    let orders = touched(graph, node).into_iter().filter_map(|(resource, mode)| {
        let modes = earlier.iter().filter(|(other, _)| *other == resource).map(|(_, mode)| *mode);
        let (later_writes, earlier_writes) = (mode == Mode::Write, modes.clone().any(|mode| mode == Mode::Write));
        let keeps_order = later_writes || earlier_writes || matches!(resource, Resource::Shared(_));
        let is_common = modes.count() > 0 && keeps_order;
        is_common.then(|| WaitReason::Order { resource: resource.clone(), earlier_writes, later_writes })
    });
    let is_of_reads =
        |order: &WaitReason| matches!(order, WaitReason::Order { earlier_writes: false, later_writes: false, .. });
    orders.min_by_key(is_of_reads)
}

/// Returns the resources that a node uses or that an atomic step holds which it begins or ends.
fn touched<'a>(graph: &'a Graph, node: &'a Node) -> Vec<(&'a Resource, Mode)> {
    let step = match node.kind {
        NodeKind::Release { acquire } => graph.node(acquire),
        _ => node,
    };
    let held = step.kind.constraints().iter().map(|constraint| (&constraint.resource, constraint.mode));
    node.uses.iter().map(|usage| (&usage.resource, usage.mode)).chain(held).collect()
}
