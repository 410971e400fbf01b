//! weir-events side by side with the channels that people use today, all in one run.
//!
//! ```text
//! cargo run --release -p weir-bench-events -- [part of a case's name] [messages per round] [contenders]
//! ```
//!
//! `^` before the part of the name means that the name begins with it, as with `^spsc`, which leaves tasks out.
//!
//! A list of contenders, such as `weir,kanal`, leaves the others out.
//!
//! Prints nanoseconds per message and the throughput of weir-events relative to the best cancellation-safe peer, where 1.00
//! is the same and more is better: the median of many short paired rounds, with the middle half of them. A peer with a star
//! is not cancellation safe (`cancellation.rs`). Writes the same as `bench-events.json` into the target directory.
//!
//! The goals (`report.rs`) are 0.8 of the best cancellation-safe peer, 0.6 of the others, and 0.9 of Go's channels for
//! tasks of the same scheduling rules (`crew.rs`) on two threads. Rows that miss one are marked and listed at the end.

mod cancellation;
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
    /// Only these contenders, separated by commas.
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
