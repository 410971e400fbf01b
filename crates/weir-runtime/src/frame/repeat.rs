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
use weir_host::{Argument, Elements, Value};

use super::gathered_iterations::GatheredIterations;
use super::iteration_group::GroupedRun;
use super::overlapping::Overlapping;
use super::thread_release::leaves_for_one;
use super::{AtomicScope, FlowExit, Frame};
use crate::batching::Member;
use crate::instance::Env;
use crate::step::{Body, EarlyOrder, Repeat, RepeatStep};
use crate::units::Advanced;

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
pub(super) type States = SmallVec<[Value; 2]>;

/// One iteration after the other, in one frame.
pub(super) struct SequentialRun {
    pub frame: PooledFrame,
    pub list: Elements,
    /// The index of the next element or round.
    pub index: u64,
    /// True if the current iteration's parameters have been set.
    pub begun: bool,
    /// The states of the next iteration, or of the last one.
    pub states: States,
    /// The results of a `for`, where they stay.
    pub results: Elements,
}

/// Several iterations at a time, in a frame each.
pub(super) struct OverlappedRun {
    pub list: Elements,
    pub captured: Vec<Value>,
    pub scopes: Vec<AtomicScope>,
    pub next: usize,
    pub running: VecDeque<(u64, PooledFrame)>,
    pub results: Vec<Value>,
    /// For each iteration order, the iteration whose turn it is.
    pub turns: Vec<u64>,
    pub end: Option<FlowExit>,
}

/// Several iterations at a time, in one frame.
pub(super) struct GatheredRun {
    frame: PooledFrame,
    iterations: GatheredIterations,
}

/// A list that a `map` and the `fold` over its rows go through strip by strip, and of which some strips may be left.
pub(super) struct Strips {
    /// The index of the step of the `map`.
    pub map: u32,
    pub list: Elements,
    /// The number of elements of the strips that have begun.
    pub begun: usize,
    /// The values that the rounds of the `map` capture.
    pub captured: Vec<Value>,
    pub scopes: Vec<AtomicScope>,
    /// The `fold`, between two strips.
    pub fold: Option<Box<Run>>,
}

/// A frame that goes back to the pool when it is dropped.
pub(super) struct PooledFrame(Option<Box<Frame>>);

impl PooledFrame {
    /// Returns a frame for a body within another one.
    pub(super) fn take(body: &Body) -> PooledFrame {
        PooledFrame(Some(Frame::take(body, true)))
    }

    /// Returns a frame for an iteration, with its captured values.
    pub(super) fn of_iteration(
        step: &RepeatStep,
        captured: impl IntoIterator<Item = Value>,
        scopes: &[AtomicScope],
    ) -> PooledFrame {
        let mut frame = PooledFrame::take(&step.body);
        for (slot, value) in (step.repeat.fixed()..).zip(captured) {
            frame.slots[slot] = value;
        }
        frame.inherited.extend_from_slice(scopes);
        frame
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
    /// Begins a repetition, or goes on with the next strip: takes its inputs out of the frame.
    pub(super) fn new(step: &RepeatStep, frame: &mut Frame, body: &Body, env: Env<'_>) -> Run {
        frame.next_strip(step, body, env).unwrap_or_else(|| Run::begin(step, frame, body, env))
    }

    fn begin(step: &RepeatStep, frame: &mut Frame, body: &Body, env: Env<'_>) -> Run {
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
            let list = frame.first_strip(step, list, (&captured, &scopes));
            return Run::overlapping(list, (captured, scopes), step, env);
        }
        Run::Sequential(SequentialRun::new(list, states, captured, scopes, step))
    }

    /// Begins a repetition whose iterations overlap.
    pub(super) fn overlapping(
        list: Elements,
        (captured, scopes): (Vec<Value>, Vec<AtomicScope>),
        step: &RepeatStep,
        env: Env<'_>,
    ) -> Run {
        // Records of nodes are those of one iteration at a time.
        match &step.body.gathered_call {
            Some(_) if !env.records_nodes => {
                let frame = PooledFrame::of_iteration(step, captured, &scopes);
                Run::Gathered(GatheredRun { frame, iterations: GatheredIterations::new(list) })
            }
            None if step.body.groups_iterations && !env.records_nodes => {
                Run::Grouped(GroupedRun::new(list, captured, scopes))
            }
            _ => Run::Overlapped(OverlappedRun::new(list, captured, scopes, step)),
        }
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
            Run::Gathered(run) => run.frame.advance_gathered(&mut run.iterations, step, env, context),
            Run::Grouped(groups) => groups.advance(step, env, context),
        }
    }

    /// Puts borrowed values back into the frame.
    pub(super) fn restore(&mut self, step: &RepeatStep, frame: &mut Frame) {
        let Run::Sequential(SequentialRun { frame: inner, .. }) = self else { return };
        for (parameter, input) in step.inputs.iter().enumerate().skip(step.repeat.fixed()) {
            if let Argument::Slot { index, last: false } = input
                && step.body.handed[parameter]
            {
                frame.slots[*index as usize] = inner.slots[parameter].take();
            }
        }
    }

    /// Returns true if an iteration is in an atomic step.
    pub(super) fn is_in_step(&self) -> bool {
        match self {
            Run::Sequential(sequence) => sequence.frame.is_in_step(),
            Run::Overlapped(overlap) => overlap.frames().any(Frame::is_in_step),
            Run::Gathered(run) => run.frame.is_in_step(),
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
            Run::Sequential(sequence) => Some(&*sequence.frame),
            Run::Overlapped(overlap) => {
                overlap.frames().find(|frame| frame.yielded).or_else(|| overlap.frames().next())
            }
            Run::Gathered(run) => Some(&*run.frame),
            Run::Grouped(groups) => groups.frames().find(|frame| frame.yielded).or_else(|| groups.frames().next()),
        };
        frame.filter(|frame| frame.has_stopped())
    }

    /// Shows the batches in which calls of the iterations in progress are.
    pub(super) fn each_member(&self, see: &mut dyn FnMut(&Member)) {
        match self {
            Run::Sequential(sequence) => sequence.frame.each_member(see),
            Run::Overlapped(overlap) => overlap.frames().for_each(|frame| frame.each_member(see)),
            Run::Gathered(run) => run.iterations.calls.members().for_each(see),
            Run::Grouped(groups) => groups.frames().for_each(|frame| frame.each_member(see)),
        }
    }

    /// Returns the frames of the iterations in progress that have one each, or one for each group.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> {
        let (mut one, mut several, mut groups) = (None, None, None);
        match self {
            Run::Sequential(sequence) => one = Some(&*sequence.frame),
            Run::Overlapped(overlap) => several = Some(overlap.frames()),
            Run::Gathered(_) => {}
            Run::Grouped(run) => groups = Some(run.frames()),
        }
        one.into_iter().chain(several.into_iter().flatten()).chain(groups.into_iter().flatten())
    }

    /// Returns true if there are iterations that have not begun.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Run::Sequential(sequence) => sequence.has_more(),
            Run::Overlapped(overlap) => overlap.left() > 0,
            Run::Gathered(run) => run.iterations.has_more(),
            Run::Grouped(groups) => groups.left() > 0,
        }
    }

    /// Returns true if the flow holds no thread while the iterations in progress wait.
    pub(super) fn leaves_thread(&self) -> bool {
        match self {
            Run::Gathered(run) => run.frame.leaves_thread(),
            run => leaves_for_one(run.frames().map(Frame::leaves_thread)),
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
