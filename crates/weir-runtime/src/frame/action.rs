//! Actions of steps: primitives, switches, selects and bodies. Calls are in `call.rs`, atomic steps in `atomic.rs`.

use std::num::NonZeroU64;
use std::task::Context;

use weir_host::{Argument, Failure, Pending, Value};
use weir_ir::evaluate::{failure_of, test_holds};

use super::repeat::Run;
use super::timed::Timed;
use super::{FlowExit, Frame, record_ran};
use crate::batching::Member;
use crate::instance::Env;
use crate::lock::{HeldLock, LockAcquisition};
use crate::operations::{self, apply, unpack};
use crate::prim_units;
use crate::step::{
    Action, Body, Condition, CutStep, CutYield, PreparedStep, PrimStep, RepeatStep, SwitchStep, TimedStep,
};
use crate::units::{self, Advanced, Spent};

/// The outcome of running a step.
pub(super) enum Ran {
    /// The step has run.
    Next,
    /// The step has to wait.
    Waits(Box<Stage>),
    /// The slice of the flow is over. `None` if the step itself has run; otherwise the state from which it goes on.
    Yields(Option<Box<Stage>>),
    /// The step ends the flow.
    Ends(Box<StepExit>),
    /// The step has run for a strip of its list, and goes on when the step of this index has made the rows of the next one.
    Again(u32),
}

/// An end of the flow by a step. It is boxed, so that the outcome of a step fits into registers.
pub(super) struct StepExit {
    /// The path of the node within the step's body; empty if it is the step itself.
    pub within: String,
    /// The answer, or the failure.
    pub how: Result<Value, Box<Failure>>,
}

impl Ran {
    pub(super) fn wait(stage: Stage) -> Ran {
        Ran::Waits(Box::new(stage))
    }

    /// Yields in the middle of a step.
    pub(super) fn yields(stage: Stage) -> Ran {
        Ran::Yields(Some(Box::new(stage)))
    }

    pub(super) fn end(how: Result<Value, Box<Failure>>) -> Ran {
        Ran::Ends(Box::new(StepExit { within: String::new(), how }))
    }

    /// Spends the units of a call that has run.
    #[inline(always)]
    pub(super) fn spend_call(self, env: &Env<'_>) -> Ran {
        match self {
            Ran::Next if env.units.spend_timed(units::CALL, &*env.instance.platform) == Spent::Yield => {
                Ran::Yields(None)
            }
            ran => ran,
        }
    }

    /// Ends the flow with a failure.
    #[cold]
    pub(super) fn fail(failure: Box<Failure>) -> Ran {
        Ran::end(Err(failure))
    }
}

/// The stage in which a step waits, or in which its slice was over.
pub(super) enum Stage {
    /// The step waits at a ticket gate; for an atomic step, at the gate of this index among those within it.
    Ticket(usize),
    /// The step waits for its locks.
    Locks(LockAcquisition),
    /// The step waits for its function, under these locks.
    Function(Pending, Vec<HeldLock>, Meanwhile),
    /// The step waits for its batch.
    Batched(Member),
    /// The step waits for its repeated body, or the body yields.
    Body(Box<Run>),
    /// The step waits for bodies that it may cancel, or one of them yields.
    Timed(Box<Timed>),
    /// The region that begins with the step goes on at the first instruction, and yielded at the other one.
    Region(usize, usize),
    /// The region that begins with the step waits for the call of this instruction, which takes long.
    RegionCall(Pending, usize),
    /// The region that begins with the step waits at this instruction for rounds that run on other threads.
    RegionJoin(usize),
    /// An atomic step has its locks, and makes the values of its sessions.
    Making(Making),
    /// Neither an atomic step nor what is behind a step with bodies begins, because the frame is given up once it is in no atomic
    /// step.
    Refused,
    /// The flow moves to the section of the step.
    Moves,
}

/// The things that a flow holds while it waits for a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meanwhile {
    /// Its thread.
    Thread,
    Nothing,
    /// Nothing: the call only reads, and was sent on the connection with this number ([`AwaitedCall::sent_on`](weir_host::AwaitedCall)).
    Sent(NonZeroU64),
}

/// An atomic step that has its locks, and makes the values of its sessions. Dropping it releases the locks.
pub(super) struct Making {
    pub held: Vec<HeldLock>,
    /// The lock of the step whose value is made.
    pub wanted: usize,
    /// The frame of the body that computes it, once it has begun.
    pub frame: Option<Box<Frame>>,
}

