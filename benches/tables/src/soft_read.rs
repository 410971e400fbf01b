//! The time of a read of a soft table beyond that of a call.
//!
//! A flow follows a chain of rows, so that each read needs the one before. Another flow has the same loop with a call of a
//! host function that does almost nothing. The difference is the read.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::Instant;

use bench_harness::{BenchResult, Load, LoadOptions, results};
use serde_json::json;

use crate::servers::{Setting, Store};

const PROGRAM: &str = include_str!("../programs/soft_read.weir");
/// The number of rows.
const ROWS: u64 = 10_000;
/// The number of reads in a flow.
const READS: u64 = 200_000;

/// Measures the reads of the first engine.
pub(crate) fn run(setting: &Setting, options: LoadOptions) -> BenchResult<()> {
    let place = setting.place("soft-read", Store::Soft)?.ok_or("a soft table needs nothing")?;
    let engine = setting.engines.first().ok_or("an engine is given")?;
    let server = place.start_weir("weir", PROGRAM, engine)?;
    let load = Load::new(1)?;
    load.bodies(&server, &[format!("POST /fill/{ROWS}")])?;
    let timed = |path: &str, count: u64| -> BenchResult<f64> {
        let begin = Instant::now();
        load.bodies(&server, &[format!("/{path}/{count}")])?;
        Ok(begin.elapsed().as_nanos() as f64)
    };
    let each = |path: &str| -> BenchResult<f64> { Ok((timed(path, READS)? - timed(path, 1)?) / READS as f64) };
    let (mut reads, mut calls, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let (read, call) = (each("reads")?, each("calls")?);
        reads.push(read);
        calls.push(call);
        beyond.push(read - call);
    }
    let [read, call, beyond] = [reads, calls, beyond].map(quartiles);
    println!(
        "soft-read, nanoseconds: lowest, median\n  read {read:.0?}\n  call {call:.0?}\n  read beyond the call {beyond:.0?}"
    );
    results::publish("bench-tables-soft-read", &json!({ "read_ns": read, "call_ns": call, "beyond_ns": beyond }))
}

/// Returns the lowest figure and the median.
pub(crate) fn quartiles(mut figures: Vec<f64>) -> [f64; 2] {
    figures.sort_by(f64::total_cmp);
    let at = |place: usize| figures.get(place).copied().unwrap_or(f64::NAN);
    [at(0), at(figures.len() / 2)]
}
