//! Bodies that may be cancelled: `within` and `race`.
//!
//! Each body runs in a frame of its own. The one task that drives the flow drives all of them, so that no two bodies
//! ever run at the same moment.
//!
//! 1. The bodies of a race are advanced in an order that is drawn at random when the race begins, so that each body is
//!    first with equal probability, and of two bodies either precedes the other with equal probability. The first body
//!    that ends, by its result or by an end of the flow, decides; if a body ends before it waits or its slice is over,
//!    those after it in the order do not begin.
//! 2. The clock is read only if all bodies wait, or if the slice is over: a result that is available when the limit
//!    expires is never lost.
//! 3. The frames of the other bodies are returned to the pool, which is recorded for those that had begun. That drops
//!    their pending calls, leaves the queues in which they wait, and releases what they hold; their effects so far
//!    remain.
//!
//! A body that is in an atomic step is given up only when the step has ended, and begins no other until then.
//!
//! A transaction is such a body, too, of which several attempts may run, one after the other (`attempts`).
//!
//! A call that blocks a thread cannot be cancelled: it runs to its end beside the flow, and keeps its locks until then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

use weir_events::Synchronisation;
use weir_host::Value;
use weir_trace::{Detail, EventKind};

use super::attempts::Attempts;
use super::repeat::capture;
use super::thread_release::leaves_for_one;
use super::{Finished, FlowExit, Frame};
use crate::instance::Env;
use crate::step::{Body, TimedStep};
use crate::units::{Advanced, Spent};

/// The bodies while they run. Dropping this cancels them.
pub(super) struct Timed {
    /// The bodies in the order in which they are advanced, each with its index in the source.
    bodies: Vec<(usize, Box<Frame>)>,
    /// The attempts of a transaction, whose body is the one of the current attempt.
    attempts: Option<Box<Attempts>>,
    /// The number of bodies that have begun.
    begun: usize,
    /// The deadline; `None` for a race.
    due_ns: Option<u64>,
    /// Set when all bodies wait for the first time, so that bodies that never wait cost no timer.
    timer: Option<Synchronisation<()>>,
    /// True once the time limit has expired.
    expired: bool,
    /// The turn of the body that has decided, with its result, while others are still in atomic steps.
    decided: Option<(usize, Finished)>,
}

impl Frame {
    /// Creates a frame for each body; none begins yet.
    pub(super) fn bodies(&mut self, step: &TimedStep, body: &Body, env: Env<'_>) -> Timed {
        if step.is_transaction {
            return self.transaction(step, body);
        }
        let limit_ns = step.limit.map(|limit| nanoseconds(&self.value(body, limit)));
        let due_ns = limit_ns.map(|limit_ns| env.instance.platform.now_ns().saturating_add(limit_ns));
        let scopes = self.scopes_around(&step.within);
        let mut bodies = Vec::with_capacity(step.bodies.len());
        for index in drawn_order(step.bodies.len(), env) {
            let (inner, captures) = &step.bodies[index];
            let mut frame = Frame::take(inner, true);
            for ((input, handed), slot) in captures.iter().zip(&inner.handed).zip(0..) {
                frame.slots[slot] = capture(*input, *handed, self, body);
            }
            frame.inherited.extend_from_slice(&scopes);
            bodies.push((index, frame));
        }
        Timed { bodies, attempts: None, begun: 0, due_ns, timer: None, expired: false, decided: None }
    }
}

impl Frame {
    /// Begins a transaction.
    fn transaction(&mut self, step: &TimedStep, body: &Body) -> Timed {
        let (inner, captures) = &step.bodies[0];
        let captures = captures.iter().map(|input| self.value(body, *input)).collect();
        let mut attempts = Box::new(Attempts::new(captures, self.scopes_around(&step.within)));
        let bodies = vec![(0, frame_of_attempt(&mut attempts, inner))];
        Timed { bodies, attempts: Some(attempts), begun: 1, due_ns: None, timer: None, expired: false, decided: None }
    }
}

