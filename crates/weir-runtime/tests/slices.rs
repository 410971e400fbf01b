//! Flows that compute for ever: they take turns with others, and end when nobody wants them any more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use test_support::flows::gates::{Gates, function, library, on_shared};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Function, FunctionCode, Outcome, Passing, Type, Value, World};
use weir_runtime::{ENGINES, EngineRow, Options, RunningProgram, ScriptedPlatform, SliceLength};

const MS: u64 = 1_000_000;

/// The functions that an endless loop calls.
#[derive(Clone, Default)]
struct Loops {
    ends: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
}

impl Loops {
    /// Returns true once the loops are to end. Counts the rounds.
    fn done(&self) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |_: &mut weir_host::Call<'_>| {
            this.rounds.fetch_add(1, Ordering::Relaxed);
            Outcome::Value(Value::Bool(this.ends.load(Ordering::Relaxed)))
        }));
        let mut done = function("a.done", &[], World::Reads, code);
        done.signature.result = Type::Bool;
        done
    }

    /// Waits until the loops have begun `more` further rounds.
    fn wait_for_rounds(&self, more: usize) {
        let until = self.rounds.load(Ordering::Relaxed) + more;
        while self.rounds.load(Ordering::Relaxed) < until {
            std::thread::yield_now();
        }
    }
}

/// Programs that compute until `a.done` returns true. `LOOP` stands for such a loop, whose value is `%90`.
const ENDLESS: [&str; 7] = [
    "LOOP\nyield %90",
    "%1: List(Int) = for %2: Int in [1, 2, 3]\n  LOOP\n  yield %90\nyield 1",
    "%1: Int = fold [1, 2, 3] from 0 as %2: Int, %3: Int\n  LOOP\n  yield %90\nyield %1",
    "%1: Int = atomic (write shared s)\n  LOOP\n  yield %90\nyield %1",
    "%1: Option(Int) = within 3600000ms\n  LOOP\n  yield %90\nyield 1",
    "%1: Int = race\n  branch\n    LOOP\n    yield %90\n  branch\n    LOOP\n    yield %90\nyield %1",
    "%1: List(Int) = for %2: Int in [1, 2, 3]\n  LOOP\n  %3: Int = call a.wait at w (%90)\n  yield %3\nyield 1",
];

const LOOP: &str = "\
%90: Int = loop 0 at most 1000000000000 as %91: Int
  %92: Bool = call a.done at done ()
  %93: (Int, Bool) = record(%91, %92)
  yield %93";

/// Returns a body with the loops in the place of `LOOP`, indented by `by` further columns.
fn with_loops(body: &str, by: usize) -> String {
    let mut numbers = (0..).map(|count| (100 + 10 * count).to_string());
    let mut text = String::new();
    let mut last = String::new();
    for line in body.lines() {
        let indent = " ".repeat(by + line.len() - line.trim_start().len());
        if line.trim() == "LOOP" {
            let number = numbers.next().expect("there are enough numbers");
            let names: Vec<String> = (0..4).map(|at| format!("%{}", number.parse::<u32>().unwrap_or(0) + at)).collect();
            for inner in LOOP.lines() {
                let named = (0..4).fold(inner.to_owned(), |text, at| text.replace(&format!("%9{at}"), &names[at]));
                text += &format!("{indent}{}\n", named.replace("at done", &format!("at done#{number}")));
            }
            last = names[0].clone();
        } else {
            text += &format!("{indent}{}\n", line.trim().replace("%90", &last));
        }
    }
    text
}

/// Returns a flow that runs `body` if its input is 0, and otherwise returns it at once.
fn program(body: &str) -> String {
    format!(
        "shared s: Int\n  yield 0\nentry test from test.feed ordered\n  arguments\n    yield (0,)\n  \
         flow feed (%0 x: Int) -> Int\n    %80: Bool = equal(%0, 0)\n    %81: Int = switch %80\n      \
         value true\n{}      otherwise\n        yield %0\n    yield %81\n",
        with_loops(body, 8)
    )
}

fn started(
    feed: Feed,
    body: &str,
    functions: impl IntoIterator<Item = Function>,
    options: Options,
) -> (Feed, RunningProgram) {
    let mut library = library(functions);
    feed.put(&mut library, "test", "feed");
    let text = program(body);
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(weir_ir::verify::expr(&program, &library), [], "{text}");
    (feed, start_expr(&program, &library, options))
}

/// Returns all engines with a source that runs on one event loop, and `elastic` once more with one that runs on each: its flows
/// stay there.
fn ways() -> impl Iterator<Item = (&'static EngineRow, fn() -> Feed)> {
    let elastic = ENGINES.iter().filter(|row| row.name == "elastic");
    let one = ENGINES.iter().map(|row| (row, Feed::new as fn() -> Feed));
    one.chain(elastic.map(|row| (row, Feed::on_each_loop as fn() -> Feed)))
}

