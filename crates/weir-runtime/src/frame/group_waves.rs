//! The waves of a group of iterations: finds what they can do, and has it done (`group_steps.rs`).

use std::task::{Context, Poll};

use smallvec::SmallVec;

use super::action::Stage;
use super::grouped_run::{FrameGroup, FrameWave};
use super::iteration_group::CallsOfStep;
use super::{Frame, Wait};
use crate::instance::Env;
use crate::step::{Action, Body, CallStep, Out};
use crate::units::Spent;
use crate::wait_set::WaitSet;

impl FrameWave {
    /// Begins the next wave of a group with this frame, with the lists of one that has ended; returns false if all that is left waits
    /// for calls, or nothing is left.
    pub(super) fn begin(&mut self, frame: &mut Frame, body: &Body, context: &Context<'_>) -> bool {
        self.answered.clear();
        self.nodes.clear();
        self.calls.clear();
        (self.part, self.next, self.chosen, self.cursor) = (0, 0, None, frame.cursor);
        self.take_answered(frame, context);
        self.decides = self.answered.iter().any(|(node, _)| decides(&body.steps[*node].action));
        if !self.decides {
            self.find_steps(frame, body);
        }
        if self.decides {
            self.before.clear();
            self.before.extend_from_slice(&frame.choices);
        }
        !self.answered.is_empty() || !self.nodes.is_empty()
    }

    /// Takes the calls out of the frame that are answered.
    fn take_answered(&mut self, frame: &mut Frame, context: &Context<'_>) {
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
            self.answered.push((node, answers.into_vec().into_iter()));
            frame.end_stage(place);
            frame.waits.remove(place);
        }
        if self.answered.len() > 1 {
            self.answered.sort_unstable_by_key(|(node, _)| *node);
        }
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
            if step.depends.meets(&unfinished) || step.follows.meets(&unfinished) {
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
}

impl FrameGroup {
    /// Runs a wave, which may have begun, until the slice is over; returns true if it has ended.
    pub(super) fn run_wave(
        &mut self,
        wave: &mut FrameWave,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        (parted, spent): (&mut Vec<FrameGroup>, &mut Spent),
    ) -> bool {
        while wave.part < wave.parts_of_answers() + wave.nodes.len() {
            if *spent == Spent::Yield || !self.run_part(wave, body, env, context, spent) {
                return false;
            }
            (wave.part, wave.next) = (wave.part + 1, 0);
        }
        self.end_wave(wave, body, env, context, parted);
        true
    }

    /// Takes the answers of a wave, or runs a step, for one iteration after the other; returns false if the slice is over before.
    fn run_part(
        &mut self,
        wave: &mut FrameWave,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        spent: &mut Spent,
    ) -> bool {
        // Those behind an end of the flow are dropped.
        wave.next = wave.next.min(self.len());
        match wave.step() {
            None => wave.take_answers(self, body, env, spent),
            Some(step) => wave.run_step(wave.nodes[step], self, body, env, context, spent),
        }
        wave.next == self.len()
    }

    /// Places the calls of a wave. Iterations that do not go on with the others part.
    fn end_wave(
        &mut self,
        wave: &mut FrameWave,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        parted: &mut Vec<FrameGroup>,
    ) {
        if !wave.leaving.is_empty() {
            self.part(wave, body, env, context, parted);
        }
        if wave.chosen.is_some() || !wave.decides {
            let frame = &mut *self.frame;
            wave.chosen.iter().for_each(|chosen| frame.choices.copy_from_slice(chosen));
            frame.cursor = wave.cursor;
            wave.nodes.last().into_iter().for_each(|last| frame.see_region(*last, body, env));
        }
        self.place(&mut wave.calls, body, env, context, parted);
        wave.answered.clear();
        self.settle();
    }
}

/// Returns true if a step may choose an arm.
pub(super) fn decides(action: &Action) -> bool {
    match action {
        Action::Region(_) => true,
        Action::Call(call) => !matches!(call.out, Out::Value(_) | Out::Result(_)),
        Action::Switch(_) | Action::Condition(_) => true,
        _ => false,
    }
}

pub(super) fn call_of(node: usize, body: &Body) -> &CallStep {
    gathered_call(&body.steps[node].action).expect("a call in a batch is gathered")
}

/// Returns the call of a step, if it is gathered.
pub(super) fn gathered_call(action: &Action) -> Option<&CallStep> {
    match action.form() {
        Action::Call(call) if call.is_gathered() => Some(call),
        _ => None,
    }
}
