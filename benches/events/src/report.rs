//! Times cases, prints them side by side, and compares them with the goals.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use crate::Settings;
use crate::cancellation::is_safe;
use bench_harness::results;
use serde_json::{Value, json};
use std::time::Instant;

/// One contender of a case: its name, and a round that moves a number of messages.
pub(crate) type Contender<'a> = (&'static str, Round<'a>);

/// A round, which moves a number of messages.
pub(crate) enum Round<'a> {
    Here(Box<dyn FnMut(usize) + 'a>),
    /// In another program, which says how many nanoseconds it took.
    Elsewhere(Box<dyn FnMut(usize) -> f64 + 'a>),
}

/// A contender in this program.
pub(crate) fn here<'a>(name: &'static str, round: impl FnMut(usize) + 'a) -> Contender<'a> {
    (name, Round::Here(Box::new(round)))
}

impl Round<'_> {
    fn nanoseconds_per_message(&mut self, messages: usize) -> f64 {
        let nanoseconds = match self {
            Round::Elsewhere(round) => round(messages),
            Round::Here(round) => {
                let start = Instant::now();
                round(messages);
                start.elapsed().as_secs_f64() * 1e9
            }
        };
        nanoseconds / messages as f64
    }
}

/// Lowest throughput relative to the best cancellation-safe peer.
const GOAL_SAFE: f64 = 0.8;
/// Lowest throughput relative to a peer that may lose values.
const GOAL_UNSAFE: f64 = 0.6;
/// Lowest throughput of tasks on two threads relative to Go's, under an executor with Go's rules.
const GOAL_GO: f64 = 0.9;

/// The results so far.
pub(crate) struct Report {
    filter: String,
    messages: usize,
    only: Option<String>,
    rounds: usize,
    rows: Vec<Value>,
    /// Cases that miss a goal, with the peer.
    missed: Vec<String>,
}

impl Report {
    pub(crate) fn new(settings: &Settings) -> Self {
        let Settings { filter, messages, only, rounds } = settings;
        println!("{:<34} {:>9}  {:<17}  peers: ns per message [ratio]", "case", "weir ns", "ratio, best safe");
        Report {
            filter: filter.clone(),
            only: only.clone(),
            messages: *messages,
            rounds: *rounds,
            rows: Vec::new(),
            missed: Vec::new(),
        }
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        match self.filter.strip_prefix('^') {
            Some(beginning) => case.starts_with(beginning),
            None => case.contains(&self.filter),
        }
    }

    /// Times all contenders, the first being weir-events.
    ///
    /// There are many short rounds, and in each every contender has its turn, every other round in the opposite order. A
    /// ratio is taken within a round, so that drift of the machine and other work on it cancel out; what counts is the
    /// median of the ratios.
    pub(crate) fn case(&mut self, case: &str, mut contenders: Vec<Contender<'_>>) {
        if !self.wants(case) {
            return;
        }
        contenders.retain(|(name, _)| self.only.as_ref().is_none_or(|only| only.split(',').any(|only| only == *name)));
        let mut times = vec![Vec::with_capacity(self.rounds); contenders.len()];
        for round in 0..=self.rounds {
            let mut turns: Vec<_> = contenders.iter_mut().zip(&mut times).collect();
            if round % 2 == 1 {
                turns.reverse();
            }
            for ((_, contender), times) in turns {
                let taken = contender.nanoseconds_per_message(self.messages);
                // The first round is for caches and allocators.
                if round > 0 {
                    times.push(taken);
                }
            }
        }
        let names: Vec<_> = contenders.iter().map(|(name, _)| *name).collect();
        self.conclude(case, &names, &times);
    }

    fn conclude(&mut self, case: &str, names: &[&'static str], times: &[Vec<f64>]) {
        let Some((own, peers)) = times.split_first() else { return };
        let own_ns = quartiles(own)[1];
        let measured = names[1..].iter().zip(peers).map(|(name, peer)| {
            let ratios: Vec<f64> = peer.iter().zip(own).map(|(peer, own)| peer / own).collect();
            Peer { name, ns: quartiles(peer)[1], ratio: quartiles(&ratios) }
        });
        let peers: Vec<Peer> = measured.collect();
        let best = peers.iter().filter(|peer| is_safe(peer.name)).map(|peer| peer.ratio);
        let best = best.min_by(|one, other| one[1].total_cmp(&other[1]));
        let ratio = best.map_or_else(String::new, |[low, median, high]| format!("{median:.2} ({low:.2}-{high:.2})"));
        let list: Vec<_> = peers.iter().map(Peer::summary).collect();
        let missed: Vec<_> = peers.iter().filter(|peer| peer.misses_goal(case)).map(|peer| peer.name).collect();
        let mark = if missed.is_empty() { "" } else { "  < goal" };
        println!("{case:<34} {own_ns:>9.1}  {ratio:<17}  {}{mark}", list.join("  "));
        self.missed.extend(missed.iter().map(|peer| format!("{case} ({peer})")));
        let peers = peers.iter().map(|peer| {
            json!({ "name": peer.name, "ns": peer.ns, "ratio_quartiles": peer.ratio,
                "is_cancellation_safe": is_safe(peer.name) })
        });
        let peers: Vec<Value> = peers.collect();
        self.rows.push(json!({ "case": case, "ns_per_message": own_ns, "throughput_to_best_safe_peer": best,
            "peers": peers, "misses_goal_to": missed }));
    }

    /// Something that is said instead of measured.
    pub(crate) fn note(&self, text: &str) {
        println!("{text}");
    }

    pub(crate) fn write(&self) {
        match self.missed.as_slice() {
            [] => println!("no row misses a goal"),
            missed => println!("below a goal: {}", missed.join(", ")),
        }
        let json = json!({ "messages": self.messages, "rounds": self.rounds, "cases": self.rows });
        if let Err(error) = results::publish("bench-events", &json) {
            println!("the results could not be written: {error}");
        }
    }
}

/// A contender beside weir-events.
struct Peer {
    name: &'static str,
    ns: f64,
    /// The throughput of weir-events to its, by quartiles of the rounds.
    ratio: [f64; 3],
}

impl Peer {
    /// The name, with a star if it may lose values, the time and the median ratio.
    fn summary(&self) -> String {
        let star = if is_safe(self.name) { "" } else { "*" };
        format!("{}{star} {:.0} [{:.2}]", self.name, self.ns, self.ratio[1])
    }

    /// Returns true if weir-events is slower than the goal for this peer allows.
    fn misses_goal(&self, case: &str) -> bool {
        // tokio's executor and Go's schedule differently: only `crew` has Go's rules.
        let goal = match self.name {
            "go" if case.starts_with("tasks") => return false,
            "go" if case.contains("2 threads") => GOAL_GO,
            name if is_safe(name) => GOAL_SAFE,
            _ => GOAL_UNSAFE,
        };
        self.ratio[1] < goal
    }
}

/// The quartiles.
fn quartiles(figures: &[f64]) -> [f64; 3] {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted.get(sorted.len() * quarter / 4).copied().unwrap_or(f64::NAN))
}
