//! Benchmark of programs in Weir beside the same programs in CPython, LuaJIT's interpreter, Node and Go.
//!
//! ```sh
//! cargo run --release -p bench-language -- [--rounds 5] [--scale 1.0] [--rows group,build_list]
//! cargo run --release -p bench-language -- --snapshots
//! cargo run --release -p bench-language -- --regions sieve
//! ```
//!
//! A *row* is one program in all languages: `rows/NAME.weir`, and a function in each file of `peers/`. A *contender* is a
//! process that runs a row: it makes the row's data once, and then runs the row once for each line that it reads. Every
//! round runs all contenders in turn, each round beginning with another one; contenders measure the time of their own
//! round, so that starting a process and compiling a program do not count. All must return the same result. Ratios are
//! taken between the times of one round, and the median of all rounds is reported. The rows `memory_…` report the
//! resident memory that making the data added, beside Rust's. `--snapshots` instead measures changes of shared values
//! while readers hold snapshots. `--regions` prints the bytecode of a row.
//!
//! The program prints a table, and writes `bench-language.json` (`bench-language-snapshots.json`) into the target
//! directory.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

mod contender;
mod measurement;
mod rows;
mod rust_child;
mod snapshots;
mod weir_child;

pub(crate) use bench_harness::BenchResult;
use bench_harness::{results, taken};
use contender::Contender;
use measurement::RowMeasurement;
use rows::{ROWS, Row};

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, language, row, size] = arguments.as_slice()
        && child == "--child"
    {
        let (row, size) = (Row::named(row)?, size.parse()?);
        return if language == "rust" { rust_child::run(row, size) } else { weir_child::run(row, size) };
    }
    if arguments == ["--snapshots"] {
        return snapshots::measure();
    }
    if let [option, row] = arguments.as_slice()
        && option == "--regions"
    {
        println!("{}", weir_child::regions(Row::named(row)?)?);
        return Ok(());
    }
    let rounds = taken(&mut arguments, "--rounds").map_or(Ok(5), |rounds| rounds.parse())?;
    let scale = taken(&mut arguments, "--scale").map_or(Ok(1.0), |scale| scale.parse())?;
    let chosen = taken(&mut arguments, "--rows");
    if let Some(unknown) = arguments.first() {
        return Err(format!("unknown option {unknown}: see the first lines of main.rs").into());
    }
    measure(&rows(chosen.as_deref())?, rounds, scale)
}

/// Returns the rows of these names, or all.
fn rows(chosen: Option<&str>) -> BenchResult<Vec<&'static Row>> {
    match chosen {
        None => Ok(ROWS.iter().collect()),
        Some(names) => names.split(',').map(Row::named).collect(),
    }
}

fn measure(rows: &[&'static Row], rounds: usize, scale: f64) -> BenchResult<()> {
    let (contenders, missing) = Contender::installed()?;
    missing.iter().for_each(|missing| println!("{missing}"));
    RowMeasurement::print_head(&contenders);
    let mut all = Vec::new();
    for row in rows {
        let measured = RowMeasurement::new(row, &contenders, rounds, scale)?;
        measured.print(&contenders);
        all.push(measured.to_json(&contenders));
    }
    results::publish("bench-language", &serde_json::json!({ "missing": missing, "rows": all }))
}
