//! Random programs that mostly call batched functions, compared with the reference evaluator: on the thread of the test, and
//! under the engines with several flows at a time, whose calls meet in batches, and with random latencies.
//!
//! ```sh
//! WEIR_BATCH_PROGRAMS=100000 cargo test --release -p weir-runtime --test random_batches
//! ```

use std::cell::Cell;
use std::sync::Arc;

use test_support::flows::random_clock::RandomClock;
use test_support::flows::{Feed, options};
use weir_host::{Failure, FailureKind, Value};
use weir_ir::generate::{
    Case, Execution, Recording, batched_case, evaluate, evaluate_many, evaluated_reads, find_in, left_loops_case,
};
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength, engine, run_on_calling_thread, start};
use weir_trace::{BatchDeparture, Detail, EventKind, Recorder, TraceReader};

/// The programs of each test.
const PROGRAMS: u64 = 210;

/// Programs that once showed a mistake: an end of the flow left the fork of a later region to an earlier one; a batch waited for
/// ever for a call that had joined another one; a flow got the answers of its calls in the order of another flow's; a round changed a
/// resource before calls of the round before, which were placed in a batch by a `for` of their own.
const REGRESSIONS: [u64; 4] = [10_046, 79_312, 126_970, 400_087];

/// The events of one execution that a test keeps.
const EVENTS_MAX: usize = 1_000;

/// The flows of a program that are under way together.
const TOGETHER: usize = 9;

/// The lengths of slices: usual ones, and ones that are over at each safe point.
const SLICES: [SliceLength; 2] = [SliceLength { quantum: 1_000, quanta: 10 }, SliceLength::ONE_UNIT];

/// The forms in which a program runs: as steps, because every node is recorded; in regions, in slices of the usual length and
/// of one unit; and with forks at every safe point.
const FORMS: [(Detail, SliceLength, ForkPolicy); 4] = [
    (Detail::Nodes, SLICES[0], ForkPolicy::AsPlanned),
    (Detail::Flows, SLICES[0], ForkPolicy::AsPlanned),
    (Detail::Flows, SLICES[1], ForkPolicy::AsPlanned),
    (Detail::Flows, SLICES[1], ForkPolicy::AlwaysInPlace),
];

/// Returns the largest number of elements of a strip for the program of a seed: the usual one for one program of four, and so few
/// for the others that their short lists have several strips.
fn strip_max(seed: u64) -> usize {
    if seed.is_multiple_of(4) { Options::default().strip_max } else { seed as usize % 4 }
}

/// Compares two programs of each of the seeds that the environment names with the evaluator. The second one has loops that failures
/// leave.
fn try_programs(compare: impl Fn(&Case, u64) -> Result<(), String>) {
    let variable = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let from = variable("WEIR_BATCH_FROM").unwrap_or(0);
    for seed in (from..from + variable("WEIR_BATCH_PROGRAMS").unwrap_or(PROGRAMS)).chain(REGRESSIONS) {
        for case in [batched_case(seed), left_loops_case(seed)] {
            if let Some(found) = find_in(case, |case| compare(case, seed)) {
                panic!("seed {seed}: {found}");
            }
        }
    }
}

/// Returns the case up to the first flow in which a call refuses its argument, and its execution.
fn up_to_fault(case: &Case, seed: u64) -> Result<(Case, Execution), String> {
    let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
    match case.up_to_fault(&expected) {
        Some(shorter) => up_to_fault(&shorter, seed),
        None => Ok((case.clone(), expected)),
    }
}

fn same(expected: &Execution, mut found: Execution, how: &str) -> Result<(), String> {
    if expected.has_fault() {
        // Effects do not wait for faults of earlier calls, see `Op::may_end`.
        found.effects.clone_from(&expected.effects);
    }
    if found == *expected { Ok(()) } else { Err(format!("evaluated {expected:#?}\nbut {how} {found:#?}")) }
}

/// The numbers of batches of each kind that executions had.
#[derive(Default)]
struct Reached {
    /// Of several calls.
    several: Cell<u64>,
    /// With equal calls.
    equal: Cell<u64>,
    /// That a fragile function had to answer in parts.
    split: Cell<u64>,
    /// That flows have sent themselves.
    in_place: Cell<u64>,
}

impl Reached {
    fn add(&self, reader: &TraceReader) {
        for event in reader.take() {
            if let EventKind::BatchAnswered { function, calls, requests, sent_because, .. } = event.kind {
                let count = |of: &Cell<u64>, is: bool| of.set(of.get() + u64::from(is));
                count(&self.several, calls > 1);
                count(&self.equal, calls > requests);
                count(&self.split, requests > 2 && function.contains("fragile"));
                count(&self.in_place, sent_because == BatchDeparture::InPlace);
            }
        }
    }
}

