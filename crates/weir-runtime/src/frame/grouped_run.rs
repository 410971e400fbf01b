//! The run of a `map` whose iterations are in groups ([`IterationGroup`]).

use std::ops::Range;
use std::task::Context;

use weir_host::Value;

use super::columns::IterationSlots;
use super::iteration_group::{GroupedRun, Iteration, IterationGroup, Wave};
use super::overlapping::Overlapping;
use super::repeat::PooledFrame;
use super::{Finished, FlowExit, Frame};
use crate::instance::Env;
use crate::operations::element;
use crate::step::{Body, RepeatStep};
use crate::units::{Advanced, Spent};

/// Iterations that have come equally far, with their frame.
pub(super) type FrameGroup = IterationGroup<PooledFrame>;

/// A wave of such iterations.
pub(super) type FrameWave = Wave<PooledFrame>;

/// The places to which the iterations of a group go.
struct GroupOutcomes<'a> {
    /// For each iteration of the `map`, its result.
    results: &'a mut [Value],
    /// Groups that have parted from others.
    parted: &'a mut Vec<FrameGroup>,
    /// A wave that has ended, for the next one.
    spare: &'a mut Option<Box<FrameWave>>,
}

impl GroupedRun<PooledFrame> {
    /// Returns the frame of each group.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> + Clone {
        self.groups.iter().map(|group| &*group.frame)
    }

    /// Notes that an iteration has ended the flow: those behind it are cancelled.
    fn end_at(&mut self, iteration: usize, exit: FlowExit, step: &RepeatStep) {
        if self.end.as_ref().is_none_or(|(earliest, _)| iteration < *earliest) {
            self.end = Some((iteration, exit));
            self.groups.iter_mut().for_each(|group| group.drop_behind(iteration, &step.body));
            self.groups.retain(|group| group.len() > 0);
        }
    }
}

impl Overlapping for GroupedRun<PooledFrame> {
    /// Begins a group of all iterations that may begin.
    fn begin_more(&mut self, step: &RepeatStep) {
        let room = self.room(step);
        if room == 0 {
            return;
        }
        let frame = PooledFrame::of_iteration(step, [], &self.scopes);
        let indices = self.next..self.next + room;
        let mut columns = IterationSlots::new(step.body.slots as usize, room);
        let mut elements = columns.list();
        elements.extend(indices.clone().map(|index| element(&mut self.list, index)));
        columns.set(0, elements);
        (1..).zip(&self.captured).for_each(|(slot, value)| columns.fill(slot, value));
        self.groups.push(IterationGroup::new(frame, indices, columns));
        self.next += room;
    }

    /// Advances every group, those that part from others included.
    fn advance_all(&mut self, step: &RepeatStep, env: Env<'_>, context: &mut Context<'_>) -> Spent {
        let (mut spent, mut parted) = (Spent::GoOn, Vec::new());
        let mut place = 0;
        while let Some(group) = self.groups.get_mut(place) {
            if group.frame.awaits_batches(context) {
                place += 1;
                continue;
            }
            let mut outcomes =
                GroupOutcomes { results: &mut self.results, parted: &mut parted, spare: &mut self.spare };
            let advanced = group.advance(&step.body, env, context, &mut outcomes);
            self.groups.append(&mut parted);
            match advanced {
                Advanced::Waits => place += 1,
                Advanced::Yields => {
                    spent = Spent::Yield;
                    place += 1;
                }
                Advanced::Ready(end) => {
                    self.groups.swap_remove(place);
                    if let Some((iteration, exit)) = end {
                        self.end_at(iteration, exit, step);
                        place = 0;
                    }
                }
            }
        }
        spent
    }

    fn running(&self) -> usize {
        self.groups.iter().map(IterationGroup::len).sum()
    }

    fn left(&self) -> usize {
        if self.end.is_some() { 0 } else { self.list.len() - self.next }
    }