fn flow(x: i64) -> Vec<Value> {
    vec![Value::Int(x)]
}

#[test]
fn a_small_request_is_answered_beside_sixteen_that_compute_for_ever() {
    for (row, feed, body) in ways().flat_map(|(row, feed)| ENDLESS.map(move |body| (row, feed, body))) {
        let (loops, gates) = (Loops::default(), Gates::new());
        let functions = [loops.done(), gates.waiting("a.wait", World::Reads)];
        let (feed, running) = started(feed(), body, functions, options(row.name, 2));
        let endless: Vec<_> = (0..16).map(|_| feed.begin(flow(0))).collect();
        loops.wait_for_rounds(100);
        for number in 1..=8 {
            let answers = feed.answers(vec![feed.begin(flow(number))]);
            assert_eq!(answers, [Some(Ok(Value::Int(number)))], "under `{}`\n{body}", row.name);
        }
        loops.ends.store(true, Ordering::Relaxed);
        if body.contains("a.wait") {
            (0..16 * 3).for_each(|_| gates.next().release());
        }
        assert!(
            feed.answers(endless).iter().all(|answer| matches!(answer, Some(Ok(_)))),
            "under `{}`\n{body}",
            row.name
        );
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_flow_that_computes_for_ever_ends_when_nobody_awaits_it() {
    for (row, feed, body) in ways().flat_map(|(row, feed)| ENDLESS.map(move |body| (row, feed, body))) {
        if body.contains("atomic") {
            continue;
        }
        let (loops, gates) = (Loops::default(), Gates::new());
        let functions = [loops.done(), gates.waiting("a.wait", World::Reads)];
        let (feed, running) = started(feed(), body, functions, options(row.name, 2));
        let endless: Vec<_> = (0..4).map(|_| feed.begin(flow(0))).collect();
        loops.wait_for_rounds(100);
        drop(endless);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_time_limit_ends_computation() {
    for (row, feed) in ways() {
        let (loops, clock) = (Loops::default(), Arc::new(ScriptedPlatform::new(0)));
        let body = "%1: Option(Int) = within 5ms\n  LOOP\n  yield %90\n%2: Int = switch %1\n  tag 1 (%3: Int)\n    \
                    yield %3\n  otherwise\n    yield -1\nyield %2";
        let options = Options { platform: clock.clone(), ..options(row.name, 2) };
        let (feed, running) = started(feed(), body, [loops.done()], options);
        let limited = feed.begin(flow(0));
        loops.wait_for_rounds(100);
        clock.pass_ns(4 * MS);
        loops.wait_for_rounds(100_000);
        clock.pass_ns(MS);
        assert_eq!(feed.answers(vec![limited]), [Some(Ok(Value::Int(-1)))], "under `{}`", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

/// A function that writes the shared value, counts its calls, and returns 0.
fn counted(path: &'static str, calls: &Arc<AtomicUsize>) -> Function {
    let calls = Arc::clone(calls);
    let code = FunctionCode::Immediate(Arc::new(move |_: &mut weir_host::Call<'_>| {
        calls.fetch_add(1, Ordering::Relaxed);
        Outcome::Value(Value::Int(0))
    }));
    on_shared(function(path, &[], World::Writes, code), Passing::Change)
}

#[test]
fn an_atomic_step_that_computes_is_not_torn_by_a_time_limit() {
    for (row, feed) in ways() {
        let (loops, clock) = (Loops::default(), Arc::new(ScriptedPlatform::new(0)));
        let [first, second] = [Arc::<AtomicUsize>::default(), Arc::default()];
        let body = "%1: Option(Int) = within 5ms\n  %2: Int = atomic (write shared s)\n    \
                    %3: Int = call a.first at f (shared s)\n    LOOP\n    %4: Int = call a.second at g (shared s)\n    \
                    yield %90\n  yield %2\nyield 7";
        let options = Options { platform: clock.clone(), slice: SliceLength::ONE_UNIT, ..options(row.name, 2) };
        let functions = [loops.done(), counted("a.first", &first), counted("a.second", &second)];
        let (feed, running) = started(feed(), body, functions, options);
        let limited = feed.begin(flow(0));
        loops.wait_for_rounds(100);
        clock.pass_ns(6 * MS);
        loops.wait_for_rounds(100);
        loops.ends.store(true, Ordering::Relaxed);
        assert_eq!(feed.answers(vec![limited]), [Some(Ok(Value::Int(7)))], "under `{}`", row.name);
        let calls = [&first, &second].map(|calls| calls.load(Ordering::Relaxed));
        assert_eq!(calls, [1, 1], "under `{}`", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn an_atomic_step_that_computes_is_not_torn_when_nobody_awaits_it() {
    for (row, feed) in ways() {
        let loops = Loops::default();
        let [first, second] = [Arc::<AtomicUsize>::default(), Arc::default()];
        let body = "%2: Int = atomic (write shared s)\n  %3: Int = call a.first at f (shared s)\n  LOOP\n  \
                    %4: Int = call a.second at g (shared s)\n  yield %90\nyield %2";
        let functions = [loops.done(), counted("a.first", &first), counted("a.second", &second)];
        let options = Options { slice: SliceLength { quantum: 10, quanta: 1 }, ..options(row.name, 2) };
        let (feed, running) = started(feed(), body, functions, options);
        let cancelled = feed.begin(flow(0));
        loops.wait_for_rounds(100);
        drop(cancelled);
        drop(feed);
        loops.wait_for_rounds(100);
        loops.ends.store(true, Ordering::Relaxed);
        running.wait().unwrap();
        let calls = [&first, &second].map(|calls| calls.load(Ordering::Relaxed));
        assert_eq!(calls, [1, 1], "under `{}`", row.name);
    }
}

#[test]
fn a_program_that_is_stopped_ends_though_its_flows_compute_for_ever() {
    for (row, feed, body) in ways().flat_map(|(row, feed)| ENDLESS.map(move |body| (row, feed, body))) {
        let (loops, gates) = (Loops::default(), Gates::new());
        let functions = [loops.done(), gates.waiting("a.wait", World::Reads)];
        let options = Options { drain_within: Duration::from_millis(1), ..options(row.name, 2) };
        let (feed, running) = started(feed(), body, functions, options);
        let _endless: Vec<_> = (0..4).map(|_| feed.begin(flow(0))).collect();
        loops.wait_for_rounds(100);
        running.stop();
        assert_eq!(running.wait(), Ok(()), "under `{}`\n{body}", row.name);
        // The threads of some engines go on inside atomic steps.
        loops.ends.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_program_that_is_stopped_ends_though_a_function_does_not() {
    for (row, feed) in ways() {
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let stuck = Mutex::new((begun, released));
        let code = FunctionCode::Immediate(Arc::new(move |_: &mut weir_host::Call<'_>| {
            let (begun, released) = &*stuck.lock().unwrap();
            _ = begun.send(());
            _ = released.recv();
            Outcome::Value(Value::Int(0))
        }));
        let body = "%1: Int = call a.stuck at s ()\nyield %1";
        let options = Options { drain_within: Duration::from_millis(1), ..options(row.name, 2) };
        let (feed, running) = started(feed(), body, [function("a.stuck", &[], World::Reads, code)], options);
        let _stuck = feed.begin(flow(0));
        has_begun.recv().unwrap();
        running.stop();
        assert_eq!(running.wait(), Ok(()), "under `{}`", row.name);
        drop(release);
    }
}

/// An atomic step that waits between two of its effects, and an effect behind it.
const WAITING_STEP: &str = "\
%2: Int = atomic (write shared s)
  %3: Int = call a.first at f (shared s)
  %4: Int = call a.wait at w (%0)
  %5: Int = call a.second at g (shared s)
  yield %4
%6: Int = call a.third at h (shared s)
yield %6";

/// The calls of `a.first`, `a.second` and `a.third`.
type Effects = [Arc<AtomicUsize>; 3];

fn effects(gates: &Gates) -> (Effects, Vec<Function>) {
    let calls = Effects::default();
    let mut functions = vec![gates.waiting("a.wait", World::Reads), gates.waiting("b.wait", World::Reads)];
    functions
        .extend(["a.first", "a.second", "a.third"].into_iter().zip(&calls).map(|(path, calls)| counted(path, calls)));
    (calls, functions)
}

/// Runs more flows than the source's task takes in one poll (tokio's budget is 128), so that each task that was ready has
/// run in between: the flow waits, or its request is noted.
fn pass_turns(feed: &Feed) {
    for _ in 0..300 {
        assert_eq!(feed.run(flow(5)), Ok(Value::Int(5)));
    }
}

/// Returns options for the flows of these tests. `event` has one thread, so that a request is noted before the step goes
/// on; under other engines the step may end first.
fn options_of_step(engine: &str) -> Options {
    options(engine, if engine == "event" { 1 } else { 2 })
}

/// Checks that the step has run as a whole, and under `event` nothing behind it.
fn assert_whole_step(calls: &Effects, engine: &str) {
    let counts = calls.each_ref().map(|calls| calls.load(Ordering::Relaxed));
    assert_eq!(counts[..2], [1, 1], "under `{engine}`");
    assert!(counts[2] == 0 || engine != "event");
}

fn indented(body: &str) -> String {
    body.lines().map(|line| format!("  {line}\n")).collect()
}

#[test]
fn an_atomic_step_that_waits_is_not_torn_by_a_time_limit() {
    for (row, feed) in ways() {
        let (gates, clock) = (Gates::new(), Arc::new(ScriptedPlatform::new(0)));
        let (calls, functions) = effects(&gates);
        let body = format!("%1: Option(Int) = within 5ms\n{}yield 7", indented(WAITING_STEP));
        let (feed, running) =
            started(feed(), &body, functions, Options { platform: clock.clone(), ..options_of_step(row.name) });
        let limited = feed.begin(flow(0));
        let call = gates.next();
        pass_turns(&feed);
        clock.pass_ns(5 * MS);
        pass_turns(&feed);
        assert!(!call.is_given_up(), "under `{}`", row.name);
        call.release();
        assert_eq!(feed.answers(vec![limited]), [Some(Ok(Value::Int(7)))], "under `{}`", row.name);
        assert_whole_step(&calls, row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn an_atomic_step_that_waits_is_not_torn_when_nobody_awaits_it() {
    for (row, feed) in ways() {
        let gates = Gates::new();
        let (calls, functions) = effects(&gates);
        let (feed, running) = started(feed(), WAITING_STEP, functions, options_of_step(row.name));
        let cancelled = feed.begin(flow(0));
        let call = gates.next();
        pass_turns(&feed);
        drop(cancelled);
        pass_turns(&feed);
        assert!(!call.is_given_up(), "under `{}`", row.name);
        call.release();
        drop(feed);
        running.wait().unwrap();
        assert_whole_step(&calls, row.name);
    }
}

/// The same step at the end of a body, with the effect behind the construct that has the body.
fn step_in_a_body(construct: &str, columns: usize, yielded: &str, rest: &str) -> String {
    let step = "\
%12: Int = atomic (write shared s)
  %13: Int = call a.first at f (shared s)
  %14: Int = call a.wait at w (%0)
  %15: Int = call a.second at g (shared s)
  yield %14
";
    let indent = " ".repeat(columns);
    let body: String = format!("{step}yield {yielded}\n").lines().map(|line| format!("{indent}{line}\n")).collect();
    format!("{construct}\n{body}{rest}%6: Int = call a.third at h (shared s)\nyield %6")
}

#[test]
fn nothing_happens_behind_a_body_that_ends_with_an_atomic_step_when_nobody_awaits_it() {
    let bodies = [
        step_in_a_body("%1: Option(Int) = within 10s", 2, "%12", ""),
        step_in_a_body(
            "%1: Int = race\n  branch",
            4,
            "%12",
            "  branch\n    %7: Int = call b.wait at o (%0)\n    yield %7\n",
        ),
        step_in_a_body("%1: List(Int) = for %2: Int in [1]", 2, "%12", ""),
        step_in_a_body("%1: Int = fold [1] from 0 as %2: Int, %3: Int", 2, "%12", ""),
    ];
    for body in &bodies {
        for (row, feed) in ways() {
            let gates = Gates::new();
            let (calls, functions) = effects(&gates);
            let (feed, running) = started(feed(), body, functions, options_of_step(row.name));
            let cancelled = feed.begin(flow(0));
            let mut call = gates.next();
            if call.path == "b.wait" {
                call = gates.next();
            }
            pass_turns(&feed);
            drop(cancelled);
            pass_turns(&feed);
            call.release();
            drop(feed);
            running.wait().unwrap();
            assert_whole_step(&calls, row.name);
        }
    }
}

#[test]
fn an_atomic_step_that_loses_a_race_is_not_torn() {
    for (row, feed) in ways() {
        let gates = Gates::new();
        let (calls, functions) = effects(&gates);
        let (step, other) = (indented(&indented(WAITING_STEP)), "    %7: Int = call b.wait at o (%0)\n    yield %7\n");
        let body = format!("%1: Int = race\n  branch\n{step}  branch\n{other}yield 7");
        let (feed, running) = started(feed(), &body, functions, options_of_step(row.name));
        let raced = feed.begin(flow(0));
        let (mut step, mut other) = (gates.next(), gates.next());
        if step.path == "b.wait" {
            (step, other) = (other, step);
        }
        pass_turns(&feed);
        other.release();
        pass_turns(&feed);
        assert!(!step.is_given_up(), "under `{}`", row.name);
        step.release();
        assert_eq!(feed.answers(vec![raced]), [Some(Ok(Value::Int(7)))], "under `{}`", row.name);
        assert_whole_step(&calls, row.name);
        drop(feed);
        running.wait().unwrap();
    }
}
