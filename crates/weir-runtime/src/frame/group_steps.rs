//! The steps of a wave: each runs for all iterations of the group, one after the other, before the next step does.
//!
//! Steps that compute with the slots of an iteration alone, and the calls that are gathered, need nothing but these slots. For any
//! other step, the slots are put into the frame.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Context;

use smallvec::SmallVec;
use weir_host::{Argument, Outcome, Value};

use super::Frame;
use super::action::{Ran, compute, holds};
use super::group_waves::{call_of, decides, gathered_call};
use super::grouped_run::FrameWave;
use super::iteration_group::{Choices, EqualCalls, Iteration, Leaving};
use crate::instance::Env;
use crate::operations;
use crate::step::{Action, Body, CallStep, Condition, ConditionStep, Out};
use crate::units::{self, Spent};

impl FrameWave {
    /// Takes the answers of the call whose turn it is, or of all calls if they choose arms, until the slice is over.
    pub(super) fn take_answers(
        &mut self,
        frame: &mut Frame,
        iterations: &mut [Iteration],
        body: &Body,
        env: Env<'_>,
        spent: &mut Spent,
    ) {
        if self.decides_by_answers() {
            self.take_deciding_answers(frame, iterations, body, env, spent);
        } else {
            self.take_answers_of_one(frame, iterations, body, env, spent);
        }
    }

    /// Takes the answers of the calls that are answered, of which some choose arms.
    fn take_deciding_answers(
        &mut self,
        frame: &mut Frame,
        iterations: &mut [Iteration],
        body: &Body,
        env: Env<'_>,
        spent: &mut Spent,
    ) {
        while *spent == Spent::GoOn
            && let Some(iteration) = self.take_next(iterations)
        {
            let slots = &mut iteration.slots;
            frame.choices.copy_from_slice(&self.before);
            let mut end = None;
            for (node, answers) in &mut self.answered {
                frame.cursor = *node;
                let answer = answers.next().expect("each iteration has an answer");
                let call = call_of(*node, body);
                operations::forget(&call.dead, slots);
                match operations::answer(answer, &call.out, slots) {
                    Ok(decided) => {
                        decided.into_iter().for_each(|(switch, arm)| frame.choices[switch as usize] = arm);
                        if env.units.spend_timed(units::CALL, &*env.instance.platform) == Spent::Yield {
                            *spent = Spent::Yield;
                        }
                    }
                    Err(failure) if end.is_none() => end = Some((*node, failure)),
                    Err(_) => {}
                }
            }
            match end {
                Some((node, failure)) => {
                    frame.cursor = node;
                    self.leave_alone(iteration, frame, Ran::fail(failure), body, env);
                }
                None => self.leave_by_choice(iteration, frame),
            }
        }
    }

    /// Takes the answers of a call, which choose no arm.
    fn take_answers_of_one(
        &mut self,
        frame: &mut Frame,
        iterations: &mut [Iteration],
        body: &Body,
        env: Env<'_>,
        spent: &mut Spent,
    ) {
        let FrameWave { answered, part, next, leaving, cursor, .. } = self;
        let (node, answers) = &mut answered[*part];
        (frame.cursor, *cursor) = (*node, *node);
        let call = call_of(*node, body);
        for iteration in &mut iterations[*next..] {
            if *spent == Spent::Yield {
                return;
            }
            *next += 1;
            let answer = answers.next().expect("each iteration has an answer");
            if iteration.leaves {
                continue;
            }
            operations::forget(&call.dead, &mut iteration.slots);
            let taken = match (answer, &call.out) {
                (Outcome::Value(value), Out::Value(slot)) => {
                    iteration.slots[*slot as usize].put(value);
                    Ok(())
                }
                (answer, out) => operations::answer(answer, out, &mut iteration.slots).map(|_| ()),
            };
            match taken {
                Ok(()) => *spent = env.units.spend_timed(units::CALL, &*env.instance.platform),
                Err(failure) => {
                    iteration.leaves = true;
                    leaving.push(Leaving::stopped(iteration.index, frame, (0, *node, Ran::fail(failure)), body, env));
                }
            }
        }
    }

    /// Runs a step, until the slice is over.
    pub(super) fn run_step(
        &mut self,
        node: usize,
        (frame, iterations): (&mut Frame, &mut [Iteration]),
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        spent: &mut Spent,
    ) {
        frame.cursor = node;
        // Otherwise it has begun before, and may be a region that has moved the cursor.
        if self.next == 0 {
            self.cursor = node;
        }
        let action = &body.steps[node].action;
        match action {
            Action::Nothing => self.next = iterations.len(),
            Action::Prim(prim) => {
                let constants: &[Value] = &body.constants;
                for iteration in self.all_left(iterations) {
                    if operations::calculate(prim, &mut iteration.slots, constants) {
                        continue;
                    }
                    let ran = compute(prim, &mut iteration.slots, body, env);
                    if !matches!(ran, Ran::Next) {
                        self.leave_alone(iteration, frame, ran, body, env);
                    }
                }
            }
            Action::Condition(condition) => self.decide(condition, frame, iterations, body, env),
            Action::Select { switch, inputs, out } => match inputs.get(frame.choices[*switch as usize] as usize) {
                Some(Some(input)) => {
                    let constants: &[Value] = &body.constants;
                    for Iteration { slots, .. } in self.all_left(iterations) {
                        let value = operations::value(*input, slots, constants);
                        slots[*out as usize].put(value);
                    }
                }
                _ => self.run_in_frame(node, (frame, iterations), body, env, context, spent),
            },
            _ => match gathered_call(action) {
                Some(call) => self.collect(call, frame, iterations, body, env),
                None => self.run_in_frame(node, (frame, iterations), body, env, context, spent),
            },
        }
    }

