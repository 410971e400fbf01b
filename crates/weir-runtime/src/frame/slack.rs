//! The slack of a flow that has come to rest: its calls that gather learn how long they may wait for others.

use super::Frame;
use super::action::Stage;
use crate::batching::{LatencyStep, Member, MemberProgress, StepProgress};
use crate::instance::Env;
use crate::step::{Body, NONE};

impl Frame {
    /// Tells the batches of this flow's calls until when these may wait, because the flow waits.
    pub(crate) fn grant_slack(&self, body: &Body, env: Env<'_>) {
        let Some(latencies) = body.latencies.as_deref().filter(|latencies| latencies.may_delay()) else { return };
        if !self.waits.iter().any(|wait| wait.gathers()) {
            return;
        }
        let progress: Vec<StepProgress> = latencies.steps().iter().map(|step| self.progress(step)).collect();
        for (place, slack) in latencies.slack(env.instance.platform.now_ns(), &progress) {
            let step = latencies.steps()[place].index;
            if let Some(wait) = self.waits.iter().find(|wait| wait.node == step) {
                wait.each_member(&mut |member| {
                    if member.progress() == MemberProgress::Gathers {
                        member.delay(slack);
                    }
                });
            }
        }
    }

    fn progress(&self, step: &LatencyStep) -> StepProgress {
        if let Some(wait) = self.waits.iter().find(|wait| wait.node == step.index) {
            if wait.gathers() {
                return StepProgress::Gathers;
            }
            // The answer of iterations is there when the last one is.
            let mut last_ns = None;
            wait.each_member(&mut |member| match member.progress() {
                MemberProgress::Sent(sent_ns) => last_ns = last_ns.max(Some(sent_ns)),
                MemberProgress::Gathers | MemberProgress::Answered => {}
            });
            if let Some(sent_ns) = last_ns {
                return StepProgress::Sent(sent_ns);
            }
        }
        let has_begun = step.index < self.low || (!self.seen.is_empty() && self.is_seen(step.index));
        let chosen = |(switch, _): &(u32, u32)| self.choices[*switch as usize];
        if has_begun || step.arms.iter().any(|arm| chosen(arm) != NONE && chosen(arm) != arm.1) {
            return StepProgress::Over;
        }
        StepProgress::Ahead(step.arms.iter().all(|arm| chosen(arm) == arm.1))
    }

    /// Shows the batches in which calls of the frame are, those of its bodies included.
    pub(super) fn each_member(&self, see: &mut dyn FnMut(&Member)) {
        self.waits.iter().for_each(|wait| wait.each_member(see));
    }
}

impl super::Wait {
    fn each_member(&self, see: &mut dyn FnMut(&Member)) {
        match self.stage.as_deref() {
            Some(Stage::Batched(member)) => see(member),
            Some(Stage::Body(run)) => run.each_member(see),
            _ => {}
        }
    }

    fn gathers(&self) -> bool {
        let mut gathers = false;
        self.each_member(&mut |member| gathers |= member.progress() == MemberProgress::Gathers);
        gathers
    }
}
