//! The conditions of the passes' laws: programs that a pass must leave as they are, because one condition does not hold.
//!
//! `.ci/mutants-passes` drops the conditions one at a time.

use weir_host::Library;
use weir_ir::expr::Program;
use weir_ir::generate::Recording;
use weir_ir::passes::{EXPR_PASSES, GRAPH_PASSES, run, run_on_graph};
use weir_ir::{lower, parse, print, verify};

fn library() -> Library {
    Recording::new(0).library()
}

/// Returns a program of one flow of an integer `%0` and a list of integers `%1`.
fn program(result: &str, body: &str) -> Program {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "type Pair record\n  field left: Int\n  field right: Text\n\
         entry test from a.elements ordered\n  arguments\n    yield (7,)\n  \
         flow f (%0: Int, %1: List(Int)) -> {result}\n{body}"
    );
    let program = parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify::expr(&program, &library()), [], "{text}");
    program
}

/// Checks that a pass of either list leaves the program as it is.
fn stays(pass: &str, result: &str, body: &str) {
    let (before, library) = (program(result, body), library());
    if let Some(pass) = EXPR_PASSES.iter().find(|row| row.name == pass) {
        let mut after = before.clone();
        run(pass, &mut after, &library);
        assert_eq!(print::expr(&after), print::expr(&before), "{}", pass.name);
    } else {
        assert_eq!(rewritten_graph(pass, &before), print::graph(&lower(&before, &library)), "{pass}");
    }
}

fn rewritten_graph(pass: &str, program: &Program) -> String {
    let pass = GRAPH_PASSES.iter().find(|row| row.name == pass).expect("the pass is in a list");
    let mut graph = lower(program, &library());
    run_on_graph(pass, &mut graph, &library());
    print::graph(&graph)
}

#[test]
fn an_arm_stays_if_another_has_private_state() {
    let body = "%2: Int = switch 1\n  value 1\n    yield 5\n  otherwise\n    %3: Int = call step.next at step.next (%0)\n    \
                yield %3\nyield %2";
    stays("constants", "Int", body);
}

#[test]
fn operations_of_other_operands_are_evaluated() {
    stays(
        "common-calls",
        "(Int, Int)",
        "%2: Int = add(%0, 1)\n%3: Int = add(%0, 2)\n%4: (Int, Int) = record(%2, %3)\nyield %4",
    );
}

#[test]
fn choices_by_other_tests_are_made() {
    let choice = |var: u32, tested: u32| {
        format!("%{var}: Int = switch %0\n  value {tested}\n    yield 5\n  otherwise\n    yield 6\n")
    };
    let body = choice(2, 1) + &choice(3, 2) + "%4: (Int, Int) = record(%2, %3)\nyield %4";
    stays("common-calls", "(Int, Int)", &body);
}

#[test]
fn operations_of_operands_that_change_are_evaluated_again() {
    let body = "%2: Int = copy(%0)\n%3: Int = call a.mix at a.mix (%2)\n%4: Int = call data.raise at data.raise (%2, 1)\n\
                %5: Int = call a.mix at a.mix#2 (%2)\n%6: (Int, Int, Int) = record(%3, %4, %5)\nyield %6";
    stays("common-calls", "(Int, Int, Int)", body);
}

#[test]
fn an_effect_stays_if_nothing_uses_its_result() {
    stays("dead-code", "Int", "%2: Int = call a.note at a.note (%0)\nyield 0");
}

/// Plans name repeated bodies by their numbers.
#[test]
fn a_loop_stays_if_nothing_uses_its_result() {
    stays(
        "dead-code",
        "Int",
        "%2: List(Int) = for %3: Int in %1\n  %4: Int = call a.mix at a.mix (%3)\n  yield %4\nyield 0",
    );
}

#[test]
fn a_part_stays_in_a_value_that_other_rounds_see() {
    let body = "%2: Pair = record(%0, \"a\")\n%3: List(Pair) = for %4: Int in %1\n  %5: Text = field.1(%2)\n  \
                %6: Text = add(%5, \"x\")\n  %7: Pair = with_field.1(%2, %6)\n  yield %7\nyield %3";
    stays("detach", "List(Pair)", body);
}

#[test]
fn a_part_stays_if_the_value_with_another_field_replaced_is_read() {
    let body = "%2: Pair = record(%0, \"a\")\n%3: Text = field.1(%2)\n%4: Text = add(%3, \"x\")\n\
                %5: Pair = with_field.1(%2, %4)\n%6: Pair = with_field.0(%2, 7)\n%7: (Pair, Pair) = record(%5, %6)\nyield %7";
    stays("detach", "(Pair, Pair)", body);
}

#[test]
fn a_part_that_moves_out_waits_for_a_reader_that_is_listed_before() {
    let body = "%2: Pair = record(%0, \"a\")\n%3: Text = field.1(%2)\n%4: Text = field.1(%2)\n%5: Text = add(%4, \"x\")\n\
                %6: Pair = with_field.1(%2, %5)\n%7: (Text, Pair) = record(%3, %6)\nyield %7";
    let graph = rewritten_graph("detach", &program("(Text, Pair)", body));
    assert!(graph.contains("%2 field#2: Text = detach_field.1(%0.0) after %1"), "{graph}");
}
