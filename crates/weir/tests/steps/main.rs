//! No program can deadlock, and what an atomic step holds nobody comes between: random programs are compiled, and their
//! flows run at once under every engine, with functions that give their thread up at random.
//!
//! 1. Every program ends: one that does not within [`PATIENCE`] never will.
//! 2. The history of each log has the calls of each step together, but for readers beside readers, and of what is held per
//!    session for steps of other sessions.
//! 3. What a program does at the end of its source comes behind all else in each log, and once.
//! 4. Of flows that are one step each, the histories are those of the reference evaluator for some order of the flows.
//!
//! Of some logs each session has its own: what a flow sees in it then depends on the flows of its session alone.
//!
//! `WEIR_STEPS_PROGRAMS` says how many programs are tried, `WEIR_STEPS_FROM` from which seed on.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod probe;
mod programs;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use probe::{Event, Probe};
use programs::{END, LOGS, Maker, SESSIONS, Shape};
use weir::Value;
use weir_compile::Compiled;
use weir_ir::evaluate::Evaluator;
use weir_ir::program::AT_END;
use weir_runtime::{ENGINES, EngineRow, Options, start};
use weir_syntax::{SourceFile, SourceId};

/// A program that has not ended by then never will: each takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many programs of each kind are tried where nothing else is said.
const PROGRAMS: u64 = 60;

/// How many flows a program of several steps runs at once.
const FLOWS: i64 = 6;

/// How many flows that are one step each: all their orders are tried.
const WHOLE_FLOWS: i64 = 3;

/// What happened to each log.
type Histories = Vec<(String, Vec<Event>)>;

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let from = number("WEIR_STEPS_FROM").unwrap_or(0);
    from..from + number("WEIR_STEPS_PROGRAMS").unwrap_or(PROGRAMS)
}

fn compiled(text: &str) -> Compiled {
    let library = probe::library(0, Probe::default());
    let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("case.weir", text), &library);
    let errors: Vec<_> = compiled.diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    compiled
}

/// Runs so many flows at once, and gives the histories; an error where they do not end.
fn execute(program: &Compiled, flows: i64, seed: u64, engine: &'static EngineRow) -> Result<Histories, String> {
    let probe = Probe::new(seed);
    let library = probe::library(flows, probe.clone());
    let options = Options { engine, threads: Some(3), ..Options::default() };
    let running = start(program.graph.as_ref().unwrap(), &library, options).map_err(|error| error.to_string())?;
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(running.wait()));
    match end.recv_timeout(PATIENCE) {
        Ok(result) => result.map(|()| probe.histories()).map_err(|failure| failure.to_string()),
        Err(_) => Err("it does not end".into()),
    }
}

/// Runs every engine on the programs of a kind.
fn every_engine(whole: bool, flows: i64, check: impl Fn(&Compiled, Shape, &Histories) -> Result<(), String>) {
    for seed in seeds() {
        let (text, shape) = Maker::program(seed, whole);
        let program = compiled(&text);
        for engine in ENGINES {
            let checked = execute(&program, flows, seed, engine)
                .and_then(|found| ended(&found).and_then(|()| check(&program, shape, &found)));
            if let Err(fault) = checked {
                panic!("seed {seed} under `{}`: {fault}\n{text}", engine.name);
            }
        }
    }
}

/// Whether the flow of the end came last and once, where it came.
fn ended(histories: &Histories) -> Result<(), String> {
    let fault = histories.iter().find(|(_, history)| {
        let ends = history.iter().filter(|event| event.flow == END).count();
        ends > 1 || (ends == 1 && history.last().is_none_or(|last| last.flow != END))
    });
    fault.map_or(Ok(()), |(log, history)| Err(format!("the end did not come last and once on {log}: {history:#?}")))
}

/// What came between the calls of one step.
fn torn(log: &str, history: &[Event], per_session: bool) -> Option<String> {
    let tokens = history.iter().map(|event| event.token);
    for (from, token) in tokens.enumerate() {
        let own = |event: &Event| event.token == token;
        if history[..from].iter().any(own) {
            continue;
        }
        let to = history.iter().rposition(own).unwrap_or(from);
        let writes = history[from..=to].iter().any(|event| own(event) && event.writes);
        let flow = history[from].flow;
        // Within a flow, what only reads may overlap a step that has written.
        let meets = |event: &Event| event.flow != flow && (!per_session || (event.flow - flow) % SESSIONS == 0);
        let other = history[from..=to].iter().find(|event| meets(event) && (writes || event.writes));
        if let Some(other) = other {
            let step = &history[from..=to];
            return Some(format!("{other:?} came between the calls of step {token} on {log}: {step:#?}"));
        }
    }
    None
}

#[test]
fn steps_end_and_nobody_comes_between_their_calls() {
    every_engine(false, FLOWS, |_, shape, histories| {
        let Shape::Steps { per_session } = shape else { return Err("it is no program of steps".into()) };
        let torn = histories.iter().find_map(|(log, history)| {
            let at = LOGS.iter().position(|known| known == log).unwrap_or(0);
            torn(log, history, per_session >> at & 1 == 1)
        });
        torn.map_or(Ok(()), Err)
    });
}

/// All orders of so many flows.
fn orders(flows: i64) -> Vec<Vec<i64>> {
    match flows {
        0 => vec![Vec::new()],
        _ => orders(flows - 1).into_iter().flat_map(|order| with_one_more(&order, flows - 1)).collect(),
    }
}

fn with_one_more(order: &[i64], flow: i64) -> Vec<Vec<i64>> {
    let at = |at: usize| [&order[..at], &[flow], &order[at..]].concat();
    (0..=order.len()).map(at).collect()
}

/// The histories of the flows one after the other, as the reference evaluator has them.
fn serial(program: &Compiled, order: &[i64]) -> Histories {
    let probe = Probe::new(0);
    let library = probe::library(0, probe.clone());
    let mut evaluator = Evaluator::new(program.expr.as_ref().unwrap(), &library).unwrap();
    // A flow that fails has done what stands before.
    order.iter().for_each(|flow| _ = evaluator.run(0, 0, vec![Value::Int(*flow)]));
    if program.graph.as_ref().unwrap().entries[0].end().is_some() {
        evaluator.run(0, AT_END, Vec::new()).unwrap();
    }
    probe.histories()
}

/// Histories without tokens and reads: a flow may read what it would not have come to, for nobody can tell. What its writes
/// saw and what they wrote depends on what it read.
fn comparable(histories: Histories) -> Histories {
    let comparable = histories.into_iter().map(|(log, mut history)| {
        history.retain(|event| event.writes);
        history.iter_mut().for_each(|event| event.token = 0);
        (log, history)
    });
    comparable.collect()
}

#[test]
fn flows_of_one_step_are_as_if_one_ran_after_the_other() {
    every_engine(true, WHOLE_FLOWS, |program, _, histories| {
        let found = comparable(histories.clone());
        let serials: Vec<_> = orders(WHOLE_FLOWS).iter().map(|order| comparable(serial(program, order))).collect();
        if serials.contains(&found) { Ok(()) } else { Err(format!("no order of the flows gives {found:#?}")) }
    });
}
