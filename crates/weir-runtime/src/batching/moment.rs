//! Moments: the steps of a flow in its forecast, and the beginnings and ends of the iterations of a `map`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::slack::{FunctionGatherer, LatencyStep, StepCertainty, StepLatency};

/// A step in a body, or the beginning or end of the iterations of a `map`.
pub(super) struct FlowMoment<'a> {
    /// The step; `None` for the beginning and end of iterations.
    pub step: Option<&'a LatencyStep>,
    pub state: MomentState,
    /// True if it is a call that may wait for others.
    pub delays: bool,
    /// True if the moments before, and the progress, say everything that the step waits for.
    pub is_described: bool,
    /// True if it is in a body within.
    pub nested: bool,
    /// The moments directly before.
    pub before: SmallVec<[u32; 4]>,
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

impl<'a> FlowMoment<'a> {
    pub(super) fn gatherer(&self) -> Option<&'a FunctionGatherer> {
        self.step?.latency.gatherer()
    }

    /// Returns true for a computation, and for the beginning and end of iterations.
    pub(super) fn only_computes(&self) -> bool {
        self.step.is_none_or(|step| matches!(step.latency, StepLatency::None))
    }

    pub(super) fn calls(&self, gatherer: &FunctionGatherer) -> bool {
        self.gatherer().is_some_and(|own| Arc::ptr_eq(own, gatherer))
    }
}
