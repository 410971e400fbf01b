//! Batches under every engine: which calls they gather, in which order, and what becomes of calls that are cancelled
//! or fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use test_support::flows::batches::BatchGates;
use test_support::flows::gates::{Gates, on_shared};
use test_support::flows::{options, started};
use tokio::sync::oneshot;
use weir_host::{Batch, Failure, FailureKind, Passing, Value, World};
use weir_runtime::{ENGINES, Options, ScriptedPlatform, SliceLength};
use weir_trace::{Detail, EventKind, FlowKey, Recorder, TraceReader};

type Awaited = oneshot::Receiver<Result<Value, Failure>>;

/// The time limit for the events that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test under every engine. Time stands still for the program, so that no slice is over because the machine is busy.
fn every_engine(test: impl Fn(Options, &'static str)) {
    for row in ENGINES {
        let platform = Arc::new(ScriptedPlatform::new(0));
        test(Options { platform, ..options(row.name, 2) }, row.name);
    }
}

/// The flows of a program whose calls have joined a batch, and those that were given up.
struct Watched {
    trace: TraceReader,
    waiting: BTreeSet<FlowKey>,
    given_up: BTreeSet<FlowKey>,
}

impl Watched {
    fn new(options: Options) -> (Options, Watched) {
        let (recorder, trace) = Recorder::new(Detail::Nodes, 10_000);
        let watched = Watched { trace, waiting: BTreeSet::new(), given_up: BTreeSet::new() };
        (Options { recorder, ..options }, watched)
    }

    /// Waits until this many flows have made a call that waits since the start, and this many were given up.
    fn until(&mut self, waiting: usize, given_up: usize) {
        while self.waiting.len() < waiting || self.given_up.len() < given_up {
            let events = self.trace.wait(PATIENCE);
            let (seen, expected) = ((self.waiting.len(), self.given_up.len()), (waiting, given_up));
            assert!(!events.is_empty(), "of {expected:?} flows that wait or are given up, {seen:?} do");
            for event in events {
                match event.kind {
                    EventKind::NodeWaits { flow, .. } => _ = self.waiting.insert(flow),
                    EventKind::FlowGivenUp { flow } => _ = self.given_up.insert(flow),
                    _ => {}
                }
            }
        }
    }
}

fn limits(at_most: usize, in_flight: usize) -> Batch {
    Batch { at_most, in_flight, gathered: 0 }
}

fn answer(flow: Awaited) -> Result<Value, Failure> {
    flow.blocking_recv().expect("the flow is answered")
}

fn int(number: i64) -> Result<Value, Failure> {
    Ok(Value::Int(number))
}

/// A call whose failure counts as -1.
const CALL: &str = "%1: Result(Int, Failure) = call a.get at a (%0)\n\
                    %2: Int = switch %1\n  tag 0 (%3: Int)\n    yield %3\n  tag 1 (%4: Failure)\n    yield -1\nyield %2";

/// One call for each of four elements, of which two are equal; the sum of the results, or -1 if one fails.
const ROUNDS: &str = "%1: List(Result(Int, Failure)) = for %2: Int in [1, 2, 2, 3]\n  \
                      %3: Result(Int, Failure) = call a.get at a (%2)\n  yield %3\n\
                      %4: Int = fold %1 from 0 as %5: Int, %6: Result(Int, Failure)\n  \
                      %7: Int = switch %6\n    tag 0 (%8: Int)\n      %9: Int = add(%5, %8)\n      yield %9\n    \
                      tag 1 (%10: Failure)\n      %11: Int = subtract(%5, 1)\n      yield %11\n  yield %7\nyield %4";

#[test]
fn the_rounds_of_a_for_are_one_batch_in_which_equal_reads_are_one_request() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, running) = started([gates.batched("a.get", World::Reads, limits(10, 2))], "", ROUNDS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let batch = gates.next();
        assert_eq!((batch.path, &*batch.arguments), ("a.get", &[1, 2, 3][..]), "{name}");
        batch.answer();
        assert_eq!(answer(flow), int(80), "{name}");
        drop(feed);
        running.wait().unwrap();
    });
}

