//! What one step does: primitives, switches, calls, atomic steps, repeated bodies.
//!
//! A call passes these stages, and goes from one to the next without waiting where nothing stands in its way:
//! 1. its turn, where it must see a source's order;
//! 2. its locks, in the canonical order;
//! 3. the function itself, which returns at once, waits, or holds a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use weir_host::{Argument, Call, Code, Failure, FailureKind, Job, Outcome, Pending, Settled, Value};
use weir_ir::evaluate::{failure_of, holds};
use weir_ir::prim::{Prim, elements};

use crate::frame::{Frame, panicked, record_ran};
use crate::live::{Blocking, Env};
use crate::lock::{Acquiring, Borrowed, Handle, Held, Sessions};
use crate::repeat::Run;
use crate::step::{
    AcquireStep, Action, Body, CallStep, NONE, Out, PrimStep, RepeatStep, SimpleStep, Step, SwitchStep, Wanted,
};
use crate::timed::Timed;

/// What came of a step.
pub(crate) enum Ran {
    /// It is through.
    Next,
    /// It has to wait.
    Waits(Box<Stage>),
    /// It ends the flow.
    Ends(Box<End>),
}

/// How a step ends the flow. It is boxed, so that what every step returns fits into registers.
pub(crate) struct End {
    /// The path of the node within the step's body; empty where it is the step itself.
    pub within: String,
    /// The answer, or the failure.
    pub how: Result<Value, Box<Failure>>,
}

impl Ran {
    pub(crate) fn wait(stage: Stage) -> Ran {
        Ran::Waits(Box::new(stage))
    }

    fn end(how: Result<Value, Box<Failure>>) -> Ran {
        Ran::Ends(Box::new(End { within: String::new(), how }))
    }

    /// The step fails.
    #[cold]
    pub(crate) fn fail(failure: Box<Failure>) -> Ran {
        Ran::end(Err(failure))
    }
}

/// What a step waits for.
pub(crate) enum Stage {
    /// Its turn; for an atomic step the turnstile of this index among those within it.
    Turn(usize),
    /// Its locks.
    Locks(Acquiring),
    /// Its function, under these locks.
    Function(Pending, Vec<Held>),
    /// The body that it repeats.
    Body(Box<Run>),
    /// The bodies that it may give up.
    Timed(Box<Timed>),
}

impl Frame {
    /// Runs a step from its beginning.
    #[inline]
    pub(crate) fn run(
        &mut self,
        node: usize,
        step: &Step,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        if env.records_nodes {
            return self.run_recorded(node, step, body, env, context);
        }
        self.run_step(node, step, body, env, context)
    }

    #[cold]
    fn run_recorded(&mut self, node: usize, step: &Step, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        let since_ns = env.live.machine.now_ns();
        let ran = self.run_step(node, step, body, env, context);
        if !matches!(ran, Ran::Waits(_)) {
            record_ran(body, env, node, since_ns);
        }
        ran
    }

    #[inline]
    fn run_step(&mut self, node: usize, step: &Step, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        match &step.action {
            Action::Nothing => Ran::Next,
            Action::Prim(prim) => self.prim(prim, body),
            Action::Simple(call) => self.simple(call, body, env),
            Action::Call(call) if call.turn.is_some() => self.take_turn(call, body, env, context),
            Action::Call(call) => self.call(call, body, env, context),
            Action::Switch(switch) => self.switch(switch, body),
            Action::Select { switch, inputs, out } => self.select(*switch, inputs, *out, body),
            Action::Repeat(repeat) => {
                let run = Run::new(repeat, self, body);
                self.repeat(run, repeat, env, context)
            }
            Action::Timed(timed) => self.timed(timed, body, env, context),
            Action::Acquire(acquire) => self.acquire(node, 0, acquire, body, env, context),
            Action::Release(acquire) => {
                self.scopes.retain(|(node, _)| node != acquire);
                Ran::Next
            }
            // Where an earlier end still waits, this one stands behind it and loses.
            Action::Never => {
                let failure = Failure::new(FailureKind::Program, "this is never reached");
                Ran::fail(Box::new(failure))
            }
            Action::Return(answer) => Ran::end(Ok(self.value(body, *answer))),
            Action::Fail(failure) => {
                let failure = failure_of(self.value(body, *failure));
                Ran::fail(failure)
            }
        }
    }

