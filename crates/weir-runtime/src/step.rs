//! Prepared graphs: graphs compiled to steps, with everything computed that is known before they run.
//!
//! A [`Body`] is a list of [`PreparedStep`]s in the order of the graph's nodes, with slots instead of ports, indices
//! instead of names, and sets instead of edges: every node that may have to wait has a number, and a step may run when
//! none of the numbers that it depends on belongs to a node that still waits.
//!
//! An *iteration order* makes the iterations of one `map` pass certain steps one after the other, like `signal` and
//! `await` between the iterations of a DOACROSS loop. Each order is a bit: a step *signals* the orders that it is part
//! of when it has run, and *awaits* orders before it runs.

mod calls;
mod repeats;

use std::sync::Arc;

use weir_host::{Argument, FunctionCode, Mode, Resource, StepEnd};
use weir_ir::graph::ArmTest;
use weir_ir::prim::Prim;

use self::calls::see_one_snapshot;
pub(crate) use self::calls::{CallStep, SharedOf, SimpleStep, VectorCall};
pub(crate) use self::repeats::{Repeat, RepeatStep, StripRole};
use crate::batching::LatencyGraph;
use crate::constant_copies::ConstantCopies;
use crate::flow_section::{CallSection, NodeSection};
use crate::lock::{FairRwLock, SessionTable};
pub(crate) use crate::operations::{NONE, Out, PrimStep};
use crate::region::Region;
use crate::wait_set::WaitSet;

/// A prepared graph.
pub(crate) struct Body {
    /// One step for each node.
    pub steps: Box<[PreparedStep]>,
    /// The names of the nodes.
    pub names: Box<[Arc<str>]>,
    /// The constants that arguments refer to.
    pub constants: ConstantCopies,
    /// The units of one execution, without those of bodies within and of calls: the number of nodes, and at least 1.
    pub units: u32,
    /// The number of slots of a frame; the first ones hold the parameters.
    pub slots: u32,
    /// The number of switches.
    pub switches: u32,
    /// The last commit that a flow counts as seen when it begins: [`SeenCommits::ALL`](weir_host::SeenCommits::ALL) if it may learn of any from
    /// other flows.
    pub commits_at_begin: u64,
    /// The location of the result; `None` if every execution ends the flow before.
    pub result: Option<Argument>,
    /// The locations of the parts of the result, if it is a tuple of states that the next iteration takes apart: the tuple is
    /// not made. Otherwise empty.
    pub result_parts: Box<[Argument]>,
    /// True if some step may have to wait.
    pub waits: bool,
    /// The number of steps of each iteration order; empty unless iterations may overlap.
    pub order_lengths: Box<[u32]>,
    /// The iteration orders of resources.
    pub resource_orders: Box<[ResourceOrder]>,
    /// The number of iterations that may overlap; 0 if they run one after the other.
    pub overlap_max: u32,
    /// The only step that waits, if that is a call which is gathered, and the iterations of the body can share a frame.
    pub gathered_call: Option<GatheredCall>,
    /// True if the iterations of the body wait for gathered calls alone, in any order, so that those that have come equally far can
    /// share a frame.
    pub groups_iterations: bool,
    /// The steps that may wait, if calls of batched functions are among them.
    pub latencies: Option<Arc<LatencyGraph>>,
    /// For each step, the section to which the flow moves before it runs, and whether it yields there; empty unless a plan cuts a
    /// body of the flow.
    pub cuts: Box<[Option<(NodeSection, CutYield)>]>,
    /// For each parameter, true if it is passed from one iteration to the next, and returned at the end, because it is
    /// changed or move-only.
    pub handed: Box<[bool]>,
}

/// The iteration order of a resource.
#[derive(Clone)]
pub(crate) struct ResourceOrder {
    pub resource: Resource,
    /// The order: a set of one bit.
    pub order: u64,
    /// The section in whose queue all its calls wait, if the next iteration waits only until they are there.
    pub section: Option<CallSection>,
}

/// An iteration order that a `map` may leave before it ends: when all its own iterations have left some of their orders.
#[derive(Clone, Copy)]
pub(crate) struct EarlyOrder {
    /// The order: a set of one bit.
    pub order: u64,
    /// The orders of the iterations of the `map`.
    pub inner: u64,
}

