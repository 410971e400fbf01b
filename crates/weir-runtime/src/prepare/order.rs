//! The order of steps: nodes are in topological order, and edges become sets of numbers.
//!
//! Every node that may have to wait has a number, and every node has the numbers of all earlier nodes that it depends on.
//! From the last number on nodes share it ([`WAIT_NUMBERS`]), and wait for everything listed before them. That is always
//! sound, because running the list in order is the semantics of the program.
//!
//! An atomic step begins only when all values that it needs from outside are available. Otherwise a flow that holds a
//! lock could wait for one of its own calls that queues behind other flows for the same lock.
//!
//! A call of a batched function that comes after another call of the same function waits only until the other is *placed* in
//! its batch: the nodes are listed in order, so that the other one has joined by then. What comes after the later call still
//! waits for both. In a body that may be given up nothing is relaxed, because one of the effects could be missing then. Calls that
//! read a value which no flow changes, and may go on without the thread of the flow, need one another only to begin, too.
//!
//! A read of a shared value outside of steps comes after the earlier ones of its body. It does not depend on those that were sent on the
//! connection on which it is sent, which is known only when it begins ([`StepOrder::follows`], `frame/sent_reads.rs`).
//!
//! *Iteration orders* keep the iterations of one `map` in order: one for each resource that the body writes, and one
//! for early ends of the flow, because effects of later iterations wait for these. In a body that may be given up while it
//! waits, a wait counts as an end. A step of an iteration order waits
//! until all steps of that order have run in all earlier iterations. Like its locks, the iteration orders within an
//! atomic step are awaited before it begins. If nothing in the body awaits an order, there is none: iterations that only read
//! may end the flow in any order, because the earliest end wins.
//!
//! A step may leave an order before it ends: a call that is placed in its batch, or in the queue of the one section that makes all
//! calls of the order, one after the other; and a `map` whose own iterations have left theirs. In a body that may be given up none
//! does.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_host::{FunctionCode, Mode, Resource};
use weir_ir::graph::{Graph, Node, NodeId, NodeKind, Operand};

use super::moves::MoveOnlyTypes;
use super::part::NodePart;
use crate::flow_section::CallSection;
use crate::step::{EarlyOrder, Repeat, ResourceOrder};
use crate::wait_set::{WAIT_NUMBERS, WaitSet};

/// The last iteration order, which several resources may share.
const SHARED_ORDER: u32 = 63;

/// The order of a graph's nodes.
pub(super) struct StepOrder {
    /// The number of each node that may wait.
    pub numbers: Vec<Option<u32>>,
    /// The numbers of the nodes that each node depends on.
    pub depends: Vec<WaitSet>,
    /// The numbers of the reads before each node on which it does not depend if it is sent behind them.
    pub follows: Vec<WaitSet>,
    /// True for each node that may wait and on which all later nodes depend.
    pub awaited_by_all: Vec<bool>,
    /// The iteration orders that each node is part of.
    pub signals_orders: Vec<u64>,
    /// The iteration orders that each node waits for.
    pub awaits_orders: Vec<u64>,
    /// The iteration orders of each node in which a call counts from the moment at which it is placed: in the batch of its
    /// function, or in the queue of its section.
    pub placed_orders: Vec<u64>,
    /// The iteration orders that each node leaves before it ends.
    pub early_orders: Vec<Vec<EarlyOrder>>,
    /// The iteration orders of resources.
    pub resource_orders: Vec<ResourceOrder>,
    /// The number of nodes of each iteration order.
    pub order_lengths: Vec<u32>,
    /// True if iterations may overlap.
    pub overlaps: bool,
}