#[test]
fn programs_of_batched_calls_give_the_evaluators_answers_and_effects_in_every_form() {
    let engine = engine("thread-per-flow").expect("the engine");
    let reached = Reached::default();
    try_programs(|case, seed| {
        let (case, expected) = up_to_fault(case, seed)?;
        let program = weir_ir::optimize(&case.program, &Recording::new(seed).library());
        for (detail, slice, forks) in FORMS {
            let recording = Recording::new(seed);
            let (recorder, reader) = Recorder::new(detail, EVENTS_MAX);
            let (threads, strip_max) = (Some(2), strip_max(seed));
            let options = Options { engine, threads, recorder, slice, forks, strip_max, ..Options::default() };
            let results = run_on_calling_thread(&program, &recording.library(), &options, case.inputs.iter().cloned());
            let results = results.map_err(|error| error.to_string())?;
            reached.add(&reader);
            let found = Execution { results, effects: recording.effects() };
            same(&expected, found, &format!("in the form {detail:?}, {slice:?}, {forks:?}"))?;
        }
        Ok(())
    });
    let Reached { several, equal, split, in_place } = reached;
    let [several, equal, split, in_place] = [several, equal, split, in_place].map(Cell::into_inner);
    let found = format!(
        "{several} batches of several calls, {equal} with equal ones, {split} split, {in_place} sent by flows themselves"
    );
    assert!(several > equal && equal > 10 && split > 10 && in_place > 10, "{found}");
    println!("{found}");
}

/// A flow may read what stands behind a failure, but nothing behind a `return` or in an arm that is not taken.
#[test]
fn flows_that_do_not_fail_read_only_what_the_evaluator_reads() {
    let engine = engine("thread-per-flow").expect("the engine");
    let succeeded = Cell::new(0);
    try_programs(|case, seed| {
        if weir_ir::print::expr(&case.program).contains("= race") {
            // The evaluator runs the body that wins, an engine all of them.
            return Ok(());
        }
        let Some(expected) = evaluated_reads(case, seed).map_err(|failure| failure.to_string())? else { return Ok(()) };
        succeeded.set(succeeded.get() + 1);
        let program = weir_ir::optimize(&case.program, &Recording::new(seed).library());
        for (detail, slice, forks) in FORMS {
            let recording = Recording::new(seed);
            let recorder = Recorder::new(detail, EVENTS_MAX).0;
            let (threads, strip_max) = (Some(2), strip_max(seed));
            let options = Options { engine, threads, recorder, slice, forks, strip_max, ..Options::default() };
            run_on_calling_thread(&program, &recording.library(), &options, case.inputs.iter().cloned())
                .map_err(|error| error.to_string())?;
            if let Some(read) = recording.reads().difference(&expected).next() {
                return Err(format!("the flows read `{read}` in the form {detail:?}, {slice:?}, {forks:?}"));
            }
        }
        Ok(())
    });
    assert!(succeeded.get() > 20, "{} programs without failures", succeeded.get());
}

/// Returns the options of a program under one of the engines, with everything else varied too.
fn varied(seed: u64) -> Options {
    let row = &ENGINES[seed as usize % ENGINES.len()];
    let round = seed as usize / ENGINES.len();
    let (slice, strip_max) = (SLICES[round % 2], strip_max(seed / 3));
    let options = Options { slice, strip_max, ..options(row.name, 1 + round % 3) };
    if round % 4 < 2 { Options { platform: Arc::new(RandomClock::new(seed)), ..options } } else { options }
}

/// Runs flows of a case under an engine: with the rows of its inputs in turn.
fn run(case: &Case, recording: &Recording, options: Options, together: bool) -> Result<Execution, String> {
    let mut library = recording.library();
    let feed = Feed::new();
    feed.put(&mut library, "a", "elements");
    let graph = weir_ir::optimize(&case.program, &library);
    let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
    let answered = |answers: Vec<Option<Result<Value, Failure>>>| {
        answers.into_iter().map(|answer| answer.ok_or("a flow does not end")).collect::<Result<Vec<_>, _>>()
    };
    let results = if together {
        let rows = case.inputs.iter().cycle().take(TOGETHER);
        answered(feed.answers(rows.map(|row| feed.begin(row.clone())).collect()))?
    } else {
        let one = |row: &Vec<Value>| feed.answers(vec![feed.begin(row.clone())]);
        answered(case.inputs.iter().flat_map(one).collect())?
    };
    drop(feed);
    running.wait().map_err(|failure| failure.to_string())?;
    Ok(Execution { results, effects: recording.effects() })
}

#[test]
fn engines_give_the_evaluators_answers_and_effects_of_batched_calls() {
    try_programs(|case, seed| {
        let (case, expected) = up_to_fault(case, seed)?;
        let options = varied(seed);
        let how = format!("under `{}`, {:?}", options.engine.name, options.slice);
        same(&expected, run(&case, &Recording::new(seed), options, false)?, &how)
    });
}

#[test]
fn flows_whose_calls_meet_in_batches_give_the_evaluators_answers() {
    try_programs(|case, seed| {
        let mut expected = evaluate_many(case, seed, TOGETHER).map_err(|failure| failure.to_string())?;
        let options = varied(seed);
        let how = format!("together under `{}`, {:?}", options.engine.name, options.slice);
        let mut found = run(case, &Recording::of_many(seed), options, true)?;
        // The flow in which a call refuses its argument may have executed stateful calls behind that, which later flows see.
        let refused = |result: &Result<Value, Failure>| {
            result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Argument)
        };
        if let Some(at) = expected.results.iter().position(refused) {
            expected.results.truncate(at + 1);
            found.results.truncate(at + 1);
        }
        same(&expected, found, &how)
    });
}