impl Making {
    /// Returns the frame to the pool.
    pub(super) fn end_body(&mut self) {
        self.frame.take().into_iter().for_each(Frame::give_back);
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Before the locks, under which it runs.
        self.end_body();
    }
}

impl Stage {
    /// Returns true if a body of the step is in an atomic step. A step that waits for locks has done nothing under those
    /// that it has already, and a call that waits under locks of its own is cancelled like any other.
    pub(super) fn is_in_step(&self) -> bool {
        match self {
            Stage::Ticket(_) | Stage::Locks(_) | Stage::Function(..) | Stage::Refused | Stage::Making(_) => false,
            Stage::Moves => false,
            Stage::Region(..) | Stage::RegionCall(..) | Stage::RegionJoin(_) | Stage::Batched(_) => false,
            Stage::Body(run) => run.is_in_step(),
            Stage::Timed(timed) => timed.is_in_step(),
        }
    }

    /// Returns true if the flow holds no thread while the step waits: for the peers of connections, for calls that take long
    /// and run on another thread, for batches, and for locks and turns.
    pub(super) fn leaves_thread(&self) -> bool {
        match self {
            Stage::Function(.., meanwhile) => *meanwhile != Meanwhile::Thread,
            Stage::RegionCall(..) | Stage::RegionJoin(_) => true,
            Stage::Batched(_) | Stage::Making(_) | Stage::Ticket(_) | Stage::Locks(_) => true,
            Stage::Body(run) => run.leaves_thread(),
            Stage::Timed(timed) => timed.leaves_thread(),
            Stage::Refused | Stage::Moves | Stage::Region(..) => false,
        }
    }

    /// Returns true if the step waits for a call that holds neither a thread nor locks meanwhile.
    pub(super) fn awaits_peer(&self) -> bool {
        matches!(self, Stage::Function(_, held, meanwhile) if held.is_empty() && *meanwhile != Meanwhile::Thread)
    }
}