/// The only call of a body that waits, which is gathered.
pub(crate) struct GatheredCall {
    /// The index of its step.
    pub step: u32,
    /// The slots of the values that the iteration has before the call and uses behind it.
    pub live: Box<[u32]>,
    /// True if the call is the first step, the element is the argument that is gathered, and the others are the same for all
    /// iterations.
    pub takes_element: bool,
    /// True if the answer of the call is the result of the iteration, and nothing runs behind the call, unless it fails.
    pub yields_answer: bool,
}

impl Body {
    /// Returns true if the condition holds for a step, or for one in a body within.
    pub(crate) fn has(&self, holds: &dyn Fn(&Action) -> bool) -> bool {
        self.steps.iter().any(|step| step.has(holds))
    }
}

/// A prepared node.
pub(crate) struct PreparedStep {
    /// The action.
    pub action: Action,
    /// The switch that controls the step, or [`NONE`].
    pub switch: u32,
    /// The arm of that switch.
    pub arm: u32,
    /// The next step after this one is skipped.
    pub skip_to: u32,
    /// The next step after this one has run; the steps between do nothing.
    pub then: u32,
    /// The step's number among those that may wait; `None` if it never waits.
    pub wait_number: Option<u32>,
    /// The numbers of all earlier steps that it depends on, directly or not.
    pub depends: WaitSet,
    /// The numbers of the earlier reads of the same value on which it does not depend if it is sent behind them on one connection.
    pub follows: WaitSet,
    /// True if all later steps depend on this one, which may wait.
    pub is_awaited_by_all: bool,
    /// The iteration orders that this step is part of: the next iteration waits until the step has run.
    pub signals_orders: u64,
    /// The iteration orders in which all earlier iterations must be finished before this step runs.
    pub awaits_orders: u64,
    /// The part of `signals_orders` in which the next iteration waits only until the call has joined its batch, or is in the queue
    /// of its section.
    pub placed_orders: u64,
    /// The ticket gates that the flow passes when this step has run.
    pub ticket_gates: Box<[usize]>,
}

impl PreparedStep {
    /// Returns true if the condition holds for the step, or for one in its bodies.
    pub(crate) fn has(&self, holds: &dyn Fn(&Action) -> bool) -> bool {
        let action = self.action.uncut();
        let in_bodies = || match action {
            Action::Repeat(repeat) => repeat.body.has(holds),
            Action::Timed(timed) => timed.bodies.iter().any(|(body, _)| body.has(holds)),
            _ => false,
        };
        holds(action) || in_bodies()
    }

    /// Returns true if the step may have to wait for an event loop.
    pub(crate) fn calls_out(&self) -> bool {
        self.has(&|action| match action {
            Action::Call(call) => matches!(call.code, FunctionCode::Waiting(_)),
            Action::Timed(timed) => timed.limit.is_some(),
            _ => false,
        })
    }
}

/// The action of a step.
pub(crate) enum Action {
    /// Nothing, because a call has decided this switch already, a switch evaluates this part of its condition, the next
    /// iteration takes the parts of this tuple, or the node only stands for others that later ones wait for.
    Nothing,
    /// A primitive.
    Prim(PrimStep),
    /// A call that needs nothing but its function, which returns at once, cannot fail, and touches no state or lock.
    Simple(Box<SimpleStep>),
    /// Any other call.
    Call(Box<CallStep>),
    /// A switch.
    Switch(Box<SwitchStep>),
    /// A switch that evaluates its condition itself.
    Condition(Box<ConditionStep>),
    /// A select: takes the input of the arm that was chosen.
    Select {
        /// The switch.
        switch: u32,
        /// The input of each arm.
        inputs: Box<[Option<Argument>]>,
        /// The slot of the output.
        out: u32,
    },
    /// A map, fold or loop.
    Repeat(Box<RepeatStep>),
    /// A within or race.
    Timed(Box<TimedStep>),
    /// The beginning of an atomic step.
    Acquire(Box<AcquireStep>),
    /// The end of the atomic step that the node `acquire` began.
    Release {
        acquire: u32,
        /// True if only computation follows in the text: a frame that is to be given up goes on then, because it may have its result
        /// before it stops.
        is_last_effect: bool,
    },
    /// A step that is never reached, because an earlier one ends the flow.
    Never,
    /// Ends the flow with an answer.
    Return(Argument),
    /// Ends the flow with a failure.
    Fail(Argument),
    /// A region that begins with this step.
    Region(Box<RegionStep>),
    /// A step before which the flow moves to another section.
    Cut(Box<CutStep>),
}

impl Action {
    /// Returns the step form of the action.
    pub(crate) fn form(&self) -> &Action {
        if let Action::Region(region) = self { &region.first } else { self }
    }

