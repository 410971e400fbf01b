//! The running estimate of a latency: its mean and its mean deviation, as those of a round trip in TCP (RFC 6298); and whether there
//! is none, because a function answers at once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The weight of an observation is at least the reciprocal of this, so that the estimate follows a source whose latency changes.
const WINDOW: u64 = 8;

/// The number of observations from which on there is an estimate. Chosen by judgement.
const OBSERVATIONS_MIN: u64 = 4;

/// The deviations by which a latency is taken to be longer than its mean where it must not be underestimated.
const DEVIATIONS: u64 = 1;

/// The number of batches in a row that a prompt function has answered at the first poll. Chosen by judgement.
const PROMPT_BATCHES: u32 = 3;

/// The time that a prompt function may take. Chosen by judgement: other flows of the event loop wait as long for their turn.
const PROMPT_NS_MAX: u64 = 100_000;

/// A running estimate. Concurrent observations may overwrite each other: each is a value that was estimated.
#[derive(Default)]
pub(super) struct LatencyEstimate {
    observations: AtomicU64,
    mean_ns: AtomicU64,
    deviation_ns: AtomicU64,
}

/// An estimated latency, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EstimatedLatency {
    /// The mean.
    pub mean_ns: u64,
    /// A latency that is seldom exceeded.
    pub high_ns: u64,
}

/// The number of batches in a row that a function has answered at once. Concurrent notes may overwrite each other.
#[derive(Default)]
pub(super) struct Promptness(AtomicU32);

impl LatencyEstimate {
    /// Adds an observation.
    pub(super) fn observe(&self, ns: u64) {
        let weight = self.observations.fetch_add(1, Ordering::Relaxed).saturating_add(1).min(WINDOW);
        let mean = self.mean_ns.load(Ordering::Relaxed);
        let deviation = self.deviation_ns.load(Ordering::Relaxed);
        self.mean_ns.store(nearer(mean, ns, weight), Ordering::Relaxed);
        let deviates = if weight == 1 { 0 } else { nearer(deviation, mean.abs_diff(ns), weight) };
        self.deviation_ns.store(deviates, Ordering::Relaxed);
    }

    /// Returns the estimate; `None` before there are enough observations.
    pub(super) fn get(&self) -> Option<EstimatedLatency> {
        if self.observations.load(Ordering::Relaxed) < OBSERVATIONS_MIN {
            return None;
        }
        let mean_ns = self.mean_ns.load(Ordering::Relaxed);
        let margin_ns = DEVIATIONS.saturating_mul(self.deviation_ns.load(Ordering::Relaxed));
        Some(EstimatedLatency { mean_ns, high_ns: mean_ns.saturating_add(margin_ns) })
    }
}

impl Promptness {
    /// Notes a batch that was answered after this time; `at_once` if the function was polled only once for it.
    pub(super) fn note(&self, at_once: bool, took_ns: u64) {
        let batches =
            if at_once && took_ns <= PROMPT_NS_MAX { self.0.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.0.store(batches, Ordering::Relaxed);
    }

    /// Returns true if the function is prompt.
    pub(super) fn is_prompt(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= PROMPT_BATCHES
    }
}

/// Returns a value that is nearer to `to` by a part of the distance.
fn nearer(from: u64, to: u64, part: u64) -> u64 {
    if to >= from { from + (to - from) / part } else { from - (from - to) / part }
}
