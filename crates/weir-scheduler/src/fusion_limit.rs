//! How far a thread goes that begins at a port: what fusing costs and gains, as measured.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The most ports that a thread claims in a turn.
const FUSION_LIMIT_MAX: usize = 128;
/// Ports are fused up to this time for each item: against it, a hop through a queue costs little.
const FUSED_TIME_MAX: Duration = Duration::from_nanos(200);

/// How many ports a thread may have at once that began at this one.
pub(crate) struct FusionLimit(AtomicUsize);

impl FusionLimit {
    pub(crate) fn new() -> Self {
        FusionLimit(AtomicUsize::new(1))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Learns from a turn: what it took for each item, and whether it had as many ports as it might.
    pub(crate) fn adapt(&self, took: Duration, used_up: bool) {
        let fusion_limit = self.get();
        if took > FUSED_TIME_MAX {
            self.0.store((fusion_limit / 2).max(1), Ordering::Relaxed);
        } else if used_up && took * 2 < FUSED_TIME_MAX {
            self.0.store((fusion_limit * 2).min(FUSION_LIMIT_MAX), Ordering::Relaxed);
        }
    }

    /// Another thread has nothing to do while work waits here.
    pub(crate) fn shrink(&self) {
        self.0.store((self.get() / 2).max(1), Ordering::Relaxed);
    }
}