    /// Returns the action of the step in its section.
    pub(crate) fn uncut(&self) -> &Action {
        if let Action::Cut(cut) = self { &cut.action } else { self }
    }
}

/// A step before which the flow moves to another section.
pub(crate) struct CutStep {
    /// The section.
    pub section: NodeSection,
    pub yields: CutYield,
    /// The action of the step there.
    pub action: Action,
}

/// The rule by which a flow yields before a loop in its section, in the rounds of a `for`, so that other rounds hand their calls on
/// to other sections before the loop holds the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutYield {
    Never,
    /// If the round comes to the loop without having stopped: others may not have begun.
    AtFirst,
    /// In each round, because the calls take turns, and it may be the turn of the next round now.
    Always,
}

/// The beginning of a region.
pub(crate) struct RegionStep {
    /// The step form of the region's first node.
    pub first: Action,
    /// The region, which threads that run a part of it share.
    pub region: Arc<Region>,
}

/// A switch.
pub(crate) struct SwitchStep {
    /// The number of the switch in the body.
    pub switch: u32,
    /// The value that it tests.
    pub subject: Argument,
    /// True if the payload may have to be moved.
    pub moves: bool,
    /// The arms: the test, and the slots of the payload.
    pub arms: Box<[(ArmTest, Box<[u32]>)]>,
}

/// A switch that evaluates its condition itself.
pub(crate) struct ConditionStep {
    /// The number of the switch in the body.
    pub switch: u32,
    /// The condition.
    pub condition: Condition,
    /// The arm for false, and the arm for true.
    pub arms: [u32; 2],
}

/// A condition on scalars, which stay in their slots.
pub(crate) enum Condition {
    /// A Boolean value.
    Holds(Argument),
    /// A comparison of two scalars.
    Compare(Prim, Argument, Argument),
    /// The negation of a condition.
    Not(Box<Condition>),
    /// The conjunction of two conditions.
    Both(Box<Condition>, Box<Condition>),
    /// The disjunction of two conditions.
    Either(Box<Condition>, Box<Condition>),
}

/// A `within` or `race`, or a transaction.
pub(crate) struct TimedStep {
    /// The name of the node.
    pub name: Arc<str>,
    /// The time limit; `None` for a race and a transaction.
    pub limit: Option<Argument>,
    /// True for a transaction.
    pub is_transaction: bool,
    /// The bodies, each with the values that it captures.
    pub bodies: Box<[(Body, Box<[Argument]>)]>,
    /// True if only computation follows in the text, as for [`Action::Release`].
    pub is_last_effect: bool,
    /// The atomic steps around it, by the node that begins each: what they hold is held for the body too.
    pub within: Box<[u32]>,
    /// The slot of the output.
    pub out: u32,
}

/// The beginning of an atomic step.
pub(crate) struct AcquireStep {
    /// The locks that it acquires, in the canonical order.
    pub wanted: Box<[Wanted]>,
    /// The session.
    pub session: Option<Argument>,
    /// The shared values that get back their values if what the step has begun is taken back.
    pub restores: Box<[SharedOf]>,
    /// The ends of steps that a step which restores shared values asks: it does so unless it has completed what it has begun.
    pub ends: Box<[Arc<dyn StepEnd>]>,
    /// The atomic steps around it, by the node that begins each.
    pub within: Box<[u32]>,
    /// The ticket gates within it, which are waited for before any lock.
    pub ticket_gates: Box<[usize]>,
    /// True if it only reads, in no other step of its body: it takes no locks of values of one store that has snapshots.
    pub sees_snapshot: bool,
    /// True if the flow may be cancelled within the step.
    pub cancellable: bool,
}

impl AcquireStep {
    /// Returns true if it takes none of its locks.
    pub(crate) fn needs_no_locks(&self) -> bool {
        let whole =
            || self.wanted.iter().filter_map(|of| if let Wanted::Whole(lock, _) = of { Some(&**lock) } else { None });
        self.sees_snapshot && whole().count() == self.wanted.len() && see_one_snapshot(whole())
    }
}

/// A lock of an atomic step.
pub(crate) enum Wanted {
    /// The lock of the whole resource.
    Whole(Arc<FairRwLock>, Mode),
    /// The lock of the session.
    Session(Arc<SessionTable>, Mode),
    /// The lock of the session of a shared value that is declared `per session`; the value of this index is made if
    /// there is none.
    Own(Arc<SessionTable>, Mode, u32),
}
