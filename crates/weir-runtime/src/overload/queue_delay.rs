//! The delay of a queue, and the law by which it is too long.

use std::sync::atomic::{AtomicU64, Ordering};

use super::multilevel_queue::{LEVELS, level_of};
use super::passed_queues::{PassedQueues, ThreadQueue};
use crate::platform::Platform;

/// The delay that is too long for work that takes long, if it has been longer for [`STANDING_NS`]: CoDel's target.
const LONG_WORK_DELAY_MAX_NS: u64 = 5_000_000;
/// The same for work of unknown length, which may cost hardly more than its refusal. Chosen by judgement: requests that are
/// answered within microseconds wait for less, also if a thousand clients send them one after the other.
const DELAY_MAX_NS: u64 = 100_000_000;
/// The time for which the delay may be too long, as it is after a burst: CoDel's interval.
const STANDING_NS: u64 = 100_000_000;
/// The time after an overload in which no burst may fill the queue: near its capacity a queue is empty from time to time, and
/// would be filled again each time. Chosen by judgement.
const MEMORY_NS: u64 = 10_000_000_000;
/// The delay that is too long even for a burst. Chosen by judgement: clients that wait for longer have often left.
pub(super) const BURST_DELAY_MAX_NS: u64 = 1_000_000_000;
/// No delay is too long while fewer items wait, so that the law holds for work of any length. By Little's law it is the
/// delay in units of the mean time between two departures. Chosen by calculation: with one thread, random arrivals at 0.8 of
/// its capacity and items of equal length, more wait during 0.3 % of the time.
pub(super) const WAITING_MIN: u64 = 12;

/// The time over which departures are counted, at least: several batches of a section, whose items leave at once.
const WINDOW_NS: u64 = 25_000_000;
/// From one window to the next the mean time between departures grows by this factor at most, so that one item that takes
/// long does not make many short ones look long.
const GAP_GROWTH_MAX: u64 = 4;
/// A mean below which all means count alike, so that it can grow from 0.
const SHORT_GAP_NS: u64 = 1_000;

/// The delay of a queue: the time for which an item that arrives now would wait. It is computed from the number of items and
/// the mean time between departures, because the delays of items that leave now tell only what it was before. All fields are
/// hints.
#[derive(Debug)]
pub(crate) struct QueueDelay {
    /// The number of items in the queue.
    waiting: AtomicU64,
    /// The time at which the delay was last no longer than its limit: as an item left, or entered the empty queue.
    short_ns: AtomicU64,
    /// The time at which an item last left, or entered the empty queue. The first item has waited since then or longer.
    moved_ns: AtomicU64,
    /// The beginning of the present window, and the number of items that have left since.
    window_ns: AtomicU64,
    departures: AtomicU64,
    /// The mean time between two departures in the window before.
    gap_ns: AtomicU64,
    /// The time at which work was last refused after an overload began; 0 if never.
    overloaded_ns: AtomicU64,
    /// The delay that is too long if it lasts.
    delay_max_ns: u64,
    /// The time without a departure that is too long.
    stop_max_ns: u64,
}

impl QueueDelay {
    /// Returns the delay of a queue for work that takes long: turns, and calls that have a thread of their own.
    pub(crate) const fn of_long_work() -> QueueDelay {
        QueueDelay::with_limits(LONG_WORK_DELAY_MAX_NS, STANDING_NS)
    }

    /// Returns the delay of a queue for work of unknown length. A single item that holds all threads for a while
    /// says nothing of the others.
    const fn of_any_work() -> QueueDelay {
        QueueDelay::with_limits(DELAY_MAX_NS, BURST_DELAY_MAX_NS)
    }

    const fn with_limits(delay_max_ns: u64, stop_max_ns: u64) -> QueueDelay {
        QueueDelay {
            waiting: AtomicU64::new(0),
            short_ns: AtomicU64::new(0),
            moved_ns: AtomicU64::new(0),
            window_ns: AtomicU64::new(0),
            departures: AtomicU64::new(0),
            gap_ns: AtomicU64::new(0),
            overloaded_ns: AtomicU64::new(0),
            delay_max_ns,
            stop_max_ns,
        }
    }

