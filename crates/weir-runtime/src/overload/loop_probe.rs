//! A probe of an event loop: the lateness of a timer tells how long whatever becomes ready on the loop waits until it runs.
//!
//! Flows that are too short to take turns, and all that happens before a flow begins, wait nowhere but in front of their
//! loop. The probe is a timer that is due once in each [`PERIOD_NS`]; it rests while no flow begins. A loop is overloaded if it
//! is too late twice in succession ([`LATE_MAX_NS`]), and if many flows have begun since, which take long on average
//! ([`WORK_MIN_NS`]). The limit is that of a burst, because a single call that takes long makes its loop late, too.
//!
//! All state belongs to one thread.

use std::cell::Cell;
use std::sync::Arc;

use tokio::sync::Notify;

use super::queue_delay::{BURST_DELAY_MAX_NS, WAITING_MIN};
use crate::platform::Platform;

/// The lateness that is too long.
const LATE_MAX_NS: u64 = BURST_DELAY_MAX_NS;
/// The time that flows take at least, on average, if refusing some of them is to help. Chosen by judgement: ten times a
/// refusal.
const WORK_MIN_NS: u64 = 200_000;
/// The period of the probe. Chosen by judgement: a small part of [`LATE_MAX_NS`], and a hundred wake-ups of a busy
/// loop in a second are not noticed.
const PERIOD_NS: u64 = 10_000_000;
/// The number of periods without a flow after which the probe rests.
const IDLE_PERIODS_MAX: u32 = 10;

thread_local! {
    static PROBE: LoopProbe = const { LoopProbe::new() };
    static WANTED: Arc<Notify> = Arc::default();
}

/// The probe of the event loop of this thread.
struct LoopProbe {
    /// Flows that began since the timer was set.
    begun: Cell<u64>,
    /// True if the timer was too late.
    was_late: Cell<bool>,
    is_overloaded: Cell<bool>,
    rests: Cell<bool>,
    idle_periods: Cell<u32>,
}

impl LoopProbe {
    const fn new() -> LoopProbe {
        LoopProbe {
            begun: Cell::new(0),
            was_late: Cell::new(false),
            is_overloaded: Cell::new(false),
            rests: Cell::new(false),
            idle_periods: Cell::new(0),
        }
    }

    /// Notes that the timer was late by this time; returns false if the probe may rest.
    fn note(&self, late_ns: u64) -> bool {
        let begun = self.begun.take();
        let late_max_ns = LATE_MAX_NS.max(begun.saturating_mul(WORK_MIN_NS));
        let is_late = begun >= WAITING_MIN && late_ns > late_max_ns;
        let was_late = self.was_late.replace(is_late);
        self.is_overloaded.set(is_late && was_late);
        self.idle_periods.set(if begun == 0 { self.idle_periods.get() + 1 } else { 0 });
        self.idle_periods.get() < IDLE_PERIODS_MAX
    }
}

/// Counts a flow that is about to begin on the event loop of this thread; returns false if the loop is too late.
#[inline]
pub(crate) fn note_beginning() -> bool {
    PROBE.with(|probe| {
        probe.begun.set(probe.begun.get() + 1);
        if probe.rests.replace(false) {
            WANTED.with(|wanted| wanted.notify_one());
        }
        !probe.is_overloaded.get()
    })
}

/// Probes the event loop of this thread, for as long as it runs.
pub(crate) async fn probe_loop(platform: Arc<dyn Platform>) {
    let wanted = WANTED.with(Arc::clone);
    loop {
        let due_ns = platform.now_ns().saturating_add(PERIOD_NS);
        platform.at(due_ns).synchronise().await;
        let late_ns = platform.now_ns().saturating_sub(due_ns);
        if !PROBE.with(|probe| probe.note(late_ns)) {
            PROBE.with(|probe| probe.rests.set(true));
            wanted.notified().await;
            PROBE.with(|probe| probe.idle_periods.set(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_loop_is_overloaded_if_many_flows_make_it_late() {
        let probe = LoopProbe::new();
        let note = |begun, late_ms: u64| {
            probe.begun.set(begun);
            probe.note(late_ms * MS);
            probe.is_overloaded.get()
        };
        assert!(!note(100, 900) && !note(100, 900), "in time");
        assert!(!note(100, 1_100), "a burst, or a single call that takes long");
        assert!(note(100, 1_100) && note(100, 1_100));
        assert!(!note(3, 1_500), "three flows that take long");
        assert!(!note(10_000, 1_500) && !note(10_000, 1_500), "flows that take no longer than a refusal");
        assert!(!note(100, 0) && !note(100, 1_100), "in time again");
    }

    #[test]
    fn the_probe_rests_without_flows() {
        let probe = LoopProbe::new();
        assert!((1..IDLE_PERIODS_MAX).all(|_| probe.note(0)));
        assert!(!probe.note(0));
        probe.begun.set(1);
        assert!(probe.note(0));
    }
}
