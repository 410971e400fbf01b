//! A graph, prepared: what is left of it when all that can be known before it runs has been worked out.
//!
//! A [`Body`] is a list of [`PreparedStep`]s in the order of the graph's nodes, with slots instead of ports, indices instead of
//! names, and masks instead of edges: every node that may have to wait has a bit, and a step may run when none of the bits
//! that it depends on belongs to a node that still waits.

use std::sync::Arc;

use weir_host::{Argument, Code, ImmediateCode, Mode, Value};
use weir_ir::graph::ArmTest;
use weir_ir::prim::Prim;

use crate::lock::{FairRwLock, SessionTable};

/// Stands for "none" where an index is expected.
pub(crate) const NONE: u32 = u32::MAX;

/// A prepared graph.
pub(crate) struct Body {
    /// One step for each node.
    pub steps: Box<[PreparedStep]>,
    /// The names of the nodes.
    pub names: Box<[Arc<str>]>,
    /// The constants that arguments name.
    pub constants: Box<[Value]>,
    /// How many slots a frame has; the first ones hold the parameters.
    pub slots: u32,
    /// How many switches it has.
    pub switches: u32,
    /// Where its result lies; `None` where it always ends before.
    pub result: Option<Argument>,
    /// Whether a step of it may have to wait.
    pub waits: bool,
    /// How many steps each lane has; empty unless iterations may overlap.
    pub order_lengths: Box<[u32]>,
    /// Whether iterations may overlap.
    pub overlaps: bool,
    /// For each parameter, whether it is handed from one iteration to the next, and back: it is changed, or can only be
    /// moved.
    pub handed: Box<[bool]>,
}

impl Body {
    /// Whether this holds of a step, or of one in the bodies within.
    pub(crate) fn has(&self, holds: &dyn Fn(&Action) -> bool) -> bool {
        self.steps.iter().any(|step| step.has(holds))
    }
}

/// A prepared node.
pub(crate) struct PreparedStep {
    /// What it does.
    pub action: Action,
    /// The switch that controls it, or [`NONE`].
    pub switch: u32,
    /// The arm of the switch.
    pub arm: u32,
    /// The next step to look at where this one is skipped.
    pub skip_to: u32,
    /// The next step to look at where this one has run: those between do nothing.
    pub then: u32,
    /// Its own bit, or 0 where it never waits.
    pub bit: u64,
    /// The bits of all earlier steps that it depends on, directly or not.
    pub depends: u64,
    /// The lanes that the next iteration may enter only when this step is through.
    pub signals_orders: u64,
    /// The lanes whose turn must have come before this step runs.
    pub awaits_orders: u64,
    /// The turnstiles that the flow passes when this step is through.
    pub ticket_gates: Box<[usize]>,
}

impl PreparedStep {
    /// Whether this holds of the step, or of one in its bodies.
    pub(crate) fn has(&self, holds: &dyn Fn(&Action) -> bool) -> bool {
        let in_bodies = || match &self.action {
            Action::Repeat(repeat) => repeat.body.has(holds),
            Action::Timed(timed) => timed.bodies.iter().any(|(body, _)| body.has(holds)),
            _ => false,
        };
        holds(&self.action) || in_bodies()
    }
}

/// What a step does.
pub(crate) enum Action {
    /// Nothing: a switch that its call has decided already, or part of a switch's condition.
    Nothing,
    /// A primitive.
    Prim(PrimStep),
    /// A call that needs nothing but its function: it returns at once, cannot fail, and touches no state or lock.
    Simple(Box<SimpleStep>),
    /// Any other call.
    Call(Box<CallStep>),
    /// A switch.
    Switch(Box<SwitchStep>),
    /// A switch that decides its condition by itself.
    Condition(Box<ConditionStep>),
    /// A select: the input of each arm, and the output.
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
    /// The end of the atomic step that this node began.
    Release(u32),
    /// What is never reached, because an earlier step has ended the flow.
    Never,
    /// The end of the flow with an answer.
    Return(Argument),
    /// The end of the flow with a failure.
    Fail(Argument),
}

/// A primitive.
pub(crate) struct PrimStep {
    /// Which.
    pub prim: Prim,
    /// Its operands.
    pub operands: Box<[Argument]>,
    /// The slots that nobody uses afterwards.
    pub dead: Box<[u32]>,
    /// Whether what it passes on may have to be moved.
    pub moves: bool,
    /// The slot of the output.
    pub out: u32,
}

/// A call of the simplest kind.
pub(crate) struct SimpleStep {
    /// The function.
    pub code: Arc<ImmediateCode>,
    /// Its path, for messages.
    pub path: Arc<str>,
    /// Its arguments.
    pub arguments: Box<[Argument]>,
    /// The slots that nobody uses afterwards and that the function only borrows.
    pub dead: Box<[u32]>,
    /// The slot of its answer.
    pub out: u32,
}

