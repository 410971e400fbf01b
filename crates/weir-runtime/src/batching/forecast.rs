//! The forecast of a flow at rest: when its waiting steps will begin and end, those of bodies within bodies included.
//!
//! The steps of the flow become one list of *moments*, in an order in which each comes after those that it needs. A `map` is a
//! moment at which its iterations begin, the moments of its iterations, and one at which all have ended. Iterations that have
//! come equally far are there once, and a `map` that has not begun is there with one iteration: so the forecast takes time
//! in proportion to the text of the program, not to the lists that it is about. The lists of a forecast are used again for the
//! next one on the same thread.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Gatherer;
use super::call_slack::{CallSlack, NO_LIMIT};
use super::latency::EstimatedLatency;
use super::later_calls::LaterCalls;
use super::moment::{FlowMoment, MomentKind, MomentState};
use super::progress::{FlowProgress, MapProgress, StepCertainty, StepProgress};
use super::slack::{FunctionIdentity, LatencyGraph, LatencyStep, ReturnStep, StepLatency};

/// The largest number of moments. Chosen by judgement: a forecast looks at each a few times.
const MOMENTS_MAX: usize = 1_024;

/// A time that is not known, and longer than any other.
const UNKNOWN: u64 = u64::MAX;

/// The moments of a flow.
#[derive(Default)]
pub(crate) struct Forecast {
    moments: Vec<FlowMoment>,
    /// The moments directly before each moment.
    before: Vec<u32>,
    /// The moments at which the steps of the bodies end that are being added.
    ends: Vec<u32>,
    /// The batched functions that the flow calls.
    functions: Vec<ForecastFunction>,
    /// The moments of the calls that gather, each with its row and place in the progress.
    gathering: Vec<(u32, u32, usize)>,
    /// For each moment the time at which it can come, and the one at which it ends.
    times: Vec<(u64, u64)>,
    /// For each moment the time from its beginning to the end of the last step after it, or [`UNKNOWN`].
    rests: Vec<u64>,
    /// For each moment the functions of which it needs a call that gathers.
    needs: Vec<u64>,
    later: LaterCalls,
}

/// A batched function in a forecast.
struct ForecastFunction {
    identity: FunctionIdentity,
    /// `None` before it is known.
    latency: Option<EstimatedLatency>,
    /// The time by which a batch leaves after the moment at which it was due.
    lateness_ns: u64,
    /// The time at which the flow makes its next call that needs none of those that gather.
    next_ns: Option<u64>,
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

/// The progress of a body: that of its flow, and its row there. `None` if it has not begun.
type BodyProgress<'a> = Option<(&'a FlowProgress, u32)>;

impl LatencyGraph {
    /// Returns the graph of these steps; `None` if they are too many.
    pub(crate) fn new(
        steps: Box<[LatencyStep]>,
        returns: Box<[ReturnStep]>,
        takes_turns: bool,
    ) -> Option<LatencyGraph> {
        let mut graph = LatencyGraph::of(steps, returns, takes_turns)?;
        let mut forecast = Forecast::default();
        if forecast.add_flow(&graph, None).is_some() {
            graph.delaying = forecast.delaying();
        }
        Some(graph)
    }

    /// Computes the slack of each gathering call of a flow that has come to rest, whose progress begins with this row. Without a
    /// forecast there is none.
    pub(crate) fn grant_slack(&self, now_ns: u64, row: u32, progress: &mut FlowProgress, forecast: &mut Forecast) {
        if forecast.add_flow(self, Some((progress, row))).is_some() {
            forecast.grant_slack(now_ns, progress, &self.delaying);
        }
    }
}

impl Forecast {
    /// Sets the moments to those of a flow with this progress; returns `None` if they are too many.
    fn add_flow(&mut self, graph: &LatencyGraph, progress: BodyProgress<'_>) -> Option<()> {
        self.moments.clear();
        self.before.clear();
        self.ends.clear();
        self.functions.clear();
        self.gathering.clear();
        let certainty = StepCertainty::UnlessEnded;
        self.add_body(graph, progress, Surroundings { entry: None, certainty, delays: true, is_described: true })
    }

