//! The advance of a flow until it waits, yields or ends.

use std::task::Context;

use weir_host::memory;

use super::{FlowBatches, FlowState, Means};
use crate::batching::{
    BatchesInPlace, LatencyGraph, end_slice, has_joined, has_only_prompt_batches, is_awaited, pass_to_senders, resume,
};
use crate::frame::Finished;
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
        let mut in_place = BatchesInPlace::default();
        let mut advanced = self.advance_to_rest(instance, until, means, context, &mut in_place);
        if self.batches != FlowBatches::None {
            advanced = self.send_batches(instance, until, means, context, (advanced, in_place));
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
        (mut advanced, mut in_place): (Advanced<Finished>, BatchesInPlace),
    ) -> Advanced<Finished> {
        let own = usize::from(self.batches == FlowBatches::Counted);
        while matches!(advanced, Advanced::Waits)
            && self.claims.is_none()
            && instance.resources.in_batches.has_only(own)
            && self.sends_in_place(instance, context, &mut in_place)
        {
            advanced = self.advance_to_rest(instance, until, means, context, &mut in_place);
        }
        if in_place.take_deferred_forecast() && matches!(advanced, Advanced::Waits) {
            self.grant_slack(instance);
        }
        if self.batches == FlowBatches::Joined && !matches!(advanced, Advanced::Ready(_)) {
            self.batches = FlowBatches::Counted;
            instance.resources.in_batches.enter();
        }
        pass_to_senders();
        advanced
    }

    /// Sends the batches in place that may leave; returns true if there is one. Those for which the flow may still make calls stay
    /// while others can leave.
    fn sends_in_place(&self, instance: &ProgramInstance, context: &Context<'_>, in_place: &mut BatchesInPlace) -> bool {
        let platform = &*instance.platform;
        if !in_place.is_forecast_deferred() {
            return in_place.send(platform, context, |_| false);
        }
        let (frame, latencies) = (self.frame.as_deref(), instance.flow(self.key).body.latencies.as_deref());
        let Some((frame, latencies)) = frame.zip(latencies) else { return false };
        if in_place.send(platform, context, |function| frame.may_delay_for_later_call(latencies, function)) {
            return true;
        }
        if !in_place.take_deferred_forecast() {
            return false;
        }
        self.grant_slack(instance);
        in_place.send(platform, context, |_| false)
    }

    /// Tells the batches of the flow's calls until when these may wait.
    fn grant_slack(&self, instance: &ProgramInstance) {
        if let Some(frame) = &self.frame {
            frame.grant_slack(&instance.flow(self.key).body, &*instance.platform);
        }
    }

    /// Returns true if the flow, which waits, is about to send its batches in place, and if no call that it may still make takes
    /// longer than that: then no forecast is needed to know that nothing is lost if a batch waits for others.
    fn needs_no_forecast(&self, instance: &ProgramInstance) -> bool {
        let body = &instance.flow(self.key).body;
        self.batches == FlowBatches::Joined
            && instance.resources.in_batches.has_only(0)
            && has_only_prompt_batches()
            && body.latencies.as_deref().is_some_and(LatencyGraph::is_prompt)
    }

    /// Advances the flow until it waits, yields or ends.
    #[inline]
    fn advance_to_rest(
        &mut self,
        instance: &ProgramInstance,
        until: usize,
        (blocking, units): Means<'_>,
        context: &mut Context<'_>,
        in_place: &mut BatchesInPlace,
    ) -> Advanced<Finished> {
        let frame = self.frame.as_mut().expect("a flow is not polled after its end");
        let given_up = self.given_up.then_some(0);
        let (key, records_nodes, forks, section) = (self.key, self.records_nodes, &self.forks, &self.section);
        let call_budget = instance.entries[key.entry as usize].call_budget;
        let sessions = &self.sessions;
        let env =
            Env { instance, key, records_nodes, blocking, units, forks, section, sessions, call_budget, given_up };
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
        if advanced.is_failure() {
            advanced = frame.settle_failure(advanced, &instance.environment, context);
        }
        if instance.gathers() {
            let waits = matches!(advanced, Advanced::Waits);
            if self.batches == FlowBatches::None && has_joined() {
                self.batches = FlowBatches::Joined;
            }
            let defers_forecast = waits && self.needs_no_forecast(instance);
            in_place.defer_forecast(defers_forecast);
            let is_woken = waits && !defers_forecast && is_awaited() && self.is_woken();
            if waits && !defers_forecast && !is_woken {
                self.grant_slack(instance);
            }
            self.claims = end_slice(is_woken || matches!(advanced, Advanced::Yields));
        }
        self.assured = entered.assured();
        if self.assured > 0 && !self.is_in_step() {
            self.assured = 0;
        }
        self.balance = entered.leave();
        self.forks.note_bytes(self.balance);
        advanced
    }

    /// Returns true if the flow was woken while it ran, because a call is answered.
    fn is_woken(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| frame.is_woken())
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
