//! Iterations of a `map` of which several are under way at a time.

use std::task::Context;

use weir_host::Value;

use super::exit::FlowExit;
use crate::instance::Env;
use crate::step::RepeatStep;
use crate::units::{Advanced, Spent};

/// Iterations of a `map` of which several are under way at a time.
pub(super) trait Overlapping {
    /// Begins the iterations for which there is room.
    fn begin_more(&mut self, step: &RepeatStep);

    /// Advances the iterations under way as far as possible.
    fn advance_all(&mut self, step: &RepeatStep, env: Env<'_>, context: &mut Context<'_>) -> Spent;

    /// Returns the number of iterations under way.
    fn running(&self) -> usize;

    /// Returns the number of iterations that are to begin: none behind an end of the flow.
    fn left(&self) -> usize;

    /// Returns the list of results, or the end of the flow by the earliest iteration that ended it.
    fn take_result(&mut self) -> Result<Value, FlowExit>;

    /// Returns the number of iterations that may begin now.
    fn room(&self, step: &RepeatStep) -> usize {
        (step.body.overlap_max as usize).saturating_sub(self.running()).min(self.left())
    }

    /// Runs as far as possible; returns the list of results, or the end of the flow.
    fn advance(
        &mut self,
        step: &RepeatStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Result<Value, FlowExit>> {
        loop {
            self.begin_more(step);
            let spent = self.advance_all(step, env, context);
            if self.running() == 0 && self.left() == 0 {
                return Advanced::Ready(self.take_result());
            }
            if spent == Spent::Yield {
                return Advanced::Yields;
            }
            if self.room(step) == 0 {
                return Advanced::Waits;
            }
        }
    }
}