impl StepOrder {
    pub(super) fn of(
        graph: &Graph,
        parts: &[NodePart],
        repeat: Option<Repeat>,
        moves: &MoveOnlyTypes<'_>,
        may_be_given_up: bool,
    ) -> StepOrder {
        let count = graph.nodes.len();
        let overlaps = parts.iter().any(NodePart::overlaps);
        let mut order = StepOrder {
            numbers: vec![None; count],
            depends: vec![WaitSet::default(); count],
            follows: vec![WaitSet::default(); count],
            awaited_by_all: vec![false; count],
            signals_orders: vec![0; count],
            awaits_orders: vec![0; count],
            placed_orders: vec![0; count],
            early_orders: (0..count).map(|_| Vec::new()).collect(),
            resource_orders: Vec::new(),
            order_lengths: Vec::new(),
            overlaps,
        };
        if overlaps && repeat == Some(Repeat::Map) {
            let ends = |(node, part): (&Node, &NodePart)| node.may_end() || (may_be_given_up && part.waits(node));
            let ends: Vec<bool> = graph.nodes.iter().zip(parts).map(ends).collect();
            order.assign_iteration_orders(graph, parts, &ends);
            if !may_be_given_up {
                order.assign_placed_orders(parts, &ends);
                order.assign_queued_orders(&Queued::new(graph, parts, moves), &ends);
            }
        }
        order.assign_numbers(graph, parts, &earlier_users(graph, moves), !may_be_given_up);
        order.find_awaited_by_all();
        order
    }

    /// Finds the nodes on which all later nodes depend: the numbers that the sets of all of these have in common.
    fn find_awaited_by_all(&mut self) {
        let mut common: Option<WaitSet> = None;
        for index in (0..self.depends.len()).rev() {
            self.awaited_by_all[index] =
                self.numbers[index].is_some_and(|number| common.as_ref().is_none_or(|common| common.contains(number)));
            let depends = &self.depends[index];
            match &mut common {
                Some(common) => common.retain_all(depends),
                None => common = Some(depends.clone()),
            }
        }
    }

    /// Returns true if `earlier` has run, or was skipped, whenever `later` runs.
    pub(super) fn before(&self, earlier: usize, later: usize) -> bool {
        let after = &self.depends[later];
        earlier < later
            && self.numbers[earlier].is_none_or(|number| after.contains(number))
            && self.depends[earlier].is_within(after)
    }

    /// Assigns the numbers. `through` has for each node what has to be through when the node counts as through: more than
    /// its own number if it began while an earlier call of its batch waited.
    fn assign_numbers(&mut self, graph: &Graph, parts: &[NodePart], users: &[Vec<NodeId>], places: bool) {
        let mut used = 0u32;
        let mut through = vec![WaitSet::default(); graph.nodes.len()];
        let mut written = WritingSteps::default();
        for (id, node) in graph.nodes() {
            let index = id.0 as usize;
            let (mut depends, mut placed) = (WaitSet::default(), WaitSet::default());
            let steps = written.before(graph, node, &parts[index], id);
            for earlier in everything_before(graph, id).iter().chain(&users[index]).chain(&steps) {
                let at = earlier.0 as usize;
                if places && is_placed_after(node, &parts[index], *earlier, &parts[at]) {
                    depends.insert_all(&self.depends[at]);
                    placed.insert_all(&through[at]);
                } else if places
                    && may_follow(node, &parts[index], *earlier, &parts[at])
                    && !users[index].contains(earlier)
                {
                    depends.insert_all(&self.depends[at]);
                    placed.insert_all(&through[at]);
                    self.follows[index].insert_all(&through[at]);
                } else {
                    depends.insert_all(&self.depends[at]);
                    depends.insert_all(&through[at]);
                }
            }
            if parts[index].waits(node) || self.signals_orders[index] | self.awaits_orders[index] != 0 {
                if used >= WAIT_NUMBERS - 1 {
                    self.numbers[..index].iter().flatten().for_each(|number| depends.insert(*number));
                }
                let number = used.min(WAIT_NUMBERS - 1);
                self.numbers[index] = Some(number);
                placed.insert(number);
                used += 1;
            }
            self.depends[index] = depends;
            through[index] = placed;
        }
    }

    /// Lets calls of a batched function in later iterations begin once those of earlier ones are placed, in the iteration
    /// orders that only calls of this function are part of. Effects wait for the answer of a call that may end the flow.
    fn assign_placed_orders(&mut self, parts: &[NodePart], ends: &[bool]) {
        for order in (0..u64::BITS).map(|order| 1 << order) {
            let of_order = |index: &usize| self.signals_orders[*index] & order != 0;
            let mut steps = (0..parts.len()).filter(of_order);
            let Some(first_step) = steps.next() else { continue };
            let Some(first) = parts[first_step].gatherer() else { continue };
            let is_placed = |step: usize| parts[step].gatherer().is_some_and(|other| Arc::ptr_eq(first, other));
            if !ends[first_step] && steps.all(|step| is_placed(step) && !ends[step]) {
                (0..parts.len()).filter(|index| self.signals_orders[*index] & order != 0).for_each(|index| {
                    self.placed_orders[index] |= order;
                });
            }
        }
    }

