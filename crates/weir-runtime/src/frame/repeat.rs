//! Repeated bodies: `map`, `fold` and `loop`.
//!
//! A body runs in a frame of its own, once for each element or round. Iterations of a `map` overlap if the body calls
//! functions that wait: up to [`Body::overlap_max`] frames at a time, kept in order by *iteration orders* (see
//! `prepare/order.rs`). Iterations that wait for nothing but a gathered call share a frame (`gathered.rs`), and those that wait for
//! several gathered calls share it as long as they come equally far (`grouped_run.rs`). In all other cases one frame runs the
//! iterations one after the other.
//!
//! A captured value is cloned once for each frame. A value that the body changes, or that is move-only, is instead
//! passed from one iteration to the next, and returned at the end; such iterations do not overlap.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::task::Context;

use smallvec::SmallVec;
use weir_host::{Argument, Elements, Failure, Value};
use weir_ir::evaluate::rounds_exceeded;

use super::gathered_iterations::GatheredIterations;
use super::iteration_group::{GroupedRun, IterationGroup, Wave};
use super::{AtomicScope, Finished, FlowExit, Frame, IterationTurn};
use crate::batching::Member;
use crate::instance::Env;
use crate::operations::element;
use crate::step::{Body, EarlyOrder, Repeat, RepeatStep};
use crate::units::{Advanced, Spent};

/// A repeated body while it runs.
pub(super) enum Run {
    /// One iteration after the other.
    Sequential(SequentialRun),
    /// Several iterations at a time.
    Overlapped(OverlappedRun),
    /// Several iterations at a time, in one frame.
    Gathered(GatheredRun),
    /// Several iterations at a time, in a frame for each group that has come equally far.
    Grouped(GroupedRun<PooledFrame>),
}

/// The values that are handed from one iteration to the next.
type States = SmallVec<[Value; 2]>;

/// One iteration after the other, in one frame.
pub(super) struct SequentialRun {
    frame: Option<Box<Frame>>,
    list: Elements,
    /// The index of the next element or round.
    index: u64,
    /// True if the current iteration's parameters have been set.
    begun: bool,
    /// The states of the next iteration, or of the last one.
    states: States,
    /// The results of a `for`, where they stay.
    results: Elements,
}

/// Several iterations at a time.
pub(super) struct OverlappedRun {
    list: Elements,
    captured: Vec<Value>,
    scopes: Vec<AtomicScope>,
    next: usize,
    running: VecDeque<(u64, Box<Frame>)>,
    results: Vec<Value>,
    /// For each iteration order, the iteration whose turn it is.
    turns: Vec<u64>,
    end: Option<FlowExit>,
}

/// Several iterations at a time, in one frame.
pub(super) struct GatheredRun {
    frame: Option<Box<Frame>>,
    iterations: GatheredIterations,
}

/// A frame that goes back to the pool when it is dropped.
pub(super) struct PooledFrame(Option<Box<Frame>>);

/// Iterations that have come equally far, with their frame.
pub(super) type FrameGroup = IterationGroup<PooledFrame>;

/// A wave of such iterations.
pub(super) type FrameWave = Wave<PooledFrame>;

impl PooledFrame {
    /// Returns a frame for a body within another one.
    pub(super) fn take(body: &Body) -> PooledFrame {
        PooledFrame::of(Frame::take(body, true))
    }

    pub(super) fn of(frame: Box<Frame>) -> PooledFrame {
        PooledFrame(Some(frame))
    }
}

impl Deref for PooledFrame {
    type Target = Frame;

    fn deref(&self) -> &Frame {
        self.0.as_deref().expect("it goes back only when it is dropped")
    }
}

impl DerefMut for PooledFrame {
    fn deref_mut(&mut self) -> &mut Frame {
        self.0.as_deref_mut().expect("it goes back only when it is dropped")
    }
}

impl Drop for PooledFrame {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Frame::give_back);
    }
}

