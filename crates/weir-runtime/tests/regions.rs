//! Regions against steps and the reference evaluator: random programs that compute, half of them in slices of one unit.
//!
//! A flow whose nodes are recorded runs in steps. So the same program, with and without a reader of the trace that wants
//! every node, runs in both forms.

use std::sync::Arc;

use test_support::flows::{Feed, options};
use weir_ir::generate::{
    Case, Execution, Recording, arithmetic_case, computing_case, elements_case, evaluate, find_in,
};
use weir_runtime::{ENGINES, EngineRow, Options, SliceLength, start};
use weir_trace::{Detail, EventKind, Recorder};

/// The programs that are tried.
const PROGRAMS: u64 = 150;
/// Programs that once showed a mistake: a number that the next iteration takes was not in its slot; a map was put back into
/// the slot that the value found in it had taken over.
const REGRESSIONS: [u64; 2] = [201_921, 54_205];
/// The events of one execution that a test keeps.
const EVENTS_MAX: usize = 4_000;

/// Returns the number of an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> impl Iterator<Item = u64> {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    (from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS)).chain(REGRESSIONS)
}

/// The outcome of an execution: results, effects, and the places of failures.
#[derive(Debug, PartialEq)]
struct Outcome {
    execution: Execution,
    places: Vec<Arc<str>>,
}

/// Runs the case's flows one after the other, in steps if every node is recorded.
fn execute(case: &Case, seed: u64, detail: Detail, engine: &'static EngineRow) -> Result<Outcome, String> {
    let recording = Recording::new(seed);
    let mut library = recording.library();
    let feed = Feed::new();
    feed.put(&mut library, "a", "elements");
    let (recorder, reader) = Recorder::new(detail, EVENTS_MAX);
    let slice = if seed.is_multiple_of(2) { SliceLength::ONE_UNIT } else { SliceLength::default() };
    let options = Options { recorder, slice, ..options(engine.name, 2) };
    let running =
        start(&weir_ir::optimize(&case.program, &library), &library, options).map_err(|error| error.to_string())?;
    let mut places = Vec::new();
    let mut results = Vec::new();
    for inputs in &case.inputs {
        results.push(feed.run(inputs.clone()));
        places.extend(reader.take().into_iter().filter_map(|event| match event.kind {
            EventKind::FlowFailed { path, .. } => Some(path),
            _ => None,
        }));
    }
    drop(feed);
    running.wait().map_err(|failure| failure.to_string())?;
    Ok(Outcome { execution: Execution { results, effects: recording.effects() }, places })
}

#[test]
fn regions_give_the_answers_effects_and_failures_of_the_evaluator_and_of_steps() {
    for seed in seeds() {
        let engine = &ENGINES[(seed % ENGINES.len() as u64) as usize];
        let compared = |case: &Case| {
            let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            let found = execute(case, seed, Detail::Flows, engine)?;
            if found.execution != expected {
                return Err(format!("evaluated {expected:#?}\nbut under `{}` {found:#?}", engine.name));
            }
            let steps = execute(case, seed, Detail::Nodes, engine)?;
            if steps == found { Ok(()) } else { Err(format!("in steps {steps:#?}\nbut in regions {found:#?}")) }
        };
        let case = match seed % 3 {
            0 => computing_case(seed),
            1 => elements_case(seed),
            _ => arithmetic_case(seed),
        };
        if let Some(found) = find_in(case, compared) {
            panic!("seed {seed}: {found}");
        }
    }
}
