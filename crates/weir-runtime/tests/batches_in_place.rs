//! A flow that is alone sends its batches itself under every engine, if their functions answer at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use test_support::flows::batches::BatchGates;
use test_support::flows::gates::{fallible, function};
use test_support::flows::{options, started};
use tokio::sync::oneshot;
use weir_host::{
    Batch, BatchAnswers, Environment, Failure, Function, FunctionCode, Outcome, Passing, PendingBatch, Settled, Type,
    Value, World,
};
use weir_runtime::{ENGINES, Options, ScriptedPlatform, SliceLength};
use weir_trace::{BatchDeparture, Detail, EventKind, Recorder, TraceReader};

const LIMITS: Batch = Batch { at_most: 100, in_flight: 4, gathered: 0 };

/// The time limit for an event that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A call, and another one with its answer.
const CHAIN: &str = "%1: Result(Int, Failure) = call a.get at a1 (%0)\n\
                     %2: Int = switch %1\n  tag 0 (%3: Int)\n    yield %3\n  tag 1 (%4: Failure)\n    yield -1\n\
                     %5: Result(Int, Failure) = call a.get at a2 (%2)\n\
                     %6: Int = switch %5\n  tag 0 (%7: Int)\n    yield %7\n  tag 1 (%8: Failure)\n    yield -1\nyield %6";

/// A call, and one of another function with its answer.
const TWO_FUNCTIONS: &str = "%1: Result(Int, Failure) = call a.get at a1 (%0)\n\
                             %2: Int = switch %1\n  tag 0 (%3: Int)\n    yield %3\n  tag 1 (%4: Failure)\n    yield -1\n\
                             %5: Result(Int, Failure) = call b.get at b1 (%2)\n\
                             %6: Int = switch %5\n  tag 0 (%7: Int)\n    yield %7\n  tag 1 (%8: Failure)\n    \
                             yield -1\nyield %6";

/// Two rounds: one makes its call `a` at once, and the other one only if the answer of its call `b` says so.
const PERHAPS_LATER: &str = "%1: List(Int) = list(%0, 6)
%2: List(Int) = for %3: Int in %1
  %4: Bool = equal(%3, 6)
  %5: Int = switch %4
    value true
      %6: Result(Int, Failure) = call b.get at b1 (%3)
      %7: Int = switch %6
        tag 0 (%8: Int)
          yield %8
        tag 1 (%9: Failure)
          yield -1
      yield %7
    otherwise
      yield %3
  %10: Bool = equal(%5, 0)
  %11: Int = switch %10
    value true
      yield 0
    otherwise
      %12: Result(Int, Failure) = call a.get at a1 (%5)
      %13: Int = switch %12
        tag 0 (%14: Int)
          yield %14
        tag 1 (%15: Failure)
          yield -1
      yield %13
  yield %11
%16: Int = fold %2 from 0 as %17: Int, %18: Int
  %19: Int = add(%17, %18)
  yield %19
yield %16";

/// A round for each element of a list, which calls `a` after a loop.
const ROUNDS: &str = "%1: List(Int) = list(%0, 6, 7)
%2: List(Int) = for %3: Int in %1
  %4: Int = fold %1 from %3 as %5: Int, %6: Int
    %7: Int = add(%5, 1)
    yield %7
  %8: Result(Int, Failure) = call a.get at a1 (%4)
  %9: Int = switch %8
    tag 0 (%10: Int)
      yield %10
    tag 1 (%11: Failure)
      yield -1
  yield %9
%12: Int = fold %2 from 0 as %13: Int, %14: Int
  %15: Int = add(%13, %14)
  yield %15
yield %12";

/// Rounds that compute between two calls, with answers that choose no arm.
const COMPUTING_ROUNDS: &str = "%1: List(Int) = list(%0, 6, 7)
%2: List(Int) = for %3: Int in %1
  %4: Int = add(%3, 1)
  %5: Int = call a.get at a1 (%4)
  %6: Int = add(%5, 6)
  %7: Int = multiply(%6, %6)
  %8: Int = subtract(%7, %6)
  %9: Int = multiply(%8, 3)
  %10: Int = subtract(%9, %6)
  %11: Int = call b.get at b1 (%10)
  %12: Int = add(%11, %10)
  %13: Int = subtract(%12, 1)
  yield %13
