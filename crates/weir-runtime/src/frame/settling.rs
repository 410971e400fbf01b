//! The waits of a flow until what it has seen is durable, where its code has none: before it ends with a failure, and before a call that only
//! reads asks somebody outside. The code waits itself before an answer, and before an effect outside (`tables.settle`).
//!
//! A flow that ends with a failure first waits for the calls that it has placed, because the failure of one takes the place of its own. Then
//! it gives up what it holds, so that nobody waits for its locks meanwhile.

use std::task::Context;

use weir_host::{Environment, Outcome, Pending, SeenCommits, Settled};

use super::Frame;
use super::exit::{EndingFlow, Finished};
use crate::units::Advanced;

impl Advanced<Finished> {
    /// Returns true if the flow has ended with a failure.
    #[inline]
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Advanced::Ready(Finished::Ended(exit)) if exit.how.is_err())
    }
}

impl Frame {
    /// Waits, when the flow has ended with a failure, for the calls that it has placed, and until what it has seen is durable.
    #[cold]
    pub(crate) fn settle_failure(
        &mut self,
        advanced: Advanced<Finished>,
        environment: &Environment,
        context: &mut Context<'_>,
    ) -> Advanced<Finished> {
        let placed = self.commits.take_placed().and_then(|group| environment.failed_placed_call(group));
        let advanced = EndingFlow::begin(&mut self.ending, advanced, placed, context);
        if !advanced.is_failure() {
            return advanced;
        }
        let Some(settled) = environment.settled(std::mem::take(&mut self.commits)) else { return advanced };
        self.give_up_work();
        EndingFlow::begin(&mut self.ending, advanced, Some(Box::pin(async { settled.await.err() })), context)
    }
}

/// Has a call begin when what its flow has seen is durable.
pub(super) fn behind_seen(call: Pending, environment: &Environment) -> Pending {
    let Some(settled) = environment.settled(SeenCommits::current()) else { return call };
    Box::pin(async {
        match settled.await {
            Ok(()) => call.await,
            Err(failure) => Settled { outcome: Outcome::Fault(Box::new(failure)), restored: Vec::new() },
        }
    })
}