/// Begins an attempt of a transaction. Returns its frame.
fn frame_of_attempt(attempts: &mut Attempts, body: &Body) -> Box<Frame> {
    let mut frame = Frame::take(body, true);
    frame.slots.iter_mut().zip(attempts.begin()).for_each(|(slot, input)| slot.put(input));
    frame.inherited.extend_from_slice(&attempts.scopes);
    frame
}

impl Timed {
    /// Advances the bodies; returns the first result, or how a body ended the flow.
    pub(super) fn advance<'s>(
        &mut self,
        step: &'s TimedStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, (FlowExit, &'s Body)>> {
        if let Some(attempts) = self.attempts.take() {
            return self.advance_attempts(attempts, step, env, context);
        }
        let mut spent = Spent::GoOn;
        for turn in 0..if self.decided.is_some() { 0 } else { self.bodies.len() } {
            self.begun = self.begun.max(turn + 1);
            match self.advance_body(turn, step, env, context) {
                Advanced::Waits => {}
                Advanced::Yields => spent = Spent::Yield,
                Advanced::Ready(finished) => {
                    self.decided = Some((turn, finished));
                    break;
                }
            }
        }
        if let Some((winner, _)) = &self.decided {
            return match self.leave_steps(*winner, step, env, context) {
                Advanced::Ready(()) => Advanced::Ready(self.result(step, env)),
                Advanced::Waits => Advanced::Waits,
                Advanced::Yields => Advanced::Yields,
            };
        }
        if self.is_out_of_time(spent, env, context) {
            self.record_others(None, step, env);
            return Advanced::Ready(Ok(Value::none()));
        }
        match spent {
            Spent::GoOn => Advanced::Waits,
            Spent::Yield => {
                // The first body gets most of a slice, and the others go on to their next safe points: so each is first
                // in turn.
                self.bodies.rotate_left(1);
                Advanced::Yields
            }
        }
    }

    /// Advances the attempts of a transaction.
    fn advance_attempts<'s>(
        &mut self,
        mut attempts: Box<Attempts>,
        step: &'s TimedStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, (FlowExit, &'s Body)>> {
        let stopped = loop {
            if attempts.is_in_pause(context) {
                break Advanced::Waits;
            }
            if self.bodies.is_empty() {
                self.bodies.push((0, frame_of_attempt(&mut attempts, &step.bodies[0].0)));
            }
            match self.advance_body(0, step, env, context) {
                Advanced::Ready(Finished::Ended(FlowExit { how: Err(failure), .. }))
                    if attempts.go_on_behind(&failure) =>
                {
                    self.bodies.drain(..).for_each(|(_, frame)| Frame::give_back(frame));
                    attempts.pause(env);
                }
                Advanced::Ready(finished) => {
                    self.decided = Some((0, finished));
                    return Advanced::Ready(self.result(step, env));
                }
                Advanced::Waits => break Advanced::Waits,
                Advanced::Yields => break Advanced::Yields,
            }
        };
        self.attempts = Some(attempts);
        stopped
    }

    /// Advances a body. If it is to be given up, it begins no further atomic step.
    fn advance_body(
        &mut self,
        turn: usize,
        step: &TimedStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Finished> {
        let is_over = self.expired || self.decided.is_some();
        let (index, frame) = &mut self.bodies[turn];
        let given_up = if is_over { Some(frame.inherited.len()) } else { env.given_up };
        frame.advance(&step.bodies[*index].0, Env { given_up, ..env }, None, context)
    }

    /// Goes on with the bodies that have lost, as long as they are in atomic steps.
    fn leave_steps(
        &mut self,
        winner: usize,
        step: &TimedStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<()> {
        let mut spent = Spent::GoOn;
        for turn in (0..self.begun).filter(|turn| *turn != winner) {
            if !self.bodies[turn].1.is_in_step() {
                continue;
            }
            match self.advance_body(turn, step, env, context) {
                Advanced::Waits => {}
                Advanced::Yields => spent = Spent::Yield,
                Advanced::Ready(_) => self.bodies[turn].1.rewind(),
            }
        }
        let is_in_step = |(turn, (_, frame)): (usize, &(usize, Box<Frame>))| turn != winner && frame.is_in_step();
        match spent {
            _ if !self.bodies.iter().enumerate().any(is_in_step) => Advanced::Ready(()),
            Spent::Yield => Advanced::Yields,
            Spent::GoOn => Advanced::Waits,
        }
    }

    /// Returns the result of the body that has decided.
    fn result<'s>(&mut self, step: &'s TimedStep, env: Env<'_>) -> Result<Value, (FlowExit, &'s Body)> {
        let (winner, finished) = self.decided.take().expect("a body has decided");
        self.record_others(Some(winner), step, env);
        match finished {
            Finished::SegmentEnd => unreachable!("bodies are not cut"),
            Finished::Ended(ended) => Err((ended, &step.bodies[self.bodies[winner].0].0)),
            Finished::Value(value) if step.limit.is_some() => Ok(Value::some(value)),
            Finished::Value(value) => Ok(value),
        }
    }

    /// Returns true if the time limit has expired and no body is in an atomic step; sets the timer if all bodies wait.
    fn is_out_of_time(&mut self, spent: Spent, env: Env<'_>, context: &mut Context<'_>) -> bool {
        let Some(due_ns) = self.due_ns else { return false };
        let platform = &env.instance.platform;
        self.expired = self.expired
            || match spent {
                Spent::Yield => platform.now_ns() >= due_ns,
                Spent::GoOn => {
                    let timer = self.timer.get_or_insert_with(|| platform.at(due_ns).synchronise());
                    Pin::new(timer).poll(context).is_ready()
                }
            };
        self.expired && !self.is_in_step()
    }

    /// Records the bodies that are cancelled: all that have begun, except the one that decided.
    fn record_others(&self, decided: Option<usize>, step: &TimedStep, env: Env<'_>) {
        if !env.records_nodes {
            return;
        }
        for (turn, (index, _)) in self.bodies[..self.begun].iter().enumerate() {
            if decided != Some(turn) {
                let (node, body) = (Arc::clone(&step.name), *index as u64);
                env.instance.record(Detail::Nodes, || EventKind::BodyGivenUp { flow: env.key, node, body });
            }
        }
    }
}

