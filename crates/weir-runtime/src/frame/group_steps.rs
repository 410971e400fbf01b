//! The steps of a wave: each runs for all iterations of the group before the next step does.
//!
//! Steps that compute with the slots of an iteration alone, and the calls that are gathered, run over columns of slots. For any other
//! step, the slots of one iteration after the other are put into the frame.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Context;

use smallvec::SmallVec;
use weir_host::{Argument, Outcome, Value};

use super::Frame;
use super::action::{Ran, compute, holds};
use super::columns::IterationSlots;
use super::group_waves::{call_of, decides, gathered_call};
use super::grouped_run::{FrameGroup, FrameWave};
use super::iteration_group::{Choices, EqualCalls, Iteration, Leaving};
use crate::instance::Env;
use crate::operations;
use crate::step::{Action, Body, CallStep, Condition, ConditionStep, Out, PrimStep};
use crate::units::{self, Spent};

impl FrameWave {
    /// Takes the answers of the call whose turn it is, or of all calls if they choose arms, until the slice is over.
    pub(super) fn take_answers(&mut self, group: &mut FrameGroup, body: &Body, env: Env<'_>, spent: &mut Spent) {
        if self.decides_by_answers() {
            self.take_deciding_answers(group, body, env, spent);
        } else {
            self.take_answers_of_one(group, body, env, spent);
        }
    }

    /// Takes the answers of the calls that are answered, of which some choose arms.
    fn take_deciding_answers(&mut self, group: &mut FrameGroup, body: &Body, env: Env<'_>, spent: &mut Spent) {
        let (frame, iterations, columns) = (&mut *group.frame, &mut group.iterations, &mut group.columns);
        while *spent == Spent::GoOn
            && let Some(row) = self.take_next(iterations)
        {
            columns.swap_row(row, &mut frame.slots);
            frame.choices.copy_from_slice(&self.before);
            let mut end = None;
            for (node, answers) in &mut self.answered {
                frame.cursor = *node;
                let answer = answers.next().expect("each iteration has an answer");
                let call = call_of(*node, body);
                operations::forget(&call.dead, &mut frame.slots);
                match operations::answer(call.seen(answer), &call.out, &mut frame.slots) {
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
                    self.leave_alone(&mut iterations[row], frame, Ran::fail(failure), body, env);
                }
                None => {
                    columns.swap_row(row, &mut frame.slots);
                    self.leave_by_choice(&mut iterations[row], frame);
                }
            }
        }
    }

    /// Takes the answers of a call, which choose no arm.
    fn take_answers_of_one(&mut self, group: &mut FrameGroup, body: &Body, env: Env<'_>, spent: &mut Spent) {
        let (frame, iterations, columns) = (&mut *group.frame, &mut group.iterations, &mut group.columns);
        let FrameWave { answered, part, next, leaving, cursor, .. } = self;
        let (node, answers) = &mut answered[*part];
        (frame.cursor, *cursor) = (*node, *node);
        let call = call_of(*node, body);
        let (Out::Value(slot) | Out::Result(slot)) = call.out else { unreachable!("the answer chooses no arm") };
        if *next == 0 {
            columns.forget(&call.dead);
            columns.forget(&[slot]);
        }
        let mut values = if *next == 0 { columns.list() } else { columns.take(slot) };
        let (is_plain, platform) = (matches!(call.out, Out::Value(_)), &*env.instance.platform);
        for (row, iteration) in iterations.iter_mut().enumerate().skip(*next) {
            if *spent == Spent::Yield {
                break;
            }
            let answer = answers.next().expect("each iteration has an answer");
            let value = match answer {
                Outcome::Value(value) if is_plain && !iteration.leaves => value,
                _ if iteration.leaves => Value::Absent,
                answer => match operations::answer(call.seen(answer), &call.out, &mut frame.slots) {
                    Ok(_) => frame.slots[slot as usize].take(),
                    Err(failure) => {
                        columns.swap_row(row, &mut frame.slots);
                        iteration.leaves = true;
                        let stopped = (0, *node, Ran::fail(failure));
                        leaving.push(Leaving::stopped(iteration.index, frame, stopped, body, env));
                        Value::Absent
                    }
                },
            };
            values.push(value);
            *spent = env.units.spend_timed(units::CALL, platform);
        }
        *next = values.len();
        columns.set(slot, values);
    }

