//! Rounds of one `for` that wait: how long six of them take, on a clock that the test keeps, and what they may do before an
//! earlier round has ended.
//!
//! Each call has a duration. The test notes when a call begins, and lets the calls return in the order in which they end. It
//! knows the moments at which calls have to begin, so that it never has to wait for nothing to happen.

use std::collections::VecDeque;

use test_support::flows::gates::{Gates, Waiting, fallible, library, with_state};
use test_support::flows::{Feed, options};
use weir_host::{Failure, Value, World};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, Options, start};

const ROUNDS: usize = 6;
const READ_MS: u64 = 100;
const COUNT_MS: u64 = 10;

/// The stateful call of a round does not need its read, and nothing in the round can end the flow.
const INDEPENDENT: &str = "%4: Int = call a.read at read (%3)
%5: Int = call b.count at count (%3)
yield %4";

/// The same, but the sum of the results might leave the range of `Int`, which would end the flow before the next round.
const ADDING: &str = "%4: Int = call a.read at read (%3)
%5: Int = call b.count at count (%3)
%6: Int = add(%4, %5)
yield %6";

/// The stateful call needs the read.
const DEPENDENT: &str = "%4: Int = call a.read at read (%3)
%5: Int = call b.count at count (%4)
yield %5";

/// The stateful call does not need the read, which may end the flow: `a.read(x)?`.
const ENDING: &str = "%4: Result(Int, Failure) = call a.try at read (%3)
%7: Int = switch %4
  tag 0 (%8: Int)
    yield %8
  tag 1 (%9: Failure)
    %10: Never = fail %9
    yield ()
%5: Int = call b.count at count (%3)
yield %7";

/// The same, and the read of the third round ends the flow.
const FAILING: &str = "%4: Int = call a.read at read (%3)
%7: Bool = equal(%4, 2)
%8: Int = switch %7
  value true
    %9: Never = fail failure(program, \"no\")
    yield ()
  otherwise
    yield 0
%5: Int = call b.count at count (%3)
yield %4";

/// The moments at which the calls of a flow begin: milliseconds, and the elements of the rounds.
type Schedule = Vec<(u64, Vec<i64>)>;

/// The end of a flow.
struct Ran {
    answer: Result<Value, Failure>,
    ms: u64,
}

/// A call under way, and when it ends.
struct UnderWay {
    ends_ms: u64,
    call: Waiting,
}

/// Runs a flow whose reads and stateful calls have to begin at these moments.
fn run(round: &str, (reads, counts): (&Schedule, &Schedule), options: Options) -> Ran {
    let gates = Gates::new();
    let functions = [
        gates.waiting("a.read", World::Reads),
        fallible(gates.waiting("a.try", World::Reads)),
        with_state(gates.waiting("b.count", World::Pure)),
    ];
    let (feed, mut library) = (Feed::new(), library(functions));
    feed.put(&mut library, "test", "feed");
    let program = weir_ir::parse::expr(&text(round)).unwrap_or_else(|error| panic!("{error}\n{round}"));
    assert_eq!(weir_ir::verify::expr(&program, &library), []);
    let running = start(&weir_ir::lower(&program, &library), &library, options).expect("it starts");
    let answer = feed.begin(vec![Value::Int(0)]);
    let (mut now_ms, mut under_way) = (0, VecDeque::<UnderWay>::new());
    loop {
        let begin_now = [("read", reads, READ_MS), ("count", counts, COUNT_MS)].map(|(name, schedule, takes_ms)| {
            let now: Vec<i64> =
                schedule.iter().filter(|(at, _)| *at == now_ms).flat_map(|(_, of)| of.clone()).collect();
            (name, now, takes_ms)
        });
        let mut begun: Vec<Waiting> = begin_now.iter().flat_map(|(_, now, _)| now).map(|_| gates.next()).collect();
        for (name, expected, takes_ms) in begin_now {
            let (calls, others): (Vec<_>, Vec<_>) =
                begun.into_iter().partition(|call| (call.path == "b.count") == (name == "count"));
            begun = others;
            let mut elements: Vec<i64> = calls.iter().map(|call| call.argument).collect();
            elements.sort_unstable();
            assert_eq!(elements, expected, "calls of `{name}` after {now_ms} ms");
            under_way.extend(calls.into_iter().map(|call| UnderWay { ends_ms: now_ms + takes_ms, call }));
        }
        assert!(gates.is_quiet(), "no other call begins after {now_ms} ms");
        let Some(next_ms) = under_way.iter().map(|call| call.ends_ms).min() else { break };
        now_ms = next_ms;
        let (ending, others) = under_way.into_iter().partition(|call| call.ends_ms == now_ms);
        under_way = others;
        let mut ending: Vec<UnderWay> = Vec::from(ending);
        ending.sort_by_key(|call| call.call.argument);
        ending.into_iter().for_each(|call| call.call.release());
    }
    let answer = answer.blocking_recv().expect("the flow is not given up");
    assert!(gates.is_quiet(), "no call begins after the last one that has to");
    drop(feed);
    running.wait().expect("the source ends");
    Ran { answer, ms: now_ms }
}

/// Returns a program whose flows run six of these rounds, and add their results up.
fn text(round: &str) -> String {
    let round: String = round.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "entry test from test.feed ordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> Int
    %1: List(Int) = list(%0, 1, 2, 3, 4, 5)
    %2: List(Int) = for %3: Int in %1
{round}    %20: Int = fold %2 from 0 as %21: Int, %22: Int
      %23: Int = add(%21, %22)
      yield %23
    yield %20
"
    )
}

