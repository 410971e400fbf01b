//! Very many random programs that compute, in steps, in regions and with forks, compared with the reference evaluator. They run
//! on the thread of the test, because the start of an engine takes longer than they do; `regions.rs` does the same under
//! the engines.
//!
//! ```sh
//! WEIR_REGION_PROGRAMS=20000 cargo test --release -p weir-runtime --test many_regions     # of each of six kinds
//! ```

use std::sync::Arc;

use weir_host::{Library, Value};
use weir_ir::generate::{
    Case, Execution, Recording, arithmetic_case, computing_case, elements_case, evaluate, find_in, independent_case,
    rounds_case, updating_case,
};
use weir_ir::graph::Program;
use weir_runtime::{ForkPolicy, Options, SliceLength, engine, run_on_calling_thread};
use weir_trace::{Detail, EventKind, Recorder};

/// The programs of each kind that are tried.
const PROGRAMS: u64 = 400;
/// The events of one execution that a test keeps.
const EVENTS_MAX: usize = 4_000;

/// A form in which a program runs: what is recorded, slices, forks, and the size from which on a region ends.
type Form = (Detail, SliceLength, ForkPolicy, usize);

/// The forms: as steps, because every node is recorded; in regions, in slices of the usual length and of one unit; with forks
/// at every safe point; and in small regions, which end at places where others do not.
const FORMS: [Form; 5] = [
    (Detail::Nodes, SliceLength::ONE_UNIT, ForkPolicy::AsPlanned, usize::MAX),
    (Detail::Flows, SliceLength { quantum: 1_000, quanta: 10 }, ForkPolicy::AsPlanned, usize::MAX),
    (Detail::Flows, SliceLength::ONE_UNIT, ForkPolicy::AsPlanned, usize::MAX),
    (Detail::Flows, SliceLength::ONE_UNIT, ForkPolicy::AlwaysInPlace, usize::MAX),
    (Detail::Flows, SliceLength { quantum: 10, quanta: 1 }, ForkPolicy::AlwaysInPlace, 0),
];

/// The sizes of small regions: different ones, so that their ends come everywhere.
const SMALL_REGIONS: [usize; 4] = [9, 14, 22, 40];

/// Returns the form with the size of regions that a program is tried with.
fn form_for((detail, slice, forks, size): Form, seed: u64) -> Form {
    let small = SMALL_REGIONS[(seed % SMALL_REGIONS.len() as u64) as usize];
    (detail, slice, forks, if size == 0 { small } else { size })
}

/// Returns the number of an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a program in a form; returns its results and effects, and the places of failures.
fn execute(
    case: &Case,
    program: &Program,
    recording: &Recording,
    library: &Library,
    (detail, slice, forks, region_size_max): Form,
) -> Result<(Execution, Vec<Arc<str>>), String> {
    let (recorder, reader) = Recorder::new(detail, EVENTS_MAX);
    // This engine runs calls that block on the thread of their flow.
    let engine = engine("thread-per-flow").expect("the engine");
    let options = Options { engine, threads: Some(2), recorder, slice, forks, region_size_max, ..Options::default() };
    let mut places = Vec::new();
    let mut take_places = || {
        let failures = reader.take().into_iter().filter_map(|event| match event.kind {
            EventKind::FlowFailed { path, .. } => Some(path),
            _ => None,
        });
        places.extend(failures);
    };
    let inputs = case.inputs.iter().inspect(|_| take_places()).cloned();
    let results = run_on_calling_thread(program, library, &options, inputs).map_err(|error| error.to_string())?;
    take_places();
    Ok((Execution { results, effects: recording.effects() }, places))
}