/// A call.
pub(crate) struct CallStep {
    /// The function.
    pub code: Code,
    /// Its path, for messages.
    pub path: Arc<str>,
    /// Its arguments.
    pub arguments: Box<[Argument]>,
    /// What its arguments mean by a shared value, where one of them is the session's own; else empty, and they mean those
    /// of the program.
    pub shared: Box<[SharedOf]>,
    /// The slots that nobody uses afterwards and that the function only borrows.
    pub dead: Box<[u32]>,
    /// Where its answer goes.
    pub out: Out,
    /// What it holds while it runs, in the canonical order.
    pub locks: Box<[(Arc<FairRwLock>, Mode)]>,
    /// The turnstile that it waits at.
    pub ticket_gate: Option<usize>,
    /// Its private state.
    pub state: Option<usize>,
    /// The nodes that began the atomic steps that it is within.
    pub within: Box<[u32]>,
}

/// One shared value of a call.
pub(crate) enum SharedOf {
    /// That of the program, by its index.
    Program(u32),
    /// That of the flow's session.
    Session(Arc<SessionTable>),
}

/// Where a call's answer goes.
pub(crate) enum Out {
    /// The value, of a function that cannot fail.
    Value(u32),
    /// A `Result`.
    Result(u32),
    /// Straight to the arms of the switch that tests it, so that no `Result` is made: Flux's branch on success.
    OfResult {
        /// The switch.
        switch: u32,
        /// The arm of success, and the slot of its payload.
        ok: (u32, u32),
        /// The arm of failure, and the slot of its payload.
        err: (u32, u32),
    },
    /// The same for an `Option`.
    OfOption {
        /// The switch.
        switch: u32,
        /// The arm of `Some`, and the slot of its payload.
        some: (u32, u32),
        /// The arm of `None`, which has no payload.
        none: (u32, u32),
    },
}

/// A switch.
pub(crate) struct SwitchStep {
    /// Its number among the body's switches.
    pub switch: u32,
    /// What it tests.
    pub subject: Argument,
    /// Whether its payload may have to be moved.
    pub moves: bool,
    /// Its arms: the test, and the slots of the payload.
    pub arms: Box<[(ArmTest, Box<[u32]>)]>,
}

/// A switch that decides its condition by itself.
pub(crate) struct ConditionStep {
    /// Its number among the body's switches.
    pub switch: u32,
    /// What it decides.
    pub condition: Condition,
    /// The arm where the condition does not hold, and where it does.
    pub arms: [u32; 2],
}

/// A condition on scalars. What it looks at stays in its slots.
pub(crate) enum Condition {
    /// This truth value.
    Holds(Argument),
    /// A comparison of two scalars.
    Compare(Prim, Argument, Argument),
    /// The other does not hold.
    Not(Box<Condition>),
    /// Both hold.
    Both(Box<Condition>, Box<Condition>),
    /// One of them holds.
    Either(Box<Condition>, Box<Condition>),
}

/// How a body is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// For each element; yields the list of results.
    Map,
    /// For accumulator and element; yields the accumulator.
    Fold,
    /// With the state, until done.
    Loop {
        /// The bound.
        at_most: u64,
    },
}

/// A map, fold or loop.
pub(crate) struct RepeatStep {
    /// Which.
    pub repeat: Repeat,
    /// The node's inputs.
    pub inputs: Box<[Argument]>,
    /// The atomic steps that it is within, by the node that begins each: what they hold is held for the body too.
    pub within: Box<[u32]>,
    /// What is repeated.
    pub body: Body,
    /// The slot of the output.
    pub out: u32,
}

/// A `within` or `race`.
pub(crate) struct TimedStep {
    /// Its node's name.
    pub name: Arc<str>,
    /// How long it may take; `None` for a race.
    pub limit: Option<Argument>,
    /// The bodies, each with what it captures.
    pub bodies: Box<[(Body, Box<[Argument]>)]>,
    /// The atomic steps that it is within, by the node that begins each: what they hold is held for the bodies too.
    pub within: Box<[u32]>,
    /// The slot of the output.
    pub out: u32,
}

/// The beginning of an atomic step.
pub(crate) struct AcquireStep {
    /// What is taken, in the canonical order.
    pub wanted: Box<[Wanted]>,
    /// The session.
    pub session: Option<Argument>,
    /// The nodes that began the atomic steps around it.
    pub within: Box<[u32]>,
    /// The turnstiles within, whose turns come before any lock.
    pub ticket_gates: Box<[usize]>,
}

/// One lock of an atomic step.
pub(crate) enum Wanted {
    /// The whole resource.
    Whole(Arc<FairRwLock>, Mode),
    /// The lock of the session.
    Session(Arc<SessionTable>, Mode),
    /// The same of a shared value that each session has, which is made where there is none: the value's index.
    Own(Arc<SessionTable>, Mode, u32),
}
