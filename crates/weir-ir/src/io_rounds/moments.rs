//! The moment at which each node of a graph begins and ends, counted in rounds of calls.

use indexmap::IndexMap;
use weir_host::{Library, Mode, Resource, Text, Value};

use super::ending_arms::{EndingArms, are_exclusive, before_skipped, tests_kept_failure};
use super::repeated::Repetition;
use super::statements::{
    expected_read, follows_statements, has_statements, is_commit, is_placed, is_settle, table_of, writes_tables,
};
use super::{Ahead, CommonArgument, IoArm, IoCall, IoWait, TurnReason, WaitReason};
use crate::expr::ArmTest;
use crate::graph::{Graph, Node, NodeId, NodeKind, Operand};

/// Returns the calls of a flow, in the order of its text.
pub(super) fn calls(graph: &Graph, library: &Library) -> Vec<IoCall> {
    let mut moments = Moments {
        library,
        settles: writes_tables(graph),
        has_unsettled: false,
        expected: IndexMap::new(),
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
struct Moment {
    round: u32,
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

/// A graph that is executed as the body of a node or of a flow.
struct ExecutedBody {
    /// The moment at which the first of its nodes can begin.
    start: Moment,
    /// The moments at which the values of its parameters are there.
    parameters: Vec<Moment>,
    /// The values that the parameters behind its own stand for.
    captures: Vec<CommonArgument>,
    own_parameters: usize,
    repetition: Repetition,
    /// The arms that it is in, outermost first.
    arms: Vec<IoArm>,
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
    /// True if there are statements behind the last commit.
    has_unsettled: bool,
    /// The moments at which transactions ask early for rows, by the names of the calls that read these.
    expected: IndexMap<Text, Moment>,
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
            if let Some(read) = expected_read(node) {
                self.expected.insert(read.into(), begins.clone());
            }
            let ends = match &node.kind {
                NodeKind::Call { function, .. } if is_settle(function) && !self.settles_here(&ending, node) => {
                    begins.clone()
                }
                NodeKind::Call { function, .. } if is_statement || self.waits(function) => {
                    self.call(node, function, &begins, (graph, number, body))
                }
                kind if kind.bodies().is_empty() => begins.clone(),
                _ => self.bodies(graph, node, &begins, (number, body, &moments)),
            };
            end = end.or_later(ends.clone());
            if is_statement {
                statements.push(id);
            }
            if reads_or_writes || is_commit(node) {
                self.has_unsettled = !is_commit(node);
            }
            let value = if ends.round > begins.round { ends.clone() } else { value };
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
            let needed = graph.needed_from_outside(id);
            for outside in needed.into_iter().filter(|outside| !node.after.contains(outside)) {
                begins = begins.or_later(of(outside).ends.clone().because(|_| WaitReason::Atomic(node.origin)));
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
                Some(decides) => of(decides).ends.clone().because(|_| end(node, graph.node(*earlier))),
                None if are_exclusive(graph, *earlier, id) => {
                    let before = before_skipped(graph, *earlier, id).into_iter();
                    before.fold(Moment::default(), |all, needed| all.or_later(of(needed).ends.clone()))
                }
                None => self.after(graph, node, (*earlier, of(*earlier)), body),
            });
        }
        begins.or_later(body.start.clone())
    }

    /// Returns the moment at which a node can begin for an earlier one that it comes after.
    fn after(&self, graph: &Graph, node: &Node, (id, earlier): (NodeId, &NodeMoments), body: &ExecutedBody) -> Moment {
        let other = graph.node(id);
        if !body.repetition.may_be_given_up && self.is_placed_after(node, other) {
            return earlier.begins.clone();
        }
        let why = match common_resource(graph, node, other) {
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
        for body in node.bodies() {
            let count = body.parameters.len().saturating_sub(own.parameters);
            let captures: Vec<&Operand> = captured.by_ref().take(count).collect();
            let mut parameters = vec![of_own.clone(); own.parameters];
            parameters.extend(captures.iter().map(|capture| of_operand(capture, outer, moments)));
            let inner = ExecutedBody {
                start: begins.clone().because(|why| match why {
                    WaitReason::Branch(_) | WaitReason::Atomic(_) | WaitReason::Enclosing { .. } => why,
                    why => WaitReason::Enclosing { word, at, why: Box::new(why) },
                }),
                parameters,
                captures: captures.iter().map(|capture| common(graph, number, outer, capture)).collect(),
                own_parameters: own.parameters,
                repetition: outer.repetition.inside(graph, node, self.library),
                arms: arms_around(graph, number, outer, node),
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
        (graph, number, body): (&Graph, u32, &ExecutedBody),
    ) -> Moment {
        let asked_early = self.expected.get(&node.name).filter(|early| early.round <= begins.round).cloned();
        let asked = asked_early.as_ref().unwrap_or(begins);
        let ahead = match () {
            () if is_placed(function) => Some(Ahead::Placed),
            () if asked_early.is_some() => Some(Ahead::AskedEarly),
            () => None,
        };
        let round = asked.round + 1;
        let signature = self.library.function(function).map(|function| &function.signature);
        let batch = signature.and_then(|signature| signature.batch);
        let others =
            node.inputs.iter().enumerate().filter(|(index, _)| batch.is_some_and(|batch| batch.gathered != *index));
        let repetition = &body.repetition;
        let table = table_of(graph, node).cloned();
        let of_statement = repetition.for_each && batch.is_none() && table.is_some();
        let of_statement = of_statement.then_some(TurnReason::Statements);
        let in_turn = repetition.in_turn_of(graph, node, self.library).or(of_statement);
        self.calls.push(IoCall {
            function: function.clone(),
            table,
            origin: node.origin,
            round,
            is_batched: batch.is_some(),
            common: others.map(|(_, input)| common(graph, number, body, input)).collect(),
            for_each: repetition.for_each,
            in_turn: in_turn.filter(|_| ahead.is_none()),
            ahead,
            wait: asked.wait.clone(),
            arms: arms_around(graph, number, body, node),
        });
        if ahead == Some(Ahead::Placed) {
            return begins.clone();
        }
        let answered = Moment { round, wait: Some(IoWait { call: self.calls.len() - 1, why: WaitReason::Argument }) };
        answered.or_later(begins.clone())
    }

    /// Returns true if a node that waits for the commit has something to wait for.
    fn settles_here(&mut self, ending: &EndingArms, node: &Node) -> bool {
        let has_unsettled = self.has_unsettled;
        if !node.control.is_some_and(|control| ending.contains(control)) {
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

/// Returns the arms that a node of a body is in, outermost first.
fn arms_around(graph: &Graph, number: u32, body: &ExecutedBody, node: &Node) -> Vec<IoArm> {
    let own = std::iter::successors(node.control, |control| graph.node(control.switch).control);
    let own = own.filter(|control| !tests_kept_failure(graph, control.switch)).map(|control| {
        let switch = graph.node(control.switch);
        let is_condition = match &switch.kind {
            NodeKind::Switch { arms } => arms.first().is_some_and(|arm| arm.test == ArmTest::Value(Value::Bool(true))),
            _ => false,
        };
        IoArm { switch: (number, control.switch), at: switch.origin, arm: control.arm, is_condition }
    });
    let own: Vec<IoArm> = own.collect();
    body.arms.iter().cloned().chain(own.into_iter().rev()).collect()
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

/// Returns an argument in which calls of one batch must agree.
fn common(graph: &Graph, number: u32, body: &ExecutedBody, operand: &Operand) -> CommonArgument {
    match operand {
        Operand::Constant(index) if (*index as usize) < graph.constants.len() => {
            CommonArgument::Constant(graph.constants[*index as usize].clone())
        }
        Operand::Shared(name) => CommonArgument::Shared(name.clone()),
        Operand::Parameter(index) if *index as usize >= body.own_parameters => {
            let own = CommonArgument::Computed { graph: number, operand: operand.clone(), repeats: false };
            body.captures.get(*index as usize - body.own_parameters).cloned().unwrap_or(own)
        }
        operand => {
            let repeats = body.repetition.for_each || body.repetition.in_turn.is_some();
            CommonArgument::Computed { graph: number, operand: operand.clone(), repeats }
        }
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
