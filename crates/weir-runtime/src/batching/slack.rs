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
use crate::wait_set::WaitSet;

/// The largest number of waiting steps of a body whose calls have slack. Chosen by judgement.
pub(crate) const LATENCY_STEPS_MAX: usize = 255;

/// Stands for "none" where the place of a step is expected: a body has fewer waiting steps.
const NO_PLACE: u8 = u8::MAX;

/// The steps of a body that may wait.
pub(crate) struct LatencyGraph {
    steps: Box<[LatencyStep]>,
    /// For each step of the body up to the last one that may wait its place among these, or [`NO_PLACE`].
    places: Box<[u8]>,
    /// For each step the steps that it comes directly after, by their places.
    direct: Box<[Box<[u32]>]>,
    /// The steps that no other step comes after, by their places.
    last: Box<[u32]>,
    /// The functions of which a call might wait for another one.
    pub(super) delaying: Box<[FunctionIdentity]>,
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

/// The identity of a batched function, while its gatherer exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FunctionIdentity(usize);

impl FunctionIdentity {
    pub(super) fn of(gatherer: &Arc<Gatherer>) -> FunctionIdentity {
        FunctionIdentity(Arc::as_ptr(gatherer).addr())
    }
}

impl LatencyGraph {
    /// Returns the graph of these steps, in which no call waits for another; `None` if they are too many.
    pub(super) fn of(steps: Box<[LatencyStep]>, returns: Box<[ReturnStep]>, takes_turns: bool) -> Option<LatencyGraph> {
        if steps.len() > LATENCY_STEPS_MAX {
            return None;
        }
        let mut places = vec![NO_PLACE; steps.last().map_or(0, |last| last.index + 1)];
        (0..).zip(&steps).for_each(|(place, step)| places[step.index] = place);
        let direct = |step: &LatencyStep| {
            let mut indirect = WaitSet::default();
            step.before.numbers().for_each(|before| indirect.insert_all(&steps[before as usize].before));
            step.before.numbers().filter(|before| !indirect.contains(*before)).collect()
        };
        let direct: Box<[Box<[u32]>]> = steps.iter().map(direct).collect();
        let is_last = |place: &u32| !direct.iter().any(|before| before.contains(place));
        let last = (0..steps.len() as u32).filter(is_last).collect();
        Some(LatencyGraph {
            steps,
            places: places.into(),
            direct,
            last,
            delaying: Box::default(),
            returns,
            takes_turns,
        })
    }

    /// Returns the steps, in the order of the body.
    pub(crate) fn steps(&self) -> &[LatencyStep] {
        &self.steps
    }

    /// Returns the place of the step with this index in its body; `None` if it does not wait.
    #[inline]
    pub(crate) fn place_of(&self, index: usize) -> Option<usize> {
        self.places.get(index).filter(|place| **place != NO_PLACE).map(|place| usize::from(*place))
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

    /// Returns the latency of the step with this index in its body; `None` if it does not wait.
    pub(crate) fn latency_of(&self, index: usize) -> Option<&StepLatency> {
        self.place_of(index).map(|place| &self.steps[place].latency)
    }

    /// Returns true if the flow waits for nothing but calls that may wait for others, of functions that answer at once.
    pub(crate) fn is_prompt(&self) -> bool {
        self.steps.iter().all(|step| match &step.latency {
            StepLatency::None => true,
            StepLatency::Gathered { gatherer, delays, .. } => *delays && gatherer.prompt.is_prompt(),
            StepLatency::Iterations { body, delays } => *delays && body.is_prompt(),
            StepLatency::OtherFlows | StepLatency::Unknown => false,
        })
    }

    /// Returns true if a call might wait for another one.
    pub(crate) fn may_delay(&self) -> bool {
        !self.delaying.is_empty()
    }

    /// Returns true if a call of this function might wait for another one.
    pub(crate) fn may_delay_call(&self, gatherer: &Arc<Gatherer>) -> bool {
        self.delaying.contains(&FunctionIdentity::of(gatherer))
    }
}

impl StepLatency {
    /// Returns the gatherer of a call that is gathered.
    pub(crate) fn gatherer(&self) -> Option<&Arc<Gatherer>> {
        if let StepLatency::Gathered { gatherer, .. } = self { Some(gatherer) } else { None }
    }

    /// Returns the body of a `map` whose iterations overlap.
    pub(crate) fn iterations(&self) -> Option<&LatencyGraph> {
        if let StepLatency::Iterations { body, .. } = self { Some(body) } else { None }
    }

    /// Returns true if the step makes calls of this function.
    pub(crate) fn calls(&self, function: &Arc<Gatherer>) -> bool {
        match self {
            StepLatency::Gathered { gatherer, .. } => Arc::ptr_eq(gatherer, function),
            StepLatency::Iterations { body, .. } => body.steps.iter().any(|step| step.latency.calls(function)),
            StepLatency::None | StepLatency::OtherFlows | StepLatency::Unknown => false,
        }
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
}