    /// Adds the steps of a body, and to `ends` the moments at which they end.
    fn add_body(&mut self, graph: &LatencyGraph, progress: BodyProgress<'_>, around: Surroundings) -> Option<()> {
        let first_end = self.ends.len();
        for (place, step) in graph.steps().iter().enumerate() {
            let begin = self.before.len() as u32;
            let direct = graph.directly_before(place).iter().map(|before| self.ends[first_end + *before as usize]);
            self.before.extend(direct);
            if self.before.len() as u32 == begin {
                self.before.extend(around.entry);
            }
            let before = (begin, self.before.len() as u32);
            let end = self.add_step(step, place, progress, before, around)?;
            self.ends.push(end);
        }
        Some(())
    }

    /// Adds a step; returns the moment at which it ends.
    fn add_step(
        &mut self,
        step: &LatencyStep,
        place: usize,
        progress: BodyProgress<'_>,
        before: (u32, u32),
        around: Surroundings,
    ) -> Option<u32> {
        let delays = around.delays && step.latency.delays();
        let ahead = || if step.arms.is_empty() { around.certainty } else { StepCertainty::Perhaps };
        let (state, map) = match progress.map(|(progress, row)| (progress, progress.step(row, place))) {
            None => (MomentState::Ahead(ahead()), None),
            Some((_, StepProgress::Over)) => (MomentState::Over, None),
            Some((_, StepProgress::Waits)) => (MomentState::Waits, None),
            Some((_, StepProgress::Sent(sent_ns))) => (MomentState::Sent(sent_ns), None),
            Some((_, StepProgress::Gathers(_))) => (MomentState::Gathers, None),
            Some((_, StepProgress::Ahead(certainty))) => (MomentState::Ahead(certainty), None),
            Some((progress, StepProgress::Iterates(map))) => {
                (MomentState::Ahead(StepCertainty::UnlessEnded), Some((progress, progress.map(map))))
            }
        };
        if state == MomentState::Gathers {
            let row = progress.map_or(0, |(_, row)| row);
            self.gathering.push((self.moments.len() as u32, row, place));
        }
        let (nested, is_described) = (around.entry.is_some(), around.is_described);
        let StepLatency::Iterations { body, .. } = &step.latency else {
            let function = step.latency.gatherer().map(|gatherer| self.function(gatherer));
            let kind = MomentKind::of(step);
            return self.add(FlowMoment { state, function, before, kind, delays, is_described, nested });
        };
        let kind = MomentKind::BOUND;
        let bound = FlowMoment { state, function: None, before, kind, delays: false, is_described, nested };
        let MomentState::Ahead(certainty) = state else { return self.add(bound) };
        let entry = self.add(bound)?;
        // An end of one iteration ends the others.
        let is_described = is_described && !body.takes_turns && body.returns().is_empty();
        // The list of a `map` that has not begun may be empty.
        let within = Surroundings {
            entry: Some(entry),
            certainty: certainty.min(StepCertainty::UnlessEnded),
            delays: delays && map.is_none_or(|(_, map)| !map.more),
            is_described,
        };
        let before = self.add_iterations(body, map, within)?;
        self.add(FlowMoment { before, ..bound })
    }