%14: Int = fold %2 from 0 as %15: Int, %16: Int
  %17: Int = add(%15, %16)
  yield %17
yield %14";

/// Returns a batched function that multiplies by ten, at once or, while it `waits`, after others have had their turn.
fn ready(path: &'static str, waits: &Arc<AtomicBool>) -> Function {
    let number = |value: &Value| if let Value::Int(number) = value { *number } else { 0 };
    let answer = |number: i64| Outcome::Value(Value::Int(number * 10));
    let waits = Arc::clone(waits);
    let code = move |arguments: Vec<Value>, _: &[Value], _: &Environment| -> Result<PendingBatch, Box<Failure>> {
        let waits = Arc::clone(&waits);
        Ok(Box::pin(async move {
            if waits.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            let answers = arguments.iter().map(|argument| answer(number(argument))).collect();
            BatchAnswers { answers, failed_as_a_whole: false }
        }))
    };
    let alone = FunctionCode::Waiting(Arc::new(move |call| {
        let outcome = answer(number(&call.value(0)));
        Ok(Box::pin(async move { Settled { outcome, restored: Vec::new() } }))
    }));
    let mut function = fallible(function(path, &[("x", Type::Int, Passing::Value)], World::Reads, alone));
    function.signature.batch = Some(LIMITS);
    function.batch = Some(Arc::new(code));
    function
}

/// The batches of a program that were answered, as the trace has them.
struct Departures(TraceReader);

impl Departures {
    /// Returns the options of a program under an engine. Time stands still for it, so that a function takes no time.
    fn new(engine: &str) -> (Options, Departures) {
        let (recorder, trace) = Recorder::new(Detail::Flows, 1_000);
        let platform = Arc::new(ScriptedPlatform::new(0));
        (Options { recorder, platform, ..options(engine, 2) }, Departures(trace))
    }

    /// Returns how many of the next batches of `a.get` were sent in place; the others had senders. The trace may have them in
    /// another order, because several threads write it.
    fn in_place(&self, count: usize) -> usize {
        let mut found: Vec<BatchDeparture> = Vec::new();
        while found.len() < count {
            found.extend(self.next().into_iter().map(|(_, reason)| reason));
        }
        let in_place = |reason: &BatchDeparture| match reason {
            BatchDeparture::InPlace => true,
            BatchDeparture::NothingMore => false,
            other => panic!("{other}"),
        };
        found.iter().filter(|reason| in_place(reason)).count()
    }

    /// Returns the numbers of calls of the next batches of `a.get` that have so many together.
    fn of_calls(&self, all: u64) -> Vec<u64> {
        let mut found: Vec<u64> = Vec::new();
        while found.iter().sum::<u64>() < all {
            found.extend(self.next().into_iter().map(|(calls, _)| calls));
        }
        found
    }

    /// Returns the next batches of `a.get`, at least one: the number of calls of each, and why it was sent.
    fn next(&self) -> Vec<(u64, BatchDeparture)> {
        let mut found = Vec::new();
        while found.is_empty() {
            let events = self.0.wait(PATIENCE);
            assert!(!events.is_empty(), "a batch is answered");
            found.extend(events.into_iter().filter_map(|event| match event.kind {
                EventKind::BatchAnswered { function, calls, sent_because, .. } if &*function == "a.get" => {
                    Some((calls, sent_because))
                }
                _ => None,
            }));
        }
        found
    }
}

fn answer(flow: oneshot::Receiver<Result<Value, Failure>>) -> Result<Value, Failure> {
    flow.blocking_recv().expect("the flow is answered")
}

#[test]
fn a_flow_that_is_alone_sends_its_batches_itself_if_they_are_answered_at_once() {
    for row in ENGINES {
        let (options, departures) = Departures::new(row.name);
        let (feed, _running) = started([ready("a.get", &Arc::default())], "", CHAIN, options);
        for x in 0..4 {
            assert_eq!(answer(feed.begin(vec![Value::Int(x)])), Ok(Value::Int(x * 100)), "{}", row.name);
        }
        assert_eq!(
            departures.in_place(8),
            5,
            "{}: nothing is known of the function until three are answered",
            row.name
        );
    }
}