/// Compares the forms of a program with the evaluator.
fn compare(case: &Case, seed: u64) -> Result<(), String> {
    let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
    if let Some(shorter) = case.up_to_fault(&expected) {
        return compare(&shorter, seed);
    }
    let program = weir_ir::optimize(&case.program, &Recording::new(seed).library());
    let mut first: Option<Vec<Arc<str>>> = None;
    for form in FORMS.map(|form| form_for(form, seed)) {
        let recording = Recording::new(seed);
        let (mut found, places) = execute(case, &program, &recording, &recording.library(), form)?;
        if expected.has_fault() {
            // Effects do not wait for faults of earlier calls, see `Op::may_end`.
            found.effects.clone_from(&expected.effects);
        }
        if found != expected {
            return Err(format!(
                "optimized {}\nevaluated {expected:#?}\nbut in the form {form:?} {found:#?}",
                weir_ir::print::graph(&program)
            ));
        }
        let expected_places = first.get_or_insert_with(|| places.clone());
        if *expected_places != places {
            return Err(format!("failed at {expected_places:?}, but in the form {form:?} at {places:?}"));
        }
    }
    Ok(())
}

fn try_programs(case: fn(u64) -> Case) {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    for seed in from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS) {
        if let Some(found) = find_in(case(seed), |case| compare(case, seed)) {
            panic!("seed {seed}: {found}");
        }
    }
}

#[test]
fn programs_that_compute_give_the_evaluators_answers_in_every_form() {
    try_programs(computing_case);
}

#[test]
fn programs_over_elements_give_the_evaluators_answers_in_every_form() {
    try_programs(elements_case);
}

#[test]
fn arithmetic_gives_the_evaluators_answers_in_every_form() {
    try_programs(arithmetic_case);
}

#[test]
fn rounds_that_may_be_forked_give_the_evaluators_answers_in_every_form() {
    try_programs(rounds_case);
}

#[test]
fn parts_that_may_be_forked_give_the_evaluators_answers_in_every_form() {
    try_programs(independent_case);
}

#[test]
fn rounds_of_one_change_give_the_evaluators_answers_in_every_form() {
    try_programs(updating_case);
}

/// The last `fold` needs what the rounds of the second `for` need too, and may run on another thread as soon as these have
/// ended: the slot of the counter, which can only be moved, is used again, so that it may not run beside them.
const NEEDED_BY_ROUNDS: &str = "\
entry test from a.elements ordered
  arguments
    yield (0,)
  flow f (%0: List(Int)) -> List(Int)
    %1: count.Counter = call count.new at count.new (0)
    %2: List(Int) = for %3: Int in %0
      yield %3
    %4: List(Int) = for %5: Int in [1, 2, 3, 4, 5, 6]
      %6: List(Int) = fold %2 from %2 as %7: List(Int), %8: Int
        %9: List(Int) = copy([])
        yield %9
      yield %5
    %10: List(Int) = for %11: Int in %4
      yield %11
    %12: List(Int) = fold [] from %2 as %13: List(Int), %14: Int
      %15: List(Int) = copy([])
      yield %15
    %16: List(Int) = add(%10, %12)
    yield %16
";

/// The last `for` may run beside the one before it, and lies in another part, which begins with the counter: both need the counter,
/// which can only be moved.
const MOVE_ONLY_IN_PARTS: &str = "\
entry test from a.elements ordered
  arguments
    yield (0,)
  flow f (%0: List(Int)) -> List(Int)
    %1: List(Int) = for %2: Int in %0
      yield %2
    %3: count.Counter = call count.new at count.new (0)
    %4: List(Int) = for %5: Int in %0
      %6: List(Int) = for %7: Int in [2, 3]
        %8: List(Int) = for %9: Int in [1, 2, 3]
          yield %9
        %10: List(Int) = for %11: Int in [4, 5]
          %12: Int = call count.value at count.value (%3, %7)
          yield %12
        yield %7
      yield %5
    %13: List(Int) = add(%1, %4)
    yield %13
";

#[test]
fn a_part_has_what_can_only_be_moved_and_a_part_around_it_needs_too() {
    let program = weir_ir::parse::expr(MOVE_ONLY_IN_PARTS).expect("the program can be parsed");
    for length in 0..6 {
        let list = Value::list((0..length).map(Value::Int).collect());
        let case = Case { program: program.clone(), inputs: vec![vec![list]] };
        assert_eq!(compare(&case, 0), Ok(()), "{length}");
    }
}

