//! The parting of a group of iterations: those that do not go on together get groups of their own, with the same progress.

use std::task::Context;

use smallvec::SmallVec;

use super::action::{Ran, Stage};
use super::group_waves::gathered_call;
use super::grouped_run::FrameGroup;
use super::iteration_group::{CallsOfStep, Choices, EqualCalls, Iteration, IterationGroup, Leaving, Wave, take_calls};
use super::repeat::PooledFrame;
use super::{Frame, Wait};
use crate::instance::Env;
use crate::step::Body;

impl FrameGroup {
    /// Lets iterations that do not go on with the others go on in groups of their own.
    #[cold]
    pub(super) fn part(
        &mut self,
        wave: &mut Wave<PooledFrame>,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
        parted: &mut Vec<FrameGroup>,
    ) {
        let mut leaving = std::mem::take(&mut wave.leaving);
        // Most often all of them have chosen the same other arm.
        let are_alike = leaving.iter().all(|other| leaving[0].goes_on_with(other));
        while !leaving.is_empty() {
            let first = leaving.remove(0);
            let mut of: SmallVec<[usize; 32]> = SmallVec::from_slice(&[first.index]);
            let mut group = if are_alike {
                of.extend(leaving.drain(..).map(|other| other.index));
                self.split_off(body, |iteration| iteration.leaves)
            } else {
                leaving.retain(|other| {
                    let joins = first.goes_on_with(other);
                    of.extend(joins.then_some(other.index));
                    !joins
                });
                self.split_off(body, |iteration| of.binary_search(&iteration.index).is_ok())
            };
            let run = first.stopped.as_ref().map_or(wave.nodes.len(), |(run, _)| *run);
            let frame = &mut *group.frame;
            frame.choices.copy_from_slice(&first.choices);
            frame.cursor = first.cursor;
            wave.nodes[run..].iter().for_each(|node| frame.forget_seen(*node));
            wave.nodes[..run].last().into_iter().for_each(|last| frame.see_region(*last, body, env));
            group.place(&mut take_calls(&mut wave.calls, &of), body, env, context, parted);
            group.settle();
            if let Some((_, mut stopped)) = first.stopped {
                group.frame.take_stop(&mut stopped);
            }
            group.go_on_among(parted);
        }
    }

    /// Places these calls of the iterations. Iterations whose calls get into different batches part.
    pub(super) fn place(
        &mut self,
        calls: &mut [CallsOfStep],
        body: &Body,
        env: Env<'_>,
        context: &Context<'_>,
        parted: &mut Vec<FrameGroup>,
    ) {
        let Some((CallsOfStep { node, calls }, later)) = calls.split_first_mut() else { return };
        let call = gathered_call(&body.steps[*node].action).expect("a call in a batch is gathered");
        let gatherer = call.gatherer.as_ref().expect("the calls of the function are gathered");
        let mut first = None;
        for EqualCalls { common, gathered, of } in calls.drain(..) {
            let mut of = &of[..];
            gatherer.join_all(gathered.into_iter(), &common, Some(context.waker()), |member| {
                let (of_member, others) = of.split_at(member.len());
                of = others;
                if first.is_none() {
                    first = Some(member);
                    return;
                }
                let mut group = self.split_off(body, |iteration| of_member.binary_search(&iteration.index).is_ok());
                group.frame.wait(*node, Box::new(Stage::Batched(member)), body, env);
                group.place(&mut take_calls(later, of_member), body, env, context, parted);
                group.settle();
                group.go_on_among(parted);
            });
        }
        if let Some(member) = first {
            let frame = &mut *self.frame;
            if let Ran::Waits(stage) = frame.waits_in(Stage::Batched(member)) {
                frame.wait(*node, stage, body, env);
            }
        }
        self.place(later, body, env, context, parted);
    }

    /// Moves the iterations that leave to a group with the same progress.
    pub(super) fn split_off(&mut self, body: &Body, leaves: impl Fn(&Iteration) -> bool) -> FrameGroup {
        let IterationGroup { frame: own, iterations, columns, .. } = self;
        let leaving: SmallVec<[bool; 64]> = iterations.iter().map(&leaves).collect();
        let columns = columns.split_off(&leaving);
        let mut frame = PooledFrame::take(body);
        frame.choices.copy_from_slice(&own.choices);
        frame.seen.extend_from_slice(&own.seen);
        frame.inherited.extend_from_slice(&own.inherited);
        (frame.low, frame.cursor) = (own.low, own.cursor);
        for Wait { node, stage, since_ns, left_orders, .. } in &mut own.waits {
            let Some(Stage::Batched(member)) = stage.as_deref_mut() else { continue };
            let stage = Some(Box::new(Stage::Batched(member.split_off(&leaving))));
            let (node, since_ns, left_orders) = (*node, *since_ns, *left_orders);
            frame.waits.push(Wait { node, stage, since_ns, left_orders, is_polled: false });
        }
        let leaving = iterations.extract_if(.., |iteration| leaves(iteration));
        let iterations = leaving.map(|iteration| Iteration { leaves: false, ..iteration }).collect();
        IterationGroup { frame, iterations, columns, wave: None }
    }