#[test]
fn equal_reads_of_a_long_for_are_one_request() {
    let body = ROUNDS.replace("[1, 2, 2, 3]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 3, 12, 9, 1]");
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(20, 2))], "", &body, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let batch = gates.next();
        assert_eq!(batch.arguments, (1..=12).collect::<Vec<_>>(), "{name}");
        batch.answer();
        assert_eq!(answer(flow), int(780 + 250), "{name}");
    });
}

/// One call for each of three elements, of which each yields the answer, or the element if the call fails; their sum.
const ANSWERS: &str = "%1: List(Int) = for %2: Int in [1, 2, 3]\n  \
                       %3: Result(Int, Failure) = call a.get at a (%2)\n  \
                       %4: Int = switch %3\n    tag 0 (%5: Int)\n      yield %5\n    tag 1 (%6: Failure)\n      \
                       yield %2\n  yield %4\n\
                       %7: Int = fold %1 from 0 as %8: Int, %9: Int\n  %10: Int = add(%8, %9)\n  yield %10\nyield %7";

#[test]
fn a_for_yields_the_answers_of_its_calls_or_what_stands_for_those_that_fail() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, _running) = started([gates.batched("a.get", World::Writes, limits(2, 1))], "", ANSWERS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        gates.next().fail("down");
        gates.next().answer();
        assert_eq!(answer(flow), int(1 + 2 + 30), "{name}");
    });
}

#[test]
fn rounds_of_several_calls_go_on_with_those_that_are_in_the_same_batch_and_take_the_same_arm() {
    let body = "%1: List(Int) = for %2: Int in [1, 2, 3, 4, 5]\n  %3: Result(Int, Failure) = call a.get at a (%2)\n  \
                %4: Int = switch %3\n    tag 0 (%5: Int)\n      %6: Result(Int, Failure) = call b.get at b (%5)\n      \
                %7: Int = switch %6\n        tag 0 (%8: Int)\n          %9: Int = subtract(%8, %2)\n          yield %9\n        \
                tag 1 (%10: Failure)\n          yield 0\n      yield %7\n    \
                tag 1 (%11: Failure)\n      yield -1\n  yield %4\n\
                %20: Int = fold %1 from 0 as %21: Int, %22: Int\n  %23: Int = add(%21, %22)\n  yield %23\nyield %20";
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let functions = [("a.get", limits(2, 3)), ("b.get", limits(3, 1))];
        let functions = functions.map(|(path, limits)| gates.batched(path, World::Reads, limits));
        let (feed, running) = started(functions, "", body, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let mut of_a = [gates.next(), gates.next(), gates.next()];
        of_a.sort_by_key(|batch| batch.arguments[0]);
        let [first, second, last] = of_a;
        assert_eq!((&first.arguments[..], &second.arguments[..]), (&[1, 2][..], &[3, 4][..]), "{name}");
        last.fail("no");
        first.answer();
        let batch = gates.next();
        assert_eq!((batch.path, &*batch.arguments), ("b.get", &[10, 20][..]), "{name}");
        second.answer();
        batch.answer();
        let batch = gates.next();
        assert_eq!((batch.path, &*batch.arguments), ("b.get", &[30, 40][..]), "{name}");
        batch.answer();
        assert_eq!(answer(flow), int(99 + 198 + 297 + 396 - 1), "{name}");
        drop(feed);
        running.wait().unwrap();
    });
}

#[test]
fn a_flow_is_charged_for_the_answers_of_its_batch() {
    const BYTES: usize = 1 << 30;
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let options = Options { slice: SliceLength::ONE_UNIT, ..options };
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(10, 2))], "", ROUNDS, options);
        let large = feed.begin(vec![Value::Int(0)]);
        gates.next().answer_of_bytes(BYTES);
        let failure = answer(large).expect_err("a flow may hold a quarter of that");
        assert_eq!(failure.kind, FailureKind::Memory, "{name}: {}", failure.message);
        let small = feed.begin(vec![Value::Int(0)]);
        gates.next().answer();
        assert_eq!(answer(small), int(80), "{name}");
    });
}