    fn take_result(&mut self) -> Result<Value, FlowExit> {
        let results = std::mem::take(&mut self.results);
        self.end.take().map_or(Ok(Value::list(results)), |(_, exit)| Err(exit))
    }
}

impl FrameGroup {
    /// Returns a group of iterations, of which there is at least one, with their slots.
    fn new(frame: PooledFrame, indices: Range<usize>, columns: IterationSlots) -> FrameGroup {
        let iterations = indices.map(|index| Iteration { index, leaves: false }).collect();
        let mut group = IterationGroup { frame, iterations, columns, wave: None };
        if group.len() == 1 {
            group.columns.swap_row(0, &mut group.frame.slots);
        }
        group
    }

    /// Returns the number of iterations.
    pub(super) fn len(&self) -> usize {
        self.iterations.len()
    }

    /// Advances the iterations as far as possible; returns the end of the flow by one of them, which is alone, with its index.
    fn advance(
        &mut self,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        outcomes: &mut GroupOutcomes<'_>,
    ) -> Advanced<Option<(usize, FlowExit)>> {
        if self.len() > 1 || self.wave.is_some() {
            match self.advance_together(body, env, context, outcomes) {
                Advanced::Ready(()) => {}
                Advanced::Waits => return Advanced::Waits,
                Advanced::Yields => return Advanced::Yields,
            }
        }
        let [Iteration { index, .. }] = self.iterations[..] else { return Advanced::Ready(None) };
        self.frame.advance(body, env, None, context).map(|finished| match finished {
            Finished::Value(value) => {
                outcomes.results[index] = value;
                None
            }
            Finished::Ended(exit) => Some((index, exit)),
            Finished::SegmentEnd => unreachable!("bodies are not cut"),
        })
    }

    /// Advances several iterations as far as possible, until they have ended or only one is left.
    fn advance_together(
        &mut self,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        outcomes: &mut GroupOutcomes<'_>,
    ) -> Advanced<()> {
        self.frame.yielded = false;
        loop {
            let interrupted = self.wave.take();
            let is_new = interrupted.is_none();
            let mut wave = interrupted.or_else(|| outcomes.spare.take()).unwrap_or_default();
            if is_new && !wave.begin(&mut self.frame, body, context) {
                *outcomes.spare = Some(wave);
                return self.end_together(body, env, outcomes);
            }
            let mut spent = Spent::GoOn;
            let has_ended = self.run_wave(&mut wave, body, env, context, (outcomes.parted, &mut spent));
            // All that is left waits for calls, whose answers wake this task.
            let is_last = is_new && has_ended && !wave.decides;
            *if has_ended { &mut *outcomes.spare } else { &mut self.wave } = Some(wave);
            if spent == Spent::Yield {
                self.frame.yielded = true;
                return Advanced::Yields;
            }
            if self.len() <= 1 {
                return Advanced::Ready(());
            }
            if is_last {
                return self.end_together(body, env, outcomes);
            }
        }
    }

    /// Ends the iterations, if no step of them is left.
    fn end_together(&mut self, body: &Body, env: Env<'_>, outcomes: &mut GroupOutcomes<'_>) -> Advanced<()> {
        self.frame.pass_seen(body);
        if !self.frame.is_through(body) {
            return Advanced::Waits;
        }
        match self.finish(body, env, outcomes.results) {
            Spent::GoOn => Advanced::Ready(()),
            Spent::Yield => Advanced::Yields,
        }
    }

    /// Takes the results of the iterations.
    fn finish(&mut self, body: &Body, env: Env<'_>, results: &mut [Value]) -> Spent {
        let mut spent = Spent::GoOn;
        let column = body.result.map(|result| self.columns.value(result, &body.constants)).unwrap_or_default();
        let mut values = column.into_iter();
        for Iteration { index, .. } in self.iterations.drain(..) {
            results[index].put(values.next().unwrap_or_default());
            if env.units.spend_timed(body.units, &*env.instance.platform) == Spent::Yield {
                spent = Spent::Yield;
            }
        }
        spent
    }
}