    /// Lets the only iteration of a group from which others have parted, or which has parted from others, go on alone.
    pub(super) fn settle(&mut self) {
        let IterationGroup { frame, iterations, columns, wave: None } = self else { return };
        if iterations.len() == 1 {
            columns.swap_row(0, &mut frame.slots);
            // It looks at all steps and calls again.
            frame.yielded = true;
        }
    }

    /// Adds a group that has parted from others. It looks at all steps and calls again: behind the wave there may be steps that
    /// wait for nothing.
    fn go_on_among(mut self, parted: &mut Vec<FrameGroup>) {
        self.frame.yielded = true;
        parted.push(self);
    }

    /// Drops the iterations behind this one.
    pub(super) fn drop_behind(&mut self, last: usize, body: &Body) {
        let were_several = self.len() > 1;
        if self.iterations.iter().all(|iteration| iteration.index <= last) {
            return;
        }
        if were_several {
            drop(self.split_off(body, |iteration| iteration.index > last));
        }
        self.iterations.retain(|iteration| iteration.index <= last);
        self.wave.iter_mut().for_each(|wave| wave.drop_behind(last));
        if were_several {
            self.settle();
        }
    }
}

impl Leaving<PooledFrame> {
    /// Returns true if an iteration leaves the group together with this one.
    fn goes_on_with(&self, other: &Leaving<PooledFrame>) -> bool {
        std::ptr::eq(self, other) || self.stopped.is_none() && other.stopped.is_none() && self.choices == other.choices
    }

    /// Returns an iteration, whose slots are in the frame, that goes on alone because of this outcome of a step, up to which so many
    /// steps of a wave have run.
    #[cold]
    pub(super) fn stopped(
        index: usize,
        frame: &mut Frame,
        (run, node, ran): (usize, usize, Ran),
        body: &Body,
        env: Env<'_>,
    ) -> Leaving<PooledFrame> {
        let mut leaving = Leaving::of(index, frame);
        let mut stopped = PooledFrame::take(body);
        stopped.cursor = frame.cursor;
        std::mem::swap(&mut stopped.slots, &mut frame.slots);
        // The state of a region that was interrupted.
        std::mem::swap(&mut stopped.words, &mut frame.words);
        std::mem::swap(&mut stopped.forks, &mut frame.forks);
        match ran {
            Ran::Ends(end) => stopped.record_end(frame.cursor, *end),
            Ran::Waits(stage) if body.steps[node].wait_number.is_some() => stopped.wait(node, stage, body, env),
            Ran::Waits(stage) | Ran::Yields(Some(stage)) => stopped.suspend(node, stage, body, env),
            Ran::Next | Ran::Yields(None) => {}
            Ran::Again(_) => unreachable!("iterations that share a frame have no `map` that waits"),
        }
        leaving.stopped = Some((run, stopped));
        leaving
    }

    /// Returns an iteration that has chosen other arms than its group.
    pub(super) fn of(index: usize, frame: &Frame) -> Leaving<PooledFrame> {
        Leaving { index, choices: Choices::from_slice(&frame.choices), cursor: frame.cursor, stopped: None }
    }
}

impl Frame {
    /// Stops where the other frame of this body has.
    fn take_stop(&mut self, stopped: &mut Frame) {
        std::mem::swap(&mut self.slots, &mut stopped.slots);
        std::mem::swap(&mut self.words, &mut stopped.words);
        std::mem::swap(&mut self.forks, &mut stopped.forks);
        self.waits.append(&mut stopped.waits);
        self.suspended = stopped.suspended.take();
        self.end = stopped.end.take();
        if let Some(end) = &self.end {
            self.waits.retain(|wait| wait.node < end.node);
        }
    }

    /// Notes that a step has not run.
    fn forget_seen(&mut self, node: usize) {
        self.seen[node / 64] &= !(1 << (node % 64));
        self.low = self.low.min(node);
    }
}