#[test]
fn in_place_a_call_waits_for_others_that_may_not_be_made() {
    for row in ENGINES {
        let (options, departures) = Departures::new(row.name);
        let functions = ["a.get", "b.get"].map(|path| ready(path, &Arc::default()));
        let (feed, _running) = started(functions, "", PERHAPS_LATER, options);
        for x in 11..=16 {
            assert_eq!(answer(feed.begin(vec![Value::Int(x)])), Ok(Value::Int(x * 10 + 600)), "{}", row.name);
        }
        let batches = departures.of_calls(12);
        let of_both = batches.iter().filter(|calls| **calls == 2).count();
        assert!(of_both >= 3, "{}: nothing is known of `b.get` in the first three flows: {batches:?}", row.name);
    }
}

#[test]
fn a_flow_fills_a_batch_that_it_may_send_itself_although_its_slices_are_over() {
    for row in ENGINES {
        let (options, departures) = Departures::new(row.name);
        let options = Options { slice: SliceLength::ONE_UNIT, ..options };
        let (feed, _running) = started([ready("a.get", &Arc::default())], "", ROUNDS, options);
        for x in 0..5 {
            assert_eq!(answer(feed.begin(vec![Value::Int(x)])), Ok(Value::Int(x * 10 + 220)), "{}", row.name);
        }
        assert_eq!(departures.of_calls(15), [3; 5], "{}", row.name);
    }
}

#[test]
fn rounds_compute_between_calls_whose_answers_choose_no_arm() {
    let round = |element: i64| {
        let answer = (element + 1) * 10 + 6;
        let asked = (answer * answer - answer) * 3 - answer;
        asked * 10 + asked - 1
    };
    for (row, slice) in ENGINES.iter().flat_map(|row| [(row, SliceLength::default()), (row, SliceLength::ONE_UNIT)]) {
        let (options, departures) = Departures::new(row.name);
        let functions = ["a.get", "b.get"].map(|path| {
            let mut function = ready(path, &Arc::default());
            function.signature.failure = None;
            function
        });
        let (feed, _running) = started(functions, "", COMPUTING_ROUNDS, Options { slice, ..options });
        for x in 0..5 {
            let expected = round(x) + round(6) + round(7);
            assert_eq!(answer(feed.begin(vec![Value::Int(x)])), Ok(Value::Int(expected)), "{}", row.name);
        }
        assert_eq!(departures.of_calls(15), [3; 5], "{}", row.name);
    }
}

#[test]
fn a_batch_that_is_not_answered_at_once_after_all_gets_a_sender() {
    for row in ENGINES {
        let ((options, departures), waits) = (Departures::new(row.name), Arc::<AtomicBool>::default());
        let (feed, _running) = started([ready("a.get", &waits)], "", CHAIN, options);
        for (x, function_waits) in [(1, false), (2, false), (3, true), (4, true)] {
            waits.store(function_waits, Ordering::SeqCst);
            assert_eq!(answer(feed.begin(vec![Value::Int(x)])), Ok(Value::Int(x * 100)), "{}", row.name);
        }
        assert_eq!(departures.in_place(8), 2, "{}", row.name);
    }
}

#[test]
fn a_flow_leaves_its_batches_to_senders_while_another_one_has_calls_in_batches() {
    // Under this engine a flow comes to rest before the sender of its batch runs, so that it is counted when the gate is reached.
    let ((options, departures), gates) = (Departures::new("event"), BatchGates::new());
    let functions = [ready("a.get", &Arc::default()), gates.batched("b.get", World::Reads, LIMITS)];
    let (feed, _running) = started(functions, "", TWO_FUNCTIONS, options);
    for x in 0..3 {
        let flow = feed.begin(vec![Value::Int(x)]);
        gates.next().answer();
        assert_eq!(answer(flow), Ok(Value::Int(x * 100)));
    }
    let begun = [4, 5].map(|x| (feed.begin(vec![Value::Int(x)]), gates.next()));
    for ((flow, gate), x) in begun.into_iter().zip([4, 5]) {
        gate.answer();
        assert_eq!(answer(flow), Ok(Value::Int(x * 100)));
    }
    assert_eq!(departures.in_place(5), 1);
}