impl Timed {
    /// Returns the frame of a body that has stopped: of one that computes, if there is one.
    pub(super) fn stopped_frame<'a>(&'a self, step: &'a TimedStep) -> Option<(&'a Frame, &'a Body)> {
        let mut stopped = self.bodies.iter().filter(|(_, frame)| frame.has_stopped());
        let computes = stopped.clone().find(|(_, frame)| frame.yielded);
        let (index, frame) = computes.or_else(|| stopped.next())?;
        Some((frame, &step.bodies[*index].0))
    }

    /// Returns true if a body is in an atomic step.
    pub(super) fn is_in_step(&self) -> bool {
        self.bodies.iter().any(|(_, frame)| frame.is_in_step())
    }

    /// Returns true if the flow holds no thread while the bodies wait.
    pub(super) fn leaves_thread(&self) -> bool {
        leaves_for_one(self.bodies.iter().map(|(_, frame)| frame.leaves_thread()))
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.bodies.drain(..).for_each(|(_, frame)| Frame::give_back(frame));
    }
}

/// Returns a rotation of the source order or of its reverse, chosen uniformly with a random number of the platform.
fn drawn_order(count: usize, env: Env<'_>) -> impl Iterator<Item = usize> {
    // One body needs no order, so a time limit draws nothing.
    let drawn = if count < 2 { 0 } else { env.instance.platform.random() };
    let (start, is_reversed) = ((drawn >> 1) as usize % count.max(1), drawn & 1 == 1);
    (0..count).map(move |turn| (start + if is_reversed { count - turn } else { turn }) % count)
}

/// Converts a `Duration` to a time limit; a negative one expires at once.
fn nanoseconds(value: &Value) -> u64 {
    match value {
        Value::Duration(nanoseconds) => u64::try_from(*nanoseconds).unwrap_or(0),
        other => unreachable!("the verifier has seen a duration, not {other}"),
    }
}
