//! Iterations of a repeated body one after the other.

use std::task::Context;

use weir_host::{Elements, Failure, Value};
use weir_ir::evaluate::rounds_exceeded;

use super::repeat::{PooledFrame, SequentialRun, States};
use super::{AtomicScope, Finished, FlowExit};
use crate::instance::Env;
use crate::operations::element;
use crate::step::{Repeat, RepeatStep};
use crate::units::{Advanced, Spent};

impl SequentialRun {
    pub(super) fn new(
        list: Elements,
        states: States,
        captured: Vec<Value>,
        scopes: Vec<AtomicScope>,
        step: &RepeatStep,
    ) -> SequentialRun {
        let frame = PooledFrame::of_iteration(step, captured, &scopes);
        SequentialRun { frame, list, index: 0, begun: false, states, results: Elements::default() }
    }

    pub(super) fn advance(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        loop {
            if !self.begun {
                if self.index > 0 && self.is_to_be_given_up(step, env) {
                    return Advanced::Waits;
                }
                match self.begin(step.repeat) {
                    Ok(true) => {}
                    Ok(false) => return Advanced::Ready(Ok(self.result(step.repeat))),
                    Err(failure) => return Advanced::Ready(Err(FlowExit::at_loop(failure))),
                }
            }
            let finished = match self.frame.advance(&step.body, env, None, context) {
                Advanced::Ready(finished) => finished,
                Advanced::Waits => return Advanced::Waits,
                Advanced::Yields => return Advanced::Yields,
            };
            self.begun = false;
            match finished {
                Finished::SegmentEnd => unreachable!("bodies are not cut"),
                Finished::Ended(ended) => {
                    self.frame.rewind();
                    return Advanced::Ready(Err(ended));
                }
                Finished::Value(value) => {
                    let is_last = self.keep(step, value);
                    self.frame.rewind();
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

    /// Returns true if no further iteration begins, because the frame around it is given up as soon as it is in no atomic step.
    fn is_to_be_given_up(&self, step: &RepeatStep, env: Env<'_>) -> bool {
        step.has_effects && env.given_up.is_some_and(|outside| self.frame.inherited.len() <= outside)
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
        let frame = &mut *self.frame;
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

    /// Goes on with another list.
    pub(super) fn go_on_with(&mut self, list: Elements) {
        (self.list, self.index) = (list, 0);
    }

    /// Takes the states back that the repetition has yielded.
    pub(super) fn take_back(&mut self, yielded: Value, repeat: Repeat) {
        self.states.clear();
        match repeat.yields_tuple() {
            true => take_apart(yielded, &mut self.states),
            false => self.states.push(yielded),
        }
    }

    /// Returns true if there are elements whose iterations have not begun.
    pub(super) fn has_more(&self) -> bool {
        (self.index as usize) < self.list.len()
    }

    /// Stores an iteration's result; returns true if it was the last.
    fn keep(&mut self, step: &RepeatStep, value: Value) -> bool {
        if step.repeat == Repeat::Map {
            self.results.push(value);
            return false;
        }
        let (parts, frame) = (&step.body.result_parts, &mut *self.frame);
        if !parts.is_empty() {
            self.states.extend(parts.iter().map(|part| frame.value(&step.body, *part)));
        } else if step.repeat.yields_tuple() {
            take_apart(value, &mut self.states);
        } else {
            self.states.push(value);
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
