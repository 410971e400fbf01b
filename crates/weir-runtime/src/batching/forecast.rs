//! The forecast of a flow at rest: when its waiting steps will begin and end, those of bodies within bodies included.
//!
//! The steps of the flow become one list of *moments*, in an order in which each comes after those that it needs. A `map` is a
//! moment at which its iterations begin, the moments of its iterations, and one at which all have ended. Iterations that have
//! come equally far are there once, and a `map` that has not begun is there with one iteration: so the forecast takes time
//! in proportion to the text of the program, not to the lists that it is about.

use std::sync::Arc;

use smallvec::SmallVec;

use super::later_calls::LaterCalls;
use super::moment::{FlowMoment, MomentState};
use super::slack::{
    CallSlack, FunctionGatherer, LatencyGraph, LatencyStep, NO_LIMIT, ReturnStep, StepCertainty, StepLatency,
    StepProgress,
};

/// The largest number of moments. Chosen by judgement: a forecast looks at each a few times.
const MOMENTS_MAX: usize = 1_024;

/// The moments of a flow.
pub(super) struct Forecast<'a> {
    moments: Vec<FlowMoment<'a>>,
}

/// The properties that the steps of a body have from the bodies around it.
#[derive(Clone, Copy)]
struct Surroundings {
    /// The moment at which the body begins; `None` for the body of the flow.
    entry: Option<u32>,
    /// The certainty that the body is executed, if no progress is known.
    certainty: StepCertainty,
    /// True if calls may wait for others.
    delays: bool,
    /// True if the steps wait for nothing but what the moments before say.
    is_described: bool,
}

impl LatencyGraph {
    /// Returns the graph of these steps; `None` if they are too many.
    pub(crate) fn new(
        steps: Box<[LatencyStep]>,
        returns: Box<[ReturnStep]>,
        takes_turns: bool,
    ) -> Option<LatencyGraph> {
        let mut graph = LatencyGraph::of(steps, returns, takes_turns)?;
        graph.delaying = Forecast::template(&graph).map(|forecast| forecast.delaying()).unwrap_or_default();
        Some(graph)
    }

    /// Computes the slack of each gathering call of a flow that has come to rest. Without a forecast there is none.
    pub(crate) fn grant_slack(&self, now_ns: u64, progress: &mut [StepProgress]) {
        let Some(forecast) = Forecast::new(self, progress) else { return };
        let slack = forecast.slack(now_ns);
        note_slack(progress, &mut slack.into_iter());
    }
}

/// Notes the slack of the gathering calls, in the order of the steps.
fn note_slack(progress: &mut [StepProgress], slack: &mut impl Iterator<Item = CallSlack>) {
    for step in progress {
        match step {
            StepProgress::Gathers(known) => *known = slack.next().unwrap_or_default(),
            StepProgress::Iterates(iterations) => {
                iterations.alike.iter_mut().for_each(|alike| note_slack(&mut alike.progress, slack));
            }
            StepProgress::Over | StepProgress::Waits | StepProgress::Sent(_) | StepProgress::Ahead(_) => {}
        }
    }
}

