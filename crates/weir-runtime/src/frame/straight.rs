//! The straight scan: runs step after step, until one has to wait.
//!
//! Most steps of most flows are calls of the simplest kind, one after the other. They run in a loop of their own, which
//! sets up their common state once and writes answers directly into slots.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Call, Failure, Outcome, Pending, UnitBudget, Value};
use weir_ir::evaluate::failure_of;

use super::Frame;
use super::action::{Meanwhile, Ran, Stage, StepExit};
use crate::instance::Env;
use crate::region::LongCall;
use crate::step::{Action, Body, NONE, PreparedStep, SimpleStep};

impl Frame {
    /// Runs step after step, until one has to wait.
    pub(super) fn scan_straight(&mut self, body: &Body, env: Env<'_>, context: &mut Context<'_>) {
        assert!(self.low <= self.until, "a frame does not stop before a step that it has passed");
        let mut next = self.low;
        let steps = &body.steps[..self.until.min(body.steps.len())];
        while let Some(step) = steps.get(next) {
            if !self.is_chosen(step) {
                self.pass_ticket_gates(step, env);
                next = step.skip_to as usize;
                continue;
            }
            self.cursor = next;
            let ran = match &step.action {
                Action::Simple(_) if !env.records_nodes && begins_run(&steps[next + 1..]) => {
                    self.simple_calls(steps, body, env)
                }
                _ => self.run(next, step, body, &env, context),
            };
            // A run of calls has moved the cursor.
            next = self.cursor;
            match ran {
                Ran::Next => {
                    let step = &steps[next];
                    self.pass_ticket_gates(step, env);
                    next = if env.records_nodes { next + 1 } else { step.then as usize };
                }
                Ran::Waits(stage) => {
                    self.low = next;
                    if steps[next].wait_number.is_none() {
                        return self.suspend(next, stage, body, env);
                    }
                    self.seen.resize(body.steps.len().div_ceil(64), 0);
                    return self.wait(next, stage, body, env);
                }
                Ran::Yields(None) => {
                    self.pass_ticket_gates(&steps[next], env);
                    self.low = (next + 1).min(steps.len());
                    self.yielded = true;
                    return;
                }
                Ran::Yields(Some(stage)) => {
                    (self.low, self.yielded) = (next, true);
                    if step.wait_number.is_some() {
                        self.seen.resize(body.steps.len().div_ceil(64), 0);
                        self.see(next);
                    }
                    return self.suspend(next, stage, body, env);
                }
                Ran::Ends(end) => {
                    self.low = next;
                    return self.record_end(next, *end);
                }
                Ran::Again(map) => {
                    self.reopen(map, next, body);
                    return;
                }
            }
        }
        self.low = next.min(steps.len());
    }

    /// Performs the call at the cursor and the calls of the simplest kind that follow it. Leaves the cursor at the last
    /// of them; none of the others passes a ticket gate.
    #[inline(never)]
    fn simple_calls(&mut self, steps: &[PreparedStep], body: &Body, env: Env<'_>) -> Ran {
        let Frame { slots, choices, cursor, .. } = self;
        let mut call = Call {
            slots,
            constants: &body.constants,
            shared: &env.instance.resources.shared,
            state: None,
            arguments: &[],
            out: None,
            environment: &env.instance.environment,
            units: env.call_budget,
            awaited: None,
        };
        let mut turns = false;
        for (index, step) in steps.iter().enumerate().skip(*cursor) {
            let Action::Simple(simple) = &step.action else { break };
            let chosen = step.switch == NONE || choices[step.switch as usize] == step.arm;
            if turns || !chosen {
                break;
            }
            *cursor = index;
            call.slots[simple.out as usize].clear();
            (call.arguments, call.out) = (&simple.arguments, Some(simple.out));
            let outcome = (simple.code)(&mut call);
            if matches!(outcome, Outcome::ExceedsUnits) {
                return self.long_simple(simple, body, env);
            }
            env.units.spend_declared(std::mem::take(&mut call.units.declared));
            let ran = answered(outcome, simple, call.slots).unwrap_or(Ran::Next).spend_call(&env);
            if !matches!(ran, Ran::Next) {
                return ran;
            }
            turns = !step.ticket_gates.is_empty();
        }
        Ran::Next
    }

    /// Returns true if the frame begins with this step next, and nothing else is under way.
    pub(crate) fn begins_at(&self, step: usize) -> bool {
        let is_idle = self.seen.is_empty() && self.waits.is_empty() && self.scopes.is_empty();
        self.low == step && is_idle && !self.yielded && self.end.is_none()
    }