    /// Lets calls on a resource in later iterations follow once those of earlier ones are in the queue of their section, if all calls
    /// on the resource are in it; and lets a `map` leave an order when its own iterations have.
    fn assign_queued_orders(&mut self, queued: &Queued<'_>, ends: &[bool]) {
        for order in (0..self.order_lengths.len()).map(|order| 1 << order) {
            let steps: Vec<usize> = (0..ends.len()).filter(|index| self.signals_orders[*index] & order != 0).collect();
            if steps.iter().any(|index| ends[*index] || self.placed_orders[*index] & order != 0) {
                // A call that is placed in its batch has no effect yet, which a step around this body may have to wait for.
                self.resource_orders.retain(|of| of.order != order);
                continue;
            }
            let resources = self.resource_orders.iter().filter(|of| of.order == order).map(|of| &of.resource);
            let resources: Vec<&Resource> = resources.collect();
            let uses: Vec<StepUse> = steps.iter().map(|index| queued.step_use(*index, &resources)).collect();
            let section = uses.first().and_then(|first| first.section());
            let in_queue = section.is_some() && uses.iter().all(|of| of.section() == section);
            for (index, of) in steps.into_iter().zip(uses) {
                match of {
                    StepUse::Call(_) if in_queue => self.placed_orders[index] |= order,
                    StepUse::Map(inner, of) if in_queue || of.is_none() => {
                        self.early_orders[index].push(EarlyOrder { order, inner });
                    }
                    _ => {}
                }
            }
            if in_queue {
                self.resource_orders.iter_mut().filter(|of| of.order == order).for_each(|of| of.section = section);
            }
        }
    }

    /// Assigns the iteration orders; `ends` has the nodes at which the iterations may end.
    fn assign_iteration_orders(&mut self, graph: &Graph, parts: &[NodePart], ends: &[bool]) {
        let mut orders = IterationOrders::of(graph, parts, ends.contains(&true));
        for (id, node) in graph.nodes() {
            let index = id.0 as usize;
            self.signals_orders[index] = orders.of_node(graph, id, node, &parts[index]);
            self.awaits_orders[index] = self.signals_orders[index];
            if ends[index] {
                self.signals_orders[index] |= orders.ends;
            }
            if node.may_return() {
                self.signals_orders[index] |= orders.returns;
            }
            if node.writes() || parts[index].call.as_ref().is_some_and(|call| call.state.is_some()) {
                self.awaits_orders[index] |= orders.ends;
            } else if parts[index].waits_for_returns {
                self.awaits_orders[index] |= orders.returns;
            }
        }
        for (id, node) in graph.nodes() {
            if matches!(node.kind, NodeKind::Acquire { .. }) {
                let within = graph.nodes_within(id).map(|inner| self.awaits_orders[inner.0 as usize]);
                self.awaits_orders[id.0 as usize] |= within.fold(0, |all, orders| all | orders);
            }
        }
        if self.awaits_orders.iter().all(|orders| *orders == 0) {
            return self.signals_orders.fill(0);
        }
        for order in 0..u64::BITS {
            let length = self.signals_orders.iter().filter(|orders| *orders & (1 << order) != 0).count();
            self.order_lengths.push(length as u32);
        }
        let used = self.order_lengths.iter().rposition(|length| *length > 0).map_or(0, |last| last + 1);
        self.order_lengths.truncate(used);
        let of_resource = |(resource, order)| ResourceOrder { resource, order, section: None };
        self.resource_orders = orders.of_resource.into_iter().map(of_resource).collect();
    }
}

/// The use of the resources of an iteration order by a step.
enum StepUse {
    /// A call that this section makes, in the order of its queue.
    Call(CallSection),
    /// A `map` all of whose own steps on these resources are in these orders of its iterations; the section if they are calls
    /// that count once they are in its queue.
    Map(u64, Option<CallSection>),
    /// Any other use.
    Other,
}

impl StepUse {
    /// Returns the section in whose queue all calls of the step are when it has left the order.
    fn section(&self) -> Option<CallSection> {
        match self {
            StepUse::Call(section) => Some(*section),
            StepUse::Map(_, section) => *section,
            StepUse::Other => None,
        }
    }
}

