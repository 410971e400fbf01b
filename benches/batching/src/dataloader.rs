//! npm's `dataloader` on level graphs, on a real clock, as a peer that is run rather than modelled.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench_harness::BenchResult;
use serde_json::{Value, json};

use crate::level_graph::LevelGraph;

/// The version that is installed.
const PACKAGE: &str = "dataloader@2.2.3";

/// Returns the calls that `dataloader` makes on these graphs, in their order.
///
/// # Errors
/// Fails if Node or the package cannot be had, or the program fails.
pub(crate) fn calls(graphs: &[LevelGraph], latencies: &[u64]) -> BenchResult<Vec<u64>> {
    let graphs: Vec<Value> = graphs.iter().map(described).collect();
    let input = json!({ "latencies": latencies, "graphs": graphs }).to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/level_graphs.js");
    let mut node = Command::new("node")
        .arg(script)
        .env("NODE_PATH", installed()?.join("node_modules"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = node.stdin.take().ok_or("node has no standard input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let output = node.wait_with_output()?;
    let results: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let calls = results.iter().map(|result| result["calls"].as_u64().ok_or_else(|| "no number of calls".into()));
    calls.collect()
}

fn described(graph: &LevelGraph) -> Value {
    graph.0.iter().map(|node| json!({ "source": node.source, "inputs": node.inputs })).collect()
}

/// Returns the folder in which the package is installed.
fn installed() -> BenchResult<PathBuf> {
    let folder = bench_harness::results::file("bench-batching-peers")?;
    if !folder.join("node_modules/dataloader").exists() {
        std::fs::create_dir_all(&folder)?;
        let npm = Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&folder).arg(PACKAGE).output()?;
        if !npm.status.success() {
            return Err(format!("npm cannot install {PACKAGE}: {}", String::from_utf8_lossy(&npm.stderr)).into());
        }
    }
    Ok(folder)
}
