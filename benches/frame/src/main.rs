//! Prototypes of a region's interpreter, its safe points and its accounting, each measured per round of a loop.
//!
//! `cargo run --release -p bench-frame [-- --rounds N]` prints the median of N runs (default 15) of each row in
//! nanoseconds, and writes `frame.json` to the target directory. ARCHITECTURE's chapter "The frame" cites the rows.
//!
//! The program is the same in every row that names no other: `loop (i, s) = (0, 0) { (i + 1, s + i * 3 % 7) } until
//! i >= n`, six instructions with checked arithmetic and one back edge in each round.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

mod accounting;
mod bytecode;
mod closures;
mod program;
mod safe_point;
mod vectors;

/// Rounds of the loop in one measurement.
const ROUNDS: u64 = 300_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let times = match &arguments[..] {
        [] => 15,
        [name, times] if name == "--rounds" => times.parse::<usize>()?.max(1),
        other => return Err(format!("unknown options {other:?}: see the first lines of main.rs").into()),
    };
    let rows = rows();
    // Every row is measured in each run, so that a change of the machine's speed reaches all of them.
    let mut figures = vec![Vec::new(); rows.len()];
    for _ in 0..times {
        for (row, figures) in rows.iter().zip(&mut figures) {
            figures.push(row.measure());
        }
    }
    let mut report = Vec::new();
    for (row, mut figures) in rows.iter().zip(figures) {
        figures.sort_by(f64::total_cmp);
        let median = figures[figures.len() / 2];
        println!("{:<64} {median:>8.2} ns", row.name);
        report.push(json!({ "row": row.name, "nanoseconds": median, "least": figures[0], "runs": times }));
    }
    let path = target_directory().join("frame.json");
    std::fs::write(&path, serde_json::to_string_pretty(&report)?)?;
    println!("written to {}", path.display());
    Ok(())
}

/// One variant: its name, the units of work in one call, and the call.
struct Row {
    name: &'static str,
    units: u64,
    run: Box<dyn Fn() -> u64>,
}

impl Row {
    fn new(name: &'static str, units: u64, run: impl Fn() -> u64 + 'static) -> Row {
        Row { name, units, run: Box::new(run) }
    }

    /// Nanoseconds for each unit of work.
    fn measure(&self) -> f64 {
        let began = Instant::now();
        black_box((self.run)());
        began.elapsed().as_nanos() as f64 / self.units as f64
    }
}

fn rows() -> Vec<Row> {
    let mut rows = bytecode::rows(ROUNDS);
    rows.extend(closures::rows(ROUNDS));
    rows.extend(safe_point::rows(ROUNDS));
    rows.extend(vectors::rows());
    rows.extend(accounting::rows());
    rows
}

fn target_directory() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| [env!("CARGO_MANIFEST_DIR"), "..", "..", "target"].iter().collect())
}