impl Run {
    /// Begins a repetition: takes its inputs out of the frame.
    pub(super) fn new(step: &RepeatStep, frame: &mut Frame, body: &Body, env: Env<'_>) -> Run {
        let fixed = step.repeat.fixed();
        let list = match (step.repeat, frame_value(step.repeat, step, frame, body)) {
            (Repeat::Map | Repeat::Fold { .. }, Value::List(list)) => list,
            _ => Elements::default(),
        };
        let states = step.inputs[..fixed].iter().skip(fixed - step.repeat.states());
        let states: States = states.map(|input| frame.value(body, *input)).collect();
        let handed = &step.body.handed[fixed..];
        let captures = step.inputs[fixed..].iter().zip(handed);
        let captured: Vec<Value> = captures.map(|(input, handed)| capture(*input, *handed, frame, body)).collect();
        let scopes = frame.scopes_around(&step.within);
        // A single iteration overlaps with those around it if it may leave their orders early.
        let overlaps = list.len() > 1 || !list.is_empty() && !step.early_orders.is_empty();
        if step.repeat == Repeat::Map && step.body.overlap_max > 0 && !handed.contains(&true) && overlaps {
            // Records of nodes are those of one iteration at a time.
            return match &step.body.gathered_call {
                Some(_) if !env.records_nodes => {
                    let (frame, iterations) = (frame_of(step, captured, &scopes), GatheredIterations::new(list));
                    Run::Gathered(GatheredRun { frame: Some(frame), iterations })
                }
                None if step.body.groups_iterations && !env.records_nodes => {
                    Run::Grouped(GroupedRun::new(list, captured, scopes))
                }
                _ => Run::Overlapped(OverlappedRun::new(list, captured, scopes, step)),
            };
        }
        Run::Sequential(SequentialRun::new(list, states, captured, scopes, step))
    }

    /// Runs as far as possible; returns the result, or the end of the flow.
    pub(super) fn advance(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        match self {
            Run::Sequential(sequence) => sequence.advance(step, env, context),
            Run::Overlapped(overlap) => overlap.advance(step, env, context),
            Run::Gathered(GatheredRun { frame: Some(frame), iterations }) => {
                frame.advance_gathered(iterations, step, env, context)
            }
            Run::Gathered(_) => Advanced::Ready(Ok(Value::Absent)),
            Run::Grouped(groups) => groups.advance(step, env, context),
        }
    }

    /// Puts borrowed values back into the frame.
    pub(super) fn restore(&mut self, step: &RepeatStep, frame: &mut Frame) {
        let Run::Sequential(SequentialRun { frame: Some(inner), .. }) = self else { return };
        for (parameter, input) in step.inputs.iter().enumerate().skip(step.repeat.fixed()) {
            if let Argument::Slot { index, last: false } = input
                && step.body.handed[parameter]
            {
                frame.slots[*index as usize] = inner.slots[parameter].take();
            }
        }
    }
}

impl Run {
    /// Returns true if an iteration is in an atomic step.
    pub(super) fn is_in_step(&self) -> bool {
        match self {
            Run::Sequential(sequence) => sequence.frame.as_ref().is_some_and(|frame| frame.is_in_step()),
            Run::Overlapped(overlap) => overlap.running.iter().any(|(_, frame)| frame.is_in_step()),
            Run::Gathered(run) => run.frame.as_ref().is_some_and(|frame| frame.is_in_step()),
            Run::Grouped(groups) => groups.frames().any(Frame::is_in_step),
        }
    }

    /// Returns the iteration orders around the repetition that it has left: all iterations have begun, and have left some of
    /// their own orders.
    pub(super) fn left_orders(&self, early: &[EarlyOrder]) -> u64 {
        let Run::Overlapped(overlap) = self else { return 0 };
        let left = early.iter().filter(|early| overlap.has_left(early.inner));
        left.fold(0, |all, early| all | early.order)
    }

    /// Returns the frame of an iteration that has stopped; `None` if the repetition has stopped between two iterations.
    pub(super) fn stopped_frame(&self) -> Option<&Frame> {
        let frame = match self {
            Run::Sequential(sequence) => sequence.frame.as_deref(),
            Run::Overlapped(overlap) => {
                let mut running = overlap.running.iter().map(|(_, frame)| &**frame);
                running.clone().find(|frame| frame.yielded).or_else(|| running.next())
            }
            Run::Gathered(run) => run.frame.as_deref(),
            Run::Grouped(groups) => groups.frames().find(|frame| frame.yielded).or_else(|| groups.frames().next()),
        };
        frame.filter(|frame| frame.has_stopped())
    }