    /// Goes on before this step: those before it have run in a vector.
    pub(crate) fn go_on_at(&mut self, step: usize) {
        self.low = step;
    }

    /// Ends the flow because its call of this step has failed in a vector.
    #[cold]
    pub(crate) fn fail_at(&mut self, step: usize, failure: Box<Failure>) {
        (self.low, self.cursor) = (step, step);
        self.record_end(step, StepExit { within: String::new(), how: Err(failure) });
    }

    /// Ends the flow because its call of this step has panicked in a vector.
    #[cold]
    pub(crate) fn panic_at(&mut self, step: usize, body: &Body, panic: &(dyn Any + Send)) {
        (self.low, self.cursor) = (step, step);
        let exit = self.exit_of_panic(step, body, panic);
        self.record_end(step, exit);
    }

    /// Performs a call of the simplest kind.
    #[inline]
    pub(super) fn simple(&mut self, step: &SimpleStep, body: &Body, env: &Env<'_>) -> Ran {
        self.slots[step.out as usize].clear();
        let mut call = simple_call(&mut self.slots, step, body, env);
        let outcome = (step.code)(&mut call);
        if matches!(outcome, Outcome::ExceedsUnits) {
            return self.long_simple(step, body, *env);
        }
        env.units.spend_declared(call.units.declared);
        answered(outcome, step, &mut self.slots).unwrap_or(Ran::Next)
    }

    /// Performs a call that takes long: on a thread that may block, unless it changes a value of the frame, or an argument
    /// cannot be moved there.
    #[cold]
    #[inline(never)]
    fn long_simple(&mut self, step: &SimpleStep, body: &Body, env: Env<'_>) -> Ran {
        let mut call = simple_call(&mut self.slots, step, body, &env);
        match if step.changes { None } else { call.detach() } {
            Some(detached) => {
                let long = LongCall { call: detached, code: Arc::clone(&step.code), path: Arc::clone(&step.path) };
                Ran::wait(Stage::Function(long.begin(Vec::new(), Vec::new(), env), Vec::new(), Meanwhile::Nothing))
            }
            None => {
                call.units = UnitBudget::UNLIMITED;
                let outcome = (step.code)(&mut call);
                answered(outcome, step, &mut self.slots).unwrap_or(Ran::Next)
            }
        }
    }

    /// Waits for a call that takes long.
    pub(super) fn long_simple_ended(
        &mut self,
        mut pending: Pending,
        step: &SimpleStep,
        context: &mut Context<'_>,
    ) -> Ran {
        match pending.as_mut().poll(context) {
            Poll::Pending => Ran::wait(Stage::Function(pending, Vec::new(), Meanwhile::Nothing)),
            Poll::Ready(settled) => answered(settled.outcome, step, &mut self.slots).unwrap_or(Ran::Next),
        }
    }
}

/// Returns true if the steps behind a call of the simplest kind begin with another one.
#[inline]
fn begins_run(behind: &[PreparedStep]) -> bool {
    matches!(behind.first(), Some(PreparedStep { action: Action::Simple(_), .. }))
}

#[inline]
fn simple_call<'a>(slots: &'a mut [Value], step: &'a SimpleStep, body: &'a Body, env: &Env<'a>) -> Call<'a> {
    Call {
        slots,
        constants: &body.constants,
        shared: &env.instance.resources.shared,
        state: None,
        arguments: &step.arguments,
        out: Some(step.out),
        environment: &env.instance.environment,
        units: env.call_budget,
        awaited: None,
    }
}

/// Clears the slots that a call has borrowed for the last time, and puts the answer into its slot, unless it is there
/// already; returns the end of the flow, if the call ends it.
#[inline(always)]
fn answered(outcome: Outcome, step: &SimpleStep, slots: &mut [Value]) -> Option<Ran> {
    for dead in &step.dead {
        slots[*dead as usize].clear();
    }
    if matches!(outcome, Outcome::Filled) {
        // Nothing to drop.
        std::mem::forget(outcome);
        return None;
    }
    returned(outcome, &mut slots[step.out as usize])
}

#[inline(never)]
fn returned(outcome: Outcome, slot: &mut Value) -> Option<Ran> {
    match outcome.returned() {
        Ok(Ok(value)) => {
            slot.put(value);
            None
        }
        Ok(Err(error)) => Some(Ran::fail(failure_of(error))),
        Err(failure) => Some(Ran::fail(failure)),
    }
}
