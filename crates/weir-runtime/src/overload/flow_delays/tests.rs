//! Servers with one thread whose flows take turns, on a simulated clock.

use super::super::multilevel_queue::MultilevelQueue;
use super::super::queue_delay::tests::{MS, arrivals};
use super::super::queue_delay::{BURST_DELAY_MAX_NS, STANDING_NS, WAITING_MIN};
use super::*;
use crate::platform::{Platform, ScriptedPlatform};

/// The time that a turn takes in the simulation.
const TURN_NS: u64 = MS / 20;

/// A server with one thread whose flows take turns, on a simulated clock.
struct SimulatedTurns {
    clock: ScriptedPlatform,
    delays: FlowDelays,
    queue: MultilevelQueue<SimulatedFlow>,
    route: PassedQueues,
    /// The times at which flows arrived, and true for those that were refused.
    outcomes: Vec<(u64, bool)>,
}

/// A flow with the time of its arrival and the turns that it still needs.
struct SimulatedFlow {
    arrived_ns: u64,
    turns: FlowTurns,
    left: u64,
}

impl SimulatedTurns {
    fn wait(&mut self, mut flow: SimulatedFlow) {
        self.delays.enter(0, &mut flow.turns, &self.clock);
        self.queue.push(flow.turns.level(), flow);
    }

    /// Gives the next flow its turn, if one waits, and returns the time that it took if it has ended.
    fn give_turn(&mut self) -> Option<u64> {
        let mut flow = self.queue.pop()?;
        self.delays.leave(&flow.turns, &self.clock);
        self.clock.pass_ns(TURN_NS);
        flow.left -= 1;
        if flow.left == 0 {
            self.route.note_end(flow.turns.level());
            return Some(self.clock.now_ns() - flow.arrived_ns);
        }
        let level = flow.turns.count();
        level.into_iter().for_each(|level| self.route.note_passed(ThreadQueue::Level(level)));
        self.wait(flow);
        None
    }

    /// Returns a server whose arrivals are those of this seed.
    fn new(seed: u64) -> Self {
        let (clock, queue) = (ScriptedPlatform::new(seed), MultilevelQueue::new());
        SimulatedTurns { clock, delays: FlowDelays::new(), queue, route: PassedQueues::default(), outcomes: Vec::new() }
    }

    /// Lets flows of this many turns arrive at random, at this rate relative to the capacity. Returns the part of the time
    /// in which flows were completed, the 99th percentile of their times, and the part of the flows that were refused.
    fn load(&mut self, rate: f64, turns: u64, flows: u64) -> (f64, u64, f64) {
        let cost_ns = turns * TURN_NS;
        let duration_ns = flows * cost_ns;
        let (mut took_ns, mut refused) = (Vec::new(), 0);
        let arrivals = arrivals(&self.clock, rate / cost_ns as f64, duration_ns);
        for arrived_ns in arrivals.iter().copied() {
            while self.clock.now_ns() < arrived_ns && self.queue.len() > 0 {
                took_ns.extend(self.give_turn());
            }
            self.clock.pass_ns(arrived_ns.saturating_sub(self.clock.now_ns()));
            let is_refused = self.delays.is_overloaded(&self.route, &self.clock);
            self.outcomes.push((arrived_ns, is_refused));
            if is_refused {
                refused += 1;
            } else {
                self.wait(SimulatedFlow { arrived_ns, turns: FlowTurns::default(), left: turns });
            }
        }
        took_ns.sort_unstable();
        let refused = f64::from(refused) / arrivals.len() as f64;
        (took_ns.len() as f64 / flows as f64, took_ns[took_ns.len() * 99 / 100], refused)
    }
}

#[test]
fn at_three_times_the_capacity_flows_that_take_turns_are_as_fast_as_below_it() {
    // Within the first level, to the second, through most of it, and to the third.
    for (seed, turns) in [(1, 8), (2, 75), (3, 250), (4, 400), (7, 400)] {
        let mut server = SimulatedTurns::new(seed);
        let (_, p99_below_ns, _) = server.load(0.8, turns, 5_000);
        server.load(3.0, turns, 500 + 10 * STANDING_NS / (turns * TURN_NS));
        let (completed, p99_above_ns, _) = server.load(3.0, turns, 5_000);
        assert!(completed > 0.98, "{turns}: {completed} completed");
        assert!(p99_above_ns < 2 * p99_below_ns, "{turns}: {p99_above_ns} after {p99_below_ns}");
    }
}