    /// Shows the batches in which calls of the iterations in progress are.
    pub(super) fn each_member(&self, see: &mut dyn FnMut(&Member)) {
        match self {
            Run::Sequential(sequence) => sequence.frame.iter().for_each(|frame| frame.each_member(see)),
            Run::Overlapped(overlap) => overlap.running.iter().for_each(|(_, frame)| frame.each_member(see)),
            Run::Gathered(run) => run.iterations.calls.members().for_each(see),
            Run::Grouped(groups) => groups.frames().for_each(|frame| frame.each_member(see)),
        }
    }

    /// Returns the frames of the iterations in progress that have one each, or one for each group.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> {
        let (mut one, mut several, mut groups) = (None, None, None);
        match self {
            Run::Sequential(sequence) => one = sequence.frame.as_deref(),
            Run::Overlapped(overlap) => several = Some(overlap.running.iter().map(|(_, frame)| &**frame)),
            Run::Gathered(_) => {}
            Run::Grouped(run) => groups = Some(run.frames()),
        }
        one.into_iter().chain(several.into_iter().flatten()).chain(groups.into_iter().flatten())
    }

    /// Returns true if there are iterations that have not begun.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Run::Sequential(sequence) => (sequence.index as usize) < sequence.list.len(),
            Run::Overlapped(overlap) => overlap.end.is_none() && overlap.next < overlap.list.len(),
            Run::Gathered(run) => run.iterations.has_more(),
            Run::Grouped(groups) => groups.has_more(),
        }
    }

    /// Returns true if the flow holds no thread while the iterations in progress wait.
    pub(super) fn leaves_thread(&self) -> bool {
        match self {
            Run::Sequential(sequence) => sequence.frame.as_ref().is_some_and(|frame| frame.leaves_thread()),
            Run::Overlapped(overlap) => overlap.running.iter().all(|(_, frame)| frame.leaves_thread()),
            Run::Gathered(run) => run.frame.as_ref().is_none_or(|frame| frame.leaves_thread()),
            Run::Grouped(groups) => groups.frames().all(Frame::leaves_thread),
        }
    }
}

fn frame_value(repeat: Repeat, step: &RepeatStep, frame: &mut Frame, body: &Body) -> Value {
    match repeat {
        Repeat::Map | Repeat::Fold { .. } => frame.value(body, step.inputs[0]),
        Repeat::Loop { .. } => Value::Absent,
    }
}

/// Returns a captured value. A value that is passed from iteration to iteration is moved out, until [`Run::restore`]
/// puts it back.
pub(super) fn capture(input: Argument, handed: bool, frame: &mut Frame, body: &Body) -> Value {
    match input {
        Argument::Slot { index, last: false } if handed => frame.slots[index as usize].take(),
        input => frame.value(body, input),
    }
}

/// Returns a frame for the body, with its captured values.
pub(super) fn frame_of(
    step: &RepeatStep,
    captured: impl IntoIterator<Item = Value>,
    scopes: &[AtomicScope],
) -> Box<Frame> {
    let mut frame = Frame::take(&step.body, true);
    for (slot, value) in (step.repeat.fixed()..).zip(captured) {
        frame.slots[slot] = value;
    }
    frame.inherited.extend_from_slice(scopes);
    frame
}

impl SequentialRun {
    fn new(
        list: Elements,
        states: States,
        captured: Vec<Value>,
        scopes: Vec<AtomicScope>,
        step: &RepeatStep,
    ) -> SequentialRun {
        let frame = Some(frame_of(step, captured, &scopes));
        SequentialRun { frame, list, index: 0, begun: false, states, results: Elements::default() }
    }

