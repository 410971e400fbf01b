//! Iterations of a `map` that wait for nothing but one gathered call each (`prepare/gathered.rs`).
//!
//! They share one frame, because a frame for each of thousands of iterations costs more than its steps. For each iteration, the
//! frame runs the steps before the call and hands over the values that the iteration needs behind it; the calls of many
//! iterations are placed in their batch together. When the answer is there, the frame takes the values back and runs the steps
//! behind the call. Iterations end one after the other, in order: what stands behind the call is computation only, and nothing
//! else waits for it.

use std::sync::Arc;
use std::task::Context;

use weir_host::{Outcome, Value};

use super::Frame;
use super::exit::{Finished, FlowExit};
use super::gathered_iterations::{Activity, GatheredIterations, NextActivity, SuspendedAt};
use crate::batching::Gatherer;
use crate::instance::Env;
use crate::step::{Action, Body, CallStep, GatheredCall, RepeatStep};
use crate::units::{Advanced, Spent};

impl Frame {
    /// Runs iterations in this frame as far as possible; returns the list of results, or the end of the flow.
    pub(super) fn advance_gathered(
        &mut self,
        iterations: &mut GatheredIterations,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        iterations.calls.reconsider();
        let advanced = self.run_iterations(iterations, step, env, context);
        if !matches!(advanced, Advanced::Ready(_)) {
            iterations.calls.place(gatherer_of(&step.body));
        }
        advanced
    }

    fn run_iterations(
        &mut self,
        iterations: &mut GatheredIterations,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        let (gathered, call) = call_of(&step.body);
        let (node, gatherer) = (gathered.step as usize, gatherer_of(&step.body));
        loop {
            if iterations.activity == Activity::Free {
                match iterations.next(step.body.overlap_max, gatherer, context) {
                    NextActivity::Begin(count) => {
                        self.until = node;
                        self.slots[0].put(iterations.take_element());
                        if node == 0 {
                            self.suspend_iteration(iterations, step, env);
                            if gathered.takes_element {
                                iterations.begin_at_call(count - 1, &gathered.live);
                            }
                            continue;
                        }
                        iterations.activity = Activity::BeforeCall;
                    }
                    NextActivity::Answered(Outcome::Value(answer)) if gathered.yields_answer => {
                        let kept = self.choices_kept(node);
                        let (mut answer, mut spent) = (Some(answer), Spent::GoOn);
                        while let Some(value) = answer {
                            iterations.push_result(value);
                            iterations.suspended.forget(gathered.live.len(), kept);
                            spent = env.units.spend_timed(step.body.units, &*env.instance.platform);
                            answer = if spent == Spent::GoOn { iterations.next_value() } else { None };
                        }
                        match spent {
                            Spent::GoOn => continue,
                            Spent::Yield => return Advanced::Yields,
                        }
                    }
                    NextActivity::Answered(answer) => {
                        self.resume_iteration(iterations, gathered, node + 1);
                        self.take_answer(node, answer, call);
                    }
                    NextActivity::Skipped(next) => self.resume_iteration(iterations, gathered, next),
                    NextActivity::Wait => return Advanced::Waits,
                    NextActivity::End => {
                        let results = std::mem::take(&mut iterations.results);
                        return Advanced::Ready(iterations.end.take().map_or(Ok(Value::List(results)), Err));
                    }
                }
            }
            match self.run_part_of_iteration(iterations, step, env, context) {
                Advanced::Ready(Ok(Spent::GoOn)) => {}
                Advanced::Ready(Ok(Spent::Yield)) | Advanced::Yields => return Advanced::Yields,
                Advanced::Ready(Err(exit)) => return Advanced::Ready(Err(exit)),
                Advanced::Waits => return Advanced::Waits,
            }
        }
    }

    /// Goes on with the first suspended iteration, at this step.
    fn resume_iteration(&mut self, iterations: &mut GatheredIterations, gathered: &GatheredCall, next: usize) {
        iterations.activity = Activity::AfterCall;
        self.until = usize::MAX;
        (self.low, self.cursor) = (next, gathered.step as usize);
        let kept = self.choices_kept(gathered.step as usize);
        iterations.suspended.take_back(&gathered.live, &mut self.slots, &mut self.choices[..kept]);
    }

    /// Returns the number of arms that are kept of an iteration at its call: none can be chosen before the first step.
    fn choices_kept(&self, node: usize) -> usize {
        if node == 0 { 0 } else { self.choices.len() }
    }

    /// Runs the steps before or behind the call; returns the end of the flow by an iteration behind its call.
    fn run_part_of_iteration(
        &mut self,
        iterations: &mut GatheredIterations,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Spent, FlowExit>> {
        // Often there is no step at all on one side of the call.
        let finished = match self.is_through(&step.body) && !self.yielded {
            true => self.finish(&step.body, env),
            false => match self.advance(&step.body, env, None, context) {
                Advanced::Ready(finished) => finished,
                Advanced::Waits => return Advanced::Waits,
                Advanced::Yields => return Advanced::Yields,
            },
        };
        let activity = std::mem::replace(&mut iterations.activity, Activity::Free);
        let mut spent = Spent::GoOn;
        match finished {
            Finished::SegmentEnd => self.suspend_iteration(iterations, step, env),
            Finished::Value(value) => {
                iterations.push_result(value);
                spent = env.units.spend_timed(step.body.units, &*env.instance.platform);
            }
            Finished::Ended(exit) if activity == Activity::AfterCall => return Advanced::Ready(Err(exit)),
            Finished::Ended(exit) => iterations.end = Some(exit),
        }
        self.rewind();
        Advanced::Ready(Ok(spent))
    }

    /// Hands over the values of the iteration, which has come to its call or has skipped it.
    fn suspend_iteration(&mut self, iterations: &mut GatheredIterations, step: &RepeatStep, env: Env<'_>) {
        let (gathered, call) = call_of(&step.body);
        let node = gathered.step as usize;
        let at = if self.low == node {
            iterations.calls.add(self.gathered_arguments(call, &step.body, env), gatherer_of(&step.body));
            SuspendedAt::Calls(1)
        } else {
            SuspendedAt::Behind(self.low.max(node + 1))
        };
        let kept = self.choices_kept(node);
        iterations.suspended.push(at, &gathered.live, &mut self.slots, &self.choices[..kept]);
    }
}

/// Returns the gatherer of the calls of a body that has a gathered call.
#[inline]
fn gatherer_of(body: &Body) -> &Arc<Gatherer> {
    call_of(body).1.gatherer.as_ref().expect("the call is gathered")
}

/// Returns the gathered call of a body that has one, and its step.
#[inline]
fn call_of(body: &Body) -> (&GatheredCall, &CallStep) {
    let gathered = body.gathered_call.as_ref().expect("the body has a gathered call");
    match body.steps[gathered.step as usize].action.form() {
        Action::Call(call) => (gathered, call),
        _ => unreachable!("a gathered call is a call"),
    }
}
