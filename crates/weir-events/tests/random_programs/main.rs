//! Random programs against an exhaustive model: every outcome is one of the model's, and nearly all of them occur.
//!
//! By default each program runs a few times. `WEIR_EVENTS_RUNS=10000000` spreads this many runs over the programs and
//! demands that nearly all outcomes of the model are seen; `WEIR_EVENTS_SEED` chooses other interleavings for them.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![allow(clippy::print_stderr, reason = "a long run reports its coverage")]

#[path = "../common/mod.rs"]
mod common;
mod model;
mod program;
mod run;
mod state;

use std::collections::BTreeSet;

use program::{Kind, Random, program};

/// Programs with more states are left out.
const STATES_MAX: usize = 500;

/// The part of the model's outcomes that many runs must show, in percent.
const COVERAGE_MIN: usize = 97;

/// The number of runs of each program from which on the coverage counts.
const RUNS_FOR_COVERAGE: usize = 1_000;

/// A long run reports after this many programs how far it is.
const PROGRAMS_PER_LINE: usize = 50;

/// Runs of each program, as threads and as tasks.
struct Runs {
    threads: usize,
    tasks: usize,
}

fn runs(programs: usize) -> Runs {
    match number_from("WEIR_EVENTS_RUNS") {
        None => Runs { threads: 2, tasks: 10 },
        Some(total) => Runs { threads: total / programs / 2, tasks: total / programs / 2 },
    }
}

fn number_from(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

/// Runs the first programs of a kind that are small enough, and compares their outcomes with the model's.
fn compare(kind: Kind, programs: usize) {
    let Runs { threads, tasks } = runs(programs);
    let mut random = Random(kind as u64 + 2 * number_from("WEIR_EVENTS_SEED").unwrap_or(0) as u64);
    let (mut expected, mut seen, mut compared) = (0, 0, 0);
    let mut seeds = 0..;
    while compared < programs {
        let seed = seeds.next().unwrap();
        let program = program(seed, kind);
        let Some(outcomes) = program.outcomes(STATES_MAX) else { continue };
        let mut results = BTreeSet::new();
        for _ in 0..tasks {
            let result = run::as_tasks(&program, &mut random);
            assert!(outcomes.last.contains(&result), "seed {seed} as tasks: {result:?} of {program:#?}");
            results.insert(result);
        }
        for _ in 0..threads {
            match run::on_threads(&program, &outcomes, &mut random) {
                Ok(result) => _ = results.insert(result),
                Err(result) => panic!("seed {seed} on threads: {result:?} of {program:#?}"),
            }
        }
        expected += outcomes.last.len();
        seen += outcomes.last.intersection(&results).count();
        compared += 1;
        if compared % PROGRAMS_PER_LINE == 0 && tasks + threads >= RUNS_FOR_COVERAGE {
            let runs = compared * (tasks + threads);
            eprintln!("{kind:?}: {compared} of {programs} programs, {runs} runs, {seen} of {expected} outcomes seen");
        }
    }
    eprintln!("{kind:?}: {programs} programs of {} seeds, {seen} of {expected} outcomes seen", seeds.start);
    let is_covered = seen * 100 >= expected * COVERAGE_MIN;
    assert!(is_covered || tasks + threads < RUNS_FOR_COVERAGE, "{seen} of {expected} outcomes seen");
}

#[test]
fn synchronous_programs_have_the_outcomes_of_the_model() {
    compare(Kind::Synchronous, 2_000);
}

#[test]
fn asynchronous_programs_have_the_outcomes_of_the_model() {
    compare(Kind::Asynchronous, 1_500);
}
