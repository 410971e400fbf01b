//! Time limits and races: the winner is right, and cancelled bodies leave nothing behind. Time moves only when a test
//! says so.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use test_support::flows::gates::{Gates, immediate, int, library, on_shared, with_state};
use test_support::flows::{Feed, one_flow, options, start_expr};
use weir_host::{Closing, Failure, Function, Outcome, Passing, Type, Value, World};
use weir_runtime::{ENGINES, Options, RunningProgram, ScriptedPlatform};
use weir_trace::{Detail, EventKind, Recorder};

const MS: u64 = 1_000_000;
const ONE_SHARED: &str = "shared s: Int\n  yield 0\n";

/// A running program, with the clock in the test's hand.
struct Case {
    feed: Feed,
    running: RunningProgram,
    clock: Arc<ScriptedPlatform>,
}

impl Case {
    fn start(functions: impl IntoIterator<Item = Function>, body: &str, options: Options) -> Case {
        let clock = Arc::new(ScriptedPlatform::new(0));
        let (feed, mut library) = (Feed::new(), library(functions));
        feed.put(&mut library, "test", "feed");
        let body: String = body.trim().lines().map(|line| format!("    {}\n", line.trim_end())).collect();
        let text = format!(
            "{ONE_SHARED}entry test from test.feed ordered\n  arguments\n    yield (0,)\n  \
             flow feed (%0 x: Int) -> Int\n{body}"
        );
        let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(weir_ir::verify::expr(&program, &library), []);
        let running = start_expr(&program, &library, Options { platform: clock.clone(), ..options });
        Case { feed, running, clock }
    }

    fn end(self) {
        drop(self.feed);
        self.running.wait().expect("the source ends");
    }
}

fn every_engine(test: impl Fn(&'static str)) {
    ENGINES.iter().for_each(|row| test(row.name));
}

fn flow(x: i64) -> Vec<Value> {
    vec![Value::Int(x)]
}

/// `a.wait(%0) within 5ms else -1`
const LIMITED: &str = "
%1: Option(Int) = within 5ms
  %2: Int = call a.wait at a (%0)
  yield %2
%3: Int = switch %1
  tag 1 (%4: Int)
    yield %4
  otherwise
    yield -1
yield %3";

#[test]
fn what_is_there_in_time_is_the_value() {
    every_engine(|name| {
        let gates = Gates::new();
        let case = Case::start([gates.waiting("a.wait", World::Writes)], LIMITED, options(name, 1));
        let answer = case.feed.begin(flow(7));
        let call = gates.next();
        case.clock.pass_ns(4 * MS);
        call.release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(7)));
        case.end();
    });
}

#[test]
fn what_is_not_there_in_time_is_given_up() {
    every_engine(|name| {
        let gates = Gates::new();
        let case = Case::start([gates.waiting("a.wait", World::Writes)], LIMITED, options(name, 1));
        let answer = case.feed.begin(flow(7));
        let call = gates.next();
        case.clock.pass_ns(4 * MS);
        assert!(!call.is_given_up());
        case.clock.pass_ns(MS);
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(-1)));
        assert!(call.is_given_up());
        case.end();
    });
}

/// A function that holds the event loop itself until the test lets it go.
fn hold(begun: Sender<()>, go: Receiver<()>) -> Function {
    let (begun, go) = (Mutex::new(begun), Mutex::new(go));
    immediate("b.hold", &[("x", Type::Int, Passing::Value)], move |call| {
        let x = int(call, 0);
        begun.lock().send(()).expect("the test listens");
        go.lock().recv().expect("the test lets it go");
        Outcome::Value(Value::Int(x))
    })
}

