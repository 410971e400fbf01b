//! The slack of a flow that has come to rest: its calls that gather learn how long they may wait for others.

use std::cell::Cell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::action::Stage;
use super::repeat::Run;
use super::{Frame, Wait};
use crate::batching::{
    ALIKE_MAX, BatchIdentity, CallSlack, FlowProgress, Forecast, Gatherer, LatencyGraph, LatencyStep, Member,
    MemberProgress, NO_GROUP, ReturnStep, StepCertainty, StepLatency, StepProgress,
};
use crate::platform::Platform;
use crate::step::{Body, NONE};

/// The largest progress, in steps, of which the lists are kept. Chosen by judgement: a quarter of a megabyte.
const KEPT_STEPS_MAX: usize = 16_384;

/// The lists with which the slack of a flow is computed.
#[derive(Default)]
struct SlackLists {
    progress: FlowProgress,
    forecast: Forecast,
}

thread_local! {
    /// The lists of this thread, except while they are used.
    static LISTS: Cell<Option<Box<SlackLists>>> = const { Cell::new(None) };
}

impl Frame {
    /// Tells the batches of this flow's calls until when these may wait, because the flow waits.
    pub(crate) fn grant_slack(&self, body: &Body, platform: &dyn Platform) {
        let Some(latencies) = body.latencies.as_deref().filter(|latencies| latencies.may_delay()) else { return };
        if !self.has_call_that_may_wait(latencies, latencies) {
            return;
        }
        let mut lists = LISTS.take().unwrap_or_default();
        let SlackLists { progress, forecast } = &mut *lists;
        progress.clear();
        let row = self.note_progress(latencies, progress);
        latencies.grant_slack(platform.now_ns(), row, progress, forecast);
        self.pass_slack(latencies, row, progress);
        if lists.progress.len() <= KEPT_STEPS_MAX {
            LISTS.set(Some(lists));
        }
    }

    /// Returns true if a call that gathers, of a function whose calls may wait in the flow of this graph, is in this frame.
    fn has_call_that_may_wait(&self, latencies: &LatencyGraph, of_flow: &LatencyGraph) -> bool {
        self.waits.iter().any(|wait| {
            let Some(place) = latencies.place_of(wait.node) else { return false };
            match (&latencies.steps()[place].latency, wait.stage.as_deref()) {
                (StepLatency::Iterations { body, .. }, Some(Stage::Body(run))) => {
                    run.frames().any(|frame| frame.has_call_that_may_wait(body, of_flow))
                }
                (StepLatency::Gathered { gatherer, .. }, _) => of_flow.may_delay_call(gatherer) && wait.gathers(),
                _ => false,
            }
        })
    }

    /// Returns true if calls of this function may wait for others, and the flow may still make one in this frame. Iterations that
    /// have not begun do not count while others are under way, because the answers of these let them begin.
    pub(crate) fn may_delay_for_later_call(&self, latencies: &LatencyGraph, gatherer: &Arc<Gatherer>) -> bool {
        latencies.may_delay_call(gatherer) && self.may_still_call(latencies, gatherer)
    }

    fn may_still_call(&self, latencies: &LatencyGraph, gatherer: &Arc<Gatherer>) -> bool {
        let limit = self.end.as_ref().map_or(self.until, |end| end.node);
        let may_begin =
            |step: &LatencyStep| step.index < limit && !self.has_begun(step.index) && !self.is_passed_over(&step.arms);
        latencies.steps().iter().any(|step| step.latency.calls(gatherer) && may_begin(step))
            || self.waits.iter().any(|wait| match (latencies.latency_of(wait.node), wait.stage.as_deref()) {
                (Some(StepLatency::Iterations { body, .. }), Some(Stage::Body(run))) => {
                    !run.has_more() && run.frames().any(|frame| frame.may_still_call(body, gatherer))
                }
                _ => false,
            })
    }

    /// Tells the batches of the calls in this frame, which has this row, until when these may wait.
    fn pass_slack(&self, latencies: &LatencyGraph, row: u32, progress: &FlowProgress) {
        for wait in &self.waits {
            let Some(place) = latencies.place_of(wait.node) else { continue };
            match progress.step(row, place) {
                // The answers of these calls let further iterations begin.
                StepProgress::Gathers(_) if wait.has_more() => wait.delay(CallSlack::default()),
                StepProgress::Gathers(slack) => wait.delay(progress.slack_at(slack)),
                StepProgress::Iterates(map) => {
                    let rows = progress.rows_of_iterations(progress.map(map));
                    wait.pass_slack(&latencies.steps()[place], rows, progress);
                }
                StepProgress::Over | StepProgress::Waits | StepProgress::Sent(_) | StepProgress::Ahead(_) => {}
            }
        }
    }