    fn advance(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        loop {
            if !self.begun {
                match self.begin(step.repeat) {
                    Ok(true) => {}
                    Ok(false) => return Advanced::Ready(Ok(self.result(step.repeat))),
                    Err(failure) => return Advanced::Ready(Err(FlowExit::at_loop(failure))),
                }
            }
            let Some(frame) = &mut self.frame else { return Advanced::Ready(Ok(Value::Absent)) };
            let finished = match frame.advance(&step.body, env, None, context) {
                Advanced::Ready(finished) => finished,
                Advanced::Waits => return Advanced::Waits,
                Advanced::Yields => return Advanced::Yields,
            };
            self.begun = false;
            match finished {
                Finished::SegmentEnd => unreachable!("bodies are not cut"),
                Finished::Ended(ended) => {
                    frame.rewind();
                    return Advanced::Ready(Err(ended));
                }
                Finished::Value(value) => {
                    let is_last = self.keep(step, value);
                    self.frame.iter_mut().for_each(|frame| frame.rewind());
                    if is_last {
                        return Advanced::Ready(Ok(self.result(step.repeat)));
                    }
                }
            }
            if env.units.spend_timed(step.body.units, &*env.instance.platform) == Spent::Yield {
                return Advanced::Yields;
            }
        }
    }

    /// Sets the next iteration's parameters; returns false if there is no next iteration.
    fn begin(&mut self, repeat: Repeat) -> Result<bool, Box<Failure>> {
        if let Repeat::Loop { at_most, .. } = repeat
            && self.index >= at_most
        {
            return Err(rounds_exceeded(at_most));
        }
        let index = self.index as usize;
        if !matches!(repeat, Repeat::Loop { .. }) && index >= self.list.len() {
            return Ok(false);
        }
        let Some(frame) = &mut self.frame else { return Ok(false) };
        match repeat {
            Repeat::Map => frame.slots[0] = element(&mut self.list, index),
            Repeat::Fold { states } => frame.slots[states as usize] = element(&mut self.list, index),
            Repeat::Loop { .. } => {}
        }
        for (slot, state) in frame.slots.iter_mut().zip(self.states.drain(..)) {
            *slot = state;
        }
        self.index += 1;
        self.begun = true;
        Ok(true)
    }

    /// Stores an iteration's result; returns true if it was the last.
    fn keep(&mut self, step: &RepeatStep, value: Value) -> bool {
        if step.repeat == Repeat::Map {
            self.results.push(value);
            return false;
        }
        match &mut self.frame {
            Some(frame) if !step.body.result_parts.is_empty() => {
                self.states.extend(step.body.result_parts.iter().map(|part| frame.value(&step.body, *part)));
            }
            _ if step.repeat.yields_tuple() => take_apart(value, &mut self.states),
            _ => self.states.push(value),
        }
        matches!(step.repeat, Repeat::Loop { .. }) && self.states.pop() == Some(Value::Bool(true))
    }

    fn result(&mut self, repeat: Repeat) -> Value {
        match repeat {
            Repeat::Map => Value::List(std::mem::take(&mut self.results)),
            Repeat::Fold { .. } | Repeat::Loop { .. } if self.states.len() == 1 => self.states[0].take(),
            Repeat::Fold { .. } | Repeat::Loop { .. } => Value::Record(self.states.drain(..).collect()),
        }
    }
}

/// Moves the parts out of a tuple that is not shared, and clones them otherwise.
fn take_apart(tuple: Value, to: &mut States) {
    let Value::Record(mut parts) = tuple else { return };
    match parts.unshared() {
        Some(parts) => to.extend(parts.iter_mut().map(Value::take)),
        None => to.extend(parts.iter().cloned()),
    }
}

impl Drop for SequentialRun {
    fn drop(&mut self) {
        self.frame.take().into_iter().for_each(Frame::give_back);
    }
}

impl OverlappedRun {
    fn new(list: Elements, captured: Vec<Value>, scopes: Vec<AtomicScope>, step: &RepeatStep) -> OverlappedRun {
        OverlappedRun {
            results: vec![Value::Absent; list.len()],
            list,
            captured,
            scopes,
            next: 0,
            running: VecDeque::new(),
            turns: vec![0; step.body.order_lengths.len()],
            end: None,
        }
    }