impl Frame {
    /// Runs a step from its beginning. Inlined with everything that it calls, because every step of every flow goes
    /// through here, and calls would cost as much as the steps do.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        node: usize,
        step: &PreparedStep,
        body: &Body,
        env: &Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        if env.records_nodes {
            return self.run_recorded(node, step, body, env, context);
        }
        self.run_step(node, step, body, env, context)
    }

    #[cold]
    #[inline(never)]
    fn run_recorded(
        &mut self,
        node: usize,
        step: &PreparedStep,
        body: &Body,
        env: &Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        let since_ns = env.instance.platform.now_ns();
        let ran = self.run_step(node, step, body, env, context);
        if !matches!(ran, Ran::Waits(_) | Ran::Yields(Some(_))) {
            record_ran(body, *env, node, since_ns);
        }
        ran
    }

    #[inline(always)]
    fn run_step(
        &mut self,
        node: usize,
        step: &PreparedStep,
        body: &Body,
        env: &Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        match &step.action {
            Action::Region(region) if self.runs_regions(region, *env) => {
                self.run_region(node, region, 0, *env, context)
            }
            Action::Region(region) => self.run_form(node, &region.first, body, env, context),
            action => self.run_form(node, action, body, env, context),
        }
    }

    #[inline(always)]
    fn run_form(&mut self, node: usize, action: &Action, body: &Body, env: &Env<'_>, context: &mut Context<'_>) -> Ran {
        match action {
            Action::Nothing => Ran::Next,
            Action::Prim(prim) => compute(prim, &mut self.slots, body, env),
            Action::Simple(call) => self.simple(call, body, env).spend_call(env),
            Action::Call(call) if call.ticket_gate.is_some() => {
                self.take_ticket(call, body, *env, context).spend_call(env)
            }
            Action::Call(call) => self.call(call, body, env, context).spend_call(env),
            Action::Switch(switch) => self.switch(switch, body),
            Action::Condition(step) => {
                let holds = holds(&step.condition, &self.slots, &body.constants, env);
                self.choices[step.switch as usize] = step.arms[usize::from(holds)];
                Ran::Next
            }
            Action::Select { switch, inputs, out } => self.select(*switch, inputs, *out, body),
            Action::Repeat(repeat) => {
                let run = Run::new(repeat, self, body, *env);
                self.repeat(run, repeat, *env, context)
            }
            Action::Timed(timed) => {
                let run = self.bodies(timed, body, *env);
                self.timed(run, timed, *env, context)
            }
            Action::Acquire(acquire) => self.acquire(node, 0, acquire, body, *env, context),
            Action::Release { acquire, is_last_effect } => {
                self.scopes.retain(|open| open.node != *acquire);
                // The frame may be given up here.
                if env.given_up.is_some() && !is_last_effect { Ran::Yields(None) } else { Ran::Next }
            }
            Action::Cut(cut) => {
                let yields = match cut.yields {
                    CutYield::Never => false,
                    CutYield::AtFirst => !self.has_stopped_before,
                    CutYield::Always => true,
                };
                self.run_cut(node, (cut, yields), body, *env, context)
            }
            Action::Region(_) | Action::Never => never(),
            Action::Return(answer) => Ran::end(Ok(self.value(body, *answer))),
            Action::Fail(failure) => {
                let failure = failure_of(self.value(body, *failure));
                Ran::fail(failure)
            }
        }
    }

    /// Runs a step in its section, or lets the flow move there. Within an atomic step it stays where it is, because others
    /// wait for its locks.
    #[cold]
    #[inline(never)]
    fn run_cut(
        &mut self,
        node: usize,
        (cut, yields): (&CutStep, bool),
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        let moves = yields || env.section.here() != cut.section;
        if moves && self.scopes.is_empty() && self.inherited.is_empty() {
            env.section.ask_for(cut.section);
            return Ran::yields(Stage::Moves);
        }
        match &cut.action {
            Action::Region(region) if self.runs_regions(region, env) => self.run_region(node, region, 0, env, context),
            action => self.run_form(node, action.form(), body, &env, context),
        }
    }

    /// Resumes a step that has waited.
    pub(super) fn go_on(
        &mut self,
        node: usize,
        stage: Stage,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        if let (Stage::Moves, Action::Cut(cut)) = (&stage, &body.steps[node].action) {
            return self.run_cut(node, (cut, false), body, env, context);
        }
        let action = body.steps[node].action.uncut();
        let stage = match (stage, action) {
            (Stage::Region(at, _) | Stage::RegionJoin(at), Action::Region(region)) => {
                return self.run_region(node, region, at, env, context);
            }
            (Stage::RegionCall(pending, at), Action::Region(region)) => {
                return self.wait_for_call(region, (pending, at), context);
            }
            (stage, _) => stage,
        };
        match (stage, action.form()) {
            (Stage::Ticket(_), Action::Call(call)) => self.take_ticket(call, body, env, context).spend_call(&env),
            (Stage::Locks(locks), Action::Call(call)) => {
                self.call_under(locks, call, body, env, context).spend_call(&env)
            }
            (Stage::Function(pending, held, meanwhile), Action::Call(call)) => {
                self.function((pending, held, meanwhile), call, context).spend_call(&env)
            }
            (Stage::Function(pending, ..), Action::Simple(call)) => {
                self.long_simple_ended(pending, call, context).spend_call(&env)
            }
            (Stage::Ticket(passed), Action::Acquire(acquire)) => {
                self.acquire(node, passed, acquire, body, env, context)
            }
            (Stage::Locks(locks), Action::Acquire(acquire)) => self.hold(node, locks, acquire, env, context),
            (Stage::Making(making), Action::Acquire(acquire)) => self.make_own(node, making, acquire, env, context),
            (Stage::Body(run), Action::Repeat(repeat)) => self.go_on_repeating(run, repeat, env, context),
            (Stage::Refused, _) => Ran::wait(Stage::Refused),
            (Stage::Timed(run), Action::Timed(timed)) => self.timed(*run, timed, env, context),
            _ => unreachable!("a step waits only for what it can wait for"),
        }
    }

    #[inline]
    fn switch(&mut self, step: &SwitchStep, body: &Body) -> Ran {
        let subject = operations::place(&step.subject, &self.slots, &body.constants);
        let chosen = step.arms.iter().position(|(test, _)| test_holds(test, subject));
        let Some(arm) = chosen else { return Ran::fail(operations::no_arm(subject)) };
        self.choices[step.switch as usize] = arm as u32;
        unpack(step.subject, &step.arms[arm].1, step.moves, &mut self.slots, &body.constants);
        Ran::Next
    }

    #[inline(always)]
    fn select(&mut self, switch: u32, inputs: &[Option<Argument>], out: u32, body: &Body) -> Ran {
        let chosen = self.choices[switch as usize] as usize;
        // The chosen arm ends the flow, and may still wait before it does: there is no value to continue with.
        let Some(input) = inputs.get(chosen).copied().flatten() else { return never() };
        let value = self.value(body, input);
        self.slots[out as usize].put(value);
        Ran::Next
    }

    fn repeat(&mut self, mut run: Run, step: &RepeatStep, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        match run.advance(step, env, context) {
            Advanced::Waits => Ran::wait(Stage::Body(Box::new(run))),
            Advanced::Yields => Ran::yields(Stage::Body(Box::new(run))),
            Advanced::Ready(Ok(states)) if self.has_further_strip(step, &states) => {
                Ran::Again(self.keep_for_next_strip(Box::new(run), states, step))
            }
            Advanced::Ready(result) => self.repeated(&mut run, result, step, env),
        }
    }

    /// Goes on with a repetition, which stays in its box.
    fn go_on_repeating(
        &mut self,
        mut run: Box<Run>,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        match run.advance(step, env, context) {
            Advanced::Waits => self.waits_in(Stage::Body(run)),
            Advanced::Yields => Ran::yields(Stage::Body(run)),
            Advanced::Ready(Ok(states)) if self.has_further_strip(step, &states) => {
                Ran::Again(self.keep_for_next_strip(run, states, step))
            }
            Advanced::Ready(result) => self.repeated(&mut run, result, step, env),
        }
    }

    /// Ends a repetition.
    fn repeated(&mut self, run: &mut Run, result: Result<Value, FlowExit>, step: &RepeatStep, env: Env<'_>) -> Ran {
        run.restore(step, self);
        self.forget_strips(step);
        match result {
            Ok(value) => {
                self.slots[step.out as usize] = value;
                self.behind_bodies(step.is_last_effect, env)
            }
            Err(ended) => Ran::Ends(Box::new(StepExit { within: ended.path(&step.body), how: ended.how })),
        }
    }

    fn timed(&mut self, mut run: Timed, step: &TimedStep, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        match run.advance(step, env, context) {
            Advanced::Waits => Ran::wait(Stage::Timed(Box::new(run))),
            Advanced::Yields => Ran::yields(Stage::Timed(Box::new(run))),
            Advanced::Ready(Ok(value)) => {
                self.slots[step.out as usize] = value;
                self.behind_bodies(step.is_last_effect, env)
            }
            Advanced::Ready(Err((ended, body))) => {
                if step.is_transaction {
                    self.failed_transaction = Some(Box::new(run));
                }
                Ran::Ends(Box::new(StepExit { within: ended.path(body), how: ended.how }))
            }
        }
    }

    /// Ends a step with bodies. If an atomic step in one of them was the last thing that the frame, which is to be given up, had to
    /// complete, nothing begins behind it.
    #[inline]
    fn behind_bodies(&self, is_last_effect: bool, env: Env<'_>) -> Ran {
        match env.given_up {
            Some(outside) if !is_last_effect && self.inherited.len() + self.scopes.len() <= outside => {
                Ran::wait(Stage::Refused)
            }
            _ => Ran::Next,
        }
    }
}

