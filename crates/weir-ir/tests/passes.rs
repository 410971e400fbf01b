//! A small program before and after each pass, side by side in a snapshot.

#[path = "support/left_loop.rs"]
#[macro_use]
mod left_loop;

use weir_host::Library;
use weir_ir::expr::Program;
use weir_ir::generate::Recording;
use weir_ir::passes::{EXPR_PASSES, GRAPH_PASSES, run, run_on_graph};
use weir_ir::{graph, lower, parse, print, verify};

fn library() -> Library {
    Recording::new(0).library()
}

fn program(parameters: &str, result: &str, body: &str) -> Program {
    program_with("", parameters, result, body)
}

/// Returns a program with shared values and one flow.
fn program_with(shared: &str, parameters: &str, result: &str, body: &str) -> Program {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "type Pair record\n  field left: Int\n  field right: Text\n{shared}\
         entry test from a.elements ordered\n  arguments\n    yield (7,)\n  flow f ({parameters}) -> {result}\n{body}"
    );
    let program = parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify::expr(&program, &library()), [], "{text}");
    program
}

/// Returns the text of the flow before the pass and after it.
fn rewritten(pass: &str, mut program: Program) -> String {
    let pass = EXPR_PASSES.iter().find(|row| row.name == pass).expect("the pass is in the list");
    let flow = |program: &Program| print::expr(program).split_once("  flow ").expect("there is a flow").1.to_owned();
    let before = flow(&program);
    run(pass, &mut program, &library());
    assert_eq!(verify::expr(&program, &library()), []);
    format!("before\n  flow {before}\nafter {}\n  flow {}", pass.name, flow(&program))
}

#[test]
fn parts_of_known_records_and_variants_are_taken_directly() {
    let body = "%1: (Int, Text) = record(%0, \"a\")\n%2: Int = field.0(%1)\n%3: Option(Int) = variant.1(%2)\n\
                %4: Int = switch %3\n  tag 1 (%5: Int)\n    %6: Int = add(%5, 1)\n    yield %6\n  otherwise\n    yield 0\n\
                %7: Bool = is_variant.0(%3)\n%8: (Int, Bool) = record(%4, %7)\nyield %8";
    insta::assert_snapshot!(rewritten("aggregates", program("%0: Int", "(Int, Bool)", body)));
}

#[test]
fn a_lock_that_a_step_needs_inside_is_taken_before_its_own() {
    let shared = |name: &str| {
        format!("shared {name}: count.Counter\n  %0: count.Counter = call count.new at count.new (0)\n  yield %0\n")
    };
    let body = "%1: Int = atomic (read shared late)\n  %2: Int = call count.value at count.value (shared early, %0)\n  \
                %3: Int = atomic (write shared late)\n    %4: Int = call count.add at count.add (shared late, %2)\n    yield %4\n  \
                yield %3\nyield %1";
    let program = program_with(&(shared("early") + &shared("late")), "%0: Int", "Int", body);
    insta::assert_snapshot!(rewritten("lock-order", program));
}

#[test]
fn a_field_that_no_round_changes_leaves_the_state_of_a_loop() {
    let body = "%1: Pair = record(%0, \"limit\")\n%2: Pair = loop %1 at most 9 as %3: Pair\n  %4: Int = field.0(%3)\n  \
                %5: Text = field.1(%3)\n  %6: Int = length(%5)\n  %7: Int = add(%4, %6)\n  %8: Pair = record(%7, %5)\n  \
                %9: Bool = greater(%7, 100)\n  %10: (Pair, Bool) = record(%8, %9)\n  yield %10\n%11: Int = field.0(%2)\nyield %11";
    insta::assert_snapshot!(rewritten("loop-state", program("%0: Int", "Int", body)));
}

#[test]
fn of_a_fold_too_and_several_fields_that_change_are_states_of_their_own() {
    let body = "%1: (Int, Int, Text) = fold %0 from (0, 1, \"x\") as %2: (Int, Int, Text), %3: Int\n  %4: Int = field.0(%2)\n  \
                %5: Int = field.1(%2)\n  %6: Text = field.2(%2)\n  %7: Int = add(%4, %3)\n  %8: Int = multiply(%5, %3)\n  \
                %9: (Int, Int, Text) = record(%7, %8, %6)\n  yield %9\nyield %1";
    insta::assert_snapshot!(rewritten("loop-state", program("%0: List(Int)", "(Int, Int, Text)", body)));
}

#[test]
fn constants_are_folded_and_decide_switches_and_a_failure_stays_at_its_place() {
    let body = "%1: Int = add(40, 2)\n%2: Bool = less(%1, 50)\n%3: Int = switch %2\n  value true\n    \
                %4: Int = call a.change at a.change (%1)\n    yield %4\n  otherwise\n    %5: Int = call b.change at b.change (1)\n    \
                yield %5\n%6: Int = divide(%3, 0)\n%7: Int = divide(%1, 0)\nyield %7";
    insta::assert_snapshot!(rewritten("constants", program("%0: Int", "Int", body)));
}

