//! weir-events side by side with the channels that people use today, all in one run.
//!
//! ```text
//! cargo run --release -p weir-bench-events -- [part of a case's name] [messages per round] [one contender]
//! ```
//!
//! `^` before the part of the name means that the name begins with it, as with `^spsc`, which leaves tasks out.
//!
//! Prints nanoseconds per message and the throughput of weir-events relative to the best peer, where 1.00 is the same and
//! more is better: the median of many short paired rounds, with the middle half of them. Writes the same as
//! `bench-events.json` into the target directory.

mod combinators;
mod crew;
mod go;
mod matrix;
mod peers;
mod report;
mod structures;
mod tasks;
mod wakes;

use report::Report;

/// Settings of the command line.
struct Settings {
    /// Only cases whose name contains this.
    filter: String,
    /// Messages per case and round.
    messages: usize,
    /// Only this contender, to count what it does with other tools.
    only: Option<String>,
    /// Rounds per case.
    rounds: usize,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let settings = Settings {
        filter: arguments.next().unwrap_or_default(),
        messages: arguments.next().and_then(|number| number.parse().ok()).unwrap_or(20_000),
        only: arguments.next(),
        rounds: 25,
    };
    let mut report = Report::new(&settings);
    matrix::run(&mut report);
    tasks::run(&mut report);
    combinators::run(&mut report);
    structures::run(&mut report);
    report.write();
}
