//! Times cases and prints them side by side.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use crate::Settings;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// One contender of a case: its name, and a round that moves a number of messages.
pub(crate) type Contender<'a> = (&'static str, Box<dyn FnMut(usize) + 'a>);

/// What was measured so far.
pub(crate) struct Report {
    filter: String,
    messages: usize,
    rounds: usize,
    rows: Vec<Value>,
}

impl Report {
    pub(crate) fn new(settings: &Settings) -> Self {
        let Settings { filter, messages, rounds } = settings;
        println!("{:<28} {:>9}  {:>6}  peers (ns per message)", "case", "weir ns", "ratio");
        Report { filter: filter.clone(), messages: *messages, rounds: *rounds, rows: Vec::new() }
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        case.contains(&self.filter)
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// Times all contenders in turn, several rounds, the first being weir-events; `known` are figures from elsewhere.
    pub(crate) fn case(&mut self, case: &str, mut contenders: Vec<Contender<'_>>, known: &[(&'static str, f64)]) {
        if !self.wants(case) {
            return;
        }
        let mut best = vec![f64::INFINITY; contenders.len()];
        for _ in 0..self.rounds {
            for ((_, round), best) in contenders.iter_mut().zip(&mut best) {
                *best = best.min(nanoseconds_per_message(self.messages, round));
            }
        }
        let timed = contenders.iter().map(|(name, _)| *name).zip(best);
        let figures: Vec<_> = timed.chain(known.iter().copied()).collect();
        self.print(case, &figures);
    }

    fn print(&mut self, case: &str, figures: &[(&'static str, f64)]) {
        let Some(((_, own), peers)) = figures.split_first() else { return };
        let best = peers.iter().map(|(_, peer)| *peer).fold(f64::INFINITY, f64::min);
        let ratio = if peers.is_empty() { String::from("-") } else { format!("{:.2}", best / own) };
        let peers: Vec<_> = peers.iter().map(|(name, peer)| format!("{name} {peer:.0}")).collect();
        println!("{case:<28} {own:>9.1}  {ratio:>6}  {}", peers.join("  "));
        let figures: serde_json::Map<_, _> = figures.iter().map(|(name, ns)| ((*name).to_owned(), json!(ns))).collect();
        self.rows.push(json!({ "case": case, "ns_per_message": figures, "throughput_to_best_peer": best / own }));
    }

    /// Something that is said instead of measured.
    pub(crate) fn note(&self, text: &str) {
        println!("{text}");
    }

    pub(crate) fn write(&self) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/events.json");
        let text = json!({ "messages": self.messages, "rounds": self.rounds, "cases": self.rows }).to_string();
        match std::fs::write(path, text) {
            Ok(()) => println!("wrote {path}"),
            Err(error) => println!("could not write {path}: {error}"),
        }
    }
}

fn nanoseconds_per_message(messages: usize, round: &mut dyn FnMut(usize)) -> f64 {
    let start = Instant::now();
    round(messages);
    let taken: Duration = start.elapsed();
    taken.as_secs_f64() * 1e9 / messages as f64
}
