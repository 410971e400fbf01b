//! Peer oneTBB: a C++ program, which is compiled if `g++` and `libtbb-dev` are installed and visibly skipped otherwise.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use bench_harness::results;

use crate::BenchResult;
use crate::family::{Family, GraphCase};
use crate::measure::ModelRow;

/// The source text of the peer.
const SOURCE: &str = include_str!("onetbb.cpp");

/// Measures the case on oneTBB. Returns no rows if it is not installed.
pub(crate) fn run(case: GraphCase, span: Duration) -> BenchResult<Vec<ModelRow>> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    if case.family != Family::Pipeline {
        return Ok(Vec::new());
    }
    let Some(program) = PROGRAM.get_or_init(program) else { return Ok(Vec::new()) };
    let output = Command::new(program).args([case.cost.to_string(), span.as_secs_f64().to_string()]).output()?;
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| row(case, line)).collect()
}

/// Returns the compiled program, or says that it cannot be compiled and returns `None`.
fn program() -> Option<PathBuf> {
    let program = compile().ok();
    if program.is_none() {
        eprintln!("oneTBB skipped: install g++ and libtbb-dev to measure it");
    }
    program
}

fn compile() -> BenchResult<PathBuf> {
    let (source, program) = (results::file("bench-operators-onetbb.cpp")?, results::file("bench-operators-onetbb")?);
    fs::write(&source, SOURCE)?;
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-std=c++17"]).arg(source).arg("-o").arg(&program).arg("-ltbb");
    if compiler.output()?.status.success() { Ok(program) } else { Err("g++ refused the program".into()) }
}

/// Parses `model tuples_per_second cpu_ns`.
fn row(case: GraphCase, line: &str) -> BenchResult<ModelRow> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [model, throughput, cpu_ns] = fields[..] else { return Err(format!("the peer printed {line:?}").into()) };
    Ok(ModelRow { case, model: model.into(), throughput: throughput.parse()?, cpu_ns: Some(cpu_ns.parse()?) })
}
