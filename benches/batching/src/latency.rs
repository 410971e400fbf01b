//! The latencies of sources: fixed, random, or changing.

use std::sync::Arc;

use bench_harness::random;

/// The number of nanoseconds in a unit of latency.
pub(crate) const UNIT_NS: u64 = 1_000_000;

/// A call of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceCall {
    /// The source.
    pub(crate) source: usize,
    /// The flow, from 0.
    pub(crate) flow: usize,
    /// The number of calls of all sources before.
    pub(crate) earlier: u64,
}

/// Returns the latency of a call, in nanoseconds.
pub(crate) type LatencyOf = Arc<dyn Fn(SourceCall) -> u64 + Send + Sync>;

/// Returns fixed latencies, in units.
pub(crate) fn fixed(latencies: &[u64]) -> LatencyOf {
    let latencies = latencies.to_vec();
    Arc::new(move |call| latencies[call.source] * UNIT_NS)
}

/// Returns fixed latencies, in units; that of the slowest source doubles with this flow.
pub(crate) fn doubled_from(latencies: &[u64], flow: usize) -> LatencyOf {
    let (before, after) = (latencies.to_vec(), doubled(latencies));
    Arc::new(move |call| if call.flow < flow { before[call.source] } else { after[call.source] } * UNIT_NS)
}

/// Returns the latencies with the largest one doubled.
pub(crate) fn doubled(latencies: &[u64]) -> Vec<u64> {
    let slowest = latencies.iter().copied().max().unwrap_or(0);
    latencies.iter().map(|latency| if *latency == slowest { 2 * latency } else { *latency }).collect()
}

/// Returns latencies with a log-normal distribution, whose medians these are, in units.
pub(crate) fn log_normal(latencies: &[u64], sigma: f64, seed: u64) -> LatencyOf {
    let latencies = latencies.to_vec();
    Arc::new(move |call| {
        let mut seed = seed ^ call.earlier.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let median_ns = (latencies[call.source] * UNIT_NS) as f64;
        (median_ns * (sigma * normal(&mut seed)).exp()) as u64
    })
}

/// Returns a number of the standard normal distribution (Box and Muller, 1958).
fn normal(seed: &mut u64) -> f64 {
    let fraction = |seed: &mut u64| ((random(seed) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (radius, angle) = (fraction(seed), fraction(seed));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
