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
        let gathers = |member: &Member| member.progress() == MemberProgress::Gathers;
        if !self.waits.iter().any(|wait| wait.member().is_some_and(gathers)) {
            return;
        }
        let progress: Vec<StepProgress> = latencies.steps().iter().map(|step| self.progress(step)).collect();
        for (place, slack) in latencies.slack(env.instance.platform.now_ns(), &progress) {
            let member = self.member_of(latencies.steps()[place].index);
            member.into_iter().for_each(|member| member.delay(slack));
        }
    }

    fn progress(&self, step: &LatencyStep) -> StepProgress {
        match self.member_of(step.index).map(Member::progress) {
            Some(MemberProgress::Gathers) => return StepProgress::Gathers,
            Some(MemberProgress::Sent(sent_ns)) => return StepProgress::Sent(sent_ns),
            Some(MemberProgress::Answered) | None => {}
        }
        let has_begun = step.index < self.low || (!self.seen.is_empty() && self.is_seen(step.index));
        let chosen = |(switch, _): &(u32, u32)| self.choices[*switch as usize];
        if has_begun || step.arms.iter().any(|arm| chosen(arm) != NONE && chosen(arm) != arm.1) {
            return StepProgress::Over;
        }
        StepProgress::Ahead(step.arms.iter().all(|arm| chosen(arm) == arm.1))
    }

    fn member_of(&self, step: usize) -> Option<&Member> {
        self.waits.iter().find(|wait| wait.node == step)?.member()
    }
}

impl super::Wait {
    fn member(&self) -> Option<&Member> {
        match self.stage.as_deref() {
            Some(Stage::Batched(member)) => Some(member),
            _ => None,
        }
    }
}
