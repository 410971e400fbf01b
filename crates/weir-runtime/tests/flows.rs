//! Flows under every engine: overlap, order, and the ways in which they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::flows::gates::{Gates, failure, fallible, function, immediate, int, library, on_shared, with_state};
use test_support::flows::{Feed, one_flow, options, started};
use weir_host::{Failure, FailureKind, Function, FunctionCode, Mode, Outcome, Passing, StateOf, Type, Value, World};
use weir_runtime::{ENGINES, Options};
use weir_trace::{Detail, EventKind, Recorder};

const ONE_SHARED: &str = "shared s: Int\n  yield 0\n";

fn every_engine(test: impl Fn(&'static str)) {
    ENGINES.iter().for_each(|row| test(row.name));
}

#[test]
fn waiting_calls_of_different_parts_of_the_world_overlap() {
    every_engine(|name| {
        let gates = Gates::new();
        let functions = [gates.waiting("a.wait", World::Writes), gates.waiting("b.wait", World::Writes)];
        let body = "%1: Int = call a.wait at a (%0)\n%2: Int = call b.wait at b (%0)\n%3: Int = add(%1, %2)\nyield %3";
        let (feed, running) = started(functions, "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(4)]);
        let (one, other) = (gates.next(), gates.next());
        assert_eq!([one.path, other.path], ["a.wait", "b.wait"]);
        other.release();
        one.release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(8)));
        drop(feed);
        running.wait().unwrap();
    });
}

/// The arm that ends the flow waits for a call that the steps after the switch do not wait for.
#[test]
fn what_follows_an_arm_that_ends_the_flow_does_not_begin_while_the_arm_waits() {
    every_engine(|name| {
        let (gates, calls) = (Gates::new(), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&calls);
        let after = immediate("b.after", &[("x", Type::Int, Passing::Value)], move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            Outcome::Value(Value::Int(0))
        });
        let body = "%1: Int = call a.wait at a (%0)\n%2: Int = switch %0\n  value 7\n    yield 1\n  otherwise\n    \
                    %3: Int = add(%1, 1)\n    %4: Never = return %3\n    yield ()\n\
                    %5: Int = call b.after at b (%2)\nyield %5";
        let functions = [gates.waiting("a.wait", World::Writes), after];
        let (feed, running) = started(functions, "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(4)]);
        gates.next().release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(5)));
        assert_eq!(calls.load(Ordering::SeqCst), 0, "{name}: it was called with nothing");
        let other = feed.begin(vec![Value::Int(7)]);
        gates.next().release();
        assert_eq!((other.blocking_recv().unwrap(), calls.load(Ordering::SeqCst)), (Ok(Value::Int(0)), 1));
        drop(feed);
        running.wait().unwrap();
    });
}

#[test]
fn calls_of_one_part_of_the_world_keep_their_order() {
    every_engine(|name| {
        let gates = Gates::new();
        let body = "%1: Int = call a.wait at a1 (1)\n%2: Int = call a.wait at a2 (2)\nyield %2";
        let (feed, _running) = started([gates.waiting("a.wait", World::Writes)], "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(0)]);
        let first = gates.next();
        assert_eq!((first.argument, gates.is_quiet()), (1, true));
        first.release();
        let second = gates.next();
        assert_eq!(second.argument, 2);
        second.release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(2)));
    });
}

#[test]
fn iterations_overlap_where_their_calls_only_read() {
    every_engine(|name| {
        let gates = Gates::new();
        let body = "%1: List(Int) = for %2: Int in [1, 2, 3]\n  %3: Int = call a.wait at a (%2)\n  yield %3\n\
                    %4: Int = length(%1)\nyield %4";
        let (feed, _running) = started([gates.waiting("a.wait", World::Reads)], "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(0)]);
        let mut begun = [gates.next(), gates.next(), gates.next()];
        begun.reverse();
        assert_eq!(begun.each_ref().map(|call| call.argument), [3, 2, 1]);
        begun.into_iter().for_each(test_support::flows::gates::Waiting::release);
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(3)));
    });
}

