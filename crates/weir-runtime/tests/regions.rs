//! Regions against steps and the reference evaluator: random programs that compute, half of them in slices of one unit.
//!
//! A flow whose nodes are recorded runs in steps. So the same program, with and without a reader of the trace that wants
//! every node, runs in both forms. A third run offers rounds of its loops to other threads at every safe point.

use std::sync::Arc;

use test_support::flows::{Feed, options};
use weir_ir::generate::{
    Case, Execution, Recording, arithmetic_case, computing_case, elements_case, evaluate, find_in, independent_case,
    rounds_case, updating_case,
};
use weir_runtime::{ENGINES, EngineRow, ForkPolicy, Options, SliceLength, independent_parts, start};
use weir_trace::{Detail, EventKind, Recorder};

/// The programs that are tried.
const PROGRAMS: u64 = 150;
/// Programs that once showed a mistake: a number that the next iteration takes was not in its slot; a map was put back into
/// the slot that the value found in it had taken over; a number found in a map was not in its slot for a step after the region.
const REGRESSIONS: [u64; 3] = [201_921, 54_205, 264_071];
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

/// The form in which a program runs.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// As steps, because every node is recorded.
    Steps,
    /// In regions.
    Regions,
    /// In regions that offer rounds to other threads at every safe point.
    Forks,
}

/// Runs the case's flows one after the other.
fn execute(case: &Case, seed: u64, form: Form, engine: &'static EngineRow) -> Result<Outcome, String> {
    let recording = Recording::new(seed);
    let mut library = recording.library();
    let feed = Feed::new();
    feed.put(&mut library, "a", "elements");
    let detail = if form == Form::Steps { Detail::Nodes } else { Detail::Flows };
    let (recorder, reader) = Recorder::new(detail, EVENTS_MAX);
    let is_short = form == Form::Forks || seed.is_multiple_of(2);
    let slice = if is_short { SliceLength::ONE_UNIT } else { SliceLength::default() };
    let forks = match form {
        Form::Forks if seed.is_multiple_of(2) => ForkPolicy::Always,
        Form::Forks => ForkPolicy::AlwaysOnHelpers,
        Form::Steps | Form::Regions => ForkPolicy::AsPlanned,
    };
    // Every third program runs in small regions, which end at places where others do not.
    let usual = options(engine.name, 2);
    let region_size_max = if seed % 3 == 1 { 12 + seed as usize % 16 } else { usual.region_size_max };
    let options = Options { recorder, slice, forks, region_size_max, ..usual };
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

/// Compares the forms of a program with the evaluator.
fn compare(case: Case, seed: u64) {
    let engine = &ENGINES[(seed % ENGINES.len() as u64) as usize];
    let compared = |case: &Case| {
        let mut expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
        let shorter = case.up_to_fault(&expected);
        let case = shorter.as_ref().unwrap_or(case);
        if shorter.is_some() {
            expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
        }
        let executed = |form| {
            let mut outcome = execute(case, seed, form, engine)?;
            if expected.has_fault() {
                // Effects do not wait for faults of earlier calls, see `Op::may_end`.
                outcome.execution.effects.clone_from(&expected.effects);
            }
            Ok::<Outcome, String>(outcome)
        };
        let found = executed(Form::Regions)?;
        if found.execution != expected {
            return Err(format!("evaluated {expected:#?}\nbut under `{}` {found:#?}", engine.name));
        }
        let steps = executed(Form::Steps)?;
        if steps != found {
            return Err(format!("in steps {steps:#?}\nbut in regions {found:#?}"));
        }
        let forked = executed(Form::Forks)?;
        if forked == found { Ok(()) } else { Err(format!("forked {forked:#?}\nbut on one thread {found:#?}")) }
    };
    if let Some(found) = find_in(case, compared) {
        panic!("seed {seed}: {found}");
    }
}

#[test]
fn regions_give_the_answers_effects_and_failures_of_the_evaluator_and_of_steps() {
    for seed in seeds() {
        let case = match seed % 3 {
            0 => computing_case(seed),
            1 => elements_case(seed),
            _ => arithmetic_case(seed),
        };
        compare(case, seed);
    }
}

#[test]
fn rounds_on_several_threads_give_the_answers_and_failures_of_the_evaluator() {
    for seed in seeds() {
        compare(rounds_case(seed), seed);
    }
}

#[test]
fn parts_on_several_threads_give_the_answers_and_failures_of_the_evaluator() {
    for seed in seeds() {
        compare(independent_case(seed), seed);
    }
}

#[test]
fn rounds_of_one_change_give_the_answers_and_failures_of_the_evaluator() {
    for seed in seeds() {
        compare(updating_case(seed), seed);
    }
}

#[test]
fn a_quarter_of_the_programs_has_parts_that_may_run_on_several_threads() {
    let has_parts = |seed: &u64| {
        let (case, mut library) = (independent_case(*seed), Recording::new(*seed).library());
        Feed::new().put(&mut library, "a", "elements");
        let program = weir_ir::optimize(&case.program, &library);
        let found = independent_parts(&program, &library).expect("the program fits the library");
        found.iter().any(|part| part.obstacle.is_none())
    };
    let found = (0..PROGRAMS).filter(has_parts).count();
    assert!(found as u64 * 4 >= PROGRAMS, "{found} of {PROGRAMS}");
}