#[test]
fn equal_pure_operations_are_evaluated_once_and_answer_to_both_names() {
    let body = "%1: Int = call a.mix at a.mix (%0)\n%2: List(Int) = for %3: Int in [1, 2]\n  %4: Int = call a.mix at a.mix#2 (%0)\n  \
                %5: Int = add(%4, %3)\n  yield %5\n%6: Int = call a.look at a.look (%0)\n%7: Int = call a.look at a.look#2 (%0)\n\
                %8: (Int, List(Int), Int, Int) = record(%1, %2, %6, %7)\nyield %8";
    insta::assert_snapshot!(rewritten("common-calls", program("%0: Int", "(Int, List(Int), Int, Int)", body)));
}

#[test]
fn what_nobody_can_observe_is_removed_and_what_may_fail_or_fault_stays() {
    let body = "%1: Int = call a.mix at a.mix (%0)\n%2: Int = call a.look at a.look (%1)\n%3: Int = call a.slow_look at a.slow_look (%0)\n\
                %4: Int = call a.picky at a.picky (%0)\n%5: Int = add(%0, 1)\n%6: Int = call a.change at a.change (%0)\n\
                %7: Int = switch %0\n  value 1\n    %8: Int = call b.mix at b.mix (%0)\n    yield %8\n  otherwise\n    yield 2\nyield 0";
    insta::assert_snapshot!(rewritten("dead-code", program("%0: Int", "Int", body)));
}

#[test]
fn total_work_sinks_into_the_arm_that_uses_it() {
    let body = "%1: Int = call a.mix at a.mix (%0)\n%2: Int = call b.mix at b.mix (%1)\n%3: Int = call a.picky at a.picky (%0)\n\
                %4: Int = call c.change at c.change (%0)\n%5: Int = switch %4\n  value 1\n    %6: Int = add(%2, %3)\n    \
                yield %6\n  otherwise\n    %7: Int = call c.mix at c.mix (%0)\n    %8: Int = switch %0\n      value 3\n        yield %7\n      \
                otherwise\n        yield 0\n    yield %8\nyield %5";
    insta::assert_snapshot!(rewritten("sinking", program("%0: Int", "Int", body)));
}

#[test]
fn an_entry_is_looked_up_behind_what_does_not_need_it() {
    let body = "%1: Map(Int, Int) = call data.number at data.number ({1: 5}, 2, %0)\n%2: Option(Int) = index(%1, %0)\n\
                %3: Int = switch %2\n  tag 1 (%4: Int)\n    yield %4\n  tag 0\n    yield 0\n%5: Int = multiply(%0, 3)\n\
                %6: Int = add(%3, %5)\n%7: Map(Int, Int) = call data.number at data.number#2 (%1, %0, %6)\nyield %7";
    insta::assert_snapshot!(rewritten("look-ups", program("%0: Int", "Map(Int, Int)", body)));
}

#[test]
fn reads_that_need_no_earlier_round_leave_their_fold() {
    let body = "%1: List(Int) = list(%0, 2, 3)\n%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = copy(%4)\n  \
                %6: Int = call a.gathered_look at a.first (%5)\n  %7: Int = call b.slow_look at b.second (%6)\n  \
                %8: Int = add(%3, %7)\n  %9: Int = call a.gathered_look at a.third (%8)\n  yield %9\nyield %2";
    insta::assert_snapshot!(rewritten("lifted-calls", program("%0: Int", "Int", body)));
}

#[test]
fn reads_of_a_loop_that_a_failure_leaves_are_made_before_it() {
    let body = concat!("%1: List(Int) = list(%0, 2, 3)\n", left_loop!("failure", "a.gathered_look at a.look"));
    insta::assert_snapshot!(rewritten("lifted-calls", program("%0: Int", "Result(Int, Failure)", body)));
}

#[test]
fn reads_whose_keys_may_fail_are_made_before_a_fold() {
    let body = "%1: List(Int) = list(%0, 2, 3)\n%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = divide(8, %4)\n  \
                %6: Int = call a.gathered_look at a.look (%5)\n  %7: Int = subtract(%3, %6)\n  yield %7\nyield %2";
    insta::assert_snapshot!(rewritten("lifted-calls", program("%0: Int", "Int", body)));
}

#[test]
fn a_read_whose_key_is_that_of_a_switch_that_may_fail_is_made_before_a_fold() {
    let body = "%1: List(Int) = list(%0, 2, 3)\n%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: Int = switch %4\n    value 8\n      \
                %6: Int = call a.gathered_look at a.look (%4)\n      yield %6\n    otherwise\n      \
                %7: Never = fail failure(program, \"no\")\n      yield ()\n  \
                %8: Int = call b.gathered_look at b.look (%5)\n  %9: Int = subtract(%3, %8)\n  yield %9\nyield %2";
    insta::assert_snapshot!(rewritten("lifted-calls", program("%0: Int", "Int", body)));
}

