//! Fusion limit: the number of consecutive ports that a worker may fuse, learned from the measured time per item.
//!
//! In shared mode a worker claims the ports that it fuses, and other workers cannot run these meanwhile. Fusing
//! therefore pays only while an item is cheap in comparison with a queue, and while no other worker lacks work. The
//! limit of a port doubles if batches that begin there use it up and take less than half of [`FUSED_TIME_MAX`] per
//! item. It is halved if they take more than that, or if a worker sleeps while the ready queue is not empty.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The maximum number of ports that a worker claims in one batch. Chosen by judgement: with 128 fused ports, less than
/// one hop in a hundred goes through a queue, and a larger number only keeps other workers away for longer.
const FUSION_LIMIT_MAX: usize = 128;
/// The time per item above which the limit is halved. Chosen by judgement: somewhat more than a hop between two
/// threads, which takes 131 to 156 ns (`bench-operators --hops`); a longer item gains little from being fused.
const FUSED_TIME_MAX: Duration = Duration::from_nanos(200);

/// The fusion limit of one port. Relaxed accesses suffice: it is a heuristic, and a lost update only delays it.
pub(crate) struct FusionLimit(AtomicUsize);

impl FusionLimit {
    /// Creates a limit of 1: nothing is fused before a measurement.
    pub(crate) fn new() -> Self {
        FusionLimit(AtomicUsize::new(1))
    }

    /// Returns the limit.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Adapts the limit after a batch. `took` is the time per item, `used_up` is true if the batch claimed as many
    /// ports as it was allowed to.
    pub(crate) fn adapt(&self, took: Duration, used_up: bool) {
        let fusion_limit = self.get();
        if took > FUSED_TIME_MAX {
            self.0.store((fusion_limit / 2).max(1), Ordering::Relaxed);
        } else if used_up && took * 2 < FUSED_TIME_MAX {
            self.0.store((fusion_limit * 2).min(FUSION_LIMIT_MAX), Ordering::Relaxed);
        }
    }

    /// Halves the limit, because another worker has nothing to do while ports are ready.
    pub(crate) fn shrink(&self) {
        self.0.store((self.get() / 2).max(1), Ordering::Relaxed);
    }
}