/// The calls of a body that the threads of sections make.
struct Queued<'a> {
    graph: &'a Graph,
    parts: &'a [NodePart],
    moves: &'a MoveOnlyTypes<'a>,
    /// True if the body has atomic steps. While its frame is in one, its calls run on the thread of the flow.
    has_atomic_steps: bool,
}

impl<'a> Queued<'a> {
    fn new(graph: &'a Graph, parts: &'a [NodePart], moves: &'a MoveOnlyTypes<'a>) -> Queued<'a> {
        let has_atomic_steps = graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::Acquire { .. }));
        Queued { graph, parts, moves, has_atomic_steps }
    }

    /// Returns the use of these resources by a step.
    fn step_use(&self, index: usize, resources: &[&Resource]) -> StepUse {
        if let Some(section) = self.section_of_call(index) {
            return StepUse::Call(section);
        }
        let (node, body) = (&self.graph.nodes[index], &self.parts[index].body);
        let (NodeKind::Map { .. }, Some(body)) = (&node.kind, body) else { return StepUse::Other };
        let inner = |resource: &Resource| body.resource_orders.iter().find(|of| of.resource == *resource);
        let used = touched(node, &self.parts[index]).filter(|(resource, _)| resources.contains(&resource));
        let orders: Option<Vec<&ResourceOrder>> = used.map(|(resource, _)| inner(&resource)).collect();
        match orders.as_deref() {
            Some([first, others @ ..]) if others.iter().all(|other| other.section == first.section) => {
                StepUse::Map(others.iter().fold(first.order, |all, other| all | other.order), first.section)
            }
            _ => StepUse::Other,
        }
    }

    /// Returns the section whose threads make the call of a step whenever it is made: the call returns at once, takes no lock but
    /// that of its state, and has no argument that can only be moved.
    fn section_of_call(&self, index: usize) -> Option<CallSection> {
        let call = self.parts[index].call.as_ref()?;
        let is_moved = |input: &Operand| self.moves.input(self.graph, input);
        let is_fit = !self.has_atomic_steps
            && matches!(call.code, FunctionCode::Immediate(_))
            && call.gatherer.is_none()
            && call.locks.len() <= usize::from(call.state.is_some())
            && !self.graph.nodes[index].inputs.iter().any(is_moved);
        call.section.filter(|_| is_fit)
    }
}

/// Returns true if a node needs an earlier one only to be sent, if it is sent behind it on the same connection: both read a shared value.
fn may_follow(node: &Node, part: &NodePart, earlier: NodeId, earlier_part: &NodePart) -> bool {
    let is_input = node.inputs.iter().any(|input| matches!(input, Operand::Port(from, _) if *from == earlier));
    let is_branch = node.control.is_some_and(|control| control.switch == earlier);
    part.may_be_sent() && earlier_part.may_be_sent() && !is_input && !is_branch
}

/// Returns true if a node needs an earlier one only to be placed: both call the same batched function, whose calls keep
/// their order from the moment at which they join a batch; or both only read, and no flow changes in between what they read.
fn is_placed_after(node: &Node, part: &NodePart, earlier: NodeId, earlier_part: &NodePart) -> bool {
    let is_input = node.inputs.iter().any(|input| matches!(input, Operand::Port(from, _) if *from == earlier));
    if part.reads_elsewhere() && earlier_part.reads_elsewhere() {
        return !is_input && node.control.is_none_or(|control| control.switch != earlier);
    }
    let (Some(gatherer), Some(other)) = (part.gatherer(), earlier_part.gatherer()) else { return false };
    let joins_at_once = earlier_part.call.as_ref().is_some_and(|call| call.locks.is_empty());
    Arc::ptr_eq(gatherer, other) && !is_input && joins_at_once
}

/// The iteration orders of a body.
struct IterationOrders {
    of_resource: BTreeMap<Resource, u64>,
    used: u32,
    /// The iteration order of ends, or 0 if no node is one.
    ends: u64,
    /// The iteration order of the ends that may return an answer, or 0 if none may.
    returns: u64,
}

