//! Calls of host functions.
//!
//! A call passes these stages, and proceeds from one to the next without waiting if possible:
//!
//! 1. its ticket gate, if it must follow the order of a source;
//! 2. its locks, in the canonical order;
//! 3. the function itself, which returns at once, waits, or blocks a thread; in a `for` that a plan cuts, on a thread of its
//!    section.

use std::sync::Arc;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use weir_host::{
    Argument, AwaitedCall, Call, CallRest, EarlierReads, FunctionCode, ImmediateCode, Mode, Outcome, Pending, Settled,
    Shared, UnitBudget, Value,
};

use super::action::{Meanwhile, Ran, Stage};
use super::long_call::elsewhere;
use super::settling::behind_seen;
use super::{AtomicScope, Frame};
use crate::batching::{Answers, Member};
use crate::flow_section::{CallQueue, CallSection};
use crate::instance::{BlockingPlacement, CallThreads, Env};
use crate::lock::{BorrowedLock, FairRwLock, HeldLock, LockAcquisition, LockHandle, SessionState, SessionTable};
use crate::operations;
use crate::region::LongCall;
use crate::step::{Action, Body, CallStep, Out, PreparedStep, SharedOf};

impl Frame {
    pub(super) fn take_ticket(&mut self, step: &CallStep, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        if let Some(gate) = step.ticket_gate
            && env.instance.resources.ticket_gates[gate].poll(env.key.sequence, context).is_pending()
        {
            return Ran::wait(Stage::Ticket(gate));
        }
        self.call(step, body, &env, context)
    }

    /// Performs a call that has passed its ticket gate.
    #[inline]
    pub(super) fn call(&mut self, step: &CallStep, body: &Body, env: &Env<'_>, context: &mut Context<'_>) -> Ran {
        match &step.code {
            FunctionCode::Immediate(_) if step.section.is_some() => {
                self.call_under(all_locks(step), step, body, *env, context)
            }
            FunctionCode::Immediate(code) if step.locks.is_empty() || step.needs_no_locks() => {
                self.immediate(code, Vec::new(), step, body, *env, context)
            }
            FunctionCode::Immediate(code) => match &*step.locks {
                [(lock, mode)] => match BorrowedLock::try_acquire(lock, *mode) {
                    Some(held) => self.under_free_locks(code, [held], step, body, env, context),
                    None => self.call_under(all_locks(step), step, body, *env, context),
                },
                locks => match try_locks(locks) {
                    Some(held) => self.under_free_locks(code, held, step, body, env, context),
                    None => self.call_under(all_locks(step), step, body, *env, context),
                },
            },
            FunctionCode::Waiting(_) if step.is_gathered() && step.locks.is_empty() => {
                self.join_batch(step, body, *env, context)
            }
            FunctionCode::Waiting(code) if step.locks.is_empty() => {
                let shared = self.shared_of(step, env);
                let waiting = code(&mut self.call_of(step, body, env, &shared));
                self.wait_for(waiting, Vec::new(), step, env, context)
            }
            _ => self.call_under(all_locks(step), step, body, *env, context),
        }
    }

