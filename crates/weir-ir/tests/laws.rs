//! The conditions of the passes' laws: a small program for each, that a pass must leave as it is, or rewrite with care.
//!
//! `.ci/mutants-passes` drops the conditions one at a time.

#[path = "support/left_loop.rs"]
#[macro_use]
mod left_loop;

use weir_host::{Library, Value};
use weir_ir::expr::Program;
use weir_ir::generate::{Case, Recording, evaluate};
use weir_ir::passes::{EXPR_PASSES, ExprPass, GRAPH_PASSES, run, run_on_graph};
use weir_ir::{lower, parse, print, verify};

/// Programs that a pass leaves as they are: the pass, the condition that does not hold, the type of the result, the body.
const STAYS: &[(&str, &str, &str, &str)] = &[
    (
        "loop-state",
        "the state is used as a whole",
        "Pair",
        "%2: Pair = record(%0, \"a\")\n%3: Pair = loop %2 at most 3 as %4: Pair\n  %5: Int = field.0(%4)\n  \
         %6: Text = interpolate(%4)\n  %7: Pair = with_field.1(%4, %6)\n  %8: (Pair, Bool) = record(%7, true)\n  yield %8\n\
         yield %3",
    ),
    (
        "loop-state",
        "something else uses a replacement",
        "Pair",
        "%2: Pair = record(%0, \"a\")\n%3: Pair = loop %2 at most 3 as %4: Pair\n  %5: Pair = with_field.0(%4, 1)\n  \
         %6: Text = interpolate(%5)\n  %7: Pair = with_field.1(%5, %6)\n  %8: (Pair, Bool) = record(%7, true)\n  yield %8\n\
         yield %3",
    ),
    (
        "aggregates",
        "the payload is that of another variant",
        "Int",
        "%2: Result(Int, Text) = variant.0(%0)\n%3: Int = switch %0\n  value 1\n    %4: Text = payload.0(%2)\n    \
         %5: Int = length(%4)\n    yield %5\n  otherwise\n    yield 0\nyield %3",
    ),
    (
        "constants",
        "another arm has private state",
        "Int",
        "%2: Int = switch 1\n  value 1\n    yield 5\n  otherwise\n    %3: Int = call step.next at step.next (%0)\n    \
         yield %3\nyield %2",
    ),
    ("constants", "the primitive fails", "Int", "%2: Int = divide(1, 0)\nyield %2"),
    (
        "common-calls",
        "the calls have effects",
        "(Int, Int)",
        "%2: Int = call a.change at a.change (%0)\n%3: Int = call a.change at a.change#2 (%0)\n\
         %4: (Int, Int) = record(%2, %3)\nyield %4",
    ),
    (
        "common-calls",
        "the earlier one is in an arm",
        "(Int, Int)",
        "%2: Int = switch %0\n  value 1\n    %3: Int = call a.mix at a.mix (%0)\n    %4: Int = add(%3, 1)\n    yield %4\n  \
         otherwise\n    yield 0\n%5: Int = call a.mix at a.mix#2 (%0)\n%6: (Int, Int) = record(%2, %5)\nyield %6",
    ),
    (
        "common-calls",
        "the operands differ",
        "(Int, Int)",
        "%2: Int = add(%0, 1)\n%3: Int = add(%0, 2)\n%4: (Int, Int) = record(%2, %3)\nyield %4",
    ),
    (
        "common-calls",
        "the types differ",
        "(List(Int), List(Text))",
        "%2: List(Int) = list()\n%3: List(Text) = list()\n%4: (List(Int), List(Text)) = record(%2, %3)\nyield %4",
    ),
    (
        "common-calls",
        "the choices test other values",
        "(Int, Int)",
        "%2: Int = switch %0\n  value 1\n    yield 5\n  otherwise\n    yield 6\n\
         %3: Int = switch %0\n  value 2\n    yield 5\n  otherwise\n    yield 6\n%4: (Int, Int) = record(%2, %3)\nyield %4",
    ),
    (
        "common-calls",
        "the operand changes",
        "(Int, Int, Int)",
        "%2: Int = copy(%0)\n%3: Int = call a.mix at a.mix (%2)\n%4: Int = call data.raise at data.raise (%2, 1)\n\
         %5: Int = call a.mix at a.mix#2 (%2)\n%6: (Int, Int, Int) = record(%3, %4, %5)\nyield %6",
    ),
    ("dead-code", "the call may fault", "Int", "%2: Int = call a.picky at a.picky (%0)\nyield 0"),
    ("dead-code", "the primitive may fail", "Int", "%2: Int = divide(1, %0)\nyield 0"),
    ("dead-code", "the call has an effect", "Int", "%2: Int = call a.note at a.note (%0)\nyield 0"),
    (
        "dead-code",
        "an arm ends the flow",
        "Int",
        "%2: Int = switch %0\n  value 1\n    %3: Never = return 5\n    yield ()\n  otherwise\n    yield 1\nyield 0",
    ),
    (
        "dead-code",
        "plans name repeated bodies by their numbers",
        "Int",
        "%2: List(Int) = for %3: Int in %1\n  %4: Int = call a.mix at a.mix (%3)\n  yield %4\nyield 0",
    ),
    (
        "sinking",
        "the call may fault",
        "Int",
        "%2: Int = call a.picky at a.picky (%0)\n%3: Int = switch %0\n  value 1\n    yield %2\n  otherwise\n    yield 0\n\
         yield %3",
    ),
    (
        "sinking",
        "the result is used elsewhere too",
        "(Int, Int)",
        "%2: Int = call a.mix at a.mix (%0)\n%3: Int = switch %0\n  value 1\n    yield %2\n  otherwise\n    yield 0\n\
         %4: (Int, Int) = record(%2, %3)\nyield %4",
    ),
    (
        "sinking",
        "the body repeats",
        "List(Int)",
        "%2: Int = call a.mix at a.mix (%0)\n%3: List(Int) = for %4: Int in %1\n  yield %2\nyield %3",
    ),
    (
        "look-ups",
        "what was found is used",
        "Int",
        "%2: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    yield %5\n  tag 0\n    yield 0\n%6: Int = add(%4, 1)\nyield %6",
    ),
    (
        "look-ups",
        "the map is used",
        "(Int, Map(Int, Int))",
        "%2: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    yield %5\n  tag 0\n    yield 0\n%6: Map(Int, Int) = copy(%2)\n%7: (Int, Map(Int, Int)) = record(%4, %6)\nyield %7",
    ),
    (
        "look-ups",
        "a call stands behind it",
        "Int",
        "%2: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    yield %5\n  tag 0\n    yield 0\n%6: Int = call a.mix at a.mix (%0)\n%7: Int = add(%4, %6)\nyield %7",
    ),
    (
        "look-ups",
        "a list is pushed to another",
        "(Int, List(Int))",
        "%2: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    yield %5\n  tag 0\n    yield 0\n%6: List(Int) = list(%0)\n%7: (Int, List(Int)) = record(%4, %6)\nyield %7",
    ),
    (
        "look-ups",
        "an arm may fail",
        "Int",
        "%2: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    %8: Int = divide(1, %5)\n    yield %8\n  tag 0\n    yield 0\n%6: Int = add(%0, 1)\n%7: Int = add(%4, %6)\nyield %7",
    ),
    (
        "look-ups",
        "a list has no element there",
        "Int",
        "%2: List(Option(Int)) = list()\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    yield %5\n  tag 0\n    yield 0\n%6: Int = add(%0, 1)\n%7: Int = add(%4, %6)\nyield %7",
    ),
    (
        "lifted-calls",
        "the call needs the round before",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = call a.gathered_look at a.look (%3)\n  yield %5\nyield %2",
    ),
    (
        "lifted-calls",
        "the call changes something",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = call a.gathered_change at a.change (%4)\n  yield %5\nyield %2",
    ),
    (
        "lifted-calls",
        "another call of the body changes something",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = call a.gathered_look at a.look (%4)\n  %6: Int = call a.change at a.change (%5)\n  yield %6\nyield %2",
    ),
    (
        "lifted-calls",
        "an operand is computed by a function that may refuse its argument",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = call a.picky at a.picky (%4)\n  %6: Int = call a.gathered_look at a.look (%5)\n  yield %6\nyield %2",
    ),
    (
        "lifted-calls",
        "an operand needs a `fail` that needs the round before",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = switch %4\n    value 1\n      yield %3\n    otherwise\n      \
         %6: Never = fail failure(program, \"no\")\n      yield ()\n  %7: Int = call a.gathered_look at a.look (%5)\n  yield %7\nyield %2",
    ),
    (
        "lifted-calls",
        "the call is in a branch that needs the round before",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = switch %3\n    value 1\n      %6: Int = call a.gathered_look at a.look (%4)\n      yield %6\n    otherwise\n      yield 0\n  yield %5\nyield %2",
    ),
    (
        "lifted-calls",
        "the body returns",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = switch %4\n    value 1\n      %7: Never = return 5\n      yield ()\n    otherwise\n      yield 0\n  %6: Int = call a.gathered_look at a.look (%4)\n  yield %6\nyield %2",
    ),
    (
        "lifted-calls",
        "a return leaves the loop",
        "Result(Int, Failure)",
        left_loop!("return", "a.gathered_look at a.look"),
    ),
    (
        "lifted-calls",
        "the loop that a failure leaves changes something",
        "Result(Int, Failure)",
        left_loop!("failure", "a.gathered_change at a.change"),
    ),
    (
        "detach",
        "the part is read later",
        "(Pair, Text)",
        "%2: Pair = record(%0, \"a\")\n%3: Text = field.1(%2)\n%4: Text = add(%3, \"x\")\n%5: Pair = with_field.1(%2, %4)\n\
         %6: Text = interpolate(%2)\n%7: (Pair, Text) = record(%5, %6)\nyield %7",
    ),
    (
        "detach",
        "other rounds see the value",
        "List(Pair)",
        "%2: Pair = record(%0, \"a\")\n%3: List(Pair) = for %4: Int in %1\n  %5: Text = field.1(%2)\n  \
         %6: Text = add(%5, \"x\")\n  %7: Pair = with_field.1(%2, %6)\n  yield %7\nyield %3",
    ),
    (
        "detach",
        "a reader is in the same arm",
        "Pair",
        "%2: Pair = record(%0, \"a\")\n%3: Text = switch %0\n  value 1\n    %4: Text = field.1(%2)\n    \
         %5: Text = add(%4, \"x\")\n    %6: Text = interpolate(%2)\n    %7: Text = add(%5, %6)\n    yield %7\n  \
         otherwise\n    yield \"b\"\n%8: Pair = with_field.1(%2, %3)\nyield %8",
    ),
    (
        "detach",
        "the value with another field replaced is read",
        "(Pair, Pair)",
        "%2: Pair = record(%0, \"a\")\n%3: Text = field.1(%2)\n%4: Text = add(%3, \"x\")\n%5: Pair = with_field.1(%2, %4)\n\
         %6: Pair = with_field.0(%2, 7)\n%7: (Pair, Pair) = record(%5, %6)\nyield %7",
    ),
    (
        "detach",
        "another element is replaced",
        "List(Text)",
        "%2: List(Text) = list(\"a\", \"b\")\n%3: Text = index(%2, 0)\n%4: Text = add(%3, \"x\")\n\
         %5: List(Text) = call data.replace at data.replace (%2, 1, %4)\nyield %5",
    ),
];

/// Programs that a pass rewrites, and which then give what they gave before: the pass, what it must not confuse, the type
/// of the result, the body.
const KEEPS: &[(&str, &str, &str, &str)] = &[
    (
        "look-ups",
        "a product that needs neither the map nor what was found is computed first",
        "(Int, Int)",
        "%2: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%3: Option(Int) = index(%2, %0)\n%4: Int = switch %3\n  tag 1 (%5: Int)\n    yield %5\n  tag 0\n    yield 0\n%6: Int = multiply(%0, 3)\n%7: Int = add(%4, %6)\n%8: Int = add(%7, %4)\n%9: (Int, Int) = record(%7, %8)\nyield %9",
    ),
    (
        "loop-state",
        "the last of two replacements counts",
        "Pair",
        "%2: Pair = record(%0, \"a\")\n%3: Pair = loop %2 at most 3 as %4: Pair\n  %5: Pair = with_field.0(%4, 1)\n  \
         %6: Pair = with_field.0(%5, 2)\n  %7: (Pair, Bool) = record(%6, true)\n  yield %7\nyield %3",
    ),
    (
        "loop-state",
        "a field that becomes another one changes",
        "(Int, Int)",
        "%2: (Int, Int) = record(%0, 5)\n%3: (Int, Int) = fold %1 from %2 as %4: (Int, Int), %5: Int\n  \
         %6: Int = field.1(%4)\n  %7: (Int, Int) = record(%6, %5)\n  yield %7\nyield %3",
    ),
    (
        "aggregates",
        "a replaced field has its new value",
        "Int",
        "%2: Pair = record(%0, \"a\")\n%3: Pair = with_field.0(%2, 7)\n%4: Int = field.0(%3)\nyield %4",
    ),
    (
        "aggregates",
        "the first arm that fits is chosen",
        "Int",
        "%2: Option(Int) = variant.1(%0)\n%3: Int = switch %2\n  tag 1 (%4: Int)\n    yield %4\n  otherwise\n    yield 0\n\
         yield %3",
    ),
    (
        "constants",
        "the arm of this value is chosen",
        "Int",
        "%2: Int = switch 3\n  value 1\n    yield 5\n  otherwise\n    yield 6\nyield %2",
    ),
    (
        "lifted-calls",
        "the first failure in the order of the list leaves the loop",
        "Result(Int, Failure)",
        left_loop!("failure", "a.gathered_look at a.look"),
    ),
    (
        "lifted-calls",
        "a read passes a change of another part of the world",
        "Result(Int, Failure)",
        left_loop!("failure", "b.gathered_change at b.change"),
    ),
    (
        "lifted-calls",
        "the failure of a read waits for those of earlier rounds",
        "Int",
        "%2: Int = fold [8, 11] from 0 as %3: Int, %4: Int\n  %5: Int = call a.failing_look at a.look (%4)\n  \
         %6: Int = subtract(%4, 8)\n  %7: Int = divide(%5, %6)\n  yield %7\nyield %2",
    ),
    (
        "lifted-calls",
        "the failure of a read that no round comes to is dropped",
        "Result(Int, Failure)",
        "%2: Result(Int, Failure) = fold [8, 11] from #0(1) as %3: Result(Int, Failure), %4: Int left by failure (@1..2)\n  \
         %5: Result(Int, Failure) = switch %3\n    tag 0 (%6: Int)\n      %7: Int = call a.failing_look at a.look (%4)\n      \
         %8: Result(Int, Failure) = variant.1(failure(program, \"no\"))\n      yield %8\n    tag 1 (%9: Failure)\n      \
         %10: Result(Int, Failure) = variant.1(%9)\n      yield %10\n  yield %5\nyield %2",
    ),
    (
        "lifted-calls",
        "the failure of a read in a `for` counts although nothing uses its result",
        "Int",
        "%2: Int = fold [8, 11] from 0 as %3: Int, %4: Int\n  %5: List(Int) = for %6: Int in [1, 2]\n    \
         %7: Int = call a.failing_look at a.look (%4)\n    yield %6\n  %8: Int = add(%3, 1)\n  yield %8\nyield %2",
    ),
    (
        "lifted-calls",
        "what needs a read that fails is not asked for",
        "Int",
        "%2: Int = fold [8, 11] from 0 as %3: Int, %4: Int\n  %5: Int = call a.failing_look at a.look (%4)\n  \
         %6: Int = call b.gathered_look at b.look (%5)\n  %7: Int = add(%3, %6)\n  yield %7\nyield %2",
    ),
    (
        "lifted-calls",
        "the failure of an operand waits for those of earlier rounds",
        "Int",
        "%2: Int = fold [8, 0] from 5 as %3: Int, %4: Int\n  %5: Int = divide(16, %4)\n  \
         %6: Int = call a.gathered_look at a.look (%5)\n  %7: Int = index([1], %3)\n  %8: Int = add(%6, %7)\n  yield %8\nyield %2",
    ),
    (
        "lifted-calls",
        "the failure of an operand that no round comes to is dropped",
        "Result(Int, Failure)",
        "%2: Result(Int, Failure) = fold [8, 0] from #0(1) as %3: Result(Int, Failure), %4: Int left by failure (@1..2)\n  \
         %5: Result(Int, Failure) = switch %3\n    tag 0 (%6: Int)\n      %7: Int = divide(16, %4)\n      \
         %8: Int = call a.gathered_look at a.look (%7)\n      \
         %9: Result(Int, Failure) = variant.1(failure(program, \"no\"))\n      yield %9\n    tag 1 (%10: Failure)\n      \
         %11: Result(Int, Failure) = variant.1(%10)\n      yield %11\n  yield %5\nyield %2",
    ),
    (
        "lifted-calls",
        "the failure of an operand is that of the text if nothing else fails",
        "Int",
        "%2: Int = fold [8, 0] from 5 as %3: Int, %4: Int\n  %5: Int = divide(16, %4)\n  \
         %6: Int = call a.gathered_look at a.look (%5)\n  yield %6\nyield %2",
    ),
    (
        "lifted-calls",
        "of two failures in a `for` of a round, the first counts",
        "Int",
        "%2: Int = fold [8, 0] from 5 as %3: Int, %4: Int\n  %5: List(Int) = for %6: Int in [1, 0]\n    \
         %7: Int = divide(16, %6)\n    %8: Int = index([1], %6)\n    %9: Int = call a.gathered_look at a.look (%7)\n    \
         yield %9\n  %10: Int = index([1], %3)\n  yield %10\nyield %2",
    ),
    (
        "lifted-calls",
        "a `fail` waits for the failures of earlier rounds",
        "Int",
        "%2: Int = fold [8, 0] from 5 as %3: Int, %4: Int\n  %5: Int = switch %4\n    value 0\n      \
         %6: Never = fail failure(program, \"no\")\n      yield ()\n    otherwise\n      yield %4\n  \
         %7: Int = call a.gathered_look at a.look (%5)\n  %8: Int = index([1], %3)\n  yield %8\nyield %2",
    ),
    (
        "lifted-calls",
        "what needs a round that has ended by `fail` is not asked for",
        "Int",
        "%2: Int = fold [8, 1] from 5 as %3: Int, %4: Int\n  %5: Int = call a.gathered_look at a.look (%4)\n  %6: Int = switch %4\n    \
         value 8\n      %7: Int = call a.failing_look at a.fails (%5)\n      yield %7\n    otherwise\n      \
         %8: Never = fail failure(program, \"no\")\n      yield ()\n  \
         %9: Int = call b.gathered_look at b.look (%6)\n  %10: Int = add(%3, %9)\n  yield %10\nyield %2",
    ),
    (
        "lifted-calls",
        "only the arm that is taken makes its calls",
        "Int",
        "%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = switch %4\n    value 1\n      %6: Int = call a.gathered_look at a.look (%4)\n      %7: Int = divide(1, %6)\n      yield %7\n    value 2\n      %8: Int = add(%4, 1)\n      yield %8\n    otherwise\n      %9: Int = call b.gathered_look at b.look (%4)\n      %10: Int = add(%3, %9)\n      yield %10\n  yield %5\nyield %2",
    ),
];

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

fn rewritten(pass: &ExprPass, before: &Program) -> Program {
    let mut after = before.clone();
    run(pass, &mut after, &library());
    after
}

fn rewritten_graph(pass: &str, program: &Program) -> String {
    let pass = GRAPH_PASSES.iter().find(|row| row.name == pass).expect("the pass is in a list");
    let mut graph = lower(program, &library());
    run_on_graph(pass, &mut graph, &library());
    print::graph(&graph)
}

#[test]
fn a_pass_leaves_a_program_as_it_is_if_a_condition_does_not_hold() {
    for (name, condition, result, body) in STAYS {
        let before = program(result, body);
        match EXPR_PASSES.iter().find(|row| row.name == *name) {
            Some(pass) => {
                assert_eq!(print::expr(&rewritten(pass, &before)), print::expr(&before), "{name}: {condition}");
            }
            None => {
                let lowered = print::graph(&lower(&before, &library()));
                assert_eq!(rewritten_graph(name, &before), lowered, "{name}: {condition}");
            }
        }
    }
}

#[test]
fn a_rewritten_program_gives_what_it_gave_before() {
    for (name, condition, result, body) in KEEPS {
        let pass = EXPR_PASSES.iter().find(|row| row.name == *name).expect("the pass is in the list");
        let before = program(result, body);
        let after = rewritten(pass, &before);
        assert_ne!(print::expr(&after), print::expr(&before), "{name}: {condition}");
        let numbers = [1, 4].map(|number| vec![Value::Int(number), Value::list(vec![Value::Int(8), Value::Int(9)])]);
        let run =
            |program| evaluate(&Case { program, inputs: numbers.to_vec() }, 0).map_err(|failure| failure.to_string());
        assert_eq!(run(after), run(before), "{name}: {condition}");
    }
}

#[test]
fn a_part_that_moves_out_waits_for_a_reader_that_is_listed_before() {
    let body = "%2: Pair = record(%0, \"a\")\n%3: Text = field.1(%2)\n%4: Text = field.1(%2)\n%5: Text = add(%4, \"x\")\n\
                %6: Pair = with_field.1(%2, %5)\n%7: (Text, Pair) = record(%3, %6)\nyield %7";
    let graph = rewritten_graph("detach", &program("(Text, Pair)", body));
    assert!(graph.contains("%2 field#2: Text = detach_field.1(%0.0) after %1"), "{graph}");
}