#[test]
fn answers_count_while_they_arrive_and_of_the_flows_in_a_batch_only_those_fail_that_need_too_much() {
    const MANY: usize = 1 << 30;
    every_engine(|options, name| {
        let (gates, (options, mut watched)) = (BatchGates::new(), Watched::new(options));
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(100, 1))], "", CALL, options);
        let first = feed.begin(vec![Value::Int(0)]);
        let out = gates.next();
        let later: Vec<Awaited> = (1..4).map(|flow| feed.begin(vec![Value::Int(flow)])).collect();
        watched.until(4, 0);
        // One flow may hold less than the answers, and nothing is tried again.
        out.answer_of_bytes(MANY);
        let failure = answer(first).expect_err("a flow may hold a quarter of that");
        assert_eq!(failure.kind, FailureKind::Memory, "{name}: {}", failure.message);
        let gathered = gates.next();
        assert_eq!(gathered.arguments.len(), 3, "{name}");
        gathered.answer_of_bytes(MANY);
        for _ in 1..4 {
            let alone = gates.next();
            assert_eq!(alone.arguments.len(), 1, "{name}");
            if alone.arguments == [2] { alone.answer_of_bytes(MANY) } else { alone.answer() }
        }
        for (flow, later) in (1..4).zip(later) {
            match answer(later) {
                Err(failure) => assert_eq!((flow, failure.kind), (2, FailureKind::Memory), "{name}"),
                answered => assert_eq!(answered, int(flow * 10), "{name}"),
            }
        }
    });
}

#[test]
fn a_flow_fills_a_batch_although_its_slices_are_over() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let options = Options { slice: SliceLength::ONE_UNIT, ..options };
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(10, 2))], "", ROUNDS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let batch = gates.next();
        assert_eq!(batch.arguments, [1, 2, 3], "{name}");
        batch.answer();
        assert_eq!(answer(flow), int(80), "{name}");
    });
}

#[test]
fn writes_are_gathered_in_the_order_of_the_text_and_equal_ones_are_sent_each() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, _running) = started([gates.batched("a.get", World::Writes, limits(10, 4))], "", ROUNDS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let batch = gates.next();
        assert_eq!(batch.arguments, [1, 2, 2, 3], "{name}");
        batch.answer();
        assert_eq!(answer(flow), int(80), "{name}");
    });
}

#[test]
fn straight_writes_of_one_flow_are_one_batch_and_what_reads_them_waits_for_all() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let body = "%1: Result(Int, Failure) = call a.put at p1 (1)\n%2: Result(Int, Failure) = call a.put at p2 (2)\n\
                    %3: Result(Int, Failure) = call a.get at g (3)\n%4: Int = switch %3\n  tag 0 (%5: Int)\n    yield %5\n  \
                    tag 1 (%6: Failure)\n    yield -1\nyield %4";
        let functions =
            [gates.batched("a.put", World::Writes, limits(10, 4)), gates.batched("a.get", World::Reads, limits(10, 4))];
        let (feed, _running) = started(functions, "", body, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let writes = gates.next();
        assert_eq!((writes.path, &*writes.arguments), ("a.put", &[1, 2][..]), "{name}");
        assert!(gates.is_quiet(), "{name}: the read passes no write");
        writes.answer();
        let reads = gates.next();
        assert_eq!((reads.path, &*reads.arguments), ("a.get", &[3][..]), "{name}");
        reads.answer();
        assert_eq!(answer(flow), int(30), "{name}");
    });
}

#[test]
fn a_batch_has_at_most_as_many_requests_as_its_function_allows() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(2, 2))], "", ROUNDS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        let mut batches = [gates.next(), gates.next()];
        batches.sort_by_key(|batch| batch.arguments.clone());
        assert_eq!(batches.each_ref().map(|batch| batch.arguments.clone()), [vec![1, 2], vec![2, 3]], "{name}");
        batches.into_iter().for_each(|batch| batch.answer());
        assert_eq!(answer(flow), int(80), "{name}");
    });
}

