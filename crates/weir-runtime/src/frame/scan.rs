//! The scan of a body: finds the steps that can run, and runs them. A *straight* scan runs one step after the other
//! (`straight.rs`); one *around* the steps that wait runs those behind them that depend on none.

use std::task::Context;

use super::action::Ran;
use super::{Frame, IterationTurn};
use crate::instance::Env;
use crate::step::{Body, NONE, PreparedStep};
use crate::wait_set::WaitSet;

impl Frame {
    /// Runs the steps that need not wait.
    pub(super) fn scan(
        &mut self,
        body: &Body,
        env: Env<'_>,
        place: Option<IterationTurn<'_>>,
        context: &mut Context<'_>,
    ) {
        if place.is_some() {
            return self.scan_around(body, env, place, context);
        }
        if self.waits.is_empty() && self.end.is_none() {
            self.return_to_straight(body);
        }
        if self.seen.is_empty() {
            self.scan_straight(body, env, context);
            let waits_for_one = matches!(&self.waits[..], [wait] if body.steps[wait.node].is_awaited_by_all);
            if waits_for_one {
                return self.pass_seen(body);
            }
        }
        if !self.seen.is_empty() {
            self.scan_around(body, env, place, context);
        }
    }

    /// Returns to the straight scan, if no step behind the first that has not run has run.
    fn return_to_straight(&mut self, body: &Body) {
        if self.seen.is_empty() {
            return;
        }
        self.pass_seen(body);
        let (word, bit) = (self.low / 64, self.low % 64);
        let mut rest = self.seen.iter().skip(word);
        if rest.next().is_none_or(|first| first >> bit == 0) && rest.all(|word| *word == 0) {
            self.seen.clear();
        }
    }

    /// Passes the steps that have run or were skipped.
    pub(super) fn pass_seen(&mut self, body: &Body) {
        while self.low < self.limit(body) && self.is_seen(self.low) {
            self.low += 1;
        }
    }

    /// Runs every step that depends on no pending step.
    #[inline(never)]
    fn scan_around(&mut self, body: &Body, env: Env<'_>, place: Option<IterationTurn<'_>>, context: &mut Context<'_>) {
        self.seen.resize(body.steps.len().div_ceil(64), 0);
        let mut unfinished = WaitSet::default();
        let numbers = self.waits.iter().filter_map(|wait| body.steps[wait.node].wait_number);
        numbers.for_each(|number| unfinished.insert(number));
        let mut index = self.low;
        while index < self.limit(body) {
            let step = &body.steps[index];
            if !self.is_seen(index) {
                if self.has_to_wait(step, &unfinished, place, body) {
                    step.wait_number.into_iter().for_each(|number| unfinished.insert(number));
                } else if self.is_chosen(step) {
                    self.cursor = index;
                    self.see(index);
                    match self.run(index, step, body, &env, context) {
                        Ran::Next => {
                            self.through(step, env);
                            self.see_region(index, body, env);
                            index = self.cursor;
                        }
                        Ran::Waits(stage) if step.wait_number.is_none() => {
                            self.suspend(index, stage, body, env);
                            break;
                        }
                        Ran::Waits(stage) => {
                            step.wait_number.into_iter().for_each(|number| unfinished.insert(number));
                            self.wait(index, stage, body, env);
                        }
                        Ran::Yields(None) => {
                            self.through(step, env);
                            self.yielded = true;
                            break;
                        }
                        Ran::Yields(Some(stage)) => {
                            self.yielded = true;
                            step.wait_number.into_iter().for_each(|number| unfinished.insert(number));
                            self.suspend(index, stage, body, env);
                            if self.suspended.is_some() {
                                break;
                            }
                        }
                        Ran::Again(map) => {
                            index = self.reopen(map, index, body);
                            continue;
                        }
                        Ran::Ends(end) => {
                            self.see_region(index, body, env);
                            index = self.cursor;
                            self.record_end(index, *end);
                        }
                    }
                } else {
                    self.see(index);
                    self.through(step, env);
                }
            }
            index += 1;
        }
        self.pass_seen(body);
    }

    /// Returns true if a step waits for one that is unfinished, or for the turn of its iteration.
    #[inline]
    fn has_to_wait(
        &self,
        step: &PreparedStep,
        unfinished: &WaitSet,
        place: Option<IterationTurn<'_>>,
        body: &Body,
    ) -> bool {
        step.depends.meets(unfinished) || !has_turn(step, place) || !self.may_follow_reads(step, unfinished, body)
    }

    #[inline]
    pub(super) fn is_chosen(&self, step: &PreparedStep) -> bool {
        step.switch == NONE || self.choices[step.switch as usize] == step.arm
    }

    pub(super) fn is_seen(&self, index: usize) -> bool {
        self.seen[index / 64] & (1 << (index % 64)) != 0
    }

    pub(super) fn see(&mut self, index: usize) {
        if let Some(word) = self.seen.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }
}

/// Returns true if it is the turn of the iteration in all orders that the step awaits.
fn has_turn(step: &PreparedStep, place: Option<IterationTurn<'_>>) -> bool {
    let Some(place) = place else { return true };
    let mut orders = step.awaits_orders;
    while orders != 0 {
        if place.turns[orders.trailing_zeros() as usize] < place.iteration {
            return false;
        }
        orders &= orders - 1;
    }
    true
}
