//! Slack: the time by which a call can begin later without its flow ending later, by the critical path method.
//!
//! [`LatencyGraph`] has the steps of a body that may wait, and the order of these. When a flow comes to rest, the steps that
//! have not begun yet, and the estimated latencies of the functions, tell when the flow will end, and for each of its calls
//! that still gather the latest moment at which this call may be sent ([`LatencyGraph::slack`]). A batch waits until the first
//! of its calls has no slack left, but only if one of its flows is expected to make a further call before: otherwise
//! nothing is gained by waiting.
//!
//! Everything that is not known makes that moment earlier:
//!
//! * A step that might not be executed, because it is in an arm that is not chosen yet, does not put off the end of the
//!   flow; but the call is early enough for it.
//! * A step whose latency is unknown takes no time before the end, and gives no slack to the calls before it.
//! * A latency is the mean for the end of the flow, and more than that for what follows the call.

use std::sync::Arc;

use super::Gatherer;
use super::latency::EstimatedLatency;
use crate::wait_set::WaitSet;

/// The largest number of waiting steps of a body whose calls have slack. Chosen by judgement: a forecast takes time in
/// proportion to the square of the steps.
pub(crate) const LATENCY_STEPS_MAX: usize = 255;

/// The steps of a body that may wait.
pub(crate) struct LatencyGraph {
    steps: Box<[LatencyStep]>,
    /// True if a call might wait for another one.
    delays: bool,
}

/// A step that may wait.
pub(crate) struct LatencyStep {
    /// The index of the step in its body.
    pub index: usize,
    /// The earlier waiting steps that it comes after, directly or not, by their places in the graph.
    pub before: WaitSet,
    /// The arms around it, each with its switch, from the outermost.
    pub arms: Box<[(u32, u32)]>,
    /// Its latency.
    pub latency: StepLatency,
}

/// The latency of a step.
pub(crate) enum StepLatency {
    /// It waits for its turn only.
    None,
    /// A call that is gathered. `delays` if it may wait for others.
    Gathered { gatherer: Arc<Gatherer>, delays: bool },
    /// A `map` whose iterations overlap.
    Iterations(Arc<LatencyGraph>),
    /// It is not estimated.
    Unknown,
}

/// The progress of a step in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepProgress {
    /// It has run, will not run, or waits for something that is not estimated.
    Over,
    /// Its call was sent at this time.
    Sent(u64),
    /// Its call gathers.
    Gathers,
    /// It has not begun; true if it certainly will, unless the flow fails.
    Ahead(bool),
}

/// The slack of a call that gathers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallSlack {
    /// The latest time at which the call may be sent; 0 for at once.
    pub latest_ns: u64,
    /// True if its flow is expected to make a further call of the function before that, which does not need this one.
    pub expects: bool,
}

/// The times of the steps of a flow, in nanoseconds.
struct Forecast {
    /// The time at which each step can begin.
    ready: Vec<u64>,
    /// The time at which the flow ends.
    end: u64,
    /// The time from the beginning of each step to the end of the last one after it; `None` if unknown.
    rest: Vec<Option<u64>>,
}

impl LatencyGraph {
    /// Returns the graph of these steps; `None` if they are too many.
    pub(crate) fn new(steps: Box<[LatencyStep]>) -> Option<LatencyGraph> {
        if steps.len() > LATENCY_STEPS_MAX {
            return None;
        }
        let mut graph = LatencyGraph { steps, delays: false };
        let calls = || (0..graph.steps.len()).filter(|call| graph.delays(*call));
        let delays =
            calls().any(|call| calls().any(|other| graph.could_join(other, call) && graph.follows(other, call)));
        graph.delays = delays;
        Some(graph)
    }

    /// Returns the steps, in the order of the body.
    pub(crate) fn steps(&self) -> &[LatencyStep] {
        &self.steps
    }

    /// Returns true if a call might wait for another one.
    pub(crate) fn may_delay(&self) -> bool {
        self.delays
    }

    fn delays(&self, step: usize) -> bool {
        matches!(self.steps[step].latency, StepLatency::Gathered { delays: true, .. })
    }

    /// Returns true if both are calls of one function, and `later` does not need `call`.
    fn could_join(&self, later: usize, call: usize) -> bool {
        later != call && self.is_same_function(later, call) && !self.needs(later, call)
    }

    fn is_same_function(&self, one: usize, other: usize) -> bool {
        match (&self.steps[one].latency, &self.steps[other].latency) {
            (StepLatency::Gathered { gatherer, .. }, StepLatency::Gathered { gatherer: other, .. }) => {
                Arc::ptr_eq(gatherer, other)
            }
            _ => false,
        }
    }

    fn needs(&self, later: usize, earlier: usize) -> bool {
        self.steps[later].before.contains(earlier as u32)
    }

