//! Iterations of a `map` that wait for nothing but one gathered call each (`prepare/gathered.rs`).
//!
//! They share one frame, because a frame for each of thousands of iterations costs more than its steps. For each iteration, the
//! frame runs the steps before the call, places the call in its batch, and hands over its values ([`PlacedIteration`]). When
//! the answer is there, the frame takes the values back and runs the steps behind the call. Iterations end one after the
//! other, in order: what stands behind the call is computation only, and nothing else waits for it.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use weir_host::{Elements, Outcome, Value};

use super::action::Ran;
use super::{Finished, FlowExit, Frame};
use crate::batching::Member;
use crate::instance::Env;
use crate::operations::element;
use crate::step::{Action, Body, CallStep, RepeatStep};
use crate::units::{Advanced, Spent};

/// Iterations that share a frame.
pub(super) struct GatheredRun {
    frame: Option<Box<Frame>>,
    list: Elements,
    /// The iteration that begins next.
    next: usize,
    /// The iterations whose calls are placed.
    placed: VecDeque<PlacedIteration>,
    activity: Activity,
    results: Elements,
    /// The end of the flow by an iteration whose call was not placed. Those before it may still end the flow earlier.
    end: Option<FlowExit>,
}

/// The present use of the frame.
#[derive(Clone, Copy, PartialEq)]
enum Activity {
    /// Nothing.
    Free,
    /// The steps before the call of the iteration that has begun last.
    BeforeCall,
    /// The steps behind the call of the first iteration that had not ended.
    AfterCall,
}

/// An iteration whose call is placed, or was skipped.
struct PlacedIteration {
    /// The call; none if the iteration has skipped it.
    member: Option<Member>,
    /// The step with which the iteration goes on.
    continues_at: usize,
    /// The values of the frame, without the captured ones.
    values: SmallVec<[Value; 3]>,
    /// The arms that the switches of the iteration have chosen.
    choices: SmallVec<[u32; 2]>,
}

impl GatheredRun {
    /// Begins the iterations, in a frame that has the captured values.
    pub(super) fn new(list: Elements, frame: Box<Frame>) -> GatheredRun {
        GatheredRun {
            frame: Some(frame),
            list,
            next: 0,
            placed: VecDeque::new(),
            activity: Activity::Free,
            results: Elements::default(),
            end: None,
        }
    }

    /// Runs as far as possible; returns the list of results, or the end of the flow.
    pub(super) fn advance(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        loop {
            let has_room = self.placed.len() < step.body.overlap_max as usize;
            match self.activity {
                Activity::Free if has_room && self.end.is_none() && self.next < self.list.len() => self.begin(step),
                Activity::Free => match self.take_first(context) {
                    Poll::Pending => return Advanced::Waits,
                    Poll::Ready(Some((iteration, answer))) => self.resume(iteration, answer, step),
                    Poll::Ready(None) => {
                        let results = std::mem::take(&mut self.results);
                        return Advanced::Ready(self.end.take().map_or(Ok(Value::List(results)), Err));
                    }
                },
                Activity::BeforeCall | Activity::AfterCall => match self.run_frame(step, env, context) {
                    Advanced::Ready(Ok(Spent::GoOn)) => {}
                    Advanced::Ready(Ok(Spent::Yield)) | Advanced::Yields => return Advanced::Yields,
                    Advanced::Ready(Err(exit)) => return Advanced::Ready(Err(exit)),
                    Advanced::Waits => return Advanced::Waits,
                },
            }
        }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frame.as_mut().expect("the run has its frame until it is dropped")
    }

    /// Begins the next iteration.
    fn begin(&mut self, step: &RepeatStep) {
        let element = element(&mut self.list, self.next);
        self.next += 1;
        let frame = self.frame();
        frame.until = call_of(&step.body).0;
        frame.slots[0] = element;
        self.activity = Activity::BeforeCall;
    }

