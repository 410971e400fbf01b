//! Iterations of a `map` that are under way at the same time, each in a frame of its own.

use std::collections::VecDeque;
use std::task::Context;

use weir_host::{Elements, Value};

use super::overlapping::Overlapping;
use super::repeat::{OverlappedRun, PooledFrame};
use super::{AtomicScope, Finished, FlowExit, Frame, IterationTurn};
use crate::instance::Env;
use crate::operations::element;
use crate::step::RepeatStep;
use crate::units::{Advanced, Spent};

impl OverlappedRun {
    pub(super) fn new(
        list: Elements,
        captured: Vec<Value>,
        scopes: Vec<AtomicScope>,
        step: &RepeatStep,
    ) -> OverlappedRun {
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

    /// Returns the frames of the iterations under way.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> + Clone {
        self.running.iter().map(|(_, frame)| &**frame)
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
    pub(super) fn has_left(&self, orders: u64) -> bool {
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

    /// Gives up the iterations from this one on, the last one first: of their calls in the queue of a section, the ones that
    /// still begin are the first ones.
    fn give_up_from(&mut self, index: usize) {
        self.running.drain(index..).rev().for_each(drop);
    }
}

impl Overlapping for OverlappedRun {
    fn begin_more(&mut self, step: &RepeatStep) {
        while self.room(step) > 0 {
            let mut frame = PooledFrame::of_iteration(step, self.captured.iter().cloned(), &self.scopes);
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
                    self.running.remove(index);
                    self.finish(iteration, index, finished);
                    if env.units.spend_timed(step.body.units, &*env.instance.platform) == Spent::Yield {
                        spent = Spent::Yield;
                    }
                }
            }
        }
        spent
    }

    fn running(&self) -> usize {
        self.running.len()
    }

    fn left(&self) -> usize {
        if self.end.is_some() { 0 } else { self.list.len() - self.next }
    }

    fn take_result(&mut self) -> Result<Value, FlowExit> {
        let results = std::mem::take(&mut self.results);
        self.end.take().map_or(Ok(Value::list(results)), Err)
    }
}

impl Drop for OverlappedRun {
    fn drop(&mut self) {
        self.give_up_from(0);
    }
}