    /// Decides a condition.
    fn decide(
        &mut self,
        step: &ConditionStep,
        frame: &mut Frame,
        iterations: &mut [Iteration],
        body: &Body,
        env: Env<'_>,
    ) {
        let (mut first, constants): (_, &[Value]) = (None, &body.constants);
        for iteration in self.all_left(iterations) {
            let slots = &iteration.slots[..];
            let decided = match &step.condition {
                Condition::Compare(prim, one, other) => {
                    prim.decide(operations::place(one, slots, constants), operations::place(other, slots, constants))
                }
                _ => None,
            };
            let holds = decided.unwrap_or_else(|| holds(&step.condition, slots, constants, env));
            if *first.get_or_insert(holds) != holds {
                frame.choices[step.switch as usize] = step.arms[usize::from(holds)];
                iteration.leaves = true;
                self.leaving.push(Leaving::of(iteration.index, frame));
            }
        }
        if let Some(holds) = first {
            frame.choices[step.switch as usize] = step.arms[usize::from(holds)];
            self.chosen = Some(Choices::from_slice(&frame.choices));
        }
    }

    /// Collects the calls of a step, which are placed behind the wave.
    fn collect(&mut self, call: &CallStep, frame: &mut Frame, iterations: &mut [Iteration], body: &Body, env: Env<'_>) {
        let count = iterations.len();
        let place = self.calls.iter().position(|calls| calls.node == frame.cursor);
        let place = place.expect("the calls of a wave are those of its steps");
        let calls = &mut self.calls[place];
        if let [argument @ (Argument::Slot { .. } | Argument::Constant(_))] = call.arguments[..] {
            let (mut gathered, mut of) = (Vec::with_capacity(count), Vec::with_capacity(count));
            let constants: &[Value] = &body.constants;
            for Iteration { index, slots, .. } in iterations.iter_mut().filter(|iteration| !iteration.leaves) {
                gathered.push(operations::value(argument, slots, constants));
                of.push(*index);
            }
            calls.calls.push(EqualCalls { common: SmallVec::new(), gathered, of });
        } else {
            for Iteration { index, slots, .. } in iterations.iter_mut().filter(|iteration| !iteration.leaves) {
                std::mem::swap(&mut frame.slots, slots);
                let arguments = frame.gathered_arguments(call, body, env);
                std::mem::swap(&mut frame.slots, slots);
                calls.add(*index, arguments, count);
            }
        }
        self.next = count;
    }

    /// Runs a step in the frame, with the slots of one iteration after the other.
    fn run_in_frame(
        &mut self,
        node: usize,
        (frame, iterations): (&mut Frame, &mut [Iteration]),
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        spent: &mut Spent,
    ) {
        let step = &body.steps[node];
        let decides = decides(&step.action);
        while *spent == Spent::GoOn
            && let Some(iteration) = self.take_next(iterations)
        {
            if decides {
                frame.choices.copy_from_slice(&self.before);
            }
            frame.cursor = node;
            std::mem::swap(&mut frame.slots, &mut iteration.slots);
            let ran = catch_unwind(AssertUnwindSafe(|| frame.run(node, step, body, env, context)));
            std::mem::swap(&mut frame.slots, &mut iteration.slots);
            match ran {
                Ok(Ran::Next) if decides => self.leave_by_choice(iteration, frame),
                Ok(Ran::Next) => self.cursor = frame.cursor,
                Ok(Ran::Yields(None)) => {
                    *spent = Spent::Yield;
                    if decides {
                        self.leave_by_choice(iteration, frame);
                    }
                }
                Ok(ran) => self.leave_alone(iteration, frame, ran, body, env),
                Err(panic) => {
                    let exit = frame.exit_of_panic(node, body, &*panic);
                    self.leave_alone(iteration, frame, Ran::Ends(Box::new(exit)), body, env);
                }
            }
        }
    }

    /// Returns the iterations that have not run this part of the wave, which runs for all of them now.
    fn all_left<'a>(&mut self, iterations: &'a mut [Iteration]) -> impl Iterator<Item = &'a mut Iteration> + use<'a> {
        let next = std::mem::replace(&mut self.next, iterations.len());
        iterations[next..].iter_mut().filter(|iteration| !iteration.leaves)
    }

    /// Returns the next iteration of this part of the wave.
    fn take_next<'a>(&mut self, iterations: &'a mut [Iteration]) -> Option<&'a mut Iteration> {
        let rest = iterations.get_mut(self.next..)?;
        let skipped = rest.iter().take_while(|iteration| iteration.leaves).count();
        self.next += (skipped + 1).min(rest.len());
        rest.get_mut(skipped)
    }

    /// Lets an iteration leave the group if it has chosen other arms than the first.
    fn leave_by_choice(&mut self, iteration: &mut Iteration, frame: &Frame) {
        match &self.chosen {
            None => (self.chosen, self.cursor) = (Some(Choices::from_slice(&frame.choices)), frame.cursor),
            Some(chosen) if chosen[..] == frame.choices[..] => {}
            Some(_) => {
                iteration.leaves = true;
                self.leaving.push(Leaving::of(iteration.index, frame));
            }
        }
    }

    /// Lets an iteration leave the group because of the outcome of this part of the wave.
    #[cold]
    fn leave_alone(&mut self, iteration: &mut Iteration, frame: &mut Frame, ran: Ran, body: &Body, env: Env<'_>) {
        let (run, node) = self.step().map_or((0, frame.cursor), |step| (step + 1, self.nodes[step]));
        iteration.leaves = true;
        self.leaving.push(Leaving::stopped(iteration.index, frame, (run, node, ran), body, env));
    }
}
