//! Slack: the time by which a call can begin later without its flow ending later, by the critical path method.
//!
//! [`LatencyGraph`] has the steps of a body that may wait, and the order of these. When a flow comes to rest, the steps that
//! have not begun yet, and the estimated latencies of the functions, tell when the flow will end, and for each of its calls
//! that still gather the latest moment at which this call may be sent (`forecast.rs`). A batch waits until the first
//! of its calls has no slack left, but only if one of its flows is expected to make a further call by then: otherwise
//! nothing is gained by waiting. It waits without a limit for a later call behind which everything comes that comes behind
//! its own calls (`later_calls.rs`).
//!
//! Everything that is not known makes that moment earlier:
//!
//! * A step that might not be executed, because it is in an arm that is not chosen yet, does not put off the end of the
//!   flow; but the call is early enough for it.
//! * A step whose latency is unknown takes no time before the end, and gives no slack to the calls before it.
//! * A latency is the mean for the end of the flow, and more than that for what follows the call.
//! * Calls of a `map` of which some iterations cannot begin yet have no slack: these begin when others end. Neither have those
//!   of a `map` whose iterations have come to too many different places.

use std::sync::Arc;

use super::Gatherer;
use super::latency::EstimatedLatency;
use crate::wait_set::WaitSet;

/// The largest number of waiting steps of a body whose calls have slack. Chosen by judgement.
pub(crate) const LATENCY_STEPS_MAX: usize = 255;

/// The largest number of groups of iterations that have come equally far. Chosen by judgement: each iteration is compared with
/// each group.
const ALIKE_MAX: usize = 64;

/// The latest time of a call that waits for another one without a limit.
pub(super) const NO_LIMIT: u64 = u64::MAX;

/// The gatherer of a function.
pub(super) type FunctionGatherer = Arc<Gatherer>;

/// The steps of a body that may wait.
pub(crate) struct LatencyGraph {
    steps: Box<[LatencyStep]>,
    /// For each step the steps that it comes directly after, by their places.
    direct: Box<[Box<[u32]>]>,
    /// The steps that no other step comes after, by their places.
    last: Box<[u32]>,
    /// The functions of which a call might wait for another one.
    pub(super) delaying: Box<[FunctionGatherer]>,
    /// The steps that may end the flow with an answer.
    returns: Box<[ReturnStep]>,
    /// True if a step waits for its turn among the iterations of a `map`.
    pub(super) takes_turns: bool,
}

/// A step that may end the flow with an answer.
pub(crate) struct ReturnStep {
    /// The index of the step in its body.
    pub index: usize,
    /// The arms around it, each with its switch.
    pub arms: Box<[(u32, u32)]>,
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
    /// It takes no time.
    None,
    /// It waits for other flows only.
    OtherFlows,
    /// A call that is gathered, or, if it `repeats`, the calls of a `map`, of which there may be none. `delays` if it may wait
    /// for others.
    Gathered { gatherer: Arc<Gatherer>, delays: bool, repeats: bool },
    /// A `map` whose iterations overlap. `delays` if the calls in it may wait for others.
    Iterations { body: Arc<LatencyGraph>, delays: bool },
    /// It is not estimated.
    Unknown,
}

/// The progress of a step in a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepProgress {
    /// It has run, or will not run.
    Over,
    /// It waits for something that is not estimated.
    Waits,
    /// Its call was sent at this time.
    Sent(u64),
    /// Its call gathers, with this slack.
    Gathers(CallSlack),
    /// It has not begun.
    Ahead(StepCertainty),
    /// Iterations are under way.
    Iterates(IterationsProgress),
}

/// The certainty that a step will begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepCertainty {
    /// It is in an arm that is not chosen yet.
    Perhaps,
    /// It will, unless the flow fails or ends with an answer before.
    UnlessEnded,
    /// It will, unless the flow fails.
    UnlessFailed,
}

/// The progress of a `map` whose iterations overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IterationsProgress {
    /// The iterations under way. Those that have come equally far are together: mostly, these are all.
    pub alike: Vec<AlikeIterations>,
    /// True if there are further iterations, which begin when others have ended or which are left out here.
    pub more: bool,
}

/// Iterations that have come equally far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlikeIterations {
    /// The progress of each step.
    pub progress: Vec<StepProgress>,
    /// The places of the iterations among those under way.
    pub places: Vec<usize>,
}

/// The slack of a call that gathers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallSlack {
    /// The latest time at which the call may be sent; 0 for at once, and [`NO_LIMIT`] if a call is certain to join.
    pub latest_ns: u64,
    /// The time at which its flow is expected to make a further call of the function, which does not need this one; `None` if it
    /// makes none.
    pub next_ns: Option<u64>,
}

