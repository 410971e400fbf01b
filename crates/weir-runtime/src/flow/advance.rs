//! The advance of a flow until it waits, yields or ends.

use std::task::Context;

use weir_host::memory;

use super::{FlowBatches, FlowState, Means};
use crate::batching::{BatchesInPlace, end_slice, has_joined, is_awaited, pass_to_senders, resume};
use crate::frame::{EndingFlow, Finished, Frame};
use crate::instance::{Env, ProgramInstance};
use crate::overload::ThreadQueue;
use crate::units::Advanced;

impl FlowState {
    #[inline]
    pub(super) fn advance_frame(
        &mut self,
        instance: &ProgramInstance,
        until: usize,
        means: Means<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Finished> {
        let mut advanced = self.advance_to_rest(instance, until, means, context);
        if self.batches != FlowBatches::None {
            advanced = self.send_batches(instance, until, means, context, advanced);
        }
        let stops = matches!(advanced, Advanced::Yields);
        let moves = self.section.moves(stops);
        let yields = stops && !moves;
        if yields {
            self.count_turn(instance);
        } else if !moves {
            self.turns.interrupt();
        }
        if yields != self.computes {
            self.note_computing(instance, yields);
        }
        advanced
    }

    /// Sends the batches that the flow has begun in place, and advances it with their answers, as long as that is allowed;
    /// then passes them to senders.
    fn send_batches(
        &mut self,
        instance: &ProgramInstance,
        until: usize,
        means: Means<'_>,
        context: &mut Context<'_>,
        mut advanced: Advanced<Finished>,
    ) -> Advanced<Finished> {
        let (own, mut in_place) = (usize::from(self.batches == FlowBatches::Counted), BatchesInPlace::default());
        while matches!(advanced, Advanced::Waits)
            && self.claims.is_none()
            && instance.resources.in_batches.has_only(own)
            && in_place.send(&*instance.platform, context)
        {
            advanced = self.advance_to_rest(instance, until, means, context);
        }
        if self.batches == FlowBatches::Joined && !matches!(advanced, Advanced::Ready(_)) {
            self.batches = FlowBatches::Counted;
            instance.resources.in_batches.enter();
        }
        pass_to_senders();
        advanced
    }

    /// Advances the flow until it waits, yields or ends.
    #[inline]
    fn advance_to_rest(
        &mut self,
        instance: &ProgramInstance,
        until: usize,
        (blocking, units): Means<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Finished> {
        let frame = self.frame.as_mut().expect("a flow is not polled after its end");
        let given_up = self.given_up.then_some(0);
        let (key, records_nodes, forks, section) = (self.key, self.records_nodes, &self.forks, &self.section);
        let env = Env { instance, key, records_nodes, blocking, units, forks, section, given_up };
        let body = &instance.flow(self.key).body;
        frame.until = until;
        let mut commits = std::mem::take(&mut frame.commits);
        let (trace, seen) = (self.trace.enter(), commits.enter());
        let entered = memory::enter(self.balance.saturating_add(self.forks.take_bytes()).max(0));
        if self.assured > 0 {
            entered.assure(self.assured);
        }
        if let Some(mut claims) = self.claims.take() {
            resume(&mut claims);
        }
        let mut advanced = frame.advance_flow(body, env, context);
        drop((trace, seen));
        frame.commits = commits;
        if !matches!(advanced, Advanced::Ready(_))
            && let Err(failure) = memory::check()
        {
            advanced = Advanced::Ready(Finished::Ended(frame.exit_where_stopped(body, failure)));
        }
        advanced = behind_placed_calls(frame, advanced, instance, context);
        if instance.gathers() {
            let waits = matches!(advanced, Advanced::Waits);
            if self.batches == FlowBatches::None && has_joined() {
                self.batches = FlowBatches::Joined;
            }
            let is_woken = waits && is_awaited() && frame.is_woken();
            if waits && !is_woken {
                frame.grant_slack(body, env);
            }
            self.claims = end_slice(is_woken || matches!(advanced, Advanced::Yields));
        }
        self.assured = entered.assured();
        if self.assured > 0 && !frame.is_in_step() {
            self.assured = 0;
        }
        self.balance = entered.leave();
        self.forks.note_bytes(self.balance);
        advanced
    }

    fn count_turn(&mut self, instance: &ProgramInstance) {
        for _ in 0..=self.forks.take_slices() {
            if let Some(level) = self.turns.count() {
                instance.counters(self.key).queues.note_passed(ThreadQueue::Level(level));
            }
        }
    }

    /// Notes that the flow waits for its turn to go on, or no longer does.
    #[cold]
    pub(super) fn note_computing(&mut self, instance: &ProgramInstance, computes: bool) {
        self.computes = computes;
        let computing = &instance.entries[self.key.entry as usize].computing;
        if computes { computing.acquire_unguarded() } else { computing.release() }
    }
}

/// Waits, before a flow ends with a failure, for the calls that it has placed.
#[inline]
fn behind_placed_calls(
    frame: &mut Frame,
    advanced: Advanced<Finished>,
    instance: &ProgramInstance,
    context: &mut Context<'_>,
) -> Advanced<Finished> {
    let fails = matches!(&advanced, Advanced::Ready(Finished::Ended(exit)) if exit.how.is_err());
    match if fails { frame.commits.take_placed() } else { None } {
        Some(group) => {
            EndingFlow::begin(&mut frame.ending, advanced, instance.environment.failed_placed_call(group), context)
        }
        None => advanced,
    }
}
