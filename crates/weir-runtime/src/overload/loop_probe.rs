//! A probe of an event loop: the lateness of a timer tells how long whatever becomes ready on the loop waits until it runs.
//!
//! Flows that are too short to take turns, and all that happens before a flow begins, wait nowhere but in front of their
//! loop. The probe is a timer that is due once in each [`PERIOD_NS`]; it rests while no flow begins. The law is that of
//! [`QueueDelay`](super::QueueDelay), with the flows that have begun since the timer was set in place of those that wait.
//!
//! All state belongs to one thread.

use std::cell::Cell;
use std::sync::Arc;

use tokio::sync::Notify;

use super::queue_delay::{BURST_DELAY_MAX_NS, DELAY_MAX_NS, STANDING_NS, WAITING_MIN};
use crate::platform::Platform;

/// The period of the probe. Chosen by judgement: at most twice the delay that is too long, and a hundred wake-ups of a busy
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
    /// The time since which the timer has been late each time; 0 if it was not.
    late_since_ns: Cell<u64>,
    is_overloaded: Cell<bool>,
    rests: Cell<bool>,
    idle_periods: Cell<u32>,
}

impl LoopProbe {
    const fn new() -> LoopProbe {
        LoopProbe {
            begun: Cell::new(0),
            late_since_ns: Cell::new(0),
            is_overloaded: Cell::new(false),
            rests: Cell::new(false),
            idle_periods: Cell::new(0),
        }
    }

    /// Notes that the timer was late by this time; returns false if the probe may rest.
    fn note(&self, late_ns: u64, now_ns: u64) -> bool {
        let begun = self.begun.take();
        if late_ns <= DELAY_MAX_NS {
            self.late_since_ns.set(0);
        } else if self.late_since_ns.get() == 0 {
            self.late_since_ns.set(now_ns.saturating_sub(late_ns).max(1));
        }
        let since_ns = self.late_since_ns.get();
        let late_for_ns = if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) };
        let late_max_ns = if late_for_ns >= STANDING_NS { DELAY_MAX_NS } else { BURST_DELAY_MAX_NS };
        self.is_overloaded.set(begun >= WAITING_MIN && late_ns > late_max_ns);
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
        let now_ns = platform.now_ns();
        if !PROBE.with(|probe| probe.note(now_ns.saturating_sub(due_ns), now_ns)) {
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
    fn a_loop_is_overloaded_if_it_is_late_for_long_and_begins_many_flows() {
        let probe = LoopProbe::new();
        let mut now_ns = 1_000 * MS;
        let mut note = |begun, late_ns: u64| {
            now_ns += PERIOD_NS + late_ns;
            probe.begun.set(begun);
            probe.note(late_ns, now_ns);
            probe.is_overloaded.get()
        };
        assert!(!note(100, 4 * MS), "in time");
        assert!(!note(100, 50 * MS), "a burst");
        assert!(note(100, 60 * MS), "late for long");
        assert!(!note(3, 50 * MS), "three flows that take long");
        assert!(!note(100, 0) && !note(100, 50 * MS), "it was in time between");
        assert!(note(100, 1_001 * MS), "too late for a burst");
    }

    #[test]
    fn the_probe_rests_without_flows() {
        let probe = LoopProbe::new();
        assert!((1..IDLE_PERIODS_MAX).all(|_| probe.note(0, 1)));
        assert!(!probe.note(0, 1));
        probe.begun.set(1);
        assert!(probe.note(0, 1));
    }
}
