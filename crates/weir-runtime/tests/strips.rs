//! Strips: a `for` over a long list whose rows a `fold` takes reads one strip after the other, so that a failure in the text ends
//! the reads of its strip at the latest.

use std::sync::Arc;

use test_support::flows::batches::BatchGates;
use test_support::flows::gates::{function, int, library, with_state};
use test_support::flows::{Feed, one_flow, options, started};
use weir_host::{Batch, Call, Function, FunctionCode, Outcome, Passing, Type, Value, World};
use weir_ir::optimize;
use weir_runtime::{ENGINES, Options, RunningProgram, SliceLength, start};

/// Reads of ten elements, of which the answer that is no less than the input ends the flow; the sum of the answers.
const SUM: &str = "%1: Int = fold [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] from 0 as %2: Int, %3: Int
  %4: Result(Int, Failure) = call a.get at a (%3)
  %5: Int = switch %4
    tag 0 (%6: Int)
      yield %6
    tag 1 (%7: Failure)
      %8: Never = fail %7
      yield ()
  %9: Bool = less(%5, %0)
  %10: Int = switch %9
    value true
      %11: Int = add(%2, %5)
      yield %11
    otherwise
      %12: Never = fail failure(program, \"too much\")
      yield ()
  yield %10
yield %1";

/// The engines that run a flow in one section, with usual slices and with slices of one unit.
fn every_form(test: impl Fn(Options, &str)) {
    for row in ENGINES.iter().filter(|row| !["staged", "dedicated", "elastic"].contains(&row.name)) {
        for slice in [SliceLength::default(), SliceLength::ONE_UNIT] {
            test(Options { slice, strip_max: 3, ..options(row.name, 2) }, row.name);
        }
    }
}

fn reads(gates: &BatchGates) -> Function {
    gates.batched("a.get", World::Reads, Batch { at_most: 10, in_flight: 1, gathered: 0 })
}

/// Starts a program of the text after all passes.
fn optimized(gates: &BatchGates, body: &str, options: Options) -> (Feed, RunningProgram) {
    let (feed, mut library) = (Feed::new(), library([reads(gates)]));
    feed.put(&mut library, "test", "feed");
    let program = optimize(&one_flow("", body), &library);
    let running = start(&program, &library, options).expect("the program starts");
    (feed, running)
}

/// Answers the next batch, which has these arguments.
fn answer(gates: &BatchGates, arguments: &[i64], name: &str) {
    let batch = gates.next();
    assert_eq!(batch.arguments, arguments, "{name}");
    batch.answer();
}

#[test]
fn each_strip_of_a_long_list_is_read_when_the_one_before_has_been_gone_through() {
    every_form(|options, name| {
        let gates = BatchGates::new();
        let (feed, running) = optimized(&gates, SUM, options);
        let flow = feed.begin(vec![Value::Int(1_000)]);
        for strip in [&[1, 2, 3][..], &[4, 5, 6], &[7, 8, 9], &[10]] {
            answer(&gates, strip, name);
        }
        assert_eq!(flow.blocking_recv().expect("it is answered"), Ok(Value::Int(550)), "{name}");
        drop(feed);
        running.wait().expect("the source ends");
    });
}

#[test]
fn a_fold_of_several_states_goes_on_with_all_of_them() {
    let body = SUM
        .replace("from 0 as %2: Int", "from 0, 1 as %2: Int, %20: Int")
        .replace("%1: Int =", "%1: (Int, Int) =")
        .replace(
            "  yield %10\nyield %1",
            "  %21: Int = add(%20, %3)\n  %22: (Int, Int) = record(%10, %21)\n  yield %22\n\
             %23: Int = field.0(%1)\n%24: Int = field.1(%1)\n%25: Int = add(%23, %24)\nyield %25",
        );
    every_form(|options, name| {
        let gates = BatchGates::new();
        let (feed, running) = optimized(&gates, &body, options);
        let flow = feed.begin(vec![Value::Int(1_000)]);
        for strip in [&[1, 2, 3][..], &[4, 5, 6], &[7, 8, 9], &[10]] {
            answer(&gates, strip, name);
        }
        assert_eq!(flow.blocking_recv().expect("it is answered"), Ok(Value::Int(550 + 56)), "{name}");
        drop(feed);
        running.wait().expect("the source ends");
    });
}

#[test]
fn other_calls_begin_while_a_further_strip_is_read() {
    let body = SUM.replace(
        "\nyield %1",
        "
%30: Result(Int, Failure) = call a.get at first (100)
%31: Int = switch %30
  tag 0 (%32: Int)
    %33: Result(Int, Failure) = call a.get at second (%32)
    yield %32
  tag 1 (%34: Failure)
    yield 0
yield %1",
    );
    every_form(|options, name| {
        let gates = BatchGates::new();
        let reads = gates.batched("a.get", World::Reads, Batch { at_most: 3, in_flight: 4, gathered: 0 });
        let (feed, mut library) = (Feed::new(), library([reads]));
        feed.put(&mut library, "test", "feed");
        let program = optimize(&one_flow("", &body), &library);
        let running = start(&program, &library, options).expect("the program starts");
        let flow = feed.begin(vec![Value::Int(1_000)]);
        let mut both = [gates.next(), gates.next()];
        both.sort_by_key(|batch| batch.arguments[0]);
        let [rows, other] = both;
        assert_eq!((&rows.arguments[..], &other.arguments[..]), (&[1, 2, 3][..], &[100][..]), "{name}");
        rows.answer();
        let rows = gates.next();
        assert_eq!(rows.arguments, [4, 5, 6], "{name}");
        // The answer of the other call lets one begin that stands behind the `fold`, while a strip is read.
        other.answer();
        let other = gates.next();
        assert_eq!(other.arguments, [1_000], "{name}");
        other.answer();
        rows.answer();
        answer(&gates, &[7, 8, 9], name);
        answer(&gates, &[10], name);
        assert_eq!(flow.blocking_recv().expect("it is answered"), Ok(Value::Int(550)), "{name}");
        drop(feed);
        running.wait().expect("the source ends");
    });
}

#[test]
fn a_flow_does_not_go_back_to_an_earlier_section_for_a_strip() {
    let gates = BatchGates::new();
    let options = Options { strip_max: 3, ..options("dedicated", 2) };
    let (feed, running) = optimized(&gates, SUM, options);
    let flow = feed.begin(vec![Value::Int(1_000)]);
    answer(&gates, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "dedicated");
    assert_eq!(flow.blocking_recv().expect("it is answered"), Ok(Value::Int(550)));
    drop(feed);
    running.wait().expect("the source ends");
}

#[test]
fn nothing_is_read_behind_the_strip_in_which_a_round_fails() {
    every_form(|options, name| {
        let gates = BatchGates::new();
        let (feed, running) = optimized(&gates, SUM, options);
        let flow = feed.begin(vec![Value::Int(50)]);
        answer(&gates, &[1, 2, 3], name);
        answer(&gates, &[4, 5, 6], name);
        let failure = flow.blocking_recv().expect("it is answered").expect_err("50 is too much");
        assert_eq!(&*failure.message, "too much", "{name}");
        drop(feed);
        running.wait().expect("the source ends");
    });
}

/// Reads of ten elements, of which the answer that is no less than the input leaves the loop; -1 then, and otherwise 0.
const LEFT: &str =
    "%1: Result(Int, Failure) = fold [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] from #0(0) as %2: Result(Int, Failure), %3: Int \
left by failure (@1..2)
  %4: Result(Int, Failure) = switch %2
    tag 0 (%5: Int)
      %6: Result(Int, Failure) = call a.get at a (%3)
      %7: Result(Int, Failure) = switch %6
        tag 0 (%8: Int)
          %9: Bool = less(%8, %0)
          %10: Result(Int, Failure) = switch %9
            value true
              yield #0(0)
            otherwise
              yield #1(failure(program, \"too much\"))
          yield %10
        tag 1 (%11: Failure)
          %12: Result(Int, Failure) = variant.1(%11)
          yield %12
      yield %7
    tag 1 (%13: Failure)
      %14: Result(Int, Failure) = variant.1(%13)
      yield %14
  yield %4
%20: Int = switch %1
  tag 0 (%21: Int)
    yield %21
  tag 1 (%22: Failure)
    yield -1
yield %20";

#[test]
fn nothing_is_read_behind_the_strip_in_which_a_failure_leaves_a_loop_that_the_flow_survives() {
    every_form(|options, name| {
        let gates = BatchGates::new();
        let (feed, running) = optimized(&gates, LEFT, options);
        let flow = feed.begin(vec![Value::Int(50)]);
        answer(&gates, &[1, 2, 3], name);
        answer(&gates, &[4, 5, 6], name);
        assert_eq!(flow.blocking_recv().expect("it is answered"), Ok(Value::Int(-1)), "{name}");
        drop(feed);
        running.wait().expect("the source ends");
    });
}

/// A `for` of reads whose failures are values, and a `fold` that counts their rows.
const COUNT: &str = "%1: List(Result(Result(Int, Failure), Failure)) = for %2: Int in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  %3: Result(Result(Int, Failure), Failure) = call a.get at a (%2) keeps failure
  yield %3
%10: Int = fold %1 from 0 as %11: Int, %12: Result(Result(Int, Failure), Failure)
  %13: Int = add(%11, 1)
  yield %13
yield %10";

/// Returns a function of an `Int` that returns at once.
fn immediate(path: &'static str, world: World) -> Function {
    let code = FunctionCode::Immediate(Arc::new(|call: &mut Call<'_>| Outcome::Value(Value::Int(int(call, 0)))));
    function(path, &[("x", Type::Int, Passing::Value)], world, code)
}

/// Returns the number of reads that a flow makes together, with strips of three elements.
fn reads_together(body: &str) -> usize {
    calls_together(World::Reads, body)
}

/// Returns the number of calls of a function that uses the world like this which a flow makes together.
fn calls_together(world: World, body: &str) -> usize {
    let gates = BatchGates::new();
    let functions = [
        gates.batched("a.get", world, Batch { at_most: 10, in_flight: 1, gathered: 0 }),
        immediate("a.put", World::Writes),
        immediate("b.put", World::Writes),
        immediate("b.twice", World::Pure),
        with_state(immediate("b.count", World::Pure)),
    ];
    let options = Options { strip_max: 3, ..options("thread-per-flow", 2) };
    let (feed, running) = started(functions, "", body, options);
    let flow = feed.begin(vec![Value::Int(0)]);
    let first = gates.next();
    let count = first.arguments.len();
    drop((flow, first, feed));
    running.wait().expect("the source ends");
    count
}

/// Returns the count with this line in front of the addition.
fn with_line(line: &str) -> String {
    COUNT.replace("  %13:", &format!("  {line}\n  %13:"))
}

#[test]
fn a_long_list_is_read_in_strips() {
    assert_eq!(reads_together(COUNT), 3);
    // A write of something else, and one that comes behind the `fold` because that may fail.
    assert_eq!(reads_together(&with_line("%20: Int = call b.put at b (%11)")), 3);
    assert_eq!(reads_together(&COUNT.replace("yield %10", "%20: Int = call a.put at p (%0)\nyield %10")), 3);
}

#[test]
fn a_fold_that_writes_what_is_read_goes_over_all_rows() {
    assert_eq!(reads_together(&with_line("%20: Int = call a.put at p (%11)")), 10);
}

#[test]
fn a_write_that_waits_for_the_reads_alone_follows_all_of_them() {
    let body = COUNT.replace("add(%11, 1)", "copy(%11)");
    assert_eq!(reads_together(&body), 3);
    assert_eq!(reads_together(&body.replace("yield %10", "%20: Int = call a.put at p (%0)\nyield %10")), 10);
}

#[test]
fn reads_that_end_the_flow_come_before_a_fold_that_may_fail() {
    let body =
        COUNT.replace(" keeps failure", "").replace("Result(Result(Int, Failure), Failure)", "Result(Int, Failure)");
    assert_eq!(reads_together(&body), 10);
    let total = body.replace("add(%11, 1)", "copy(%11)");
    assert_eq!(reads_together(&total), 3);
    // Something between the reads and the `fold` may fail, or has an effect.
    assert_eq!(reads_together(&total.replace("%10: Int = fold", "%20: Int = add(%0, 1)\n%10: Int = fold")), 10);
    assert_eq!(
        reads_together(&total.replace("%10: Int = fold", "%20: Int = call b.put at b (%0)\n%10: Int = fold")),
        10
    );
}

#[test]
fn writes_are_made_in_all_rounds_before_the_fold() {
    assert_eq!(calls_together(World::Writes, COUNT), 10);
}

#[test]
fn rows_that_something_else_uses_are_all_made() {
    assert_eq!(reads_together(&COUNT.replace("yield %10", "%20: Int = length(%1)\nyield %20")), 10);
}

#[test]
fn calls_with_private_state_are_made_in_all_rounds_at_once() {
    let total = COUNT.replace("add(%11, 1)", "copy(%11)");
    let with_call =
        |function: &str| total.replace("  yield %3", &format!("  %4: Int = call {function} at c (%2)\n  yield %3"));
    assert_eq!(reads_together(&with_call("b.twice")), 3);
    assert_eq!(reads_together(&with_call("b.count")), 10);
}
