//! The slack of a flow that has come to rest: its calls that gather learn how long they may wait for others.

use super::action::Stage;
use super::{Frame, Wait};
use crate::batching::{
    CallSlack, IterationsProgress, LatencyGraph, LatencyStep, Member, MemberProgress, ReturnStep, StepCertainty,
    StepLatency, StepProgress,
};
use crate::instance::Env;
use crate::step::{Body, NONE};

impl Frame {
    /// Tells the batches of this flow's calls until when these may wait, because the flow waits.
    pub(crate) fn grant_slack(&self, body: &Body, env: Env<'_>) {
        let Some(latencies) = body.latencies.as_deref().filter(|latencies| latencies.may_delay()) else { return };
        if !self.has_call_that_may_wait(latencies, latencies) {
            return;
        }
        let mut progress = self.progress(latencies);
        latencies.grant_slack(env.instance.platform.now_ns(), &mut progress);
        self.pass_slack(latencies, &progress);
    }

    /// Returns true if a call that gathers, of a function whose calls may wait in the flow of this graph, is in this frame.
    fn has_call_that_may_wait(&self, latencies: &LatencyGraph, of_flow: &LatencyGraph) -> bool {
        let may_wait = |wait: &Wait| {
            let step = latencies.steps().iter().find(|step| step.index == wait.node);
            match (step.map(|step| &step.latency), wait.stage.as_deref()) {
                (Some(StepLatency::Iterations { body, .. }), Some(Stage::Body(run))) => {
                    run.frames().any(|frame| frame.has_call_that_may_wait(body, of_flow))
                }
                (Some(StepLatency::Gathered { gatherer, .. }), _) => of_flow.may_delay_call(gatherer) && wait.gathers(),
                _ => false,
            }
        };
        self.waits.iter().any(may_wait)
    }

    /// Tells the batches of the calls in this frame until when these may wait.
    fn pass_slack(&self, latencies: &LatencyGraph, progress: &[StepProgress]) {
        for (step, progress) in latencies.steps().iter().zip(progress) {
            let Some(wait) = self.waits.iter().find(|wait| wait.node == step.index) else { continue };
            match progress {
                // The answers of these calls let further iterations begin.
                StepProgress::Gathers(_) if wait.has_more() => {
                    wait.each_member(&mut |member| member.delay(CallSlack::default()));
                }
                StepProgress::Gathers(slack) => wait.each_member(&mut |member| member.delay(*slack)),
                StepProgress::Iterates(iterations) => wait.pass_slack(step, iterations),
                StepProgress::Over | StepProgress::Waits | StepProgress::Sent(_) | StepProgress::Ahead(_) => {}
            }
        }
    }

    fn progress(&self, latencies: &LatencyGraph) -> Vec<StepProgress> {
        let mut progress = Vec::with_capacity(latencies.steps().len());
        self.note_progress(latencies, &mut progress);
        progress
    }

    /// Adds the progress of each step.
    fn note_progress(&self, latencies: &LatencyGraph, progress: &mut Vec<StepProgress>) {
        let may_return = latencies.returns().iter().find(|returns| self.is_undecided(returns));
        let may_return_at = may_return.map_or(usize::MAX, |returns| returns.index);
        progress.extend(latencies.steps().iter().map(|step| self.progress_of(step, may_return_at)));
    }

    /// Returns true if a step that may end the flow with an answer can still do so.
    fn is_undecided(&self, step: &ReturnStep) -> bool {
        let waits = self.waits.iter().any(|wait| wait.node == step.index);
        waits || !(self.has_begun(step.index) || self.is_passed_over(&step.arms))
    }

    fn has_begun(&self, index: usize) -> bool {
        index < self.low || (!self.seen.is_empty() && self.is_seen(index))
    }

    /// Returns true if one of these arms has not been chosen, but another one.
    fn is_passed_over(&self, arms: &[(u32, u32)]) -> bool {
        let chosen = |switch: u32| self.choices[switch as usize];
        arms.iter().any(|(switch, arm)| chosen(*switch) != NONE && chosen(*switch) != *arm)
    }