#[test]
fn calls_of_all_flows_gather_while_as_many_batches_are_out_as_may() {
    every_engine(|options, name| {
        let (gates, (options, mut watched)) = (BatchGates::new(), Watched::new(options));
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(100, 1))], "", CALL, options);
        let first = feed.begin(vec![Value::Int(0)]);
        let out = gates.next();
        let later: Vec<Awaited> = (1..6).map(|flow| feed.begin(vec![Value::Int(flow)])).collect();
        watched.until(6, 0);
        assert!(gates.is_quiet(), "{name}");
        out.answer();
        let mut gathered = gates.next();
        gathered.arguments.sort_unstable();
        assert_eq!(gathered.arguments, [1, 2, 3, 4, 5], "{name}");
        gathered.answer();
        assert_eq!(answer(first), int(0));
        (1..6).zip(later).for_each(|(flow, later)| assert_eq!(answer(later), int(flow * 10), "{name}"));
    });
}

#[test]
fn a_cancelled_flow_leaves_its_batch() {
    every_engine(|options, name| {
        let (gates, (options, mut watched)) = (BatchGates::new(), Watched::new(options));
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(100, 1))], "", CALL, options);
        let first = feed.begin(vec![Value::Int(0)]);
        let out = gates.next();
        let leaves = feed.begin(vec![Value::Int(1)]);
        let stays = feed.begin(vec![Value::Int(2)]);
        watched.until(3, 0);
        drop(leaves);
        watched.until(3, 1);
        assert!(gates.is_quiet(), "{name}");
        out.answer();
        let gathered = gates.next();
        assert_eq!(gathered.arguments, [2], "{name}");
        gathered.answer();
        assert_eq!((answer(first), answer(stays)), (int(0), int(20)), "{name}");
        let alone = feed.begin(vec![Value::Int(3)]);
        let out = gates.next();
        drop(alone);
        out.given_up();
        let next = feed.begin(vec![Value::Int(4)]);
        gates.next().answer();
        assert_eq!(answer(next), int(40), "{name}: the place of the cancelled batch is free");
    });
}

#[test]
fn a_read_that_fails_as_a_whole_is_tried_in_halves_until_one_request_fails_alone() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(10, 1))], "", ROUNDS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        for (arguments, succeeds) in [(vec![1, 2, 3], false), (vec![1], true), (vec![2, 3], false), (vec![2], true)] {
            let batch = gates.next();
            assert_eq!(batch.arguments, arguments, "{name}");
            if succeeds { batch.answer() } else { batch.fail("no such row") }
        }
        gates.next().fail("no such row");
        assert_eq!(answer(flow), int(10 + 20 + 20 - 1), "{name}");
    });
}

#[test]
fn a_write_that_fails_as_a_whole_is_not_repeated() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let (feed, _running) = started([gates.batched("a.get", World::Writes, limits(10, 1))], "", ROUNDS, options);
        let flow = feed.begin(vec![Value::Int(0)]);
        gates.next().fail("the connection is gone");
        assert_eq!(answer(flow), int(-4), "{name}");
        assert!(gates.is_quiet(), "{name}");
    });
}

#[test]
fn a_panic_fails_the_calls_of_its_batch_only() {
    every_engine(|options, name| {
        let (gates, (options, mut watched)) = (BatchGates::new(), Watched::new(options));
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(10, 1))], "", CALL, options);
        let flow = feed.begin(vec![Value::Int(1)]);
        let out = gates.next();
        let later = feed.begin(vec![Value::Int(2)]);
        watched.until(2, 0);
        assert!(gates.is_quiet(), "{name}");
        out.panic();
        let failure = answer(flow).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Panic, "{name}");
        assert_eq!(failure.message.as_str(), "`a.get` panicked: the test wants it");
        gates.next().answer();
        assert_eq!(answer(later), int(20), "{name}");
    });
}

