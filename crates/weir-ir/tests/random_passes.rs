//! Random programs before and after each pass: the same answers, the same failures and the same effects in the same order.
//!
//! `WEIR_PASS_PROGRAMS` says how many programs each pass is tried on, alone and in the order of the list, and
//! `WEIR_PASS_FROM` from which seed on. A difference is shrunk to a program that a person can read.

mod support;

use std::collections::BTreeMap;

use weir_ir::generate::{
    Case, Recording, batched_case, evaluate, find_in, left_loops_case, rewritable_case, updating_case,
};
use weir_ir::passes::{EXPR_PASSES, ExprPass, GRAPH_PASSES, optimize_with, run};
use weir_ir::{passes, print, verify};

/// Default number of programs for each pass.
const PROGRAMS: u64 = 1_000;

/// The kinds of programs: with much to rewrite, with calls that may gather, in loops that failures leave too, with maps whose entries
/// change.
const CASES: [fn(u64) -> Case; 4] = [rewritable_case, batched_case, left_loops_case, updating_case];

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let from = number("WEIR_PASS_FROM").unwrap_or(0);
    from..from + number("WEIR_PASS_PROGRAMS").unwrap_or(PROGRAMS)
}

fn holds(test: impl Fn(&Case) -> Result<(), String>) {
    for seed in seeds() {
        for case in CASES {
            if let Some(found) = find_in(case(seed), &test) {
                panic!("seed {seed}: {found}");
            }
        }
    }
}

/// Returns the case after a pass.
fn after(case: &Case, pass: &ExprPass) -> Case {
    let mut rewritten = case.clone();
    run(pass, &mut rewritten.program, &Recording::new(0).library());
    rewritten
}

fn same(before: &Case, after: &Case, pass: &str) -> Result<(), String> {
    if let Some(violation) = verify::expr(&after.program, &Recording::new(0).library()).first() {
        return Err(format!("`{pass}`: {violation}\n{}", print::expr(&after.program)));
    }
    let wanted = evaluate(before, 0).map_err(|failure| failure.to_string())?;
    let found = evaluate(after, 0).map_err(|failure| failure.to_string())?;
    if found == wanted {
        return Ok(());
    }
    Err(format!("`{pass}` makes\n{found:#?} of\n{wanted:#?}\n{}", print::expr(&after.program)))
}

#[test]
fn each_pass_alone_keeps_what_a_program_means() {
    for pass in EXPR_PASSES {
        holds(|case| same(case, &after(case, pass), pass.name));
    }
}

#[test]
fn the_passes_in_their_order_keep_what_a_program_means() {
    holds(|case| {
        let mut rewritten = case.clone();
        for pass in EXPR_PASSES {
            rewritten = after(&rewritten, pass);
            same(case, &rewritten, pass.name)?;
        }
        Ok(())
    });
}

#[test]
fn the_passes_twice_in_their_order_keep_what_a_program_means() {
    holds(|case| {
        let passes = EXPR_PASSES.iter().chain(EXPR_PASSES);
        let rewritten = passes.fold(case.clone(), |case, pass| after(&case, pass));
        same(case, &rewritten, "all passes twice")
    });
}

#[test]
fn graphs_behind_all_passes_mean_what_their_programs_mean() {
    holds(|case| {
        let wanted = evaluate(case, 0).map_err(|failure| failure.to_string())?;
        let (graph, found) = support::interpret(case, 0, passes::optimize);
        let violations = verify::graph(&graph, &Recording::new(0).library());
        if let Some(violation) = violations.first() {
            return Err(format!("{violation}\n{}", print::graph(&graph)));
        }
        if found == wanted {
            return Ok(());
        }
        Err(format!("evaluated {wanted:#?}\ninterpreted {found:#?}\n{}", print::graph(&graph)))
    });
}

/// A pass that rewrites nothing keeps what a program means, too.
#[test]
fn every_pass_rewrites_many_programs() {
    let library = Recording::new(0).library();
    let mut changed: BTreeMap<&str, usize> = BTreeMap::new();
    let cases = (0..PROGRAMS).flat_map(|seed| CASES.map(|case| case(seed)));
    for case in cases {
        let mut before = String::new();
        _ = optimize_with(&case.program, &library, &mut |name, stage| {
            let text = match stage {
                passes::ProgramStage::Expr(program) => print::expr(program),
                passes::ProgramStage::Graph(program) => print::graph(program),
            };
            *changed.entry(name).or_default() += usize::from(text != before);
            before = text;
        });
    }
    let passes = EXPR_PASSES.iter().map(|pass| pass.name).chain(GRAPH_PASSES.iter().map(|pass| pass.name));
    for pass in passes {
        let programs = changed.get(pass).copied().unwrap_or(0);
        assert!(programs > 15, "`{pass}` changed {programs} of {} * {PROGRAMS} programs", CASES.len());
    }
}