    /// Goes on with a step that has waited.
    pub(crate) fn go_on(
        &mut self,
        node: usize,
        stage: Box<Stage>,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        match (*stage, &body.steps[node].action) {
            (Stage::Turn(_), Action::Call(call)) => self.take_turn(call, body, env, context),
            (Stage::Locks(locks), Action::Call(call)) => self.call_under(locks, call, body, env, context),
            (Stage::Function(pending, held), Action::Call(call)) => self.function(pending, held, call, context),
            (Stage::Turn(passed), Action::Acquire(acquire)) => self.acquire(node, passed, acquire, body, env, context),
            (Stage::Locks(locks), Action::Acquire(_)) => self.hold(node, locks, context),
            (Stage::Body(run), Action::Repeat(repeat)) => self.repeat(*run, repeat, env, context),
            (Stage::Timed(run), Action::Timed(timed)) => self.timed_on(*run, timed, env, context),
            _ => unreachable!("a step waits only for what it can wait for"),
        }
    }

    fn forget(&mut self, dead: &[u32]) {
        for slot in dead {
            self.slots[*slot as usize] = Value::Absent;
        }
    }

    #[inline]
    fn prim(&mut self, step: &PrimStep, body: &Body) -> Ran {
        let computed = match step.prim {
            prim if step.moves => self.prim_moving(prim, step, body),
            Prim::Copy => Ok(self.value(body, step.operands[0])),
            Prim::List => Ok(Value::List(self.values(body, &step.operands).collect())),
            Prim::Record => Ok(Value::Record(self.values(body, &step.operands).collect())),
            Prim::Variant(tag) if !step.operands.is_empty() => {
                Ok(Value::Variant(tag, Some(self.values(body, &step.operands).collect())))
            }
            prim => {
                let place = |operand: &Argument| match *operand {
                    Argument::Slot { index, .. } => &self.slots[index as usize],
                    Argument::Constant(index) => &body.constants[index as usize],
                    Argument::Shared(_) => &Value::Absent,
                };
                match &step.operands[..] {
                    [one] => prim.apply(&[place(one)]),
                    [one, other] => prim.apply(&[place(one), place(other)]),
                    all => prim.apply(&all.iter().map(place).collect::<SmallVec<[&Value; 8]>>()),
                }
            }
        };
        self.forget(&step.dead);
        match computed {
            Ok(value) => {
                put(&mut self.slots[step.out as usize], value);
                Ran::Next
            }
            Err(failure) => Ran::fail(failure),
        }
    }

    /// What can only be moved is moved out of the operands; what is left of them goes back.
    #[cold]
    fn prim_moving(&mut self, prim: Prim, step: &PrimStep, body: &Body) -> Result<Value, Box<Failure>> {
        let take = |operand: &Argument| match *operand {
            Argument::Slot { index, .. } => self.slots[index as usize].take(),
            Argument::Constant(index) => body.constants[index as usize].clone(),
            Argument::Shared(_) => Value::Absent,
        };
        let mut operands: SmallVec<[Value; 4]> = step.operands.iter().map(take).collect();
        let computed = prim.apply_moving(&mut operands);
        for (operand, rest) in step.operands.iter().zip(operands) {
            if let Argument::Slot { index, .. } = operand {
                self.slots[*index as usize] = rest;
            }
        }
        computed
    }

