//! Iterations of a `map` that wait for nothing but one gathered call each (`prepare/gathered.rs`).
//!
//! They share one frame, because a frame for each of thousands of iterations costs more than its steps. For each iteration, the
//! frame runs the steps before the call and hands over its values ([`SuspendedIteration`]); the calls of many iterations are
//! placed in their batch together. When the answer is there, the frame takes the values back and runs the steps behind the
//! call. Iterations end one after the other, in order: what stands behind the call is computation only, and nothing else
//! waits for it.

use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Outcome, Value};

use super::Frame;
use super::exit::{Finished, FlowExit};
use super::gathered_iterations::{Activity, GatheredIterations, SuspendedIteration};
use crate::batching::Gatherer;
use crate::instance::Env;
use crate::step::{Action, Body, CallStep, RepeatStep};
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
        let advanced = self.run_iterations(iterations, step, env, context);
        if !matches!(advanced, Advanced::Ready(_)) {
            iterations.place_calls(gatherer_of(&step.body));
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
        loop {
            match iterations.activity {
                Activity::Free if iterations.has_next(step.body.overlap_max) => {
                    self.until = call_of(&step.body).0;
                    self.slots[0] = iterations.next_element();
                    iterations.activity = Activity::BeforeCall;
                }
                Activity::Free => match iterations.take_first(gatherer_of(&step.body), context) {
                    Poll::Pending => return Advanced::Waits,
                    Poll::Ready(Some((iteration, answer))) => {
                        self.resume_iteration(iteration, answer, step);
                        iterations.activity = Activity::AfterCall;
                    }
                    Poll::Ready(None) => {
                        let results = std::mem::take(&mut iterations.results);
                        return Advanced::Ready(iterations.end.take().map_or(Ok(Value::List(results)), Err));
                    }
                },
                Activity::BeforeCall | Activity::AfterCall => {
                    match self.run_part_of_iteration(iterations, step, env, context) {
                        Advanced::Ready(Ok(Spent::GoOn)) => {}
                        Advanced::Ready(Ok(Spent::Yield)) | Advanced::Yields => return Advanced::Yields,
                        Advanced::Ready(Err(exit)) => return Advanced::Ready(Err(exit)),
                        Advanced::Waits => return Advanced::Waits,
                    }
                }
            }
        }
    }

    /// Goes on with an iteration whose call is answered.
    fn resume_iteration(&mut self, iteration: SuspendedIteration, answer: Option<Outcome>, step: &RepeatStep) {
        let (node, call) = call_of(&step.body);
        self.until = usize::MAX;
        (self.low, self.cursor) = (iteration.continues_at, node);
        let slots = local_slots(step).zip(iteration.values);
        slots.for_each(|(slot, value)| self.slots[slot] = value);
        self.choices.iter_mut().zip(iteration.choices).for_each(|(choice, chosen)| *choice = chosen);
        answer.into_iter().for_each(|answer| self.take_answer(node, answer, call));
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
                iterations.results.push(value);
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
        let (node, call) = call_of(&step.body);
        let arguments = (self.low == node).then(|| self.gathered_arguments(call, &step.body, env));
        let iteration = SuspendedIteration {
            member: None,
            continues_at: self.low.max(node + 1),
            values: local_slots(step).map(|slot| self.slots[slot].take()).collect(),
            choices: self.choices.iter().copied().collect(),
        };
        iterations.suspend(iteration, arguments, gatherer_of(&step.body));
    }
}

/// Returns the slots of the element and of what the body computes: all but those of captured values.
fn local_slots(step: &RepeatStep) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(step.inputs.len()..step.body.slots as usize)
}

/// Returns the gatherer of the calls of a body that has a gathered call.
fn gatherer_of(body: &Body) -> &Arc<Gatherer> {
    call_of(body).1.gatherer.as_ref().expect("the call is gathered")
}

/// Returns the gathered call of a body that has one, and its step.
fn call_of(body: &Body) -> (usize, &CallStep) {
    let node = body.gathered_call.expect("the body has a gathered call") as usize;
    match body.steps[node].action.form() {
        Action::Call(call) => (node, call),
        _ => unreachable!("a gathered call is a call"),
    }
}
