//! Evaluation of `race`, which is one of the outcomes that it allows.
//!
//! The first body wins outside of tests. In tests, in which time limits expire, a body that waits can lose:
//!
//! 1. The last body begins. When it waits for the first time, the bodies before it run, as a race of their own.
//! 2. If one of them ends before that wait does, it has won, and the last body is cancelled where it waits. Otherwise they are
//!    cancelled where they wait, and the last body goes on.
//! 3. If the last body has no call that waits, those before it win only if they do not wait either. A first body that has none wins.

use weir_host::{FunctionCode, Settled, Value};

use super::Evaluator;
use super::flow::{FlowEnd, FlowEvaluation};
use super::time_limits::RivalCall;
use crate::expr::{Block, Op};

impl<'p> FlowEvaluation<'_, 'p> {
    pub(super) fn race(&mut self, bodies: &'p [Block]) -> Result<Value, FlowEnd> {
        let (last, before) = bodies.split_last().expect("the verifier has seen a body");
        let Some(first) = before.first() else { return self.block(last) };
        if !self.evaluator.limits.do_expire() || !self.evaluator.may_wait(first) {
            return self.block(first);
        }
        if !self.evaluator.may_wait(last) {
            let limit = self.evaluator.limits.begin(0);
            let value = self.race(before);
            self.evaluator.limits.end(limit);
            return match value {
                Err(FlowEnd::TimeUp(expired)) if expired == limit => self.block(last),
                value => value,
            };
        }
        let race = self.evaluator.limits.begin_race(before);
        let value = self.block(last);
        self.evaluator.limits.end_race(race);
        match value {
            Err(FlowEnd::Overtaken(overtaken, by)) if overtaken == race => *by,
            value => value,
        }
    }

    /// Runs the bodies that race against a call while it is awaited. Returns its result if it ends first.
    pub(super) fn overtake(
        &mut self,
        (race, bodies): (usize, &'p [Block]),
        call: RivalCall,
    ) -> Result<Settled, FlowEnd> {
        let limit = self.evaluator.limits.begin_at_end_of(call);
        let value = self.race(bodies);
        let settled = self.evaluator.limits.end_at_end_of(limit);
        match value {
            Err(FlowEnd::TimeUp(expired)) if expired == limit => Ok(settled.expect("the call has ended")),
            Err(FlowEnd::TimeUp(outer)) => Err(FlowEnd::TimeUp(outer)),
            value => Err(FlowEnd::Overtaken(race, Box::new(value))),
        }
    }
}

impl Evaluator<'_> {
    /// Returns whether a block has a call that may wait.
    fn may_wait(&self, block: &Block) -> bool {
        block.lets.iter().any(|binding| match &binding.op {
            Op::Call(call) => {
                let function = self.library.function(&call.function);
                function.is_some_and(|function| matches!(function.code, FunctionCode::Waiting(_)))
            }
            op => op.blocks().any(|inner| self.may_wait(inner)),
        })
    }
}
