//! The waves of a group of iterations: takes answers and runs steps, for one iteration after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use smallvec::SmallVec;
use weir_host::Outcome;

use super::action::{Ran, Stage, StepExit};
use super::grouped_run::{FrameGroup, FrameWave};
use super::iteration_group::{CallsOfStep, Iteration, IterationGroup, Leaving, Wave};
use super::{Frame, Wait};
use crate::instance::Env;
use crate::step::{Action, Body, CallStep, Out};
use crate::units::Spent;
use crate::wait_set::WaitSet;

impl FrameWave {
    /// Returns the next wave of a group with this frame; `None` if all that is left waits for calls, or nothing is left.
    pub(super) fn next(frame: &mut Frame, body: &Body, context: &Context<'_>) -> Option<FrameWave> {
        let answered = take_answered(frame, context);
        let mut wave = Wave {
            decides: answered.iter().any(|(node, _)| decides(&body.steps[*node].action)),
            answered,
            nodes: SmallVec::new(),
            before: frame.choices.as_slice().into(),
            next: 0,
            chosen: None,
            cursor: frame.cursor,
            calls: SmallVec::new(),
            leaving: Vec::new(),
        };
        if !wave.decides {
            wave.find_steps(frame, body);
        }
        (!wave.answered.is_empty() || !wave.nodes.is_empty()).then_some(wave)
    }

    /// Finds the steps that depend on no call that is out.
    fn find_steps(&mut self, frame: &mut Frame, body: &Body) {
        frame.seen.resize(body.steps.len().div_ceil(64), 0);
        let mut unfinished = WaitSet::default();
        let numbers = frame.waits.iter().filter_map(|wait| body.steps[wait.node].wait_number);
        numbers.for_each(|number| unfinished.insert(number));
        for (node, step) in body.steps.iter().enumerate().skip(frame.low) {
            if frame.is_seen(node) {
                continue;
            }
            if step.depends.meets(&unfinished) {
                step.wait_number.into_iter().for_each(|number| unfinished.insert(number));
                continue;
            }
            frame.see(node);
            if !frame.is_chosen(step) {
                continue;
            }
            self.nodes.push(node);
            if gathered_call(&step.action).is_some() {
                step.wait_number.into_iter().for_each(|number| unfinished.insert(number));
                self.calls.push(CallsOfStep { node, calls: SmallVec::new() });
            } else if decides(&step.action) {
                self.decides = true;
                break;
            }
        }
        frame.pass_seen(body);
    }

    /// Runs the wave for one of so many iterations, whose slots are in the frame. Returns the outcome if the iteration goes on alone.
    pub(super) fn run(
        &mut self,
        (index, count): (usize, usize),
        frame: &mut Frame,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        spent: &mut Spent,
    ) -> Option<(usize, Ran)> {
        let mut end: Option<(usize, Box<StepExit>)> = None;
        for (node, answers) in &mut self.answered {
            frame.cursor = *node;
            let answer = answers.next().expect("each iteration has an answer");
            match frame.answer(answer, call_of(*node, body)).spend_call(env) {
                Ran::Ends(exit) if end.as_ref().is_none_or(|(earliest, _)| *node < *earliest) => {
                    end = Some((*node, exit));
                }
                Ran::Yields(None) => *spent = Spent::Yield,
                _ => {}
            }
        }
        if let Some((node, exit)) = end {
            frame.cursor = node;
            return Some((0, Ran::Ends(exit)));
        }
        let mut calls = self.calls.iter_mut();
        for (place, node) in self.nodes.iter().enumerate() {
            frame.cursor = *node;
            let step = &body.steps[*node];
            if let Some(call) = gathered_call(&step.action) {
                let arguments = frame.gathered_arguments(call, body, env);
                if let Some(calls) = calls.next() {
                    calls.add(index, arguments, count);
                }
                continue;
            }
            match frame.run(*node, step, body, env, context) {
                Ran::Next => {}
                Ran::Yields(None) => *spent = Spent::Yield,
                ran => return Some((place + 1, ran)),
            }
        }
        None
    }
}