#[test]
fn a_value_that_is_there_when_the_time_is_up_is_not_lost() {
    let body = format!(
        "%5: Int = switch %0\n  value 0\n    %6: Int = call b.hold at b (%0)\n    yield %6\n  otherwise\n{}\nyield %5",
        LIMITED.trim().lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end()
    );
    for _ in 0..20 {
        let (gates, (begun, has_begun), (let_go, go)) = (Gates::new(), channel(), channel());
        let functions = [gates.waiting("a.wait", World::Reads), hold(begun, go)];
        let case = Case::start(functions, &body, options("event", 1));
        let limited = case.feed.begin(flow(7));
        let call = gates.next();
        // While the loop is held, the value comes and the time passes; then the flow sees both at once.
        let holder = case.feed.begin(flow(0));
        has_begun.recv().unwrap();
        case.clock.pass_ns(5 * MS);
        call.release();
        let_go.send(()).unwrap();
        assert_eq!(limited.blocking_recv().unwrap(), Ok(Value::Int(7)));
        assert_eq!(holder.blocking_recv().unwrap(), Ok(Value::Int(0)));
        case.end();
    }
}

#[test]
fn a_limit_that_is_over_gives_up_at_the_first_wait_and_not_before() {
    let body = "
%5: Duration = negate(5ms)
%1: Option(Int) = within %5
  %2: Int = call a.at_once at now (%0)
  yield %2
%3: Option(Int) = within 0ms
  %4: Int = call a.wait at later (%0)
  yield %4
%6: Int = switch %3
  tag 1 (%7: Int)
    yield %7
  otherwise
    %8: Int = payload.0(%1)
    yield %8
yield %6";
    every_engine(|name| {
        let gates = Gates::new();
        let at_once = immediate("a.at_once", &[("x", Type::Int, Passing::Value)], |call| {
            Outcome::Value(Value::Int(int(call, 0) + 1))
        });
        let case = Case::start([gates.waiting("a.wait", World::Reads), at_once], body, options(name, 1));
        assert_eq!(case.feed.run(flow(7)), Ok(Value::Int(8)));
        assert!(gates.next().is_given_up());
        case.end();
    });
}

/// Also if another arm goes on behind its step; but not if this one does.
#[test]
fn a_limit_has_the_result_of_an_atomic_step_that_is_the_last_thing_of_its_arm() {
    let body = "
%1: Option(Int) = within 0ms
  %2: Int = switch %0
    value 7
      %3: Int = atomic (write shared s)
        %4: Int = call a.wait at last (%0)
        yield %4
      yield %3
    value 8
      %5: Int = atomic (write shared s)
        %6: Int = call a.wait at first (%0)
        yield %6
      %7: Int = call a.wait at behind (%5)
      yield %7
    otherwise
      %8: Int = call a.wait at alone (%0)
      yield %8
  yield %2
%9: Int = switch %1
  tag 1 (%10: Int)
    yield %10
  otherwise
    yield -1
yield %9";
    every_engine(|name| {
        let gates = Gates::new();
        let case = Case::start([gates.waiting("a.wait", World::Writes)], body, options(name, 1));
        for (x, wanted) in [(7, 7), (8, -1)] {
            let answer = case.feed.begin(flow(x));
            gates.next().release();
            assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(wanted)), "{name}");
        }
        case.end();
    });
}

#[test]
fn a_body_that_is_given_up_releases_its_lock() {
    let body = "
%1: Option(Int) = within 5ms
  %2: Int = call a.wait at a (shared s, %0)
  yield %2
%3: Int = call b.wait at b (shared s, 9)
yield %3";
    every_engine(|name| {
        let gates = Gates::new();
        let functions = ["a.wait", "b.wait"].map(|path| on_shared(gates.waiting(path, World::Pure), Passing::Change));
        let case = Case::start(functions, body, options(name, 1));
        let answer = case.feed.begin(flow(1));
        let first = gates.next();
        case.clock.pass_ns(5 * MS);
        let second = gates.next();
        assert_eq!((first.is_given_up(), second.path), (true, "b.wait"));
        second.release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(9)));
        case.end();
    });
}