#[test]
fn iterations_keep_their_order_where_their_calls_write() {
    every_engine(|name| {
        let gates = Gates::new();
        let body = "%1: List(Int) = for %2: Int in [1, 2, 3]\n  %3: Int = call a.wait at a (%2)\n  yield %3\n\
                    %4: Int = length(%1)\nyield %4";
        let (feed, _running) = started([gates.waiting("a.wait", World::Writes)], "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(0)]);
        for expected in 1..=3 {
            let call = gates.next();
            assert_eq!((call.argument, gates.is_quiet()), (expected, true));
            call.release();
        }
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(3)));
    });
}

#[test]
fn flows_change_a_shared_value_one_at_a_time_first_come_first_served() {
    every_engine(|name| {
        let gates = Gates::new();
        let change = on_shared(gates.waiting("a.change", World::Pure), Passing::Change);
        let body = "%1: Int = call a.change at a (shared s, %0)\nyield %1";
        let (feed, _running) = started([change], ONE_SHARED, body, options(name, 3));
        let first = feed.begin(vec![Value::Int(0)]);
        let holder = gates.next();
        let answers: Vec<_> = (1..3).map(|flow| feed.begin(vec![Value::Int(flow)])).collect();
        assert!(gates.is_quiet());
        holder.release();
        let mut seen = Vec::new();
        for _ in 1..3 {
            let call = gates.next();
            assert!(gates.is_quiet());
            seen.push(call.argument);
            call.release();
        }
        // Threads of a pool may reach the lock in another order than they took their flows in.
        if name == "event" {
            assert_eq!(seen, [1, 2]);
        }
        assert_eq!(first.blocking_recv().unwrap(), Ok(Value::Int(0)));
        answers.into_iter().for_each(|answer| assert!(answer.blocking_recv().unwrap().is_ok()));
    });
}

#[test]
fn a_flow_that_is_given_up_releases_its_lock_and_its_place() {
    every_engine(|name| {
        let gates = Gates::new();
        let change = on_shared(gates.waiting("a.change", World::Pure), Passing::Change);
        let body = "%1: Int = call a.change at a (shared s, %0)\nyield %1";
        let (feed, _running) = started([change], ONE_SHARED, body, options(name, 3));
        let holder = feed.begin(vec![Value::Int(0)]);
        let held = gates.next();
        let queued = feed.begin(vec![Value::Int(1)]);
        let last = feed.begin(vec![Value::Int(2)]);
        drop((queued, holder));
        let mut call = gates.next();
        if call.argument == 1 {
            // The flow was cancelled only after it had reached the lock.
            call = gates.next();
        }
        assert_eq!(call.argument, 2);
        call.release();
        drop(held);
        assert_eq!(last.blocking_recv().unwrap(), Ok(Value::Int(2)));
    });
}

#[test]
fn a_stateful_call_sees_the_flows_of_an_ordered_source_in_their_order() {
    every_engine(|name| {
        let gates = Gates::new();
        let note = immediate("b.note", &[("x", Type::Int, Passing::Value)], |call| {
            let x = int(call, 0);
            let mut state = call.state.expect("it has a state").write();
            let Value::Int(before) = *state else { panic!("its state is a number") };
            *state = Value::Int(before * 10 + x);
            Outcome::Value(state.clone())
        });
        // The third flow ends before it comes to the call, and is not waited for.
        let body = "%1: Int = call a.wait at a (%0)\n%2: Bool = equal(%1, 3)\n\
                    %3: Int = switch %2\n  value true\n    %4: Never = return 0\n    yield ()\n  otherwise\n    yield %1\n\
                    %5: Int = call b.note at b (%3)\nyield %5";
        let functions = [gates.waiting("a.wait", World::Reads), with_state(note)];
        let (feed, _running) = started(functions, "", body, options(name, 4));
        let answers: Vec<_> = (1..=4).map(|flow| feed.begin(vec![Value::Int(flow)])).collect();
        let mut calls: Vec<_> = (0..4).map(|_| gates.next()).collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.argument));
        calls.into_iter().for_each(test_support::flows::gates::Waiting::release);
        let answers: Vec<_> = answers.into_iter().map(|answer| answer.blocking_recv().unwrap()).collect();
        assert_eq!(answers, [1, 12, 0, 124].map(|number| Ok(Value::Int(number))));
    });
}