/// Computes a primitive.
#[inline]
pub(super) fn compute(step: &PrimStep, slots: &mut [Value], body: &Body, env: &Env<'_>) -> Ran {
    let constants: &[Value] = &body.constants;
    if operations::calculate(step, slots, constants) || operations::copy_field(step, slots, constants) {
        return Ran::Next;
    }
    env.units.spend_data(operations::units_of(step, slots, constants));
    match apply(step, slots, constants) {
        Ok(()) => Ran::Next,
        Err(failure) => Ran::fail(failure),
    }
}

/// Returns true if a condition holds.
pub(super) fn holds(condition: &Condition, slots: &[Value], constants: &[Value], env: &Env<'_>) -> bool {
    match condition {
        Condition::Holds(value) => *operations::place(value, slots, constants) == Value::Bool(true),
        Condition::Compare(prim, one, other) => {
            let (one, other) = (operations::place(one, slots, constants), operations::place(other, slots, constants));
            // Comparisons do not fail.
            let compared = || {
                env.units.spend_data(prim_units::units(*prim, [one, other].into_iter(), false));
                prim.apply(&[one, other]).is_ok_and(|truth| truth == Value::Bool(true))
            };
            prim.decide(one, other).unwrap_or_else(compared)
        }
        Condition::Not(condition) => !holds(condition, slots, constants, env),
        Condition::Both(one, other) => holds(one, slots, constants, env) && holds(other, slots, constants, env),
        Condition::Either(one, other) => holds(one, slots, constants, env) || holds(other, slots, constants, env),
    }
}

#[cold]
fn never() -> Ran {
    Ran::fail(operations::never())
}