    /// Adds the iterations of a `map`, or one if it has not begun; returns the moments that are directly before its end.
    fn add_iterations(
        &mut self,
        body: &LatencyGraph,
        map: Option<(&FlowProgress, MapProgress)>,
        within: Surroundings,
    ) -> Option<(u32, u32)> {
        let first_end = self.ends.len();
        let mut last = SmallVec::<[u32; 8]>::new();
        last.extend(within.entry);
        let mut add = |progress: BodyProgress<'_>| {
            self.add_body(body, progress, within)?;
            last.extend(body.last().iter().map(|place| self.ends[first_end + *place as usize]));
            self.ends.truncate(first_end);
            Some(())
        };
        match map {
            Some((progress, map)) => {
                progress.groups(map).iter().try_for_each(|row| add(Some((progress, *row))))?;
            }
            None => add(None)?,
        }
        let begin = self.before.len() as u32;
        self.before.extend(last);
        Some((begin, self.before.len() as u32))
    }

    fn add(&mut self, moment: FlowMoment) -> Option<u32> {
        let index = self.moments.len();
        self.moments.push(moment);
        (index < MOMENTS_MAX).then_some(index as u32)
    }

    /// Returns the place of a function, of which the estimates are read once.
    fn function(&mut self, gatherer: &Arc<Gatherer>) -> u32 {
        let identity = FunctionIdentity::of(gatherer);
        let known = self.functions.iter().position(|function| function.identity == identity);
        let place = known.unwrap_or_else(|| {
            let (latency, lateness_ns) = (gatherer.latency(), gatherer.lateness_ns());
            self.functions.push(ForecastFunction { identity, latency, lateness_ns, next_ns: None });
            self.functions.len() - 1
        });
        place as u32
    }

    /// Returns the moments directly before one.
    fn before(&self, moment: &FlowMoment) -> &[u32] {
        &self.before[moment.before.0 as usize..moment.before.1 as usize]
    }

    /// Returns the functions of which a call might wait for another one: for one that comes after further steps, or for the same
    /// one in another iteration that chooses other arms before.
    fn delaying(&self) -> Box<[FunctionIdentity]> {
        let mut differ = vec![false; self.functions.len()];
        let mut delays = vec![false; self.functions.len()];
        for (moment, differs) in self.moments.iter().zip(self.differ_between_iterations()) {
            if let Some(function) = moment.function.filter(|_| moment.delays) {
                delays[function as usize] = true;
                differ[function as usize] |= differs;
            }
        }
        let may_delay = |place: &usize| delays[*place] && (differ[*place] || self.may_delay_calls_of(*place as u32));
        (0..self.functions.len()).filter(may_delay).map(|place| self.functions[place].identity).collect()
    }

    fn may_delay_calls_of(&self, function: u32) -> bool {
        let is_call = |at: &usize| self.moments[*at].delays && self.moments[*at].function == Some(function);
        let calls: Vec<_> = (0..self.moments.len()).filter(is_call).map(|call| (call, self.all_before(call))).collect();
        calls.iter().any(|(call, before)| {
            let follows = |later: &[bool]| later.iter().zip(before).any(|(later, before)| *later && !*before);
            calls.iter().any(|(other, later)| other != call && !later[*call] && follows(later))
        })
    }

    /// Returns for each moment whether this one comes after it; the beginning and end of iterations do not count.
    fn all_before(&self, moment: usize) -> Vec<bool> {
        let mut found = vec![false; self.moments.len()];
        let mut left: Vec<u32> = self.before(&self.moments[moment]).to_vec();
        while let Some(at) = left.pop() {
            if !std::mem::replace(&mut found[at as usize], true) {
                left.extend(self.before(&self.moments[at as usize]));
            }
        }
        found.iter().zip(&self.moments).map(|(found, moment)| *found && !moment.kind.is_bound).collect()
    }

    /// Returns for each moment whether it may come later in one iteration than in another, because of what these choose before.
    fn differ_between_iterations(&self) -> Vec<bool> {
        let mut differs = vec![false; self.moments.len()];
        for (at, moment) in self.moments.iter().enumerate().filter(|(_, moment)| moment.nested) {
            let chooses = |before: u32| {
                let before = &self.moments[before as usize];
                before.nested && before.kind.is_chosen
            };
            differs[at] = self.before(moment).iter().any(|before| differs[*before as usize] || chooses(*before));
        }
        differs
    }

    /// Computes the slack of each gathering call of the functions that are `delaying`, and notes it in the progress. A call of
    /// another function has none: it would keep it when no call of these gathers any more, because then nothing is forecast.
    fn grant_slack(&mut self, now_ns: u64, progress: &mut FlowProgress, delaying: &[FunctionIdentity]) {
        let end = self.find_times(now_ns);
        self.find_rests();
        self.find_next_calls();
        self.later.find(&self.moments, &self.before, self.functions.len());
        for (at, row, place) in &self.gathering {
            let (moment, at) = (&self.moments[*at as usize], *at as usize);
            let Some(number) = moment.function.filter(|_| moment.delays) else { continue };
            let function = &self.functions[number as usize];
            if !delaying.contains(&function.identity) {
                continue;
            }
            let certain = self.later.certain(at, number, &self.moments);
            let slack = match certain.map(|later| self.times[later].0).min() {
                Some(next_ns) => CallSlack { latest_ns: NO_LIMIT, next_ns: Some(next_ns) },
                None => {
                    let reserve_ns = self.rests[at].saturating_add(function.lateness_ns);
                    CallSlack { latest_ns: end.saturating_sub(reserve_ns), next_ns: function.next_ns }
                }
            };
            progress.set(*row, *place, StepProgress::Gathers(Some(progress.slack.len() as u32)));
            progress.slack.push(slack);
        }
    }

    /// Finds the time at which each moment can come and ends; returns the one at which the flow ends.
    fn find_times(&mut self, now_ns: u64) -> u64 {
        self.times.clear();
        let mut last = now_ns;
        for moment in &self.moments {
            let before = &self.before[moment.before.0 as usize..moment.before.1 as usize];
            let ready = before.iter().map(|before| self.times[*before as usize].1).max().unwrap_or(now_ns);
            let latency = moment.function.and_then(|function| self.functions[function as usize].latency);
            let mean_ns = latency.map_or(0, |latency| latency.mean_ns);
            let end = match moment.state {
                MomentState::Over | MomentState::Waits => now_ns,
                MomentState::Sent(sent_ns) => now_ns.max(sent_ns.saturating_add(mean_ns)),
                MomentState::Gathers => now_ns.saturating_add(mean_ns),
                MomentState::Ahead(StepCertainty::Perhaps) => ready,
                MomentState::Ahead(_) => ready.saturating_add(mean_ns),
            };
            last = last.max(end);
            self.times.push((ready, end));
        }
        last
    }

    /// Finds for each moment the time from its beginning to the end of the last step after it.
    fn find_rests(&mut self) {
        self.rests.clear();
        self.rests.resize(self.moments.len(), 0);
        for (at, moment) in self.moments.iter().enumerate().rev() {
            if matches!(moment.state, MomentState::Over | MomentState::Waits) {
                continue;
            }
            let own = match moment.function {
                Some(function) => self.functions[function as usize].latency.map_or(UNKNOWN, |latency| latency.high_ns),
                None if moment.kind.is_estimated => 0,
                None => UNKNOWN,
            };
            let rest = self.rests[at].saturating_add(own);
            self.rests[at] = rest;
            for before in &self.before[moment.before.0 as usize..moment.before.1 as usize] {
                let known = &mut self.rests[*before as usize];
                *known = rest.max(*known);
            }
        }
    }

    /// Finds for each function the time at which the flow makes its next call that needs none of those that gather.
    fn find_next_calls(&mut self) {
        for first in (0..self.functions.len() as u32).step_by(u64::BITS as usize) {
            self.needs.clear();
            for (moment, (ready, _)) in self.moments.iter().zip(&self.times) {
                let before = &self.before[moment.before.0 as usize..moment.before.1 as usize];
                let mut needs = before.iter().fold(0, |all, before| all | self.needs[*before as usize]);
                let number = moment.function.and_then(|function| function.checked_sub(first));
                if let Some(number) = number.filter(|number| *number < u64::BITS) {
                    let bit = 1 << number;
                    if matches!(moment.state, MomentState::Ahead(_)) && needs & bit == 0 {
                        let next_ns = &mut self.functions[(first + number) as usize].next_ns;
                        *next_ns = Some(next_ns.map_or(*ready, |known| known.min(*ready)));
                    }
                    needs |= if moment.state == MomentState::Gathers { bit } else { 0 };
                }
                self.needs.push(needs);
            }
        }
    }
}