#[test]
fn a_body_that_is_given_up_leaves_the_queue_of_a_lock() {
    let body = "
%1: Int = switch %0
  value 0
    %2: Int = call a.wait at a (shared s, 0)
    yield %2
  value 9
    yield 9
  otherwise
    %3: Option(Int) = within 5ms
      %4: Int = call b.wait at b (shared s, 1)
      yield %4
    yield 3
yield %1";
    let gates = Gates::new();
    let functions = ["a.wait", "b.wait"].map(|path| on_shared(gates.waiting(path, World::Pure), Passing::Change));
    let case = Case::start(functions, body, options("event", 1));
    let holder = case.feed.begin(flow(0));
    let held = gates.next();
    let queued = case.feed.begin(flow(1));
    let also_queued = case.feed.begin(flow(0));
    // Flows begin in their order on the one event loop: when this one has ended, the others stand in the queue.
    assert_eq!(case.feed.run(flow(9)), Ok(Value::Int(9)));
    case.clock.pass_ns(5 * MS);
    assert_eq!(queued.blocking_recv().unwrap(), Ok(Value::Int(3)));
    held.release();
    assert_eq!(holder.blocking_recv().unwrap(), Ok(Value::Int(0)));
    gates.next().release();
    assert_eq!(also_queued.blocking_recv().unwrap(), Ok(Value::Int(0)));
    assert!(gates.is_quiet());
    case.end();
}

/// `race { a.wait(1), b.wait(2) }`
const RACE: &str = "
%1: Int = race
  branch
    %2: Int = call a.wait at a (1)
    yield %2
  branch
    %3: Int = call b.wait at b (2)
    yield %3
yield %1";

#[test]
fn the_first_of_a_race_wins_and_the_others_are_given_up() {
    every_engine(|name| {
        for winner in 0..2 {
            let gates = Gates::new();
            let functions = ["a.wait", "b.wait"].map(|path| gates.waiting(path, World::Writes));
            let case = Case::start(functions, RACE, options(name, 1));
            let answer = case.feed.begin(flow(0));
            let mut calls = vec![gates.next(), gates.next()];
            let first = calls.remove(winner);
            let value = first.argument;
            first.release();
            assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(value)));
            assert!(calls[0].is_given_up());
            case.end();
        }
    });
}

#[test]
fn of_bodies_that_are_ready_at_once_each_wins_equally_often() {
    let branches: String = (0..3).map(|number| format!("  branch\n    yield {number}\n")).collect();
    let body = format!("%1: Int = race\n{branches}yield %1");
    every_engine(|name| {
        let case = Case::start([], &body, options(name, 1));
        let mut won = [0; 3];
        for _ in 0..600 {
            let Ok(Value::Int(winner)) = case.feed.begin(flow(0)).blocking_recv().unwrap() else { panic!("a number") };
            won[winner as usize] += 1;
        }
        assert!(won.iter().all(|wins| (120..280).contains(wins)), "{name}: {won:?}");
        case.end();
    });
}

#[test]
fn a_body_that_is_given_up_is_recorded_with_its_place() {
    every_engine(|name| {
        for winner in 1..=2 {
            let (gates, (recorder, reader)) = (Gates::new(), Recorder::new(Detail::Nodes, 1000));
            let functions = ["a.wait", "b.wait"].map(|path| gates.waiting(path, World::Reads));
            let case = Case::start(functions, RACE, Options { recorder, ..options(name, 1) });
            let answer = case.feed.begin(flow(0));
            let calls = [gates.next(), gates.next()];
            let (first, _others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.argument == winner);
            first.into_iter().for_each(|call| call.release());
            assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(winner)));
            case.end();
            let lost = reader.take().into_iter().filter_map(|event| match event.kind {
                EventKind::BodyGivenUp { body, .. } => Some(body as i64 + 1),
                _ => None,
            });
            assert_eq!(lost.collect::<Vec<_>>(), [3 - winner]);
        }
    });
}

#[test]
fn the_end_of_a_body_ends_the_flow_and_the_race() {
    let body = "
%1: Int = race
  branch
    %2: Int = call a.wait at a (1)
    yield %2
  branch
    %3: Int = call b.wait at b (2)
    %4: Never = return 20
    yield ()
yield %1";
    every_engine(|name| {
        let gates = Gates::new();
        let functions = ["a.wait", "b.wait"].map(|path| gates.waiting(path, World::Reads));
        let case = Case::start(functions, body, options(name, 1));
        let answer = case.feed.begin(flow(0));
        let (mut one, mut other) = (gates.next(), gates.next());
        if other.argument == 1 {
            std::mem::swap(&mut one, &mut other);
        }
        other.release();
        assert_eq!(answer.blocking_recv().unwrap(), Ok(Value::Int(20)));
        assert!(one.is_given_up());
        case.end();
    });
}