impl<'a> Forecast<'a> {
    /// Returns the moments of a flow with this progress; `None` if they are too many.
    pub(super) fn new(graph: &'a LatencyGraph, progress: &[StepProgress]) -> Option<Forecast<'a>> {
        Forecast::of(graph, Some(progress))
    }

    /// Returns the moments of a flow that has not begun; `None` if they are too many.
    pub(super) fn template(graph: &'a LatencyGraph) -> Option<Forecast<'a>> {
        Forecast::of(graph, None)
    }

    fn of(graph: &'a LatencyGraph, progress: Option<&[StepProgress]>) -> Option<Forecast<'a>> {
        let mut forecast = Forecast { moments: Vec::new() };
        let certainty = StepCertainty::UnlessEnded;
        let surroundings = Surroundings { entry: None, certainty, delays: true, is_described: true };
        forecast.add_body(graph, progress, surroundings)?;
        Some(forecast)
    }

    /// Adds the steps of a body; returns the moments at which they end.
    fn add_body(
        &mut self,
        graph: &'a LatencyGraph,
        progress: Option<&[StepProgress]>,
        around: Surroundings,
    ) -> Option<Vec<u32>> {
        let mut ends = Vec::with_capacity(graph.steps().len());
        for (place, step) in graph.steps().iter().enumerate() {
            let mut before: SmallVec<[u32; 4]> =
                graph.directly_before(place).iter().map(|before| ends[*before as usize]).collect();
            if before.is_empty() {
                before.extend(around.entry);
            }
            let certainty = if step.arms.is_empty() { around.certainty } else { StepCertainty::Perhaps };
            let ahead = StepProgress::Ahead(certainty);
            let progress = progress.map_or(&ahead, |progress| &progress[place]);
            ends.push(self.add_step(step, progress, before, around)?);
        }
        Some(ends)
    }

    /// Adds a step; returns the moment at which it ends.
    fn add_step(
        &mut self,
        step: &'a LatencyStep,
        progress: &StepProgress,
        before: SmallVec<[u32; 4]>,
        around: Surroundings,
    ) -> Option<u32> {
        let delays = around.delays && step.latency.delays();
        let state = match progress {
            StepProgress::Over => MomentState::Over,
            StepProgress::Waits => MomentState::Waits,
            StepProgress::Sent(sent_ns) => MomentState::Sent(*sent_ns),
            StepProgress::Gathers(_) => MomentState::Gathers,
            StepProgress::Ahead(certainty) => MomentState::Ahead(*certainty),
            StepProgress::Iterates(_) => MomentState::Ahead(StepCertainty::UnlessEnded),
        };
        let (nested, is_described) = (around.entry.is_some(), around.is_described);
        let StepLatency::Iterations { body, .. } = &step.latency else {
            return self.add(FlowMoment { step: Some(step), state, delays, is_described, nested, before });
        };
        let bound = |state, before| FlowMoment { step: None, state, delays: false, is_described, nested, before };
        let MomentState::Ahead(certainty) = state else { return self.add(bound(state, before)) };
        let entry = self.add(bound(state, before))?;
        // An end of one iteration ends the others.
        let is_described = is_described && !body.takes_turns && body.returns().is_empty();
        // The list of a `map` that has not begun may be empty.
        let certainty_within = certainty.min(StepCertainty::UnlessEnded);
        let inside = |delays| Surroundings { entry: Some(entry), certainty: certainty_within, delays, is_described };
        let mut last = SmallVec::from_slice(&[entry]);
        if let StepProgress::Iterates(iterations) = progress {
            for alike in &iterations.alike {
                let ends = self.add_body(body, Some(&alike.progress), inside(delays && !iterations.more))?;
                last.extend(body.last().iter().map(|place| ends[*place as usize]));
            }
        } else {
            let ends = self.add_body(body, None, inside(delays))?;
            last.extend(body.last().iter().map(|place| ends[*place as usize]));
        }
        self.add(bound(MomentState::Ahead(certainty), last))
    }

    fn add(&mut self, moment: FlowMoment<'a>) -> Option<u32> {
        let index = self.moments.len();
        self.moments.push(moment);
        (index < MOMENTS_MAX).then_some(index as u32)
    }

    /// Returns the functions of which a call might wait for another one: for one that comes after further steps, or for the same
    /// one in another iteration that chooses other arms before.
    pub(super) fn delaying(&self) -> Box<[FunctionGatherer]> {
        let differs = self.differ_between_iterations();
        let mut functions: Vec<(&FunctionGatherer, bool)> = Vec::new();
        for (moment, differs) in self.moments.iter().zip(differs).filter(|(moment, _)| moment.delays) {
            let Some(gatherer) = moment.gatherer() else { continue };
            match functions.iter_mut().find(|(known, _)| Arc::ptr_eq(known, gatherer)) {
                Some((_, differ)) => *differ |= differs,
                None => functions.push((gatherer, differs)),
            }
        }
        functions.retain(|(gatherer, differ)| *differ || self.may_delay_calls_of(gatherer));
        functions.into_iter().map(|(gatherer, _)| Arc::clone(gatherer)).collect()
    }

    fn may_delay_calls_of(&self, gatherer: &FunctionGatherer) -> bool {
        let is_call = |at: &usize| self.moments[*at].delays && self.moments[*at].calls(gatherer);
        let calls: Vec<_> = (0..self.moments.len()).filter(is_call).map(|call| (call, self.before(call))).collect();
        calls.iter().any(|(call, before)| {
            let follows = |later: &[bool]| later.iter().zip(before).any(|(later, before)| *later && !*before);
            calls.iter().any(|(other, later)| other != call && !later[*call] && follows(later))
        })
    }

    /// Returns for each moment whether this one comes after it; the beginning and end of iterations do not count.
    fn before(&self, moment: usize) -> Vec<bool> {
        let mut found = vec![false; self.moments.len()];
        let mut left: Vec<u32> = self.moments[moment].before.to_vec();
        while let Some(at) = left.pop() {
            if !std::mem::replace(&mut found[at as usize], true) {
                left.extend(&self.moments[at as usize].before);
            }
        }
        found.iter().zip(&self.moments).map(|(found, moment)| *found && moment.step.is_some()).collect()
    }

    /// Returns for each moment whether it may come later in one iteration than in another, because of what these choose before.
    fn differ_between_iterations(&self) -> Vec<bool> {
        let mut differs = vec![false; self.moments.len()];
        for (at, moment) in self.moments.iter().enumerate().filter(|(_, moment)| moment.nested) {
            let chooses = |before: u32| {
                let before = &self.moments[before as usize];
                before.nested && before.step.is_some_and(|step| !step.arms.is_empty())
            };
            differs[at] = moment.before.iter().any(|before| differs[*before as usize] || chooses(*before));
        }
        differs
    }

    /// Returns the slack of each gathering call, in the order of the steps.
    pub(super) fn slack(&self, now_ns: u64) -> Vec<CallSlack> {
        let (ready, end) = self.times(now_ns);
        let (rest, later) = (self.rests(), LaterCalls::of(&self.moments));
        let gathering = || self.moments.iter().enumerate().filter(|(_, moment)| moment.state == MomentState::Gathers);
        let mut next: Vec<(&FunctionGatherer, Option<u64>)> = Vec::new();
        let mut next_of = |gatherer: &'a FunctionGatherer| {
            if let Some((_, next_ns)) = next.iter().find(|(known, _)| Arc::ptr_eq(known, gatherer)) {
                return *next_ns;
            }
            let next_ns = self.next_call(gatherer, &ready);
            next.push((gatherer, next_ns));
            next_ns
        };
        let slack = |(at, moment): (usize, &FlowMoment<'a>)| {
            let Some((step, gatherer)) = moment.step.zip(moment.gatherer()).filter(|_| moment.delays) else {
                return CallSlack::default();
            };
            let certain = later.iter().flat_map(|later| later.certain(at, gatherer));
            if let Some(next_ns) = certain.map(|later| ready[later]).min() {
                return CallSlack { latest_ns: NO_LIMIT, next_ns: Some(next_ns) };
            }
            let reserve_ns = rest[at].map(|rest| rest.saturating_add(step.latency.lateness_ns()));
            let latest_ns = reserve_ns.and_then(|reserve_ns| end.checked_sub(reserve_ns)).unwrap_or(0);
            CallSlack { latest_ns, next_ns: next_of(gatherer) }
        };
        gathering().map(slack).collect()
    }

    /// Returns the time at which the flow makes its next call of a function that needs none of the calls of it that gather.
    fn next_call(&self, gatherer: &FunctionGatherer, ready: &[u64]) -> Option<u64> {
        let mut needs = vec![false; self.moments.len()];
        let mut next = None;
        for (at, moment) in self.moments.iter().enumerate() {
            let is_call = moment.calls(gatherer);
            needs[at] = moment.before.iter().any(|before| needs[*before as usize]);
            if is_call && !needs[at] && matches!(moment.state, MomentState::Ahead(_)) {
                next = Some(next.map_or(ready[at], |next: u64| next.min(ready[at])));
            }
            needs[at] |= is_call && moment.state == MomentState::Gathers;
        }
        next
    }

    /// Returns the time at which each moment can come, and the one at which the flow ends.
    fn times(&self, now_ns: u64) -> (Vec<u64>, u64) {
        let count = self.moments.len();
        let (mut ready, mut ends) = (vec![now_ns; count], vec![now_ns; count]);
        for (at, moment) in self.moments.iter().enumerate() {
            ready[at] = moment.before.iter().map(|before| ends[*before as usize]).max().unwrap_or(now_ns);
            let mean_ns = moment.step.map_or(0, |step| step.latency.mean_ns());
            ends[at] = match moment.state {
                MomentState::Over | MomentState::Waits => now_ns,
                MomentState::Sent(sent_ns) => now_ns.max(sent_ns.saturating_add(mean_ns)),
                MomentState::Gathers => now_ns.saturating_add(mean_ns),
                MomentState::Ahead(StepCertainty::Perhaps) => ready[at],
                MomentState::Ahead(_) => ready[at].saturating_add(mean_ns),
            };
        }
        let end = ends.iter().copied().max().unwrap_or(now_ns);
        (ready, end)
    }

    /// Returns for each moment the time from its beginning to the end of the last step after it; `None` if unknown.
    fn rests(&self) -> Vec<Option<u64>> {
        let mut rests = vec![Some(0u64); self.moments.len()];
        for (at, moment) in self.moments.iter().enumerate().rev() {
            if matches!(moment.state, MomentState::Over | MomentState::Waits) {
                continue;
            }
            let own = moment.step.map_or(Some(0), |step| step.latency.high_ns());
            rests[at] = rests[at].zip(own).map(|(behind, own)| behind.saturating_add(own));
            for before in moment.before.iter().map(|before| *before as usize) {
                rests[before] = rests[before].zip(rests[at]).map(|(known, rest)| known.max(rest));
            }
        }
        rests
    }
}
