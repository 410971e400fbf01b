//! Moments: the steps of a flow in its forecast, and the beginnings and ends of the iterations of a `map`.

use super::progress::StepCertainty;
use super::slack::{LatencyStep, StepLatency};

/// A step in a body, or the beginning or end of the iterations of a `map`.
#[derive(Clone, Copy)]
pub(super) struct FlowMoment {
    pub state: MomentState,
    /// The function that it calls in batches, by its place among those of the forecast.
    pub function: Option<u32>,
    /// The moments directly before, by their places in the list of the forecast.
    pub before: (u32, u32),
    pub kind: MomentKind,
    /// True if it is a call that may wait for others.
    pub delays: bool,
    /// True if the moments before, and the progress, say everything that the step waits for.
    pub is_described: bool,
    /// True if it is in a body within.
    pub nested: bool,
}

/// The properties of a moment that do not depend on the flow.
#[derive(Clone, Copy)]
pub(super) struct MomentKind {
    /// True for a computation, and for the beginning and end of iterations.
    pub only_computes: bool,
    /// True if it takes the time of batched calls only, or none.
    pub is_of_batches: bool,
    /// True if its latency is known, or is that of a batched function.
    pub is_estimated: bool,
    /// True for the calls of a `map`, of which there may be none.
    pub repeats: bool,
    /// True for a step that may not be executed, because it is in an arm of a switch of its body.
    pub is_chosen: bool,
    /// True for the beginning and end of iterations, which are no steps.
    pub is_bound: bool,
}

/// The progress of a moment.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MomentState {
    Over,
    Waits,
    Sent(u64),
    Gathers,
    Ahead(StepCertainty),
}

impl MomentKind {
    /// The beginning or end of the iterations of a `map`.
    pub(super) const BOUND: MomentKind = MomentKind {
        only_computes: true,
        is_of_batches: true,
        is_estimated: true,
        repeats: false,
        is_chosen: false,
        is_bound: true,
    };

    pub(super) fn of(step: &LatencyStep) -> MomentKind {
        MomentKind {
            only_computes: matches!(step.latency, StepLatency::None),
            is_of_batches: step.latency.is_of_batches(),
            is_estimated: !matches!(step.latency, StepLatency::Unknown),
            repeats: step.latency.repeats(),
            is_chosen: !step.arms.is_empty(),
            is_bound: false,
        }
    }
}