    /// Performs a call that returns immediately, under locks that were free. One that takes long begins here if it can, and keeps
    /// the locks that it needs.
    #[inline]
    fn under_free_locks<'l>(
        &mut self,
        code: &Arc<ImmediateCode>,
        held: impl IntoIterator<Item = BorrowedLock<'l>>,
        step: &CallStep,
        body: &Body,
        env: &Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        let mut begun = None;
        // Within an atomic step, the locks of the step may be those of the call.
        let may_begin = !step.changes && step.within.is_empty() && self.inherited.is_empty();
        let outcome = {
            let shared = self.shared_of(step, env);
            let mut call = self.call_of(step, body, env, &shared);
            call.awaited = may_begin.then_some(&mut begun);
            code(&mut call)
        };
        if !matches!(outcome, Outcome::ExceedsUnits) {
            drop(held);
            return self.answer(outcome, step);
        }
        match begun {
            Some(begun) if begun.keeps_locks => {
                let held = held.into_iter().zip(&step.locks).map(|(held, (lock, _))| held.keep(lock)).collect();
                self.go_on_with(begun, held, Vec::new(), step, *env, context)
            }
            Some(begun) => {
                drop(held);
                self.go_on_with(begun, Vec::new(), Vec::new(), step, *env, context)
            }
            None => {
                drop(held);
                self.call_under(all_locks(step), step, body, *env, context)
            }
        }
    }

    /// Performs a call that returns immediately. One that takes long goes on without its thread, or runs on a thread that may block,
    /// with its locks. A read that is not sent behind the earlier ones, as it should, begins when they are answered.
    fn immediate(
        &mut self,
        code: &Arc<ImmediateCode>,
        held: Vec<HeldLock>,
        step: &CallStep,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        let behind = self.connection_before(self.cursor, body);
        let shared = self.shared_of(step, &env);
        if let Some(section) = self.other_section(step, env)
            && let Some(detached) = self.call_of(step, body, &env, &shared).detach()
        {
            let long = LongCall { call: detached, code: Arc::clone(code), path: Arc::clone(&step.path) };
            let pending = long.begin_on(CallThreads::Section(section), held, Vec::new(), env);
            return self.function((pending, Vec::new(), Meanwhile::Nothing), step, context);
        }
        let mut begun = None;
        let (outcome, declared) = {
            let mut call = self.call_of(step, body, &env, &shared);
            call.awaited = (!step.changes).then_some(&mut begun);
            (code(&mut call), call.units.declared)
        };
        if !matches!(outcome, Outcome::ExceedsUnits) {
            env.units.spend_declared(declared);
            drop(held);
            return self.answer(outcome, step);
        }
        if behind.is_some() && begun.as_ref().and_then(|begun| begun.sent_on) != behind {
            return Ran::wait(Stage::Locks(LockAcquisition::new([])));
        }
        let _earlier = behind.map(|_| EarlierReads::unanswered());
        let detached =
            if begun.is_some() || step.changes { None } else { self.call_of(step, body, &env, &shared).detach() };
        let job = detached.map(|detached| {
            let code = Arc::clone(code);
            let rest = CallRest::Job(Box::new(move || detached.run(&*code)));
            AwaitedCall { rest, keeps_locks: true, sent_on: None }
        });
        let Some(begun) = begun.or(job) else {
            let mut call = self.call_of(step, body, &env, &shared);
            call.units = UnitBudget::UNLIMITED;
            let outcome = code(&mut call);
            drop(held);
            return self.answer(outcome, step);
        };
        match self.take_locks_of_step(step) {
            Some(of_step) => {
                self.go_on_with(begun, held.into_iter().chain(of_step).collect(), Vec::new(), step, env, context)
            }
            None => self.go_on_with(begun, held, self.scopes_around(&step.within), step, env, context),
        }
    }

    /// Goes on with a call that has begun here, and needs its arguments no more.
    fn go_on_with(
        &mut self,
        begun: AwaitedCall,
        held: Vec<HeldLock>,
        scopes: Vec<AtomicScope>,
        step: &CallStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        for argument in &step.arguments {
            if let Argument::Slot { index, last: true } = argument {
                self.slots[*index as usize].clear();
            }
        }
        let meanwhile = begun.sent_on.map_or(Meanwhile::Nothing, Meanwhile::Sent);
        let pending = LongCall::rest(begun, held, scopes, Arc::clone(&step.path), env);
        self.function((pending, Vec::new(), meanwhile), step, context)
    }

    /// Returns the shared values of a call if some of them belong to the session; otherwise returns an empty list, and
    /// the call uses those of the program.
    #[inline]
    fn shared_of(&self, step: &CallStep, env: &Env<'_>) -> SmallVec<[Shared; 2]> {
        if step.shared.is_empty() {
            return SmallVec::new();
        }
        step.shared.iter().map(|shared| self.shared_at(shared, &step.within, env)).collect()
    }

    /// Returns the shared value of the program, or of the session that one of these steps holds.
    pub(super) fn shared_at(&self, shared: &SharedOf, within: &[u32], env: &Env<'_>) -> Shared {
        match shared {
            SharedOf::Program(index) => env.instance.resources.shared[*index as usize].clone(),
            SharedOf::Session(sessions) => {
                self.own_of(within, sessions).expect("the verifier has seen the step that holds the session")
            }
        }
    }

    /// Returns the value of the session that an enclosing atomic step holds.
    fn own_of(&self, within: &[u32], sessions: &Arc<SessionTable>) -> Option<Shared> {
        let own = self.scopes.iter().filter(|open| within.contains(&open.node)).map(|open| &open.locks);
        let held = self.inherited.iter().chain(own).flat_map(|scope| scope.held.iter());
        held.filter_map(|held| held.session_of(sessions)).find_map(SessionState::made)
    }

    #[inline]
    fn call_of<'a>(&'a mut self, step: &'a CallStep, body: &'a Body, env: &Env<'a>, shared: &'a [Shared]) -> Call<'a> {
        let out = if let Out::Value(slot) = step.out { Some(slot) } else { None };
        out.into_iter().for_each(|slot| self.slots[slot as usize].clear());
        Call {
            slots: &mut self.slots,
            constants: &body.constants,
            shared: if step.shared.is_empty() { &env.instance.resources.shared } else { shared },
            state: step.state.map(|state| &env.instance.resources.states[state]),
            arguments: &step.arguments,
            out,
            environment: &env.instance.environment,
            units: env.call_budget,
            awaited: None,
        }
    }

    pub(super) fn call_under(
        &mut self,
        mut locks: LockAcquisition,
        step: &CallStep,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        if env.blocking == BlockingPlacement::Later
            && (!step.locks.is_empty() || matches!(step.code, FunctionCode::Blocking(_)))
        {
            return Ran::wait(Stage::Locks(locks));
        }
        let Poll::Ready(held) = locks.poll(context) else { return Ran::wait(Stage::Locks(locks)) };
        if step.is_gathered() {
            return self.join_batch(step, body, env, context);
        }
        if let FunctionCode::Immediate(code) = &step.code {
            return self.immediate(code, held, step, body, env, context);
        }
        let section = self.other_section(step, env);
        let shared = self.shared_of(step, &env);
        let mut call = self.call_of(step, body, &env, &shared);
        match &step.code {
            FunctionCode::Immediate(_) => unreachable!("it was performed above"),
            FunctionCode::Waiting(code) => {
                let waiting = code(&mut call);
                self.wait_for(waiting, held, step, &env, context)
            }
            FunctionCode::Blocking(code) => match (code(&mut call), env.blocking) {
                (Ok(job), _) if section.is_some() => {
                    let threads = section.map_or(CallThreads::Blocking, CallThreads::BlockingIn);
                    let pending = elsewhere((job, threads), held, Vec::new(), Arc::clone(&step.path), env);
                    self.function((pending, Vec::new(), Meanwhile::Thread), step, context)
                }
                (Ok(job), BlockingPlacement::InPlace) => {
                    env.instance.at_rest();
                    let settled = job();
                    drop(held);
                    self.settle(settled, step)
                }
                (Ok(job), BlockingPlacement::Elsewhere | BlockingPlacement::Later) => {
                    let scopes = self.scopes_around(&step.within);
                    let job = (job, CallThreads::Blocking);
                    let pending = elsewhere(job, held, scopes, Arc::clone(&step.path), env);
                    self.function((pending, Vec::new(), Meanwhile::Thread), step, context)
                }
                (Err(fault), _) => self.answer(Outcome::Fault(fault), step),
            },
        }
    }

    /// Returns the section whose threads run the call: not the one in which the flow is, and none while the frame is in an
    /// atomic step, for whose locks others wait.
    fn other_section(&self, step: &CallStep, env: Env<'_>) -> Option<CallSection> {
        let is_other = |call: &CallSection| call.queue != CallQueue::Any || call.section != env.section.here();
        let section = step.section.filter(is_other)?;
        (self.scopes.is_empty() && self.inherited.is_empty()).then_some(section)
    }

    /// Places a call in a batch. Locks that were taken for the call alone are released then, because nothing but its
    /// arguments needed them.
    fn join_batch(&mut self, step: &CallStep, body: &Body, env: Env<'_>, context: &Context<'_>) -> Ran {
        let member = self.join(step, body, env, context);
        self.waits_in(Stage::Batched(member))
    }

    /// Places a call in a batch.
    fn join(&mut self, step: &CallStep, body: &Body, env: Env<'_>, context: &Context<'_>) -> Member {
        let gatherer = step.gatherer.as_ref().expect("the calls of the function are gathered");
        let (gathered, common) = self.gathered_arguments(step, body, env);
        gatherer.join(gathered, &common, context.waker())
    }

    /// Returns the argument of a call that is gathered, and the others, but for shared values that it borrows.
    pub(super) fn gathered_arguments(
        &mut self,
        step: &CallStep,
        body: &Body,
        env: Env<'_>,
    ) -> (Value, SmallVec<[Value; 2]>) {
        let gathered = step.gatherer.as_ref().map_or(0, |gatherer| gatherer.gathered());
        let borrows = step.borrows();
        let is_other =
            |index: &usize| *index != gathered && !(borrows && matches!(step.arguments[*index], Argument::Shared(_)));
        let others = (0..step.arguments.len()).filter(is_other);
        if !borrows && step.arguments.iter().any(|argument| matches!(argument, Argument::Shared(_))) {
            let shared = self.shared_of(step, &env);
            let mut call = self.call_of(step, body, &env, &shared);
            let common = others.map(|index| call.value(index)).collect();
            return (call.value(gathered), common);
        }
        let mut common = SmallVec::new();
        others.for_each(|index| common.push(self.value(body, step.arguments[index])));
        (self.value(body, step.arguments[gathered]), common)
    }

    /// Takes the answer of a call that was in a batch.
    pub(super) fn take_answers(&mut self, answers: Answers, step: &PreparedStep) -> Ran {
        let Action::Call(call) = step.action.uncut().form() else { unreachable!("only calls are gathered") };
        let outcome = answers.into_iter().next().expect("a member with a call");
        self.answer(outcome, call)
    }

    /// Returns the locks of the atomic steps around a node that is within these steps of this frame.
    pub(super) fn scopes_around(&self, within: &[u32]) -> Vec<AtomicScope> {
        let own = self.scopes.iter().filter(|open| within.contains(&open.node)).map(|open| &open.locks);
        self.inherited.iter().chain(own).cloned().collect()
    }

    /// Takes the locks of the atomic step around a call that is all of the step; `None` if there is none, or if locks of frames
    /// around this one are held. The step stays open, so that the flow is not cancelled before its end.
    fn take_locks_of_step(&mut self, step: &CallStep) -> Option<Vec<HeldLock>> {
        if !step.is_whole_step || !self.inherited.is_empty() {
            return None;
        }
        let open = self.scopes.iter_mut().find(|open| step.within.contains(&open.node))?;
        // Only frames within the step share its locks, and a call has none.
        Arc::get_mut(&mut open.locks).map(|locks| std::mem::take(&mut locks.held))
    }

    fn wait_for(
        &mut self,
        waiting: Result<Pending, Outcome>,
        held: Vec<HeldLock>,
        step: &CallStep,
        env: &Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        match waiting {
            Ok(pending) => {
                let pending = match step.asks_peer {
                    true => behind_seen(pending, &env.instance.environment),
                    false => pending,
                };
                let meanwhile = if step.awaits_peer { Meanwhile::Nothing } else { Meanwhile::Thread };
                self.function((pending, held, meanwhile), step, context)
            }
            Err(outcome) => {
                drop(held);
                self.answer(outcome, step)
            }
        }
    }

    pub(super) fn function(
        &mut self,
        (mut pending, held, meanwhile): (Pending, Vec<HeldLock>, Meanwhile),
        step: &CallStep,
        context: &mut Context<'_>,
    ) -> Ran {
        match pending.as_mut().poll(context) {
            Poll::Pending => Ran::wait(Stage::Function(pending, held, meanwhile)),
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

    /// Takes the answer of a gathered call.
    pub(super) fn take_answer(&mut self, node: usize, outcome: Outcome, step: &CallStep) {
        if let Ran::Ends(end) = self.answer(outcome, step) {
            self.record_end(node, *end);
        }
    }

    #[inline]
    pub(super) fn answer(&mut self, outcome: Outcome, step: &CallStep) -> Ran {
        operations::forget(&step.dead, &mut self.slots);
        match operations::answer(step.seen(outcome), &step.out, &mut self.slots) {
            Ok(decided) => {
                decided.into_iter().for_each(|(switch, arm)| self.choices[switch as usize] = arm);
                Ran::Next
            }
            Err(failure) => Ran::fail(failure),
        }
    }
}

fn try_locks(locks: &[(Arc<FairRwLock>, Mode)]) -> Option<SmallVec<[BorrowedLock<'_>; 2]>> {
    locks.iter().map(|(lock, mode)| BorrowedLock::try_acquire(lock, *mode)).collect()
}

fn all_locks(step: &CallStep) -> LockAcquisition {
    LockAcquisition::new(step.locks.iter().map(|(lock, mode)| (LockHandle::Whole(Arc::clone(lock)), *mode)))
}