impl LatencyGraph {
    /// Returns the graph of these steps, in which no call waits for another; `None` if they are too many.
    pub(super) fn of(steps: Box<[LatencyStep]>, returns: Box<[ReturnStep]>, takes_turns: bool) -> Option<LatencyGraph> {
        if steps.len() > LATENCY_STEPS_MAX {
            return None;
        }
        let direct = |step: &LatencyStep| {
            let mut indirect = WaitSet::default();
            step.before.numbers().for_each(|before| indirect.insert_all(&steps[before as usize].before));
            step.before.numbers().filter(|before| !indirect.contains(*before)).collect()
        };
        let direct: Box<[Box<[u32]>]> = steps.iter().map(direct).collect();
        let is_last = |place: &u32| !direct.iter().any(|before| before.contains(place));
        let last = (0..steps.len() as u32).filter(is_last).collect();
        Some(LatencyGraph { steps, direct, last, delaying: Box::default(), returns, takes_turns })
    }

    /// Returns the steps, in the order of the body.
    pub(crate) fn steps(&self) -> &[LatencyStep] {
        &self.steps
    }

    /// Returns the steps that may end the flow with an answer, in the order of the body.
    pub(crate) fn returns(&self) -> &[ReturnStep] {
        &self.returns
    }

    /// Returns the places of the steps that the one at this place comes directly after.
    pub(super) fn directly_before(&self, place: usize) -> &[u32] {
        &self.direct[place]
    }

    /// Returns the places of the steps that no other step comes after.
    pub(super) fn last(&self) -> &[u32] {
        &self.last
    }

    /// Returns true if a call might wait for another one.
    pub(crate) fn may_delay(&self) -> bool {
        !self.delaying.is_empty()
    }

    /// Returns true if a call of this function might wait for another one.
    pub(crate) fn may_delay_call(&self, gatherer: &FunctionGatherer) -> bool {
        self.delaying.iter().any(|delaying| Arc::ptr_eq(delaying, gatherer))
    }
}

impl IterationsProgress {
    /// Adds an iteration under way, unless it belongs to none of the groups and these are many.
    pub(crate) fn add(&mut self, place: usize, progress: &[StepProgress]) {
        match self.alike.iter().position(|alike| alike.progress == progress) {
            Some(index) => self.alike[index].places.push(place),
            None if self.alike.len() == ALIKE_MAX => self.more = true,
            None => self.alike.push(AlikeIterations { progress: progress.to_vec(), places: vec![place] }),
        }
    }
}

impl StepLatency {
    fn estimate(&self) -> Option<EstimatedLatency> {
        match self {
            StepLatency::Gathered { gatherer, .. } => gatherer.latency(),
            _ => None,
        }
    }

    /// Returns the gatherer of a call that is gathered.
    pub(crate) fn gatherer(&self) -> Option<&Arc<Gatherer>> {
        if let StepLatency::Gathered { gatherer, .. } = self { Some(gatherer) } else { None }
    }

    /// Returns true for calls that may wait for others.
    pub(super) fn delays(&self) -> bool {
        matches!(self, StepLatency::Gathered { delays: true, .. } | StepLatency::Iterations { delays: true, .. })
    }

    /// Returns true if the step takes the time of batched calls only, or none.
    pub(super) fn is_of_batches(&self) -> bool {
        !matches!(self, StepLatency::OtherFlows | StepLatency::Unknown)
    }

    /// Returns true for the calls of a `map`, of which there may be none.
    pub(super) fn repeats(&self) -> bool {
        matches!(self, StepLatency::Gathered { repeats: true, .. } | StepLatency::Iterations { .. })
    }

    /// Returns the time by which the step begins after the moment at which it was due.
    pub(super) fn lateness_ns(&self) -> u64 {
        self.gatherer().map_or(0, |gatherer| gatherer.lateness_ns())
    }

    /// Returns the time that the step takes on average, as far as it is known.
    pub(super) fn mean_ns(&self) -> u64 {
        self.estimate().map_or(0, |latency| latency.mean_ns)
    }

    /// Returns the time that the step seldom exceeds; `None` if it is unknown.
    pub(super) fn high_ns(&self) -> Option<u64> {
        match self {
            StepLatency::None | StepLatency::OtherFlows | StepLatency::Iterations { .. } => Some(0),
            StepLatency::Gathered { .. } => self.estimate().map(|latency| latency.high_ns),
            StepLatency::Unknown => None,
        }
    }
}
