//! The cases over HTTP: reads, a mixed load, and writes.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fmt::Write;
use std::sync::Arc;

use bench_harness::{
    BenchResult, Load, LoadCase, LoadOptions, LoadReport, RequestWriter, ServerProcess, Workload, results,
};
use serde_json::json;

use crate::servers::{Setting, Store};
use crate::sync_loop::{self, SyncSample};

/// The program in Weir.
const PROGRAM: &str = include_str!("../programs/notes.weir");
/// The number of notes before a case begins.
const NOTES: u64 = 10_000;
/// The number of boards.
const BOARDS: u64 = 100;

/// A load.
pub(crate) struct HttpCase {
    pub(crate) name: &'static str,
    request: fn(u64, &mut String),
    /// True if answers wait for the disk.
    is_durable: bool,
}

pub(crate) const CASES: [HttpCase; 3] = [
    HttpCase { name: "read", request: read, is_durable: false },
    HttpCase { name: "mixed", request: mixed, is_durable: false },
    HttpCase { name: "write", request: write, is_durable: true },
];

fn read(random: u64, request: &mut String) {
    write!(request, "/notes/{}", random % NOTES + 1).expect("a `String` takes everything");
}

fn mixed(random: u64, request: &mut String) {
    match random % 20 {
        0 => write!(request, "/boards/board%20{}", random / 20 % BOARDS).expect("a `String` takes everything"),
        1..=3 => write(random / 20, request),
        _ => read(random / 20, request),
    }
}

fn write(random: u64, request: &mut String) {
    write!(request, "POST /boards/board%20{}", random % BOARDS).expect("a `String` takes everything");
}

/// Measures a case on these stores.
pub(crate) fn run(case: &HttpCase, stores: &[Store], setting: &Setting, options: LoadOptions) -> BenchResult<()> {
    let mut report = LoadReport::default();
    let mut syncs = Vec::new();
    for store in stores {
        let Some(servers) = start(case, *store, setting)? else { continue };
        let load = Load::new(options.connections)?;
        for server in &servers {
            check(&load, server)?;
        }
        let name = format!("{}-{}", store.name(), case.name);
        let mut measured = LoadCase::new(&name, servers.iter().map(|server| server.name.clone()).collect());
        let workload = Workload::kept(Arc::new(case.request) as RequestWriter);
        for round in 0..options.rounds {
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                measured.add(at, load.run(&servers[at], options.seconds, round as u64, &workload)?);
            }
            if case.is_durable && *store != Store::Soft {
                syncs.push((name.clone(), sync_loop::run(&setting.folder("sync")?, options.seconds)?));
            }
        }
        report.cases.push(measured);
    }
    println!("{report}");
    print_syncs(&syncs);
    let syncs = syncs.iter().map(|(case, sync)| {
        json!({ "case": case, "per_second": sync.per_second, "p50_us": sync.p50_ns / 1_000, "p99_us": sync.p99_ns / 1_000 })
    });
    let all = json!({ "servers": report.json(), "sync_loop": syncs.collect::<Vec<_>>() });
    results::publish(&format!("bench-tables-{}", case.name), &all)
}

fn start(case: &HttpCase, store: Store, setting: &Setting) -> BenchResult<Option<Vec<ServerProcess>>> {
    let name = format!("hand-{}", store.name());
    let Some(place) = setting.place(&format!("{name}-{}", case.name), store)? else { return Ok(None) };
    let mut servers = vec![place.start_by_hand(&name, &format!("notes-{}", store.name()))?];
    for engine in &setting.engines {
        let name = format!("weir-{engine}");
        let Some(place) = setting.place(&format!("{name}-{}-{}", store.name(), case.name), store)? else {
            return Ok(None);
        };
        let soft = if store == Store::Soft { " soft(at_most: 100_000_000)" } else { "" };
        let program = PROGRAM.replace("index (board, id)", &format!("index (board, id){soft}"));
        servers.push(place.start_weir(&name, &program, engine)?);
    }
    Ok(Some(servers))
}

/// Fills the store of a server, and fails if it does not answer as the others.
fn check(load: &Load, server: &ServerProcess) -> BenchResult<()> {
    let asked = [format!("POST /fill/{NOTES}"), "/notes/77".to_owned(), "/boards/board%207".to_owned()];
    let answers = load.bodies(server, &asked)?;
    let text = crate::servers::TEXT;
    let wanted = [NOTES.to_string(), text.to_owned(), [text; 10].join("\n")];
    if answers.iter().zip(&wanted).any(|(answer, wanted)| answer != wanted.as_bytes()) {
        return Err(format!("{} answers {answers:?}", server.name).into());
    }
    Ok(())
}

fn print_syncs(syncs: &[(String, SyncSample)]) {
    for (case, sync) in syncs {
        let [p50, p99] = [sync.p50_ns, sync.p99_ns].map(|time| time as f64 / 1e3);
        println!("{case}: a bare loop of syncs: {:.0} per second, p50 {p50:.0} us, p99 {p99:.0} us", sync.per_second);
    }
}