/// All engines, and those with sections once more under a plan that puts the stateful call into a section of its own.
fn all_options() -> Vec<(String, Options)> {
    let plain = ENGINES.iter().map(|row| (row.name.to_owned(), options(row.name, 2)));
    let cut = ENGINES.iter().filter(|row| row.has_sections()).map(|row| {
        let text = format!("engine = \"{}\"\n[[section]]\nname = \"own\"\nnodes = [\"count\"]\n", row.name);
        let (plan, problems) = Plan::parse(&text);
        assert_eq!(problems, []);
        (format!("{}, cut", row.name), Options { plan, ..options(row.name, 2) })
    });
    plain.chain(cut).collect()
}

/// Every round's call begins at the first moment.
fn at_once() -> Schedule {
    vec![(0, (0..ROUNDS as i64).collect())]
}

/// One round's call after the other begins, from a moment on.
fn one_by_one(from_ms: u64, rounds: usize) -> Schedule {
    (0..rounds).map(|round| (from_ms + COUNT_MS * round as u64, vec![round as i64])).collect()
}

#[test]
fn a_wait_does_not_hold_back_the_stateful_call_of_the_next_round_that_does_not_need_it() {
    for (name, options) in all_options() {
        let ran = run(INDEPENDENT, (&at_once(), &one_by_one(0, ROUNDS)), options);
        assert_eq!((ran.answer, ran.ms), (Ok(Value::Int(15)), 100), "under {name}");
    }
}

#[test]
fn a_sum_that_might_overflow_holds_back_the_stateful_call_of_the_next_round() {
    // The call of a round begins when the round before it has added its results up: all reads end after 100 ms.
    let counts = (0..ROUNDS)
        .map(|round| (if round == 0 { 0 } else { READ_MS + COUNT_MS * (round as u64 - 1) }, vec![round as i64]));
    let counts: Schedule = counts.collect();
    for (name, options) in all_options() {
        let ran = run(ADDING, (&at_once(), &counts), options);
        assert_eq!((ran.answer, ran.ms), (Ok(Value::Int(30)), 150), "under {name}");
    }
}

#[test]
fn stateful_calls_that_need_the_waits_of_their_rounds_follow_them() {
    for (name, options) in all_options() {
        let ran = run(DEPENDENT, (&at_once(), &one_by_one(100, ROUNDS)), options);
        assert_eq!((ran.answer, ran.ms), (Ok(Value::Int(15)), 160), "under {name}");
    }
}

#[test]
fn stateful_calls_follow_the_waits_that_may_end_the_flow() {
    for (name, options) in all_options() {
        let ran = run(ENDING, (&at_once(), &one_by_one(100, ROUNDS)), options);
        assert_eq!((ran.answer, ran.ms), (Ok(Value::Int(15)), 160), "under {name}");
    }
}

#[test]
fn a_round_that_ends_the_flow_keeps_the_stateful_calls_of_later_rounds_from_running() {
    for (name, options) in all_options() {
        let ran = run(FAILING, (&at_once(), &one_by_one(100, 2)), options);
        let said = ran.answer.map_err(|failure| failure.message.to_string());
        assert_eq!((said, ran.ms), (Err("no".to_owned()), 120), "under {name}");
    }
}
