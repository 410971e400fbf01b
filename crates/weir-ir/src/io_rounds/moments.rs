//! The moment at which each node of a graph begins and ends, counted in rounds of calls.

use weir_host::{Library, Text};

use super::ending_arms::{EndingArms, are_exclusive, before_skipped, tests_kept_failure};
use super::executed_body::{ExecutedBody, of_operand, parts, value};
use super::io_call::{Ahead, ExplainedTables, IoCall, IoWait, TurnReason, WaitReason};
use super::moment::{Moment, NodeMoments, Seen};
use super::orders::{common_resource, enclosed, end};
use super::referenced_rows::executed_by;
use super::repeated::Repetition;
use super::statements::{
    expected_read, has_commits, holds_up_flow, is_begin, is_commit, is_gathered_read, is_placed, is_sent_read,
    is_settle, may_be_held_up, reads_unchanged, table_of, writes_table, writes_tables,
};
use super::transactions::{RunningTransaction, awaits_change};
use crate::graph::{Graph, Node, NodeId, NodeKind, Operand};

/// Returns the calls of a flow, in the order of its text.
pub(super) fn calls(graph: &Graph, library: &Library, tables: &ExplainedTables) -> Vec<IoCall> {
    let mut moments = Moments {
        library,
        tables,
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
        parts: Vec::new(),
        repetition: Repetition::default(),
        arms: Vec::new(),
    };
    moments.graph(graph, &body);
    moments.calls
}

struct Moments<'a> {
    library: &'a Library,
    /// True if the flow waits for the commit of what it writes.
    settles: bool,
    tables: &'a ExplainedTables,
    /// True if the flow has written something, or committed a transaction, that may not be durable.
    has_unsettled: bool,
    transaction: RunningTransaction,
    calls: Vec<IoCall>,
    /// The number of graphs so far.
    graphs: u32,
}