/// The change waits for the failure of the division, and not for that of the call.
#[test]
fn an_effect_behind_a_for_whose_rounds_may_fail_waits_for_a_fail() {
    let body = "%1: List(Int) = list(%0, 2, 3)\n%2: Int = fold %1 from 0 as %3: Int, %4: Int\n  %5: List(Int) = for %6: Int in %1\n    \
                %7: Int = divide(%6, %4)\n    %8: Int = call a.gathered_look at a.look (%7)\n    yield %8\n  \
                %9: Int = call b.change at b.change (%4)\n  yield %9\nyield %2";
    insta::assert_snapshot!(rewritten("lifted-calls", program("%0: Int", "Int", body)));
}

/// Returns the text of the flow's graph before the pass and after it.
fn rewritten_graph(pass: &str, program: &Program) -> String {
    let pass = GRAPH_PASSES.iter().find(|row| row.name == pass).expect("the pass is in the list");
    let mut graph = lower(program, &library());
    let flow =
        |graph: &graph::Program| print::graph(graph).split_once("  flow ").expect("there is a flow").1.to_owned();
    let before = flow(&graph);
    run_on_graph(pass, &mut graph, &library());
    assert_eq!(verify::graph(&graph, &library()), []);
    format!("before\n  flow {before}\nafter {}\n  flow {}", pass.name, flow(&graph))
}

#[test]
fn edges_that_others_imply_are_removed() {
    let body = "%1: Int = call a.change at a.change (%0)\n%2: Int = call a.change at a.change#2 (%1)\n\
                %3: Int = add(%2, 1)\n%4: Int = call a.change at a.change#3 (%3)\nyield %4";
    insta::assert_snapshot!(rewritten_graph("redundant-order", &program("%0: Int", "Int", body)));
}

#[test]
fn a_switch_evaluates_its_condition_itself_unless_something_changes_what_it_reads() {
    let body = "%1: Bool = less(%0, 9)\n%2: Bool = equal(%0, 3)\n%3: Bool = not(%2)\n%4: Bool = and(%1, %3)\n\
                %5: Int = switch %4\n  value true\n    yield 1\n  otherwise\n    yield 2\n\
                %6: Bool = less(%0, 5)\n%7: Int = switch %6\n  value true\n    yield 1\n  otherwise\n    yield 2\n\
                %8: Int = copy(%0)\n%9: Bool = less(%8, 7)\n%10: Int = call data.raise at data.raise (%8, 1)\n\
                %11: Int = switch %9\n  value true\n    yield 1\n  otherwise\n    yield 2\n\
                %12: Bool = equal(%20, \"a\")\n%13: Bool = greater(%0, 1)\n%14: Int = switch %12\n  value true\n    \
                %15: Int = switch %13\n      value true\n        yield 1\n      otherwise\n        yield 2\n    yield %15\n  \
                otherwise\n    yield 3\n\
                %16: (Int, Int, Int, Int, Bool, Int) = record(%5, %7, %10, %11, %6, %14)\nyield %16";
    let program = program("%0: Int, %20: Text", "(Int, Int, Int, Int, Bool, Int)", body);
    insta::assert_snapshot!(rewritten_graph("fused-conditions", &program));
}

#[test]
fn a_part_that_is_replaced_moves_out_unless_something_still_reads_it() {
    let body = "%1: Pair = fold [1, 2] from (0, \"\") as %2: Pair, %3: Int\n  %4: Text = field.1(%2)\n  %5: Text = add(%4, \"x\")\n  \
                %6: Pair = with_field.0(%2, %3)\n  %7: Pair = with_field.1(%6, %5)\n  yield %7\n\
                %8: Text = field.1(%1)\n%9: Text = add(%8, \"y\")\n%10: Pair = with_field.1(%1, %9)\n\
                %11: (Pair, Pair) = record(%1, %10)\nyield %11";
    insta::assert_snapshot!(rewritten_graph("detach", &program("%0: Int", "(Pair, Pair)", body)));
}

#[test]
fn an_entry_that_is_updated_moves_out_of_its_map() {
    let body = "%1: Map(Text, Text) = fold %0 from {} as %2: Map(Text, Text), %3: Text\n  %4: Option(Text) = index(%2, %3)\n  \
                %5: Text = switch %4\n    tag 1 (%6: Text)\n      yield %6\n    tag 0\n      yield \"\"\n  \
                %7: Text = add(%5, \"x\")\n  %8: Map(Text, Text) = call data.put at data.put (%2, %3, %7)\n  yield %8\n\
                %9: Option(Text) = index(%1, \"a\")\n%10: Map(Text, Text) = call data.put at data.put#2 (%1, \"b\", \"\")\n\
                %11: (Option(Text), Map(Text, Text)) = record(%9, %10)\nyield %11";
    let result = "(Option(Text), Map(Text, Text))";
    insta::assert_snapshot!(rewritten_graph("detach", &program("%0: List(Text)", result, body)));
}