#[test]
fn rounds_that_nobody_has_begun_have_what_a_later_part_needs() {
    let program = weir_ir::parse::expr(NEEDED_BY_ROUNDS).expect("the program can be parsed");
    for length in 0..6 {
        let list = Value::list((0..length).map(Value::Int).collect());
        let case = Case { program: program.clone(), inputs: vec![vec![list]] };
        compare(&case, 0).expect("the evaluator's answers");
    }
}

/// The first loop fails. What stands before it in the text, and waits for a lock, needs a text that the second loop needs too,
/// which may run beside the first one.
const NEEDED_BESIDE: &str = "\
shared counter: count.Counter
  %0: count.Counter = call count.new at count.new (1000)
  yield %0
entry test from a.elements ordered
  arguments
    yield (0,)
  flow f (%0: List(Text), %1: (Text, Int)) -> Text
    %2: Text = field.0(%1)
    %3: Text = fold [1] from \"a\" as %4: Text, %5: Int
      %6: count.Counter = atomic (write shared counter)
        %7: count.Counter = call count.new at count.new#2 (0)
        yield %7
      yield %4
    %8: Text = add(%3, %2)
    %9: () = loop () at most 4 as %10: ()
      %11: ((), Bool) = copy(((), false))
      yield %11
    %12: () = loop %9 at most 5 as %13: ()
      %14: List(Text) = list(%2)
      %15: List(Text) = add(%0, %14)
      yield ((), true)
    yield %8
";

#[test]
fn a_part_leaves_what_steps_beside_its_region_need() {
    let program = weir_ir::parse::expr(NEEDED_BESIDE).expect("the program can be parsed");
    let input = vec![Value::list(Vec::new()), Value::Record([Value::text("b"), Value::Int(2)].into())];
    compare(&Case { program, inputs: vec![input] }, 0).expect("the evaluator's answers");
}

/// Returns the number of programs of a kind whose listing has such a line.
fn programs_with(case: fn(u64) -> Case, is_it: impl Fn(&str) -> bool) -> usize {
    let has_line = |seed: &u64| {
        let library = Recording::new(*seed).library();
        let program = weir_ir::optimize(&case(*seed).program, &library);
        let listing = weir_runtime::regions(&program, &library).expect("the program can be prepared");
        listing.lines().any(&is_it)
    };
    (0..PROGRAMS).filter(has_line).count()
}

#[test]
fn the_programs_have_keys_that_are_read_in_their_elements() {
    // As in `look_up s6, (r0 of s3).0`.
    let reads_in_place = |line: &str| {
        let is_instruction = line.contains(" look_up ") || line.contains(" replace ");
        is_instruction && line.contains(" of s") && line.contains(").")
    };
    assert!(programs_with(elements_case, reads_in_place) > 0);
}

#[test]
fn the_programs_have_look_ups_that_update_entries() {
    // As in `switch look_up s6, r3, push r1 ->10: Tag(1) ->5, Tag(0) ->7`.
    let updates = |change: &'static str| move |line: &str| line.contains(" look_up ") && line.contains(change);
    for (change, least) in [(", add r", 20), (", push r", 15), (", push s", 5)] {
        let programs = programs_with(updating_case, updates(change));
        assert!(programs >= least, "{programs} programs have {change}");
    }
}

#[test]
fn the_programs_have_rounds_that_run_at_once() {
    // As in `rounds s4[r2] = r3, r2 += r5, while r2 < r6`, `rounds push s4, r3` and `rounds push s4, data.mixed r3, r3 = element`.
    for (effect, of_elements) in
        [("] = r", false), ("push s", false), (", data.mixed", true), (", data.is_odd", true), (", data.strict", true)]
    {
        let is_it = |line: &str| line.contains(effect) && line.ends_with(" = element") == of_elements;
        let programs = programs_with(updating_case, |line| line.contains(" rounds ") && is_it(line));
        assert!(programs >= 15, "{programs} programs have {effect}");
    }
}

#[test]
fn the_programs_have_copies_at_the_end_of_a_round() {
    // As in `again_unless_less r3, r9, r5, r1 = r5, ->4`.
    let carries = |line: &str| line.contains(" again_unless") && line.contains(" = ");
    assert!(programs_with(computing_case, carries) > 0);
}