    fn values<'a>(&'a mut self, body: &'a Body, operands: &'a [Argument]) -> impl Iterator<Item = Value> + 'a {
        operands.iter().map(|operand| self.value(body, *operand))
    }

    #[inline]
    fn switch(&mut self, step: &SwitchStep, body: &Body) -> Ran {
        let subject = match step.subject {
            Argument::Slot { index, .. } => &self.slots[index as usize],
            Argument::Constant(index) => &body.constants[index as usize],
            Argument::Shared(_) => &Value::Absent,
        };
        let chosen = step.arms.iter().position(|(test, _)| holds(test, subject));
        let Some(arm) = chosen else {
            let message = format!("no arm of the match fits {subject}");
            return Ran::fail(Box::new(Failure::new(FailureKind::Program, message)));
        };
        self.choices[step.switch as usize] = arm as u32;
        let ports = &step.arms[arm].1;
        if ports.is_empty() {
            if let Argument::Slot { index, last: true } = step.subject {
                self.slots[index as usize] = Value::Absent;
            }
        } else if step.moves {
            self.unpack_moving(step.subject, ports);
        } else if let Value::Variant(_, Some(payload)) = self.value(body, step.subject) {
            self.unpack(payload, ports);
        }
        Ran::Next
    }

    /// Moves those fields out of the payload that can only be moved; the rest stays for later users.
    #[cold]
    fn unpack_moving(&mut self, subject: Argument, ports: &[u32]) {
        let Argument::Slot { index, .. } = subject else { return };
        let mut rest = self.slots[index as usize].take();
        if let Value::Variant(_, Some(payload)) = &mut rest {
            for (port, field) in ports.iter().zip(elements(payload)) {
                self.slots[*port as usize] = field;
            }
        }
        self.slots[index as usize] = rest;
    }

    /// Moves the fields of a payload that nobody else holds, and clones them otherwise.
    fn unpack(&mut self, mut payload: Arc<[Value]>, ports: &[u32]) {
        match Arc::get_mut(&mut payload) {
            Some(fields) => {
                for (port, field) in ports.iter().zip(fields) {
                    self.slots[*port as usize] = field.take();
                }
            }
            None => {
                for (port, field) in ports.iter().zip(payload.iter()) {
                    self.slots[*port as usize] = field.clone();
                }
            }
        }
    }

    #[inline]
    fn select(&mut self, switch: u32, inputs: &[Option<Argument>], out: u32, body: &Body) -> Ran {
        let chosen = self.choices[switch as usize] as usize;
        if let Some(input) = inputs.get(chosen).copied().flatten() {
            self.slots[out as usize] = self.value(body, input);
        }
        Ran::Next
    }

    /// Makes a call of the simplest kind, of which there are the most.
    #[inline]
    fn simple(&mut self, step: &SimpleStep, body: &Body, env: Env<'_>) -> Ran {
        let outcome = (step.code)(&mut Call {
            slots: &mut self.slots,
            constants: &body.constants,
            shared: &env.live.resources.shared,
            state: None,
            arguments: &step.arguments,
            environment: &env.live.environment,
        });
        if !step.dead.is_empty() {
            self.forget(&step.dead);
        }
        match outcome {
            Outcome::Value(value) => {
                put(&mut self.slots[step.out as usize], value);
                Ran::Next
            }
            Outcome::Error(error) => Ran::fail(failure_of(error)),
            Outcome::Fault(failure) => Ran::fail(failure),
        }
    }

    fn take_turn(&mut self, step: &CallStep, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        if let Some(turn) = step.turn
            && env.live.resources.turns[turn].poll(env.key.sequence, context).is_pending()
        {
            return Ran::wait(Stage::Turn(turn));
        }
        self.call(step, body, env, context)
    }

    /// Makes a call whose turn it is.
    #[inline]
    fn call(&mut self, step: &CallStep, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        match &step.code {
            Code::Immediate(code) if step.locks.is_empty() => {
                let outcome = code(&mut self.call_of(step, body, env));
                self.answer(outcome, step)
            }
            Code::Immediate(code) => match try_locks(step) {
                Some(borrowed) => {
                    let outcome = code(&mut self.call_of(step, body, env));
                    drop(borrowed);
                    self.answer(outcome, step)
                }
                None => self.call_under(all_locks(step), step, body, env, context),
            },
            _ => self.call_under(all_locks(step), step, body, env, context),
        }
    }

    fn call_of<'a>(&'a mut self, step: &'a CallStep, body: &'a Body, env: Env<'a>) -> Call<'a> {
        Call {
            slots: &mut self.slots,
            constants: &body.constants,
            shared: &env.live.resources.shared,
            state: step.state.map(|state| &env.live.resources.states[state]),
            arguments: &step.arguments,
            environment: &env.live.environment,
        }
    }

    fn call_under(
        &mut self,
        mut locks: Acquiring,
        step: &CallStep,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        let Poll::Ready(held) = locks.poll(context) else { return Ran::wait(Stage::Locks(locks)) };
        let mut call = self.call_of(step, body, env);
        match &step.code {
            Code::Immediate(code) => {
                let outcome = code(&mut call);
                drop(held);
                self.answer(outcome, step)
            }
            Code::Waiting(code) => match code(&mut call) {
                Ok(pending) => self.function(pending, held, step, context),
                Err(fault) => self.answer(Outcome::Fault(fault), step),
            },
            Code::Blocking(code) => match (code(&mut call), env.live.blocking) {
                (Ok(job), Blocking::InPlace) => {
                    let settled = job();
                    drop(held);
                    self.settle(settled, step)
                }
                (Ok(job), Blocking::Elsewhere) => {
                    let pending = elsewhere(job, held, self.scopes_held(), Arc::clone(&step.path));
                    self.function(pending, Vec::new(), step, context)
                }
                (Err(fault), _) => self.answer(Outcome::Fault(fault), step),
            },
        }
    }

    fn scopes_held(&self) -> Vec<Arc<Vec<Held>>> {
        self.inherited.iter().chain(self.scopes.iter().map(|(_, scope)| scope)).cloned().collect()
    }

    fn function(&mut self, mut pending: Pending, held: Vec<Held>, step: &CallStep, context: &mut Context<'_>) -> Ran {
        match pending.as_mut().poll(context) {
            Poll::Pending => Ran::wait(Stage::Function(pending, held)),
            Poll::Ready(settled) => {
                drop(pending);
                drop(held);
                self.settle(settled, step)
            }
        }
    }

    fn settle(&mut self, settled: Settled, step: &CallStep) -> Ran {
        for (argument, value) in settled.restored {
            if let Some(Argument::Slot { index, last: false }) = step.arguments.get(argument) {
                self.slots[*index as usize] = value;
            }
        }
        self.answer(settled.outcome, step)
    }

    #[inline]
    fn answer(&mut self, outcome: Outcome, step: &CallStep) -> Ran {
        self.forget(&step.dead);
        match (outcome, &step.out) {
            (Outcome::Value(value), Out::Value(slot)) => self.slots[*slot as usize] = value,
            (Outcome::Value(value), Out::Result(slot)) => self.slots[*slot as usize] = Value::ok(value),
            (Outcome::Error(error), Out::Result(slot)) => self.slots[*slot as usize] = Value::err(error),
            (Outcome::Value(value), Out::Arms { switch, ok, .. }) => self.decide(*switch, *ok, value),
            (Outcome::Error(error), Out::Arms { switch, err, .. }) => self.decide(*switch, *err, error),
            (Outcome::Error(error), Out::Value(_)) => return Ran::fail(failure_of(error)),
            (Outcome::Fault(failure), _) => return Ran::fail(failure),
        }
        Ran::Next
    }

    fn decide(&mut self, switch: u32, (arm, port): (u32, u32), payload: Value) {
        self.choices[switch as usize] = arm;
        if port != NONE {
            self.slots[port as usize] = payload;
        }
    }

    fn acquire(
        &mut self,
        node: usize,
        passed: usize,
        step: &AcquireStep,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        for (index, turn) in step.turns.iter().enumerate().skip(passed) {
            if env.live.resources.turns[*turn].poll(env.key.sequence, context).is_pending() {
                return Ran::wait(Stage::Turn(index));
            }
        }
        let session = step.session.map_or(Value::Unit, |session| self.value(body, session));
        let handles = step.wanted.iter().filter_map(|wanted| match wanted {
            Wanted::Whole(lock, mode) => Some((Handle::Whole(Arc::clone(lock)), *mode)),
            // Whether an enclosing step holds the very same session is known only now.
            Wanted::Session(sessions, _) if self.holds_session(sessions, &session) => None,
            Wanted::Session(sessions, mode) => Some((Handle::session(sessions, session.clone()), *mode)),
        });
        let handles: Vec<_> = handles.collect();
        self.hold(node, Acquiring::new(handles), context)
    }

    fn holds_session(&self, sessions: &Arc<Sessions>, session: &Value) -> bool {
        let scopes = self.inherited.iter().chain(self.scopes.iter().map(|(_, scope)| scope));
        scopes.flat_map(|scope| scope.iter()).any(|held| held.is_session(sessions, session))
    }

    fn hold(&mut self, node: usize, mut locks: Acquiring, context: &mut Context<'_>) -> Ran {
        match locks.poll(context) {
            Poll::Pending => Ran::wait(Stage::Locks(locks)),
            Poll::Ready(held) => {
                self.scopes.push((node as u32, Arc::new(held)));
                Ran::Next
            }
        }
    }

    fn repeat(&mut self, mut run: Run, step: &RepeatStep, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        match run.advance(step, env, context) {
            Poll::Pending => Ran::wait(Stage::Body(Box::new(run))),
            Poll::Ready(result) => {
                run.restore(step, self);
                match result {
                    Ok(value) => {
                        self.slots[step.out as usize] = value;
                        Ran::Next
                    }
                    Err(ended) => Ran::Ends(Box::new(End { within: ended.path(&step.body), how: ended.how })),
                }
            }
        }
    }
}