impl FrameGroup {
    /// Runs a wave, which may have begun, for one iteration after the other, until the slice is over.
    pub(super) fn run_wave(
        &mut self,
        mut wave: Box<FrameWave>,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        parted: &mut Vec<FrameGroup>,
    ) -> Spent {
        let IterationGroup { frame, iterations, .. } = self;
        let (count, mut spent) = (iterations.len(), Spent::GoOn);
        while let Some(Iteration { index, slots }) = iterations.get_mut(wave.next) {
            if spent == Spent::Yield {
                self.wave = Some(wave);
                return spent;
            }
            wave.next += 1;
            if wave.decides {
                frame.choices.copy_from_slice(&wave.before);
            }
            std::mem::swap(&mut frame.slots, slots);
            let ran =
                catch_unwind(AssertUnwindSafe(|| wave.run((*index, count), frame, body, env, context, &mut spent)));
            let alone = ran.unwrap_or_else(|panic| {
                let (node, run) = (frame.cursor, wave.nodes.iter().position(|node| *node == frame.cursor));
                Some((run.map_or(0, |run| run + 1), Ran::Ends(Box::new(frame.exit_of_panic(node, body, &*panic)))))
            });
            std::mem::swap(&mut frame.slots, slots);
            match &wave.chosen {
                None if alone.is_none() => {
                    (wave.chosen, wave.cursor) = (Some(frame.choices.as_slice().into()), frame.cursor);
                }
                Some(chosen) if alone.is_none() && (!wave.decides || chosen[..] == frame.choices[..]) => {}
                _ => wave.leaving.push(match alone {
                    None => Leaving::of(*index, frame),
                    Some((run, ran)) => {
                        let node = if run == 0 { frame.cursor } else { wave.nodes[run - 1] };
                        Leaving::stopped(*index, frame, (run, node, ran), body, env)
                    }
                }),
            }
        }
        self.end_wave(*wave, body, env, context, parted);
        spent
    }

    /// Places the calls of a wave. Iterations that do not go on with the others part.
    fn end_wave(
        &mut self,
        mut wave: FrameWave,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        parted: &mut Vec<FrameGroup>,
    ) {
        if !wave.leaving.is_empty() {
            self.part(&mut wave, body, env, context, parted);
        }
        if let Some(chosen) = &wave.chosen {
            let frame = &mut *self.frame;
            frame.choices.copy_from_slice(chosen);
            frame.cursor = wave.cursor;
            wave.nodes.last().into_iter().for_each(|last| frame.see_region(*last, body, env));
        }
        self.place(&mut wave.calls, body, env, context, parted);
        self.settle();
    }
}

/// Takes the calls out of the frame that are answered.
fn take_answered(frame: &mut Frame, context: &Context<'_>) -> SmallVec<[(usize, std::vec::IntoIter<Outcome>); 2]> {
    let mut answered = SmallVec::new();
    let mut place = 0;
    while let Some(Wait { node, stage, .. }) = frame.waits.get_mut(place) {
        let node = *node;
        let polled = match stage.as_deref_mut() {
            Some(Stage::Batched(member)) => member.poll(context),
            _ => Poll::Pending,
        };
        let Poll::Ready(answers) = polled else {
            place += 1;
            continue;
        };
        answered.push((node, answers.into_vec().into_iter()));
        frame.end_stage(place);
        frame.waits.remove(place);
    }
    answered
}

/// Returns true if a step may choose an arm.
fn decides(action: &Action) -> bool {
    match action {
        Action::Region(_) => true,
        Action::Call(call) => !matches!(call.out, Out::Value(_) | Out::Result(_)),
        Action::Switch(_) | Action::Condition(_) => true,
        _ => false,
    }
}

fn call_of(node: usize, body: &Body) -> &CallStep {
    gathered_call(&body.steps[node].action).expect("a call in a batch is gathered")
}

/// Returns the call of a step, if it is gathered.
pub(super) fn gathered_call(action: &Action) -> Option<&CallStep> {
    match action.form() {
        Action::Call(call) if call.is_gathered() => Some(call),
        _ => None,
    }
}
