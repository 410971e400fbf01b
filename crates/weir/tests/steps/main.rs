//! Programs cannot deadlock, and atomic steps are isolated: random programs are compiled, and their flows run
//! concurrently under every engine, with functions that yield their thread at random.
//!
//! 1. Every program ends within [`PATIENCE`].
//! 2. In the history of each log, the calls of each step are contiguous. Other readers may come between readers, and
//!    steps of other sessions between steps that hold the log per session.
//! 3. The `at end` flow comes last in each log, and once.
//! 4. If each flow is a single step, the histories are those of the reference evaluator for some order of the flows.
//!
//! Some logs are declared per session: what a flow reads there depends only on the flows of its session.
//!
//! `WEIR_STEPS_PROGRAMS` sets the number of programs that are tried, `WEIR_STEPS_FROM` the first seed.
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

/// The time after which a program counts as deadlocked; each takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The default number of programs of each kind that are tried.
const PROGRAMS: u64 = 60;

/// The number of concurrent flows of a program of several steps.
const FLOWS: i64 = 6;

/// The number of flows if each is a single step; all their orders are tried.
const WHOLE_FLOWS: i64 = 3;

/// The history of each log.
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

/// Runs this many flows at once and returns the histories; fails if the flows do not end.
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

/// Checks that the `at end` flow appears last and once, if it appears.
fn ended(histories: &Histories) -> Result<(), String> {
    let fault = histories.iter().find(|(_, history)| {
        let ends = history.iter().filter(|event| event.flow == END).count();
        ends > 1 || (ends == 1 && history.last().is_none_or(|last| last.flow != END))
    });
    fault.map_or(Ok(()), |(log, history)| Err(format!("the end did not come last and once on {log}: {history:#?}")))
}

/// Returns a call that came between the calls of one step.
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
        // Within a flow, a read may overlap a step that has written.
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

/// Returns all orders of this many flows.
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
    // A flow that fails has performed all earlier calls.
    order.iter().for_each(|flow| _ = evaluator.run(0, 0, vec![Value::Int(*flow)]));
    if program.graph.as_ref().unwrap().entries[0].end().is_some() {
        evaluator.run(0, AT_END, Vec::new()).unwrap();
    }
    probe.histories()
}

/// Returns the histories without tokens and reads: a flow may perform a read that the evaluator would not have reached,
/// because that has no effect. The values that its writes see and write depend on its reads.
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
