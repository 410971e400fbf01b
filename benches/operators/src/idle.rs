//! Processor time of an idle program, for every engine.
//!
//! Some flows run first, so that threads, queues and numbers of threads are as they are after work. Then the source
//! waits, and so should every thread.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_runtime::{ENGINES, EngineRow, Options};

use crate::family::{Family, GraphCase};
use crate::measure::cpu_time;
use crate::{BenchResult, framed, processors};

/// The number of flows that run first.
const FLOWS: u32 = 100_000;
/// The time that they may take.
const FLOWS_WAIT_MAX: Duration = Duration::from_secs(20);
/// The time that threads have to come to rest.
const REST: Duration = Duration::from_secs(1);

/// Prints a row for each engine, and returns all of them.
pub(crate) fn run(span: Duration) -> BenchResult<Vec<Value>> {
    println!("engine              processor time of an idle second");
    ENGINES.iter().map(|engine| row(engine, span)).collect()
}

fn row(engine: &'static EngineRow, span: Duration) -> BenchResult<Value> {
    let case = GraphCase { family: Family::Mixed, cost: 1 };
    let before = framed::sunk();
    let options = Options { engine, threads: Some(processors()), ..Options::default() };
    let running = framed::begin(case, FLOWS, options)?;
    let begin = Instant::now();
    while framed::sunk() < before + u64::from(FLOWS) {
        if begin.elapsed() > FLOWS_WAIT_MAX {
            return Err(format!("{} does not come to an end", engine.name).into());
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    std::thread::park_timeout(REST);
    let (begin, cpu) = (Instant::now(), cpu_time());
    std::thread::park_timeout(span);
    let micros = (cpu_time() - cpu).as_secs_f64() * 1e6 / begin.elapsed().as_secs_f64();
    running.stop();
    running.wait().map_err(|failure| failure.to_string())?;
    println!("{:<16} {micros:>10.0} µs", engine.name);
    Ok(json!({ "engine": engine.name, "cpu_us_per_second": micros }))
}