fn try_locks(step: &CallStep) -> Option<SmallVec<[Borrowed<'_>; 2]>> {
    step.locks.iter().map(|(lock, mode)| Borrowed::try_take(lock, *mode)).collect()
}

fn all_locks(step: &CallStep) -> Acquiring {
    Acquiring::new(step.locks.iter().map(|(lock, mode)| (Handle::Whole(Arc::clone(lock)), *mode)))
}

/// Runs the job on the blocking pool. It keeps the locks until it is through, even where its flow is given up.
fn elsewhere(job: Job, held: Vec<Held>, scopes: Vec<Arc<Vec<Held>>>, path: Arc<str>) -> Pending {
    let running = tokio::task::spawn_blocking(move || {
        let done = catch_unwind(AssertUnwindSafe(job));
        drop((held, scopes));
        done
    });
    Box::pin(async move {
        let fault = |failure| Settled { outcome: Outcome::Fault(failure), restored: Vec::new() };
        match running.await {
            Ok(Ok(settled)) => settled,
            Ok(Err(panic)) => fault(panicked(&path, &*panic)),
            Err(_) => fault(Box::new(Failure::new(FailureKind::Cancelled, "the program stops"))),
        }
    })
}

/// Fills a slot. What most often lies in it needs no drop, and is found out here instead of in a call.
#[inline]
fn put(slot: &mut Value, value: Value) {
    let old = std::mem::replace(slot, value);
    match old {
        Value::Absent | Value::Unit | Value::Bool(_) | Value::Int(_) | Value::Float(_) => std::mem::forget(old),
        old => drop(old),
    }
}