/// A stateful call that adds up, starting from the constant that its state was made from.
fn total_from() -> Function {
    let parameters = [("x", Type::Int, Passing::Value), ("from", Type::Int, Passing::Start)];
    let mut total = immediate("b.total", &parameters, |call| {
        let x = int(call, 0);
        let mut state = call.state.expect("it has a state").write();
        let Value::Int(before) = *state else { panic!("its state is a number") };
        *state = Value::Int(before + x);
        Outcome::Value(state.clone())
    });
    let make = |constants: &[Value]| match constants {
        [Value::Int(13)] => Err(Box::new(Failure::function("no luck"))),
        [from] => Ok(from.clone()),
        other => panic!("it is made of {other:?}"),
    };
    total.signature.state = Some(StateOf { name: "Total".into(), mode: Mode::Write, make });
    total
}

#[test]
fn each_call_has_a_state_that_is_made_of_its_constants() {
    every_engine(|name| {
        let body = "%1: Int = call b.total at one (%0, 100)\n%2: Int = call b.total at two (%0, 2000)\n\
                    %3: Int = multiply(%1, %2)\nyield %3";
        let (feed, _running) = started([total_from()], "", body, options(name, 3));
        assert_eq!(feed.run(vec![Value::Int(1)]), Ok(Value::Int(101 * 2001)));
        assert_eq!(feed.run(vec![Value::Int(2)]), Ok(Value::Int(103 * 2003)));
    });
}

#[test]
fn a_program_with_a_state_that_cannot_be_made_does_not_start() {
    let body = "%1: Int = call b.total at the/total (%0, 13)\nyield %1";
    let mut library = library([total_from()]);
    Feed::new().put(&mut library, "test", "feed");
    let graph = weir_ir::lower(&one_flow("", body), &library);
    let refused = weir_runtime::start(&graph, &library, options("event", 1)).err();
    let said = refused.expect("the state cannot be made").to_string();
    assert!(said.contains("the/total") && said.contains("no luck"), "{said}");
}

#[test]
fn a_panic_ends_its_own_flow_and_is_recorded_with_its_path() {
    every_engine(|name| {
        let broken = immediate("a.broken", &[("x", Type::Int, Passing::Value)], |call| match int(call, 0) {
            13 => panic!("thirteen"),
            other => Outcome::Value(Value::Int(other)),
        });
        let (recorder, reader) = Recorder::new(Detail::Log, 64);
        let options = Options { recorder, ..options(name, 1) };
        let (feed, _running) = started([broken], "", "%1: Int = call a.broken at far/a.broken (%0)\nyield %1", options);
        let failed = feed.run(vec![Value::Int(13)]).unwrap_err();
        assert_eq!((failed.kind, &*failed.message), (FailureKind::Panic, "`a.broken` panicked: thirteen"));
        assert_eq!(feed.run(vec![Value::Int(1)]), Ok(Value::Int(1)));
        let paths = reader.take().into_iter().filter_map(|event| match event.kind {
            EventKind::FlowFailed { path, kind, .. } => Some((path.to_string(), kind)),
            _ => None,
        });
        assert_eq!(paths.collect::<Vec<_>>(), [("feed: far/a.broken".to_owned(), "panic")]);
    });
}

#[test]
fn an_earlier_end_wins_over_a_later_one() {
    every_engine(|name| {
        let gates = Gates::new();
        let body = "%1: Int = call a.wait at a (%0)\n%2: Bool = equal(%1, 1)\n\
                    %3: Int = switch %2\n  value true\n    %4: Never = return 7\n    yield ()\n  otherwise\n    yield %1\n\
                    %5: Int = divide(1, 0)\nyield %5";
        let (feed, _running) = started([gates.waiting("a.wait", World::Writes)], "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(1)]);
        gates.next().release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(7)));
        let answer = feed.begin(vec![Value::Int(2)]);
        gates.next().release();
        assert_eq!(answer.blocking_recv().unwrap().unwrap_err().kind, FailureKind::Arithmetic);
    });
}