    fn advance(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        loop {
            self.begin_more(step);
            let spent = self.advance_all(step, env, context);
            if self.running.is_empty() && (self.end.is_some() || self.next == self.list.len()) {
                let results = std::mem::take(&mut self.results);
                return Advanced::Ready(self.end.take().map_or(Ok(Value::list(results)), Err));
            }
            if spent == Spent::Yield {
                return Advanced::Yields;
            }
            if self.running.len() == self.room(step) {
                return Advanced::Waits;
            }
        }
    }

    /// Returns the number of iterations that may run at a time.
    fn room(&self, step: &RepeatStep) -> usize {
        let left = if self.end.is_some() { 0 } else { self.list.len() - self.next };
        (step.body.overlap_max as usize).min(self.running.len() + left)
    }

    fn begin_more(&mut self, step: &RepeatStep) {
        while self.running.len() < self.room(step) {
            let mut frame = frame_of(step, self.captured.iter().cloned(), &self.scopes);
            frame.slots[0] = element(&mut self.list, self.next);
            frame.order_steps_left.extend_from_slice(&step.body.order_lengths);
            self.running.push_back((self.next as u64, frame));
            self.next += 1;
        }
    }

    /// Advances every iteration, in order, so that an iteration order that one leaves is free for the next. An iteration
    /// whose predecessors have spent the slice still gets to its next safe point.
    fn advance_all(&mut self, step: &RepeatStep, env: Env<'_>, context: &mut Context<'_>) -> Spent {
        let mut spent = Spent::GoOn;
        let mut index = 0;
        while index < self.running.len() {
            let (iteration, frame) = &mut self.running[index];
            let iteration = *iteration;
            if self.turns.is_empty() && frame.awaits_batches(context) {
                index += 1;
                continue;
            }
            let place = (!self.turns.is_empty()).then_some(IterationTurn { turns: &self.turns, iteration });
            let polled = frame.advance(&step.body, env, place, context);
            self.leave_orders(index, iteration);
            match polled {
                Advanced::Waits => index += 1,
                Advanced::Yields => {
                    spent = Spent::Yield;
                    index += 1;
                }
                Advanced::Ready(finished) => {
                    self.running.remove(index).into_iter().for_each(|(_, frame)| Frame::give_back(frame));
                    self.finish(iteration, index, finished);
                    if env.units.spend_timed(step.body.units, &*env.instance.platform) == Spent::Yield {
                        spent = Spent::Yield;
                    }
                }
            }
        }
        spent
    }

    /// Passes the iteration orders in which this iteration has finished to the next iteration that still has steps in
    /// them.
    fn leave_orders(&mut self, index: usize, iteration: u64) {
        for order in 0..self.turns.len() {
            if self.turns[order] == iteration && self.running[index].1.order_steps_left[order] == 0 {
                let mut later = self.running.range(index + 1..);
                let next = later.find(|(_, frame)| frame.order_steps_left[order] != 0);
                self.turns[order] = next.map_or(self.next as u64, |(iteration, _)| *iteration);
            }
        }
    }

    /// Returns true if all iterations have left these orders.
    fn has_left(&self, orders: u64) -> bool {
        let has_left = |order: usize| orders & (1 << order) == 0 || self.turns[order] == self.list.len() as u64;
        self.next == self.list.len() && (0..self.turns.len()).all(has_left)
    }

    fn finish(&mut self, iteration: u64, index: usize, finished: Finished) {
        match finished {
            Finished::Value(value) => self.results[iteration as usize] = value,
            Finished::SegmentEnd => unreachable!("bodies are not cut"),
            Finished::Ended(ended) => {
                self.end = Some(ended);
                self.give_up_from(index);
            }
        }
    }
}

impl OverlappedRun {
    /// Gives up the iterations from this one on, the last one first: of their calls in the queue of a section, the ones that
    /// still begin are the first ones.
    fn give_up_from(&mut self, index: usize) {
        self.running.drain(index..).rev().for_each(|(_, frame)| Frame::give_back(frame));
    }
}

impl Drop for OverlappedRun {
    fn drop(&mut self) {
        self.give_up_from(0);
    }
}

impl Drop for GatheredRun {
    fn drop(&mut self) {
        self.frame.take().into_iter().for_each(Frame::give_back);
    }
}
