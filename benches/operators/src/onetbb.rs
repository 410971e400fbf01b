//! oneTBB as a peer: a C++ program, compiled when `g++` and `libtbb-dev` are installed, and visibly skipped where not.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::Outcome;
use crate::family::{Case, Family};
use crate::measure::Row;

/// The peer's program.
const SOURCE: &str = include_str!("onetbb.cpp");
const PROGRAM: &str = "target/bench-operators-onetbb";

/// Runs the case on oneTBB; no rows where it is not installed.
pub(crate) fn run(case: Case, span: Duration) -> Outcome<Vec<Row>> {
    static COMPILED: OnceLock<bool> = OnceLock::new();
    if case.family != Family::Pipeline || !*COMPILED.get_or_init(compile) {
        return Ok(Vec::new());
    }
    let output = Command::new(PROGRAM).args([case.cost.to_string(), span.as_secs_f64().to_string()]).output()?;
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| row(case, line)).collect()
}

fn compile() -> bool {
    let source = "target/bench-operators-onetbb.cpp";
    let written = fs::write(source, SOURCE).is_ok();
    let status = Command::new("g++").args(["-O2", "-std=c++17", source, "-o", PROGRAM, "-ltbb"]).output();
    let compiled = written && status.is_ok_and(|output| output.status.success());
    if !compiled {
        eprintln!("oneTBB skipped: install g++ and libtbb-dev to measure it");
    }
    compiled
}

/// `model tuples_per_second cpu_ns`.
fn row(case: Case, line: &str) -> Outcome<Row> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [model, throughput, cpu_ns] = fields[..] else { return Err(format!("the peer printed {line:?}").into()) };
    Ok(Row { case, model: model.into(), throughput: throughput.parse()?, cpu_ns: Some(cpu_ns.parse()?) })
}