    fn progress_of(&self, step: &LatencyStep, may_return_at: usize) -> StepProgress {
        // Steps behind an end of the flow do not begin, and those behind the end of the section do not before all others are
        // through.
        if step.index >= self.end.as_ref().map_or(self.until, |end| end.node) {
            return StepProgress::Over;
        }
        if let Some(wait) = self.waits.iter().find(|wait| wait.node == step.index) {
            if let Some(iterations) = wait.iterations(step) {
                return StepProgress::Iterates(iterations);
            }
            if wait.gathers() {
                return StepProgress::Gathers(CallSlack::default());
            }
            // The answer of iterations is there when the last one is.
            let (mut last_ns, mut is_of_batches) = (None, false);
            wait.each_member(&mut |member| {
                is_of_batches = true;
                if let MemberProgress::Sent(sent_ns) = member.progress() {
                    last_ns = last_ns.max(Some(sent_ns));
                }
            });
            return match last_ns {
                Some(sent_ns) => StepProgress::Sent(sent_ns),
                None if is_of_batches => StepProgress::Over,
                None => StepProgress::Waits,
            };
        }
        if self.has_begun(step.index) || self.is_passed_over(&step.arms) {
            return StepProgress::Over;
        }
        StepProgress::Ahead(match step.arms.iter().all(|(switch, arm)| self.choices[*switch as usize] == *arm) {
            false => StepCertainty::Perhaps,
            true if may_return_at < step.index => StepCertainty::UnlessEnded,
            true => StepCertainty::UnlessFailed,
        })
    }

    /// Returns true if the flow was woken while it ran, because a call of the frame is answered.
    pub(crate) fn is_woken(&self) -> bool {
        let mut is_woken = false;
        self.each_member(&mut |member| is_woken = is_woken || member.is_woken());
        is_woken
    }

    /// Shows the batches in which calls of the frame are, those of its bodies included.
    pub(super) fn each_member(&self, see: &mut dyn FnMut(&Member)) {
        self.waits.iter().for_each(|wait| wait.each_member(see));
    }
}

impl Wait {
    fn each_member(&self, see: &mut dyn FnMut(&Member)) {
        match self.stage.as_deref() {
            Some(Stage::Batched(member)) => see(member),
            Some(Stage::Body(run)) => run.each_member(see),
            _ => {}
        }
    }

    /// Returns true if there are iterations that have not begun.
    fn has_more(&self) -> bool {
        matches!(self.stage.as_deref(), Some(Stage::Body(run)) if run.has_more())
    }

    fn gathers(&self) -> bool {
        let mut gathers = false;
        self.each_member(&mut |member| gathers |= member.progress() == MemberProgress::Gathers);
        gathers
    }

    /// Returns the iterations of a `map` that are under way, if they overlap.
    fn iterations(&self, step: &LatencyStep) -> Option<IterationsProgress> {
        let (StepLatency::Iterations { body, .. }, Some(Stage::Body(run))) = (&step.latency, self.stage.as_deref())
        else {
            return None;
        };
        let mut iterations = IterationsProgress { more: run.has_more(), ..IterationsProgress::default() };
        let mut progress = Vec::with_capacity(body.steps().len());
        for (place, frame) in run.frames().enumerate() {
            progress.clear();
            frame.note_progress(body, &mut progress);
            iterations.add(place, &progress);
        }
        Some(iterations)
    }

    /// Tells the batches of the calls in iterations until when these may wait.
    fn pass_slack(&self, step: &LatencyStep, iterations: &IterationsProgress) {
        let (StepLatency::Iterations { body, .. }, Some(Stage::Body(run))) = (&step.latency, self.stage.as_deref())
        else {
            return;
        };
        let mut progress = vec![None; run.frames().count()];
        for alike in &iterations.alike {
            alike.places.iter().for_each(|place| progress[*place] = Some(&alike.progress));
        }
        for (frame, progress) in run.frames().zip(progress) {
            match progress {
                Some(progress) => frame.pass_slack(body, progress),
                None => frame.each_member(&mut |member| member.delay(CallSlack::default())),
            }
        }
    }
}
