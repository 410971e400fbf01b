//! Random programs: what the generator makes, and what must hold of all of it.

mod support;

use std::collections::BTreeMap;

use weir_ir::generate::{Case, Recording, batched_case, case, check, constructs, evaluate, find, smaller};
use weir_ir::{lower, parse, print, verify};

/// Number of programs for each property.
const PROGRAMS: u64 = 1_500;

fn cases() -> impl Iterator<Item = Case> {
    (0..PROGRAMS).map(case)
}

fn holds(test: impl Fn(&Case) -> Result<(), String>) {
    (0..PROGRAMS).for_each(|seed| check(seed, &test));
}

#[test]
fn every_generated_program_verifies() {
    let library = Recording::new(0).library();
    for (seed, case) in cases().enumerate() {
        let violations = verify::expr(&case.program, &library);
        assert!(violations.is_empty(), "seed {seed}: {}\n{}", violations[0], print::expr(&case.program));
    }
}

#[test]
fn every_construct_comes_up() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for case in (0..2 * PROGRAMS).map(case) {
        for (name, count) in constructs(&case.program) {
            *counts.entry(name).or_default() += count;
        }
    }
    let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < 5).collect();
    assert!(rare.is_empty(), "too rare: {rare:?}");
    insta::assert_snapshot!(counts.into_keys().collect::<Vec<_>>().join("\n"));
}

#[test]
fn programs_of_batched_calls_verify_and_call_each_batched_function() {
    let library = Recording::new(0).library();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (seed, case) in (0..PROGRAMS).map(batched_case).enumerate() {
        let violations = verify::expr(&case.program, &library);
        assert!(violations.is_empty(), "seed {seed}: {}\n{}", violations[0], print::expr(&case.program));
        for (name, count) in constructs(&case.program) {
            *counts.entry(name).or_default() += count;
        }
    }
    let batched = library.modules["a"].functions.values().filter(|function| function.signature.batch.is_some());
    for name in batched.map(|function| format!("call a.{}", function.signature.name)) {
        assert!(counts.get(&name).is_some_and(|count| *count > 100), "{name}: {counts:?}");
    }
    for name in ["for", "fold", "switch tag", "fail", "atomic", "race", "within"] {
        assert!(counts.get(name).is_some_and(|count| *count > 20), "{name}: {counts:?}");
    }
}

#[test]
fn flows_end_in_every_way_and_often_with_an_answer() {
    let mut answers = 0;
    let mut failures: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases() {
        for result in evaluate(&case, 0).expect("shared values are made").results {
            match result {
                Ok(_) => answers += 1,
                Err(failure) => *failures.entry(failure.kind.name()).or_default() += 1,
            }
        }
    }
    assert!(answers > PROGRAMS, "only {answers} answers, and {failures:?}");
    for kind in ["arithmetic", "limit", "program"] {
        assert!(failures.get(kind).is_some_and(|count| *count > 20), "{kind}: {failures:?}");
    }
}

#[test]
fn the_same_seed_makes_the_same_case_and_the_same_execution() {
    for seed in 0..200 {
        assert_eq!(case(seed), case(seed));
        assert_eq!(evaluate(&case(seed), 7), evaluate(&case(seed), 7));
    }
}

#[test]
fn how_long_functions_wait_changes_nothing() {
    holds(|case| match evaluate(case, 1) == evaluate(case, 2) {
        true => Ok(()),
        false => Err("two waiting times, two executions".into()),
    });
}

#[test]
fn expressions_print_and_parse_back() {
    holds(|case| {
        let text = print::expr(&case.program);
        let parsed = parse::expr(&text).map_err(|error| error.to_string())?;
        if parsed == case.program { Ok(()) } else { Err(format!("parsed back as\n{}", print::expr(&parsed))) }
    });
}

#[test]
fn lowered_graphs_print_and_parse_back() {
    let library = Recording::new(0).library();
    holds(|case| {
        let graph = lower(&case.program, &library);
        let text = print::graph(&graph);
        let parsed = parse::graph(&text).map_err(|error| format!("{error}\n{text}"))?;
        if parsed == graph { Ok(()) } else { Err(format!("parsed back as\n{}", print::graph(&parsed))) }
    });
}

#[test]
fn lowered_graphs_verify() {
    let library = Recording::new(0).library();
    holds(|case| {
        let graph = lower(&case.program, &library);
        match verify::graph(&graph, &library).first() {
            None => Ok(()),
            Some(violation) => Err(format!("{violation}\n{}", print::graph(&graph))),
        }
    });
}

#[test]
fn lowered_graphs_mean_what_their_expressions_mean() {
    holds(|case| {
        let expected = evaluate(case, 0).map_err(|failure| failure.to_string())?;
        let (graph, execution) = support::interpret(case, 0, lower);
        if execution == expected {
            return Ok(());
        }
        Err(format!("evaluated {expected:#?}\ninterpreted {execution:#?}\n{}", print::graph(&graph)))
    });
}

#[test]
fn a_difference_is_shrunk_to_what_shows_it() {
    let shows = |case: &Case| match constructs(&case.program).keys().any(|name| name == "loop") {
        true => Err("has a loop".to_owned()),
        false => Ok(()),
    };
    let found = (0..).find_map(|seed| find(seed, shows)).expect("some program has a loop");
    let lets = found.case.program.entries[0].flows[0].body.lets.len();
    assert!(lets <= 2, "{found}");
    assert_eq!(found.case.inputs.len(), 1);
}

#[test]
fn smaller_cases_differ_from_the_case() {
    for case in (0..50).map(case) {
        assert!(smaller(&case).all(|smaller| smaller != case));
    }
}

/// The deepest program that verifies, in a thread with the stack that engines' threads have by default.
#[test]
fn the_deepest_program_goes_through_everything() {
    let depth = parse::NESTING_MAX - 4;
    let mut text =
        String::from("entry test from a.elements ordered\n  arguments\n    yield (0,)\n  flow f (%0: Bool) -> Int\n");
    let indented = |level: usize, line: &str| format!("{:1$}{line}\n", "", (level + 2) * 2);
    for level in 0..depth / 2 {
        let var = level + 1;
        text += &indented(2 * level, &format!("%{var}: Int = switch %0"));
        text += &indented(2 * level + 1, "otherwise");
    }
    text += &indented(depth, "yield 7");
    for level in (0..depth / 2).rev() {
        text += &indented(2 * level, &format!("yield %{}", level + 1));
    }
    let program = parse::expr(&text).expect("it parses");
    assert_eq!(print::expr(&program), text);
    let library = Recording::new(0).library();
    assert_eq!(verify::expr(&program, &library), []);
    let graph = lower(&program, &library);
    assert_eq!(verify::graph(&graph, &library), []);
    let case = Case { program, inputs: vec![vec![weir_host::Value::Bool(true)]] };
    let expected = evaluate(&case, 0).expect("nothing is shared");
    assert_eq!(expected.results, [Ok(weir_host::Value::Int(7))]);
    assert_eq!(support::interpret(&case, 0, lower).1, expected);
}