    /// Takes the first iteration, with the answer of its call; none if all iterations have ended.
    fn take_first(&mut self, context: &Context<'_>) -> Poll<Option<(PlacedIteration, Option<Outcome>)>> {
        let Some(first) = self.placed.front_mut() else { return Poll::Ready(None) };
        let answer = match &mut first.member {
            Some(member) => match member.poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => Some(answer),
            },
            None => None,
        };
        Poll::Ready(self.placed.pop_front().map(|first| (first, answer)))
    }

    /// Goes on with an iteration whose call is answered.
    fn resume(&mut self, iteration: PlacedIteration, answer: Option<Outcome>, step: &RepeatStep) {
        let (node, call) = call_of(&step.body);
        let frame = self.frame();
        frame.until = usize::MAX;
        (frame.low, frame.cursor) = (iteration.continues_at, node);
        let slots = local_slots(step).zip(iteration.values);
        slots.for_each(|(slot, value)| frame.slots[slot] = value);
        frame.choices.iter_mut().zip(iteration.choices).for_each(|(choice, chosen)| *choice = chosen);
        if let Some(answer) = answer
            && let Ran::Ends(end) = frame.answer(answer, call)
        {
            frame.record_end(node, *end);
        }
        self.activity = Activity::AfterCall;
    }

    /// Runs the steps before or behind the call; returns the end of the flow by an iteration behind its call.
    fn run_frame(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Spent, FlowExit>> {
        let frame = self.frame();
        // Often there is no step at all on one side of the call.
        let finished = match frame.is_through(&step.body) && !frame.yielded {
            true => frame.finish(&step.body, env),
            false => match frame.advance(&step.body, env, None, context) {
                Advanced::Ready(finished) => finished,
                Advanced::Waits => return Advanced::Waits,
                Advanced::Yields => return Advanced::Yields,
            },
        };
        let activity = std::mem::replace(&mut self.activity, Activity::Free);
        let mut spent = Spent::GoOn;
        match finished {
            Finished::SegmentEnd => self.place(step, env),
            Finished::Value(value) => {
                self.results.push(value);
                spent = env.units.spend_timed(step.body.units, &*env.instance.platform);
            }
            Finished::Ended(exit) if activity == Activity::AfterCall => return Advanced::Ready(Err(exit)),
            Finished::Ended(exit) => self.end = Some(exit),
        }
        self.frame().rewind();
        Advanced::Ready(Ok(spent))
    }

    /// Places the call of the iteration in its batch, unless the iteration has skipped it.
    fn place(&mut self, step: &RepeatStep, env: Env<'_>) {
        let (node, call) = call_of(&step.body);
        let frame = self.frame();
        let continues_at = frame.low.max(node + 1);
        let member = (frame.low == node).then(|| frame.join(call, &step.body, env));
        let values = local_slots(step).map(|slot| frame.slots[slot].take()).collect();
        let choices = frame.choices.iter().copied().collect();
        self.placed.push_back(PlacedIteration { member, continues_at, values, choices });
    }

    /// Returns true if an iteration is in an atomic step.
    pub(super) fn is_in_step(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| frame.is_in_step())
    }

    /// Returns true if the flow holds no thread while it waits.
    pub(super) fn leaves_thread(&self) -> bool {
        self.frame.as_ref().is_none_or(|frame| frame.leaves_thread())
    }
}

/// Returns the slots of the element and of what the body computes: all but those of captured values.
fn local_slots(step: &RepeatStep) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(step.inputs.len()..step.body.slots as usize)
}

/// Returns the gathered call of a body that has one, and its step.
fn call_of(body: &Body) -> (usize, &CallStep) {
    let node = body.gathered_call.expect("the body has a gathered call") as usize;
    match body.steps[node].action.form() {
        Action::Call(call) => (node, call),
        _ => unreachable!("a gathered call is a call"),
    }
}

impl Drop for GatheredRun {
    fn drop(&mut self) {
        self.frame.take().into_iter().for_each(Frame::give_back);
    }
}