impl Moments<'_> {
    /// Adds the calls of a graph; returns its end, and the moment at which its result is there.
    fn graph(&mut self, graph: &Graph, body: &ExecutedBody) -> (Moment, Moment) {
        let number = self.graphs;
        self.graphs += 1;
        let mut moments: Vec<NodeMoments> = Vec::with_capacity(graph.nodes.len());
        let ending = EndingArms::of(graph);
        let mut end = body.start.clone();
        let mut statements: Vec<EarlierStatement> = Vec::new();
        for (id, node) in graph.nodes() {
            let value = value(node, body, &moments);
            let seen = Seen { moments: &moments, ending: &ending };
            let mut begins = self.beginning(graph, (id, node), value.clone(), (body, &seen));
            if may_be_held_up(node) {
                begins = self.behind_statements(graph, id, (&statements, &seen), begins, body);
            }
            let is_answered_at_once = self.is_answered_at_once(graph, node);
            let is_statement = table_of(graph, node).is_some() && !self.is_gathered(node) && !is_answered_at_once;
            if is_begin(node) {
                self.transaction = RunningTransaction::default();
            }
            if let Some(read) = expected_read(node) {
                self.transaction.ask(read, begins.clone());
            }
            let mut result = None;
            let ends = match &node.kind {
                NodeKind::Call { function, .. }
                    if is_settle(function) && !self.settles_here(graph, (&ending, node)) =>
                {
                    begins.clone()
                }
                NodeKind::Call { function, .. } if is_statement || self.waits(function) => {
                    let ends_flow = ending.contain(graph, node);
                    self.call(node, function, &begins, (graph, number, body, ends_flow))
                }
                kind if kind.bodies().is_empty() => begins.clone(),
                _ => {
                    let (ends, of_bodies) = self.bodies(graph, node, &begins, (number, body, &moments));
                    result = Some(of_bodies);
                    ends
                }
            };
            end = end.or_later(ends.clone());
            if !is_answered_at_once {
                let holds_up = holds_up_flow(graph, node, &self.tables.unchanged);
                statements.extend((is_statement || holds_up).then_some(EarlierStatement { id, holds_up }));
            }
            self.has_unsettled |= (writes_table(graph, node) || is_commit(node)) && !is_answered_at_once;
            // The value of a call is there when those before it have ended that it comes after.
            let is_call = matches!(node.kind, NodeKind::Call { .. });
            let value = match result {
                _ if is_call || ends.round > begins.round => ends.clone(),
                // The results of the `for` need less than the list that it goes through.
                Some(result) if result.round < value.round => value.because(|why| enclosed(node, why)),
                _ => value,
            };
            let parts = parts(node, body, &moments);
            moments.push(NodeMoments { begins, ends, value, parts });
        }
        (end, of_operand(&graph.result, body, &moments))
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
            let is_of_text = !tests_kept_failure(graph, control.switch);
            let chosen = of(control.switch).ends.clone().because(|why| match why {
                why if !is_of_text => why,
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
        let order = common_resource(graph, node, other);
        if !body.repetition.may_be_given_up {
            let reads_unchanged = |node| reads_unchanged(graph, node, &self.tables.unchanged);
            if self.is_placed_after(node, other) {
                return earlier.begins.clone();
            } else if (reads_unchanged(node) && reads_unchanged(other)) || are_sent_together((node, other), body) {
                return earlier.begins.clone().because(|why| order.unwrap_or(why));
            }
        }
        let why = match order {
            _ if self.is_barrier(other) => WaitReason::Barrier,
            Some(order) => order,
            None if other.may_end() => end(node, other),
            None if body.repetition.may_be_given_up => WaitReason::GivenUp,
            None => WaitReason::Statement,
        };
        earlier.ends.clone().because(|_| why)
    }

    /// Adds the calls of a node's bodies; returns their end, and the moment at which their results are there.
    fn bodies(
        &mut self,
        graph: &Graph,
        node: &Node,
        begins: &Moment,
        (number, outer, moments): (u32, &ExecutedBody, &[NodeMoments]),
    ) -> (Moment, Moment) {
        let own = node.kind.own();
        let (own_inputs, captured) = node.inputs.split_at(own.inputs.min(node.inputs.len()));
        let of_own =
            own_inputs.iter().fold(Moment::default(), |all, input| all.or_later(of_operand(input, outer, moments)));
        let list = own_inputs.first().and_then(Operand::node);
        let parts = list.map_or_else(Vec::new, |list| moments[list.0 as usize].parts.clone());
        let mut captured = captured.iter();
        let (mut end, mut result) = (begins.clone(), Moment::default());
        let repeats = matches!(node.kind, NodeKind::Map { .. } | NodeKind::Fold { .. } | NodeKind::Loop { .. });
        for body in node.bodies() {
            if repeats {
                self.transaction.repeat(body, &self.tables.awaited);
                self.has_unsettled |= writes_tables(body);
            }
            let count = body.parameters.len().saturating_sub(own.parameters);
            let captures: Vec<&Operand> = captured.by_ref().take(count).collect();
            let mut parameters = vec![of_own.clone(); own.parameters];
            parameters.extend(captures.iter().map(|capture| of_operand(capture, outer, moments)));
            let inner = ExecutedBody {
                start: begins.clone().because(|why| enclosed(node, why)),
                parameters,
                captures: captures.iter().map(|capture| outer.common(graph, number, capture)).collect(),
                own_parameters: own.parameters,
                parts: if let NodeKind::Map { .. } = node.kind { parts.clone() } else { Vec::new() },
                repetition: outer.repetition.inside(graph, node, self.library),
                arms: outer.arms_around(graph, number, node),
            };
            let (ends, of_body) = self.graph(body, &inner);
            end = end.or_later(ends.because(|_| WaitReason::Argument));
            result = result.or_later(of_body);
        }
        (end, result)
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
        let asked = asked_early.as_ref().map_or(begins, |(asked, _)| asked);
        let is_placed = is_placed(function) && !awaits_change(graph, node, &self.tables.awaited);
        let ahead = match () {
            () if is_placed && self.transaction.has_begun() => Some(Ahead::Placed),
            () if is_placed && repetition.for_each => Some(Ahead::PlacedBehindFirst),
            // The first of the reads that are sent together runs ahead of nothing.
            () => asked_early.as_ref().map(|(_, ahead)| *ahead).filter(|ahead| match ahead {
                Ahead::SentTogether => asked.round < begins.round,
                _ => true,
            }),
        };
        let signature = self.library.function(function).map(|function| &function.signature);
        let batch = signature.and_then(|signature| signature.batch);
        let others =
            node.inputs.iter().enumerate().filter(|(index, _)| batch.is_some_and(|batch| batch.gathered != *index));
        let table = table_of(graph, node).cloned();
        let of_statement = repetition.for_each && batch.is_none() && table.is_some();
        let of_statement = of_statement.then_some(TurnReason::Statements);
        let in_turn = repetition.in_turn_of(graph, node, self.library).or(of_statement);
        let call = IoCall {
            function: function.clone(),
            table,
            origin: node.origin,
            round: asked.round,
            batch_max: batch.map(|batch| batch.at_most),
            common: others.map(|(_, input)| body.common(graph, number, input)).collect(),
            for_each: repetition.for_each,
            in_turn: in_turn.filter(|_| matches!(ahead, None | Some(Ahead::SentTogether))),
            ahead,
            wait: asked.wait.clone(),
            arms: body.arms_around(graph, number, node),
        };
        let mut answered = asked.clone();
        for (function, table) in executed_by(self.tables, graph, node, function) {
            let (round, wait) = (answered.round + 1, answered.wait);
            self.calls.push(IoCall { function, table, round, wait, ..call.clone() });
            answered = Moment { round, wait: Some(IoWait { call: self.calls.len() - 1, why: WaitReason::Argument }) };
        }
        if ahead == Some(Ahead::Placed) {
            return begins.clone();
        }
        self.transaction.answered(graph, node);
        answered.or_later(begins.clone())
    }

    /// Returns true if a node is a statement that needs no round trip: one on a table in memory, or the commit of a transaction that has
    /// executed nothing.
    fn is_answered_at_once(&self, graph: &Graph, node: &Node) -> bool {
        if is_commit(node) {
            return !self.transaction.has_begun();
        }
        table_of(graph, node).is_some_and(|table| self.tables.in_memory.contains(table))
    }

    /// Returns true if a node that waits for the commit has something to wait for.
    fn settles_here(&mut self, graph: &Graph, (ending, node): (&EndingArms, &Node)) -> bool {
        let has_unsettled = self.has_unsettled;
        if !ending.contain(graph, node) {
            self.has_unsettled = false;
        }
        has_unsettled
    }

    /// Returns the moment behind the earlier statements of a flow that hold it up, and for a statement also behind those on its table: the
    /// graph orders it behind the last of these, which may be in an arm that is not taken, and that one behind the others. A statement on
    /// a table that no flow changes comes behind their beginnings, and so does a read behind reads, if all are sent.
    fn behind_statements(
        &self,
        graph: &Graph,
        id: NodeId,
        (statements, seen): (&[EarlierStatement], &Seen<'_>),
        begins: Moment,
        body: &ExecutedBody,
    ) -> Moment {
        let node = graph.node(id);
        let is_unchanged = reads_unchanged(graph, node, &self.tables.unchanged);
        let overlaps = |earlier: NodeId| {
            let is_sent = || are_sent_together((node, graph.node(earlier)), body);
            !body.repetition.may_be_given_up && (is_unchanged || is_sent())
        };
        let table = table_of(graph, node).filter(|_| !is_gathered_read(node));
        let is_of_table = |earlier: NodeId| table.is_some() && table_of(graph, graph.node(earlier)) == table;
        let skips = |earlier| seen.ending.skipped_for(graph, earlier, id).is_some();
        let comes_behind = |earlier: &&EarlierStatement| {
            let orders = earlier.holds_up || is_of_table(earlier.id);
            orders && !skips(earlier.id) && !are_exclusive(graph, earlier.id, id)
        };
        statements.iter().rev().filter(comes_behind).fold(begins, |begins, earlier| {
            let order = || common_resource(graph, node, graph.node(earlier.id));
            let why = if is_of_table(earlier.id) { order() } else { None };
            let moments = seen.of(earlier.id);
            let waits = earlier.holds_up || !overlaps(earlier.id);
            let behind = if waits { &moments.ends } else { &moments.begins };
            begins.or_later(behind.clone().because(|_| why.unwrap_or(WaitReason::Statement)))
        })
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
        let NodeKind::Call { function, .. } = &node.kind else { return false };
        self.library.function(function).is_some_and(|function| function.signature.effects.barrier)
    }

    /// Returns true if a node is a call of a function that answers many calls at once.
    fn is_gathered(&self, node: &Node) -> bool {
        let NodeKind::Call { function, .. } = &node.kind else { return false };
        self.library.function(function).is_some_and(|function| function.signature.batch.is_some())
    }

    /// Returns true if a node needs an earlier one only to be placed, because both call the same batched function.
    fn is_placed_after(&self, node: &Node, earlier: &Node) -> bool {
        match (&node.kind, &earlier.kind) {
            (NodeKind::Call { function: one, .. }, NodeKind::Call { function: other, .. }) => {
                one == other && self.is_gathered(node)
            }
            _ => false,
        }
    }
}

/// Returns true if two nodes of a body are reads that are sent one behind the other, before the first is answered.
fn are_sent_together((node, other): (&Node, &Node), body: &ExecutedBody) -> bool {
    let is_sent = |node: &Node| !body.repetition.in_step && node.within.is_none() && is_sent_read(node);
    is_sent(node) && is_sent(other)
}

/// A statement, or a node with statements in a body.
struct EarlierStatement {
    id: NodeId,
    /// True if the flow begins nothing else during it.
    holds_up: bool,
}
