//! The law on simulated servers and clocks.

use std::collections::VecDeque;

use super::*;
use crate::platform::{Platform, ScriptedPlatform};

pub(in crate::overload) const MS: u64 = 1_000_000;

/// Returns random times of arrival, at this rate per nanosecond, from now on.
pub(in crate::overload) fn arrivals(clock: &ScriptedPlatform, rate: f64, duration_ns: u64) -> Vec<u64> {
    let (begin_ns, mut at_ns) = (clock.now_ns(), 0.0);
    let next = std::iter::from_fn(|| {
        let uniform = (clock.random() >> 11) as f64 / (1_u64 << 53) as f64;
        at_ns -= (1.0 - uniform).ln() / rate;
        Some(at_ns as u64)
    });
    next.take_while(|at_ns| *at_ns < duration_ns).map(|at_ns| begin_ns + at_ns).collect()
}

/// A server with one thread and a FIFO queue, on a simulated clock.
struct SimulatedServer {
    clock: ScriptedPlatform,
    delay: QueueDelay,
    queue: VecDeque<u64>,
    /// The time at which the thread is free again.
    free_ns: u64,
    cost_ns: u64,
    /// The times between arrival and completion.
    took_ns: Vec<u64>,
    refused: usize,
}

impl SimulatedServer {
    fn new(cost_ns: u64) -> Self {
        let (clock, delay) = (ScriptedPlatform::new(7), QueueDelay::of_long_work());
        SimulatedServer { clock, delay, queue: VecDeque::new(), free_ns: 0, cost_ns, took_ns: Vec::new(), refused: 0 }
    }

    /// Lets the time pass to this moment, and the thread work.
    fn pass_to(&mut self, to_ns: u64) {
        while let Some(arrived_ns) = self.queue.front().copied()
            && self.free_ns.max(arrived_ns) <= to_ns
        {
            let begins_ns = self.free_ns.max(arrived_ns);
            self.clock.pass_ns(begins_ns.saturating_sub(self.clock.now_ns()));
            self.delay.leave(&self.clock);
            self.queue.pop_front();
            self.free_ns = begins_ns + self.cost_ns;
            self.took_ns.push(self.free_ns - arrived_ns);
        }
        self.clock.pass_ns(to_ns.saturating_sub(self.clock.now_ns()));
    }

    fn arrive(&mut self) {
        if self.delay.is_overloaded(&self.clock) {
            self.refused += 1;
            return;
        }
        self.delay.enter(&self.clock);
        self.queue.push_back(self.clock.now_ns());
    }

    /// Lets requests arrive at random, at this rate relative to the capacity, and returns the number of the completed
    /// relative to the capacity, the number of the refused relative to all, and the 99th percentile of the times.
    fn load(&mut self, rate: f64, duration_ns: u64) -> (f64, f64, u64) {
        (self.took_ns, self.refused) = (Vec::new(), 0);
        let arrivals = arrivals(&self.clock, rate / self.cost_ns as f64, duration_ns);
        for arrives_ns in &arrivals {
            self.pass_to(*arrives_ns);
            self.arrive();
        }
        self.took_ns.sort_unstable();
        let completed = self.took_ns.len() as f64 * self.cost_ns as f64 / duration_ns as f64;
        (completed, self.refused as f64 / arrivals.len() as f64, self.took_ns[self.took_ns.len() * 99 / 100])
    }
}

#[test]
fn at_three_times_the_capacity_all_of_it_is_used_and_the_admitted_are_as_fast_as_below_it() {
    for cost_ns in [MS / 5, 3 * MS, 50 * MS] {
        let mut server = SimulatedServer::new(cost_ns);
        let duration_ns = 20_000 * cost_ns;
        let (_, refused, p99_below_ns) = server.load(0.8, duration_ns);
        assert!(refused < 0.01, "{cost_ns}: {refused} refused at 0.8");
        // The beginning, until the queue counts as standing.
        server.load(3.0, 500 * cost_ns + 10 * STANDING_NS);
        let (completed, refused, p99_above_ns) = server.load(3.0, duration_ns);
        assert!(completed > 0.99, "{cost_ns}: {completed} completed");
        assert!((0.6..0.7).contains(&refused), "{cost_ns}: {refused} refused");
        let longest_ns = (2 * p99_below_ns).max(3 * LONG_WORK_DELAY_MAX_NS / 2);
        assert!(p99_above_ns < longest_ns, "{cost_ns}: {p99_above_ns} after {p99_below_ns}");
        server.load(0.8, 100 * cost_ns);
        let (_, refused, _) = server.load(0.8, duration_ns);
        assert!(refused < 0.01, "{cost_ns}: {refused} refused afterwards");
    }
}

#[test]
fn a_burst_is_admitted() {
    let mut server = SimulatedServer::new(MS);
    (0..1_000).for_each(|_| server.arrive());
    assert_eq!(server.refused, 0);
    // What arrives while the burst is worked off would wait for as long.
    server.pass_to(2 * STANDING_NS);
    server.arrive();
    assert_eq!(server.refused, 1);
    server.pass_to(1_100 * MS);
    (0..2_000).for_each(|_| server.arrive());
    assert!(server.refused > 1_900, "an overload was seen shortly before");
    server.pass_to(3 * MEMORY_NS);
    server.refused = 1;
    (0..2_000).for_each(|_| server.arrive());
    assert!((900..=1_100).contains(&server.refused), "a burst fills the queue for about a second");
}

#[test]
fn a_queue_that_does_not_move_is_overloaded() {
    let (clock, delay) = (ScriptedPlatform::new(0), QueueDelay::of_long_work());
    (0..WAITING_MIN).for_each(|_| delay.enter(&clock));
    clock.pass_ns(STANDING_NS - 1);
    assert!(!delay.is_overloaded(&clock), "a burst");
    clock.pass_ns(1);
    assert!(delay.is_overloaded(&clock));
    delay.abandon();
    assert!(!delay.is_overloaded(&clock), "few wait");
}

#[test]
fn an_item_that_holds_up_many_short_ones_is_no_overload() {
    let (clock, delay) = (ScriptedPlatform::new(0), QueueDelay::of_any_work());
    // Clients that send one request after the other: as many wait as there are clients.
    (0..64).for_each(|_| delay.enter(&clock));
    let departs_after = |gap_ns| {
        clock.pass_ns(gap_ns);
        let refused = delay.is_overloaded(&clock);
        delay.leave(&clock);
        delay.enter(&clock);
        refused
    };
    assert!(!departs_after(900 * MS), "the first one");
    for _ in 0..10 {
        assert!(!(0..2_000).any(|_| departs_after(MS / 20)));
        assert!(!departs_after(900 * MS), "one that takes long");
    }
    assert!(departs_after(1_100 * MS), "nothing leaves");
    assert!((0..100).filter(|_| departs_after(100 * MS)).count() > 90, "all take long");
}

#[test]
fn items_that_leave_in_batches_are_counted() {
    let (clock, delay) = (ScriptedPlatform::new(0), QueueDelay::of_long_work());
    (0..64).for_each(|_| delay.enter(&clock));
    // A section takes 64 items at once, each of which takes half a millisecond.
    let mut refused = 0;
    for _ in 0..20 {
        (0..64).for_each(|_| delay.leave(&clock));
        (0..64).for_each(|_| delay.enter(&clock));
        clock.pass_ns(32 * MS);
        refused += u32::from(delay.is_overloaded(&clock));
    }
    assert!(refused > 10, "{refused}");
}