#[test]
fn a_call_whose_time_limit_expires_leaves_its_batch() {
    every_engine(|options, name| {
        let (gates, clock) = (BatchGates::new(), Arc::new(ScriptedPlatform::new(0)));
        let options = Options { platform: clock.clone(), ..options };
        let body = "%1: Option(Int) = within 1ms\n  %2: Result(Int, Failure) = call a.get at a (%0)\n  yield 1\n\
                    %3: Int = switch %1\n  tag 1 (%4: Int)\n    yield %4\n  tag 0\n    yield 0\nyield %3";
        let (feed, _running) = started([gates.batched("a.get", World::Reads, limits(10, 1))], "", body, options);
        let flow = feed.begin(vec![Value::Int(1)]);
        let batch = gates.next();
        clock.pass_ns(1_000_000);
        batch.given_up();
        assert_eq!(answer(flow), int(0), "{name}");
    });
}

#[test]
fn calls_of_an_atomic_step_are_gathered_while_it_holds_its_locks() {
    every_engine(|options, name| {
        let gates = BatchGates::new();
        let body = "%1: Int = atomic (write shared s)\n  %2: Result(Int, Failure) = call a.get at a1 (1)\n  \
                    %3: Result(Int, Failure) = call a.get at a2 (2)\n  %4: Int = switch %2\n    tag 0 (%5: Int)\n      \
                    yield %5\n    tag 1 (%6: Failure)\n      yield -1\n  yield %4\nyield %1";
        let functions = [gates.batched("a.get", World::Reads, limits(10, 1))];
        let (feed, _running) = started(functions, "shared s: Int\n  yield 0\n", body, options);
        let flows = [feed.begin(vec![Value::Int(1)]), feed.begin(vec![Value::Int(2)])];
        for _ in &flows {
            let batch = gates.next();
            assert_eq!(batch.arguments, [1, 2], "{name}: one step after the other");
            batch.answer();
        }
        flows.into_iter().for_each(|flow| assert_eq!(answer(flow), int(10), "{name}"));
    });
}

#[test]
fn a_batch_holds_the_lock_of_a_shared_value_only_while_it_is_sent_and_leaves_the_queue_with_its_calls() {
    let body = "%1: Bool = less(%0, 100)\n%2: Int = switch %1\n  value true\n    \
                %3: Result(Int, Failure) = call a.get at a (shared s, %0)\n    %4: Int = switch %3\n      \
                tag 0 (%5: Int)\n        yield %5\n      tag 1 (%6: Failure)\n        yield -1\n    yield %4\n  \
                otherwise\n    %7: Int = call a.change at b (shared s, %0)\n    yield %7\nyield %2";
    every_engine(|options, name| {
        let (batches, changes, (options, mut watched)) = (BatchGates::new(), Gates::new(), Watched::new(options));
        let get = batches.batched("a.get", World::Reads, Batch { gathered: 1, ..limits(10, 1) });
        let change = on_shared(changes.waiting("a.change", World::Pure), Passing::Change);
        let functions = [on_shared(get, Passing::Borrow), change];
        let (feed, running) = started(functions, "shared s: Int\n  yield 0\n", body, options);
        let begin = |argument: i64| feed.begin(vec![Value::Int(argument)]);
        let first = begin(100);
        let holder = changes.next();
        let leaves = begin(1);
        watched.until(2, 0);
        assert!(batches.is_quiet(), "{name}: the value is locked");
        let second = begin(101);
        watched.until(3, 0);
        drop(leaves);
        watched.until(3, 1);
        holder.release();
        let holder = changes.next();
        let reads = begin(2);
        watched.until(4, 1);
        assert!(batches.is_quiet(), "{name}: the value is locked again");
        holder.release();
        let batch = batches.next();
        assert_eq!(batch.arguments, [2], "{name}");
        let third = begin(102);
        changes.next().release();
        assert_eq!(answer(third), int(102), "{name}: the batch holds no lock while it is under way");
        batch.answer();
        assert_eq!((answer(first), answer(second), answer(reads)), (int(100), int(101), int(20)), "{name}");
        drop(feed);
        running.wait().unwrap();
    });
}