/// Returns the time after which 99 of 100 flows were admitted, of the outcomes of flows with the times of their arrival.
fn normal_after_ns(outcomes: &[(u64, bool)]) -> u64 {
    let (mut refused, mut after_ns) = (0, 0);
    for (count, (arrived_ns, is_refused)) in outcomes.iter().rev().enumerate() {
        refused += usize::from(*is_refused);
        // A few at the end say nothing about the share.
        if refused > 3 + count / 100 {
            after_ns = *arrived_ns - outcomes[0].0;
            break;
        }
    }
    after_ns
}

#[test]
fn after_an_overload_all_is_normal_within_a_second() {
    // Flows of five milliseconds, at the rates of the benchmark.
    let (turns, four_seconds) = (100, 800);
    let times = (1..=16).map(|seed| {
        let mut server = SimulatedTurns::new(seed);
        server.load(0.8, turns, four_seconds);
        server.load(3.0, turns, four_seconds);
        server.outcomes.clear();
        server.load(0.8, turns, four_seconds);
        normal_after_ns(&server.outcomes)
    });
    let normal = times.filter(|after_ns| *after_ns < 1_000_000_000).count();
    assert!(normal >= 14, "in {normal} of 16 cases");
}

#[test]
fn a_second_after_an_overload_hardly_any_flow_is_refused() {
    for turns in [8, 75] {
        let second = 1_000_000_000 / (turns * TURN_NS);
        let refused_afterwards = |seed| {
            let mut server = SimulatedTurns::new(seed);
            server.load(0.8, turns, 5 * second);
            server.load(3.0, turns, 5 * second);
            server.load(0.8, turns, second);
            server.load(0.8, turns, 9 * second).2
        };
        let refused = (1..=8).map(refused_afterwards).sum::<f64>() / 8.0;
        assert!(refused < 0.005, "{turns}: {refused} refused");
    }
}

#[test]
fn a_route_is_refused_only_for_queues_that_its_flows_pass() {
    let (clock, delays) = (ScriptedPlatform::new(0), FlowDelays::new());
    let (short, long) = (PassedQueues::default(), PassedQueues::default());
    (0..5).for_each(|_| short.note_passed(ThreadQueue::Level(0)));
    for level in 0..LEVELS {
        (0..4).for_each(|_| long.note_passed(ThreadQueue::Level(level)));
    }
    (0..WAITING_MIN).for_each(|_| delays.at(Some(LEVELS - 1)).iter().for_each(|delay| delay.enter(&clock)));
    clock.pass_ns(STANDING_NS);
    assert!(delays.is_overloaded(&long, &clock) && !delays.is_overloaded(&short, &clock));
    (0..WAITING_MIN).for_each(|_| delays.at(None).iter().for_each(|delay| delay.enter(&clock)));
    clock.pass_ns(BURST_DELAY_MAX_NS);
    assert!(delays.is_overloaded(&short, &clock));
}

#[test]
fn flows_of_all_levels_that_a_route_passes_count_together() {
    let (clock, delays, route) = (ScriptedPlatform::new(0), FlowDelays::new(), PassedQueues::default());
    (0..2).for_each(|level| (0..4).for_each(|_| route.note_passed(ThreadQueue::Level(level))));
    for flow in 0..WAITING_MIN {
        let mut turns = FlowTurns::default();
        let level = usize::from(flow % 2 == 0);
        while turns.level() != Some(level) {
            _ = turns.count();
        }
        delays.enter(0, &mut turns, &clock);
    }
    clock.pass_ns(STANDING_NS);
    assert!(delays.is_overloaded(&route, &clock));
    delays.abandon_level(Some(0));
    assert!(!delays.is_overloaded(&route, &clock), "fewer wait");
}