#[test]
fn a_flow_that_is_given_up_gives_up_its_race_and_is_recorded() {
    every_engine(|name| {
        let gates = Gates::new();
        let (recorder, reader) = Recorder::new(Detail::Flows, 100);
        let functions =
            [on_shared(gates.waiting("a.wait", World::Pure), Passing::Change), gates.waiting("b.wait", World::Pure)];
        let body = RACE.replace("(1)", "(shared s, 1)");
        let case = Case::start(functions, &body, Options { recorder, ..options(name, 1) });
        let answer = case.feed.begin(flow(0));
        let (one, other) = (gates.next(), gates.next());
        drop(answer);
        case.end();
        assert!(one.is_given_up() && other.is_given_up());
        let events = reader.take();
        assert!(events.iter().any(|event| matches!(event.kind, EventKind::FlowGivenUp { .. })), "{events:?}");
    });
}

#[test]
fn a_stateful_call_that_is_given_up_hands_its_turn_on() {
    let body = LIMITED.replace("within 5ms", "within %5").replace("a.wait", "a.next");
    let body = format!("%5: Duration = multiply(5ms, %0){body}");
    let gates = Gates::new();
    let case = Case::start([with_state(gates.waiting("a.next", World::Pure))], &body, options("event", 1));
    let (first, second) = (case.feed.begin(flow(1)), case.feed.begin(flow(1000)));
    let held = gates.next();
    assert_eq!(held.argument, 1);
    case.clock.pass_ns(5 * MS);
    assert_eq!(first.blocking_recv().unwrap(), Ok(Value::Int(-1)));
    let next = gates.next();
    assert_eq!((held.is_given_up(), next.argument), (true, 1000));
    next.release();
    assert_eq!(second.blocking_recv().unwrap(), Ok(Value::Int(1000)));
    case.end();
}

#[test]
fn a_panic_in_a_body_ends_the_flow_and_is_named() {
    let body = "
%1: Option(Int) = within 5ms
  %2: Int = call a.panics at a (%0)
  yield %2
yield 0";
    every_engine(|name| {
        let panics = immediate("a.panics", &[("x", Type::Int, Passing::Value)], |_| panic!("no"));
        let case = Case::start([panics], body, options(name, 1));
        let failure: Failure = case.feed.run(flow(0)).expect_err("it panics");
        assert_eq!(failure.message.as_str(), "`a.panics` panicked: no");
        case.end();
    });
}

/// A part of the environment that never closes. It says when its close begins.
struct NeverClosed(Mutex<Sender<()>>);

impl Closing for NeverClosed {
    fn close(&self) -> Result<(), Failure> {
        _ = self.0.lock().send(());
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn what_does_not_close_is_left_behind_at_the_limit_that_counts_from_the_stop() {
    /// Time after which the test fails instead of waiting.
    const PATIENCE: Duration = Duration::from_secs(120);
    every_engine(|name| {
        let (gates, clock) = (Gates::new(), Arc::new(ScriptedPlatform::new(0)));
        let (feed, mut library) = (Feed::new(), library([gates.blocking("a.block", World::Writes)]));
        feed.put(&mut library, "test", "feed");
        let (closes, closing) = channel();
        library.environment.insert_closing(NeverClosed(Mutex::new(closes)));
        let options = Options { drain_within: Duration::from_secs(10), platform: clock.clone(), ..options(name, 1) };
        let program = one_flow("", "%1: Int = call a.block at a (%0)\nyield %1");
        let running = start_expr(&program, &library, options);
        let _answer = feed.begin(flow(1));
        let held = gates.next();
        running.stop();
        let (ends, ended) = channel();
        std::thread::spawn(move || ends.send(running.wait()));
        clock.pass_ns(10_250 * MS);
        closing.recv_timeout(PATIENCE).expect("the environment is closed");
        clock.pass_ns(500 * MS);
        let ended = ended.recv_timeout(PATIENCE).expect("the program ends");
        assert!(ended.is_err(), "{name}: not everything is closed");
        held.release();
    });
}