    /// Runs a step, until the slice is over.
    pub(super) fn run_step(
        &mut self,
        node: usize,
        group: &mut FrameGroup,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        spent: &mut Spent,
    ) {
        group.frame.cursor = node;
        // Otherwise it has begun before, and may be a region that has moved the cursor.
        if self.next == 0 {
            self.cursor = node;
        }
        let action = &body.steps[node].action;
        match action {
            Action::Nothing => self.next = group.len(),
            Action::Prim(prim) => self.compute(prim, group, body, env),
            Action::Condition(condition) => self.decide(condition, group, body, env),
            Action::Select { switch, inputs, out } => {
                match inputs.get(group.frame.choices[*switch as usize] as usize) {
                    Some(Some(input)) => {
                        let values = group.columns.value(*input, &body.constants);
                        group.columns.set(*out, values);
                        self.next = group.len();
                    }
                    _ => self.run_in_frame(node, group, body, env, context, spent),
                }
            }
            _ => match gathered_call(action) {
                Some(call) => self.collect(call, group, body, env),
                None => self.run_in_frame(node, group, body, env, context, spent),
            },
        }
    }

    /// Computes a primitive.
    fn compute(&mut self, prim: &PrimStep, group: &mut FrameGroup, body: &Body, env: Env<'_>) {
        let (frame, columns) = (&mut *group.frame, &mut group.columns);
        let mut results = columns.list();
        columns.calculate(prim, &body.constants, &mut results);
        for (row, iteration) in group.iterations.iter_mut().enumerate().skip(results.len()) {
            if iteration.leaves {
                results.push(Value::Absent);
                continue;
            }
            columns.swap_row(row, &mut frame.slots);
            let ran = compute(prim, &mut frame.slots, body, &env);
            results.push(frame.slots[prim.out as usize].take());
            if matches!(ran, Ran::Next) {
                columns.swap_row(row, &mut frame.slots);
            } else {
                self.leave_alone(iteration, frame, ran, body, env);
            }
        }
        columns.forget(&prim.dead);
        columns.set(prim.out, results);
        self.next = group.len();
    }

    /// Decides a condition. Iterations for which it is decided like for fewer than half of them leave.
    fn decide(&mut self, step: &ConditionStep, group: &mut FrameGroup, body: &Body, env: Env<'_>) {
        let (frame, columns, iterations) = (&mut *group.frame, &mut group.columns, &mut group.iterations[..]);
        let truths = truths(&step.condition, frame, columns, iterations, body, env);
        let (going_on, holding) = iterations
            .iter()
            .zip(&truths)
            .filter(|(iteration, _)| !iteration.leaves)
            .fold((0, 0), |(all, holding), (_, holds)| (all + 1, holding + usize::from(*holds)));
        self.next = iterations.len();
        if going_on == 0 {
            return;
        }
        let chosen = 2 * holding >= going_on;
        frame.choices[step.switch as usize] = step.arms[usize::from(!chosen)];
        for (iteration, holds) in iterations.iter_mut().zip(truths) {
            if holds != chosen && !iteration.leaves {
                iteration.leaves = true;
                self.leaving.push(Leaving::of(iteration.index, frame));
            }
        }
        frame.choices[step.switch as usize] = step.arms[usize::from(chosen)];
        self.chosen = Some(Choices::from_slice(&frame.choices));
    }