impl IterationOrders {
    fn of(graph: &Graph, parts: &[NodePart], may_end: bool) -> IterationOrders {
        let mut orders = IterationOrders { of_resource: BTreeMap::new(), used: 0, ends: 0, returns: 0 };
        if may_end {
            orders.ends = orders.next();
        }
        if graph.nodes.iter().any(Node::may_return) {
            orders.returns = orders.next();
        }
        for (node, part) in graph.nodes.iter().zip(parts) {
            for (resource, mode) in touched(node, part) {
                if mode == Mode::Write && !orders.of_resource.contains_key(&resource) {
                    let order = orders.next();
                    orders.of_resource.insert(resource, order);
                }
            }
        }
        orders
    }

    fn next(&mut self) -> u64 {
        self.used += 1;
        1 << (self.used - 1).min(SHARED_ORDER)
    }

    fn of_node(&mut self, graph: &Graph, id: NodeId, node: &Node, part: &NodePart) -> u64 {
        let owner = match &node.kind {
            NodeKind::Release { acquire } => graph.node(*acquire),
            _ => node,
        };
        debug_assert!(graph.node(id) == node);
        touched(owner, part)
            .filter_map(|(resource, _)| self.of_resource.get(&resource))
            .fold(0, |all, order| all | order)
    }
}

/// The atomic steps that have written resources: what uses one of these behind a step waits for its end, also if it takes no lock.
/// No call of the step has to use the resource: the deletion of a row deletes rows of other tables, which only the step names.
#[derive(Default)]
struct WritingSteps {
    ends: BTreeMap<Resource, NodeId>,
}

impl WritingSteps {
    /// Returns the ends of the steps that have written what a node uses, and notes the step that it ends.
    fn before(&mut self, graph: &Graph, node: &Node, part: &NodePart, id: NodeId) -> Vec<NodeId> {
        if let NodeKind::Release { acquire } = &node.kind {
            let held = graph.node(*acquire).kind.constraints().iter().filter(|held| held.mode == Mode::Write);
            self.ends.extend(held.map(|held| (held.resource.clone(), id)));
        }
        if self.ends.is_empty() {
            return Vec::new();
        }
        touched(node, part).filter_map(|(resource, _)| self.ends.get(&resource).copied()).collect()
    }
}

/// Returns the resources that a node uses, with the constraints of an atomic step and the state of a call site.
pub(super) fn touched<'a>(node: &'a Node, part: &'a NodePart) -> impl Iterator<Item = (Resource, Mode)> + 'a {
    let used = node.uses.iter().map(|used| (used.resource.clone(), used.mode));
    let held = node.kind.constraints().iter().map(|constraint| (constraint.resource.clone(), constraint.mode));
    let has_state = part.call.as_ref().is_some_and(|call| call.state.is_some());
    let state = has_state.then(|| (Resource::State(node.name.clone()), Mode::Write));
    used.chain(held).chain(state)
}

/// Returns all nodes that a node must come after, directly or through the nodes of its own atomic step.
fn everything_before(graph: &Graph, id: NodeId) -> Vec<NodeId> {
    match &graph.node(id).kind {
        NodeKind::Acquire { .. } => graph.needed_from_outside(id),
        NodeKind::Release { acquire } => {
            let mut before: Vec<NodeId> = graph.nodes_within(*acquire).take_while(|inner| *inner < id).collect();
            before.extend(direct(graph, id));
            before
        }
        _ => direct(graph, id),
    }
}

/// Returns, for each node, the earlier users of its move-only inputs: a user that borrows such a value leaves an empty
/// slot behind for a while.
fn earlier_users(graph: &Graph, moves: &MoveOnlyTypes<'_>) -> Vec<Vec<NodeId>> {
    let mut users: BTreeMap<(Option<NodeId>, u32), Vec<NodeId>> = BTreeMap::new();
    let mut earlier = Vec::with_capacity(graph.nodes.len());
    for (id, node) in graph.nodes() {
        let mut before = Vec::new();
        for source in node.inputs.iter().filter(|source| moves.input(graph, source)) {
            let value = match source {
                Operand::Port(from, port) => (Some(*from), *port),
                Operand::Parameter(index) => (None, *index),
                _ => continue,
            };
            let known = users.entry(value).or_default();
            before.extend(known.iter().copied().filter(|user| *user != id));
            known.push(id);
        }
        earlier.push(before);
    }
    earlier
}

fn direct(graph: &Graph, id: NodeId) -> Vec<NodeId> {
    graph.node(id).comes_after().collect()
}
