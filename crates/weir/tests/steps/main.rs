//! No program deadlocks, and atomic steps exclude each other: random programs are compiled, and their flows run
//! concurrently under every engine, with functions that yield at random, and some that give up their thread while they wait.
//!
//! 1. Every program ends within [`PATIENCE`].
//! 2. In the history of each log, the calls of a step are contiguous, except for concurrent readers, and for steps of
//!    other sessions on logs that are held per session.
//! 3. The flow of `at end` comes last in each log, and once.
//! 4. The stateful calls of an ordered source, also those within steps, keep the order of the flows.
//! 5. If every flow is a single step, the histories are those of the reference evaluator for some order of the flows.
//!
//! The vault is like a log, but outside of the program: its functions are bound to a constraint, which steps also hold.
//!
//! Some logs are per session: the results of a flow then depend only on the flows of its session.
//!
//! `WEIR_STEPS_PROGRAMS` sets the number of programs, `WEIR_STEPS_FROM` the first seed.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod probe;
mod programs;
mod vault;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use probe::{Event, Probe};
use programs::{END, HELD, Maker, SESSIONS, Shape};
use weir::Value;
use weir_compile::Compiled;
use weir_ir::evaluate::Evaluator;
use weir_ir::program::AT_END;
use weir_runtime::{ENGINES, EngineRow, Options, start};
use weir_syntax::{SourceFile, SourceId};

/// Time limit for a program, which takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Default number of programs of each kind.
const PROGRAMS: u64 = 60;

/// Number of concurrent flows in a program of several steps.
const FLOWS: i64 = 6;

/// Number of flows that are single steps; all their orders are tried.
const WHOLE_FLOWS: i64 = 3;

/// Events of each log.
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

/// Runs this number of flows concurrently and returns the histories, or an error if they do not end.
fn execute(
    (program, shape): (&Compiled, Shape),
    flows: i64,
    seed: u64,
    engine: &'static EngineRow,
) -> Result<Histories, String> {
    let probe = Probe::new(seed);
    let library = probe::library(flows, probe.clone());
    // One to three threads: a fault that needs one flow on each of them is likelier if they are few.
    let options = Options { engine, threads: Some(1 + seed as usize % 3), ..Options::default() };
    let running = start(program.graph.as_ref().unwrap(), &library, options).map_err(|error| error.to_string())?;
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(running.wait()));
    let result = end.recv_timeout(PATIENCE).map_err(|_| "it does not end".to_owned())?;
    result.map_err(|failure| failure.to_string())?;
    match probe.out_of_turn() {
        Some(fault) if matches!(shape, Shape::Steps { ordered: true, .. }) => Err(fault),
        _ => Ok(probe.histories()),
    }
}

/// Runs the programs of a kind under every engine.
fn every_engine(whole: bool, flows: i64, check: impl Fn(&Compiled, Shape, &Histories) -> Result<(), String>) {
    for seed in seeds() {
        let (text, shape) = Maker::program(seed, whole);
        let program = compiled(&text);
        for engine in ENGINES {
            let checked = execute((&program, shape), flows, seed, engine)
                .and_then(|found| ended(&found).and_then(|()| check(&program, shape, &found)));
            if let Err(fault) = checked {
                panic!("seed {seed} under `{}`: {fault}\n{text}", engine.name);
            }
        }
    }
}

/// Returns true if the flow of `at end` came last and once.
fn ended(histories: &Histories) -> Result<(), String> {
    let fault = histories.iter().find(|(_, history)| {
        let ends = history.iter().filter(|event| event.flow == END).count();
        ends > 1 || (ends == 1 && history.last().is_none_or(|last| last.flow != END))
    });
    fault.map_or(Ok(()), |(log, history)| Err(format!("the end did not come last and once on {log}: {history:#?}")))
}

/// Returns the events that came between the calls of one step.
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
        // Within a flow, reads may overlap a step that has written.
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
        let Shape::Steps { per_session, .. } = shape else { return Err("it is no program of steps".into()) };
        let torn = histories.iter().find_map(|(log, history)| {
            let at = HELD.iter().position(|known| known == log).unwrap_or(0);
            torn(log, history, per_session >> at & 1 == 1)
        });
        torn.map_or(Ok(()), Err)
    });
}

/// Returns all orders of this number of flows.
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

/// Returns the histories of the flows in sequence, from the reference evaluator.
fn serial(program: &Compiled, order: &[i64]) -> Histories {
    let probe = Probe::new(0);
    let library = probe::library(0, probe.clone());
    let mut evaluator = Evaluator::new(program.expr.as_ref().unwrap(), &library).unwrap();
    // A failed flow has executed everything before the failure.
    order.iter().for_each(|flow| _ = evaluator.run(0, 0, vec![Value::Int(*flow)]));
    if program.graph.as_ref().unwrap().entries[0].end().is_some() {
        evaluator.run(0, AT_END, Vec::new()).unwrap();
    }
    probe.histories()
}

/// Returns histories without tokens and reads. A flow may read values that it would not have reached, which is not
/// observable. The effects of its writes depend on its reads.
fn comparable(histories: Histories) -> Histories {
    let comparable = histories.into_iter().map(|(log, mut history)| {
        history.retain(|event| event.writes);
        history.iter_mut().for_each(|event| event.token = 0);
        (log, history)
    });
    let mut comparable: Histories = comparable.collect();
    // Sessions may create their logs in any order.
    comparable.sort();
    comparable
}

#[test]
fn flows_of_one_step_are_as_if_one_ran_after_the_other() {
    every_engine(true, WHOLE_FLOWS, |program, _, histories| {
        let found = comparable(histories.clone());
        let serials: Vec<_> = orders(WHOLE_FLOWS).iter().map(|order| comparable(serial(program, order))).collect();
        if serials.contains(&found) { Ok(()) } else { Err(format!("no order of the flows gives {found:#?}")) }
    });
}