    /// Collects the calls of a step, which are placed behind the wave.
    fn collect(&mut self, call: &CallStep, group: &mut FrameGroup, body: &Body, env: Env<'_>) {
        let (frame, columns, count) = (&mut *group.frame, &mut group.columns, group.iterations.len());
        let place = self.calls.iter().position(|calls| calls.node == frame.cursor);
        let place = place.expect("the calls of a wave are those of its steps");
        let calls = &mut self.calls[place];
        let going_on = || group.iterations.iter().enumerate().filter(|(_, iteration)| !iteration.leaves);
        if let [argument @ (Argument::Slot { .. } | Argument::Constant(_))] = call.arguments[..]
            && self.leaving.is_empty()
        {
            let gathered = columns.value(argument, &body.constants);
            let of = group.iterations.iter().map(|iteration| iteration.index).collect();
            calls.calls.push(EqualCalls { common: SmallVec::new(), gathered, of });
        } else {
            for (row, iteration) in going_on() {
                columns.swap_row(row, &mut frame.slots);
                let arguments = frame.gathered_arguments(call, body, env);
                columns.swap_row(row, &mut frame.slots);
                calls.add(iteration.index, arguments, count);
            }
        }
        self.next = count;
    }

    /// Runs a step in the frame, with the slots of one iteration after the other.
    fn run_in_frame(
        &mut self,
        node: usize,
        group: &mut FrameGroup,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        spent: &mut Spent,
    ) {
        let (frame, iterations, columns) = (&mut *group.frame, &mut group.iterations, &mut group.columns);
        let step = &body.steps[node];
        let decides = decides(&step.action);
        while *spent == Spent::GoOn
            && let Some(row) = self.take_next(iterations)
        {
            if decides {
                frame.choices.copy_from_slice(&self.before);
            }
            frame.cursor = node;
            columns.swap_row(row, &mut frame.slots);
            let ran = catch_unwind(AssertUnwindSafe(|| frame.run(node, step, body, &env, context)));
            let iteration = &mut iterations[row];
            match ran {
                Ok(ran @ (Ran::Next | Ran::Yields(None))) => {
                    if matches!(ran, Ran::Yields(_)) {
                        *spent = Spent::Yield;
                    }
                    columns.swap_row(row, &mut frame.slots);
                    if decides {
                        self.leave_by_choice(iteration, frame);
                    } else {
                        self.cursor = frame.cursor;
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

    /// Returns the place of the next iteration of this part of the wave.
    fn take_next(&mut self, iterations: &[Iteration]) -> Option<usize> {
        let rest = iterations.get(self.next..)?;
        let row = self.next + rest.iter().take_while(|iteration| iteration.leaves).count();
        self.next = (row + 1).min(iterations.len());
        (row < iterations.len()).then_some(row)
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

    /// Lets an iteration, whose slots are in the frame, leave the group because of the outcome of this part of the wave.
    #[cold]
    fn leave_alone(&mut self, iteration: &mut Iteration, frame: &mut Frame, ran: Ran, body: &Body, env: Env<'_>) {
        let (run, node) = self.step().map_or((0, frame.cursor), |step| (step + 1, self.nodes[step]));
        iteration.leaves = true;
        self.leaving.push(Leaving::stopped(iteration.index, frame, (run, node, ran), body, env));
    }
}

/// Returns for each iteration whether a condition holds; for those that leave the group, false.
fn truths(
    condition: &Condition,
    frame: &mut Frame,
    columns: &mut IterationSlots,
    iterations: &[Iteration],
    body: &Body,
    env: Env<'_>,
) -> SmallVec<[bool; 64]> {
    let constants: &[Value] = &body.constants;
    let mut truths = SmallVec::new();
    if let Condition::Compare(prim, one, other) = condition {
        columns.compare(*prim, (one, other), constants, &mut truths);
    }
    for (row, iteration) in iterations.iter().enumerate().skip(truths.len()) {
        columns.swap_row(row, &mut frame.slots);
        truths.push(!iteration.leaves && holds(condition, &frame.slots, constants, &env));
        columns.swap_row(row, &mut frame.slots);
    }
    truths
}