#[test]
fn more_flows_than_may_be_in_progress_are_refused() {
    every_engine(|name| {
        let gates = Gates::new();
        let options = Options { flows_max: 2, ..options(name, 1) };
        let body = "%1: Int = call a.wait at a (%0)\nyield %1";
        let (feed, _running) = started([gates.waiting("a.wait", World::Reads)], "", body, options);
        let mut answers = vec![feed.begin(vec![Value::Int(0)])];
        let first = gates.next();
        answers.push(feed.begin(vec![Value::Int(0)]));
        let refused = feed.run(vec![Value::Int(0)]);
        assert_eq!((refused.unwrap_err().kind, feed.refused()), (FailureKind::Limit, 1));
        first.release();
        gates.next().release();
        answers.into_iter().for_each(|answer| assert!(answer.blocking_recv().unwrap().is_ok()));
    });
}

#[test]
fn a_call_that_holds_its_thread_does_not_hold_the_loop() {
    let gates = Gates::new();
    let body = "%1: Bool = equal(%0, 0)\n%2: Int = switch %1\n  value true\n    %3: Int = call a.block at a (%0)\n    \
                yield %3\n  otherwise\n    yield %0\nyield %2";
    let (feed, _running) = started([gates.blocking("a.block", World::Writes)], "", body, options("event", 1));
    let slow = feed.begin(vec![Value::Int(0)]);
    let held = gates.next();
    assert_eq!(feed.run(vec![Value::Int(5)]), Ok(Value::Int(5)));
    held.release();
    assert_eq!(slow.blocking_recv().unwrap(), Ok(Value::Int(0)));
}

#[test]
fn a_stopped_program_ends_what_it_has_begun() {
    every_engine(|name| {
        let gates = Gates::new();
        let body = "%1: Int = call a.wait at a (%0)\nyield %1";
        let (feed, running) = started([gates.waiting("a.wait", World::Reads)], "", body, options(name, 1));
        let answer = feed.begin(vec![Value::Int(9)]);
        let call = gates.next();
        running.stop();
        call.release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(9)));
        running.wait().unwrap();
    });
}

#[test]
fn a_call_that_never_ends_does_not_hold_up_the_end() {
    every_engine(|name| {
        let gates = Gates::new();
        let options = Options { drain_within: std::time::Duration::ZERO, ..options(name, 1) };
        let body = "%1: Int = call a.block at a (%0)\nyield %1";
        let (feed, running) = started([gates.blocking("a.block", World::Writes)], "", body, options);
        let answer = feed.begin(vec![Value::Int(1)]);
        let held = gates.next();
        running.stop();
        running.wait().unwrap();
        assert!(answer.blocking_recv().is_err(), "the flow was given up");
        held.release();
    });
}

#[test]
fn a_fallible_call_decides_its_switch() {
    every_engine(|name| {
        let half = function(
            "a.half",
            &[("x", Type::Int, Passing::Value)],
            World::Pure,
            FunctionCode::Immediate(Arc::new(|call| match int(call, 0) {
                odd if odd % 2 != 0 => Outcome::Error(failure("odd")),
                even => Outcome::Value(Value::Int(even / 2)),
            })),
        );
        let body = "%1: Result(Int, Failure) = call a.half at a (%0)\n%2: Int = switch %1\n  tag 0 (%3: Int)\n    \
                    yield %3\n  tag 1 (%4: Failure)\n    yield -1\nyield %2";
        let (feed, _running) = started([fallible(half)], "", body, options(name, 1));
        assert_eq!(feed.run(vec![Value::Int(8)]), Ok(Value::Int(4)));
        assert_eq!(feed.run(vec![Value::Int(7)]), Ok(Value::Int(-1)));
    });
}