    /// Notes that an item enters the queue; it leaves by [`QueueDelay::leave`] or [`QueueDelay::abandon`].
    pub(crate) fn enter(&self, platform: &dyn Platform) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            let now_ns = platform.now_ns();
            self.short_ns.store(now_ns, Ordering::Relaxed);
            self.moved_ns.store(now_ns, Ordering::Relaxed);
            self.begin_window(now_ns);
        }
    }

    /// Notes that an item leaves the queue to be run.
    pub(crate) fn leave(&self, platform: &dyn Platform) {
        let now_ns = platform.now_ns();
        self.moved_ns.store(now_ns, Ordering::Relaxed);
        let departures = self.departures.fetch_add(1, Ordering::Relaxed) + 1;
        let elapsed_ns = now_ns.saturating_sub(self.window_ns.load(Ordering::Relaxed));
        if elapsed_ns >= WINDOW_NS {
            let before_ns = self.gap_ns.load(Ordering::Relaxed);
            let longest_ns = before_ns.max(SHORT_GAP_NS).saturating_mul(GAP_GROWTH_MAX);
            let gap_ns = elapsed_ns / departures;
            self.gap_ns.store(if before_ns == 0 { gap_ns } else { gap_ns.min(longest_ns) }, Ordering::Relaxed);
            self.begin_window(now_ns);
        }
        self.abandon();
        if self.expected_ns() <= self.delay_max_ns {
            self.short_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    fn begin_window(&self, now_ns: u64) {
        self.window_ns.store(now_ns, Ordering::Relaxed);
        self.departures.store(0, Ordering::Relaxed);
    }

    /// Notes that an item leaves the queue for another reason than being run.
    pub(crate) fn abandon(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns true if work waits too long in this queue to begin more of it.
    #[inline]
    pub(crate) fn is_overloaded(&self, platform: &dyn Platform) -> bool {
        self.waiting.load(Ordering::Relaxed) >= WAITING_MIN && self.is_overloaded_at(platform.now_ns())
    }

    /// Returns the time for which an item that arrives now would wait if items leave as they did before.
    fn expected_ns(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed).saturating_mul(self.gap_ns.load(Ordering::Relaxed))
    }

    #[cold]
    fn is_overloaded_at(&self, now_ns: u64) -> bool {
        let since = |moment: &AtomicU64| now_ns.saturating_sub(moment.load(Ordering::Relaxed));
        let stopped_ns = since(&self.moved_ns);
        let delay_ns = self.expected_ns().max(stopped_ns);
        let is_long = self.expected_ns() > self.delay_max_ns && since(&self.short_ns) >= STANDING_NS;
        if is_long || stopped_ns >= self.stop_max_ns {
            self.overloaded_ns.store(now_ns.max(1), Ordering::Relaxed);
            return true;
        }
        let is_recent = self.overloaded_ns.load(Ordering::Relaxed) > 0 && since(&self.overloaded_ns) < MEMORY_NS;
        if is_recent && delay_ns > self.delay_max_ns {
            self.overloaded_ns.store(now_ns, Ordering::Relaxed);
            return true;
        }
        delay_ns > BURST_DELAY_MAX_NS
    }
}

/// The delays of the queues in which flows wait for a thread: one for flows that have not had a whole turn yet, and one for
/// each level of those that take turns.
#[derive(Debug)]
pub(crate) struct FlowDelays {
    new: QueueDelay,
    levels: [QueueDelay; LEVELS],
}

impl FlowDelays {
    pub(crate) const fn new() -> FlowDelays {
        FlowDelays { new: QueueDelay::of_any_work(), levels: [const { QueueDelay::of_long_work() }; LEVELS] }
    }

    /// Returns the queue of flows that have had this many turns.
    pub(crate) fn after_turns(&self, turns: u32) -> &QueueDelay {
        level_of(turns).map_or(&self.new, |level| &self.levels[level])
    }

    /// Returns true if work waits too long in one of the queues that flows of a route pass.
    #[inline]
    pub(crate) fn is_overloaded(&self, queues: &PassedQueues, platform: &dyn Platform) -> bool {
        self.new.is_overloaded(platform) || (queues.has_any() && self.is_level_overloaded(queues, platform))
    }

    fn is_level_overloaded(&self, queues: &PassedQueues, platform: &dyn Platform) -> bool {
        let mut levels = self.levels.iter().enumerate();
        levels.any(|(level, delay)| queues.includes(ThreadQueue::Level(level)) && delay.is_overloaded(platform))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::platform::{Platform, ScriptedPlatform};

    const MS: u64 = 1_000_000;

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
            SimulatedServer {
                clock,
                delay,
                queue: VecDeque::new(),
                free_ns: 0,
                cost_ns,
                took_ns: Vec::new(),
                refused: 0,
            }
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
            let begin_ns = self.clock.now_ns();
            (self.took_ns, self.refused) = (Vec::new(), 0);
            let mut arrives_ns = begin_ns as f64;
            let mut arrived = 0;
            loop {
                let uniform = (self.clock.random() >> 11) as f64 / (1_u64 << 53) as f64;
                arrives_ns -= (1.0 - uniform).ln() * self.cost_ns as f64 / rate;
                if arrives_ns as u64 > begin_ns + duration_ns {
                    break;
                }
                self.pass_to(arrives_ns as u64);
                self.arrive();
                arrived += 1;
            }
            self.took_ns.sort_unstable();
            let completed = self.took_ns.len() as f64 * self.cost_ns as f64 / duration_ns as f64;
            (completed, self.refused as f64 / f64::from(arrived), self.took_ns[self.took_ns.len() * 99 / 100])
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
        server.pass_to(2 * MEMORY_NS);
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

    #[test]
    fn a_route_is_refused_only_for_queues_that_its_flows_pass() {
        let (clock, delays) = (ScriptedPlatform::new(0), FlowDelays::new());
        let (short, long) = (PassedQueues::default(), PassedQueues::default());
        short.note_passed(ThreadQueue::Level(0));
        (0..4).for_each(|_| short.note_passed(ThreadQueue::Level(0)));
        for level in 0..LEVELS {
            (0..4).for_each(|_| long.note_passed(ThreadQueue::Level(level)));
        }
        (0..WAITING_MIN).for_each(|_| delays.after_turns(u32::MAX).enter(&clock));
        clock.pass_ns(STANDING_NS);
        assert!(delays.is_overloaded(&long, &clock) && !delays.is_overloaded(&short, &clock));
        (0..WAITING_MIN).for_each(|_| delays.after_turns(0).enter(&clock));
        clock.pass_ns(BURST_DELAY_MAX_NS);
        assert!(delays.is_overloaded(&short, &clock));
    }
}