    /// Returns true if `later` needs a step that `call` does not need.
    fn follows(&self, later: usize, call: usize) -> bool {
        !self.steps[later].before.is_within(&self.steps[call].before)
    }

    /// Returns the slack of each gathering call, with its step.
    pub(crate) fn slack(&self, now_ns: u64, progress: &[StepProgress]) -> Vec<(usize, CallSlack)> {
        let forecast = self.forecast(now_ns, progress);
        let gathering = || (0..self.steps.len()).filter(|step| progress[*step] == StepProgress::Gathers);
        let slack = |call: usize| {
            let latest_ns = if self.delays(call) { self.latest(call, &forecast) } else { 0 };
            let joins = |later: usize| {
                matches!(progress[later], StepProgress::Ahead(_))
                    && forecast.ready[later] <= latest_ns
                    && self.could_join(later, call)
                    && gathering().all(|other| !self.is_same_function(other, call) || !self.needs(later, other))
            };
            (call, CallSlack { latest_ns, expects: (0..self.steps.len()).any(joins) })
        };
        gathering().map(slack).collect()
    }

    /// Returns the latest time at which a call may be sent; 0 if that is not known.
    fn latest(&self, call: usize, forecast: &Forecast) -> u64 {
        let reserve_ns = forecast.rest[call].map(|rest| rest.saturating_add(self.steps[call].latency.lateness_ns()));
        reserve_ns.and_then(|reserve_ns| forecast.end.checked_sub(reserve_ns)).unwrap_or(0)
    }

    fn forecast(&self, now_ns: u64, progress: &[StepProgress]) -> Forecast {
        let count = self.steps.len();
        let (mut ready, mut ends) = (vec![now_ns; count], vec![now_ns; count]);
        for (at, step) in self.steps.iter().enumerate() {
            ready[at] = step.before.numbers().map(|before| ends[before as usize]).max().unwrap_or(now_ns);
            let mean_ns = step.latency.mean_ns();
            ends[at] = match progress[at] {
                StepProgress::Over => now_ns,
                StepProgress::Sent(sent_ns) => now_ns.max(sent_ns.saturating_add(mean_ns)),
                StepProgress::Gathers => now_ns.saturating_add(mean_ns),
                StepProgress::Ahead(true) => ready[at].saturating_add(mean_ns),
                StepProgress::Ahead(false) => ready[at],
            };
        }
        let end = ends.iter().copied().max().unwrap_or(now_ns);
        Forecast { ready, end, rest: self.rests(|step| progress[step] != StepProgress::Over) }
    }

    /// Returns the time that one execution takes at least, as far as it is known, without steps in arms.
    fn mean_ns(&self) -> u64 {
        let mut ends = vec![0; self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            let ready = step.before.numbers().map(|before| ends[before as usize]).max().unwrap_or(0);
            let own = if step.arms.is_empty() { step.latency.mean_ns() } else { 0 };
            ends[at] = own.saturating_add(ready);
        }
        ends.into_iter().max().unwrap_or(0)
    }

    /// Returns for each step the time from its beginning to the end of the last step after it.
    fn rests(&self, counts: impl Fn(usize) -> bool) -> Vec<Option<u64>> {
        let mut rests = vec![Some(0u64); self.steps.len()];
        for (at, step) in self.steps.iter().enumerate().rev().filter(|(at, _)| counts(*at)) {
            rests[at] = rests[at].zip(step.latency.high_ns()).map(|(behind, own)| behind.saturating_add(own));
            for before in step.before.numbers().map(|before| before as usize) {
                rests[before] = rests[before].zip(rests[at]).map(|(known, rest)| known.max(rest));
            }
        }
        rests
    }
}

impl StepLatency {
    fn estimate(&self) -> Option<EstimatedLatency> {
        match self {
            StepLatency::Gathered { gatherer, .. } => gatherer.latency(),
            _ => None,
        }
    }

    /// Returns the time by which the step begins after the moment at which it was due.
    fn lateness_ns(&self) -> u64 {
        if let StepLatency::Gathered { gatherer, .. } = self { gatherer.lateness_ns() } else { 0 }
    }

    /// Returns the time that the step takes at least, as far as it is known.
    fn mean_ns(&self) -> u64 {
        match self {
            StepLatency::Iterations(body) => body.mean_ns(),
            _ => self.estimate().map_or(0, |latency| latency.mean_ns),
        }
    }

    /// Returns the time that the step seldom exceeds; `None` if it is unknown.
    fn high_ns(&self) -> Option<u64> {
        match self {
            StepLatency::None => Some(0),
            StepLatency::Gathered { .. } => self.estimate().map(|latency| latency.high_ns),
            StepLatency::Iterations(body) => {
                body.rests(|_| true).iter().try_fold(0, |longest, rest| Some(longest.max((*rest)?)))
            }
            StepLatency::Unknown => None,
        }
    }
}