    /// Adds the progress of each step; returns the row.
    fn note_progress(&self, latencies: &LatencyGraph, progress: &mut FlowProgress) -> u32 {
        let may_return = latencies.returns().iter().find(|returns| self.is_undecided(returns));
        let may_return_at = may_return.map_or(usize::MAX, |returns| returns.index);
        // Steps behind an end of the flow do not begin, and those behind the end of the section do not before all others are
        // through.
        let limit = self.end.as_ref().map_or(self.until, |end| end.node);
        let steps = latencies.steps().iter();
        let row = progress.add_row(steps.map(|step| match step.index < limit {
            true => self.progress_unless_it_waits(step, may_return_at),
            false => StepProgress::Over,
        }));
        for wait in self.waits.iter().filter(|wait| wait.node < limit) {
            let Some(place) = latencies.place_of(wait.node) else { continue };
            let of_step = wait.progress(&latencies.steps()[place], progress);
            progress.set(row, place, of_step);
        }
        row
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

    /// Returns the progress of a step that does not wait now.
    fn progress_unless_it_waits(&self, step: &LatencyStep, may_return_at: usize) -> StepProgress {
        if self.has_begun(step.index) || self.is_passed_over(&step.arms) {
            return StepProgress::Over;
        }
        StepProgress::Ahead(match step.arms.iter().all(|(switch, arm)| self.choices[*switch as usize] == *arm) {
            false => StepCertainty::Perhaps,
            true if may_return_at < step.index => StepCertainty::UnlessEnded,
            true => StepCertainty::UnlessFailed,
        })
    }

    /// Returns true if another frame of this body has come equally far, as can be seen at once: if its calls are in the same
    /// batches.
    fn is_alike(&self, other: &Frame) -> bool {
        let are_alike = |one: &Wait, other: &Wait| match (one.stage.as_deref(), other.stage.as_deref()) {
            (Some(Stage::Batched(member)), Some(Stage::Batched(of_other))) => {
                one.node == other.node && member.batch() == of_other.batch()
            }
            _ => false,
        };
        self.low == other.low
            && self.waits.len() == other.waits.len()
            && self.seen == other.seen
            && self.choices == other.choices
            && self.end.is_none()
            && other.end.is_none()
            && self.until == other.until
            && self.waits.iter().zip(&other.waits).all(|(one, other)| are_alike(one, other))
    }

    /// Returns true if the flow was woken while it ran, because a call of the frame is answered.
    pub(crate) fn is_woken(&self) -> bool {
        let (mut is_woken, mut unanswered) = (false, SmallVec::<[BatchIdentity; 8]>::new());
        self.each_member(&mut |member| {
            if is_woken || unanswered.contains(&member.batch()) {
                return;
            }
            match member.progress() {
                MemberProgress::Answered => is_woken = member.is_woken(),
                MemberProgress::Gathers | MemberProgress::Sent(_) => unanswered.push(member.batch()),
            }
        });
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

    /// Tells the batches of the calls until when these may wait.
    fn delay(&self, slack: CallSlack) {
        self.each_member(&mut |member| member.delay(slack));
    }

    fn gathers(&self) -> bool {
        let mut gathers = false;
        self.each_member(&mut |member| gathers = gathers || member.progress() == MemberProgress::Gathers);
        gathers
    }

    /// Returns the progress of this step, which waits.
    fn progress(&self, step: &LatencyStep, progress: &mut FlowProgress) -> StepProgress {
        if let (StepLatency::Iterations { body, .. }, Some(Stage::Body(run))) = (&step.latency, self.stage.as_deref()) {
            return run.note_progress(body, progress);
        }
        // The answer of iterations is there when the last one is.
        let (mut last_ns, mut is_of_batches, mut gathers) = (None, false, false);
        self.each_member(&mut |member| {
            is_of_batches = true;
            match member.progress() {
                MemberProgress::Gathers => gathers = true,
                MemberProgress::Sent(sent_ns) => last_ns = last_ns.max(Some(sent_ns)),
                MemberProgress::Answered => {}
            }
        });
        match last_ns {
            _ if gathers => StepProgress::Gathers(None),
            Some(sent_ns) => StepProgress::Sent(sent_ns),
            None if is_of_batches => StepProgress::Over,
            None => StepProgress::Waits,
        }
    }

    /// Tells the batches of the calls in iterations, which have these rows, until when these may wait.
    fn pass_slack(&self, step: &LatencyStep, rows: impl Iterator<Item = Option<u32>>, progress: &FlowProgress) {
        let (StepLatency::Iterations { body, .. }, Some(Stage::Body(run))) = (&step.latency, self.stage.as_deref())
        else {
            return;
        };
        for (frame, row) in run.frames().zip(rows) {
            match row {
                Some(row) => frame.pass_slack(body, row, progress),
                None => frame.each_member(&mut |member| member.delay(CallSlack::default())),
            }
        }
    }
}

impl Run {
    /// Adds the progress of the iterations of a `map` that are under way, if they overlap. Those that have come equally far are
    /// added once, unless they belong to none of the groups and these are many.
    fn note_progress(&self, body: &LatencyGraph, progress: &mut FlowProgress) -> StepProgress {
        let mut more = self.has_more();
        let mut first_of_groups = SmallVec::<[&Frame; 8]>::new();
        let mut rows = SmallVec::<[u32; 8]>::new();
        let mut groups = SmallVec::<[u32; 64]>::new();
        for frame in self.frames() {
            let mut group = first_of_groups.iter().position(|first| frame.is_alike(first));
            if group.is_none() {
                let mark = progress.mark();
                let row = frame.note_progress(body, progress);
                group = rows.iter().position(|known| progress.are_alike(body, *known, row));
                if group.is_none() && rows.len() < ALIKE_MAX {
                    group = Some(rows.len());
                    first_of_groups.push(frame);
                    rows.push(row);
                } else {
                    progress.return_to(mark);
                }
            }
            more |= group.is_none();
            groups.push(group.map_or(NO_GROUP, |group| group as u32));
        }
        progress.add_map(&rows, &groups, more)
    }
}
