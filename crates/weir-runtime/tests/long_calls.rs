//! Calls that take too long for the thread of their flow: others are answered meanwhile, and every time limit holds.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use test_support::flows::gates::{function, library, on_shared};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{AwaitedCall, CallRest, Failure, Function, FunctionCode, Outcome, Passing, Settled, Value, World};
use weir_runtime::{ENGINES, Options, RunningProgram, ScriptedPlatform};

const MS: u64 = 1_000_000;

/// Calls that block their thread until they are released, as if they computed.
#[derive(Clone, Default)]
struct LongCalls(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    begun: usize,
    is_released: bool,
    /// The calls without threads that wait until they are released.
    waiting: Vec<Waker>,
}

impl LongCalls {
    /// Returns a function that declares more units than a call may take on the thread of its flow.
    fn function(&self, path: &'static str) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            if !call.declare_units(1 << 40) {
                return Outcome::ExceedsUnits;
            }
            this.run();
            Outcome::Value(Value::Int(7))
        }));
        function(path, &[], World::Reads, code)
    }

    /// Returns a function that declares more units than a call may take on the thread of its flow, and needs no other thread.
    fn without_thread(&self, path: &'static str, keeps_locks: bool) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            assert!(!call.declare_units(1 << 40), "no thread runs it");
            if let Some(awaited) = call.awaited.take() {
                let this = this.clone();
                this.begin();
                let pending = Box::pin(async move {
                    poll_fn(|context| this.poll_released(context)).await;
                    this.begin();
                    Settled { outcome: Outcome::Value(Value::Int(7)), restored: Vec::new() }
                });
                *awaited = Some(AwaitedCall { rest: CallRest::Awaited(pending), keeps_locks, sent_on: None });
            }
            Outcome::ExceedsUnits
        }));
        function(path, &[], World::Reads, code)
    }

    /// Returns a function that begins on the thread of its flow, and goes on on another one.
    fn on_other_thread(&self, path: &'static str, keeps_locks: bool) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            assert!(!call.declare_units(1 << 40), "no thread runs the whole of it");
            if let Some(awaited) = call.awaited.take() {
                let this = this.clone();
                let job = move || {
                    this.run();
                    Settled { outcome: Outcome::Value(Value::Int(7)), restored: Vec::new() }
                };
                *awaited = Some(AwaitedCall { rest: CallRest::Job(Box::new(job)), keeps_locks, sent_on: None });
            }
            Outcome::ExceedsUnits
        }));
        function(path, &[], World::Reads, code)
    }

    /// Returns a function that blocks its thread.
    fn blocking(&self, path: &'static str) -> Function {
        let this = self.clone();
        let code = FunctionCode::Blocking(Arc::new(move |_: &mut weir_host::Call<'_>| {
            let this = this.clone();
            Ok(Box::new(move || {
                this.run();
                Settled { outcome: Outcome::Value(Value::Int(7)), restored: Vec::new() }
            }))
        }));
        function(path, &[], World::Reads, code)
    }

    /// Counts a call, and blocks until it is released.
    fn run(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().expect("nobody panics");
        state.begun += 1;
        changed.notify_all();
        drop(changed.wait_while(state, |state| !state.is_released));
    }

    /// Counts a beginning or an end.
    fn begin(&self) {
        let (state, changed) = &*self.0;
        state.lock().expect("nobody panics").begun += 1;
        changed.notify_all();
    }

    fn begun(&self) -> usize {
        self.0.0.lock().expect("nobody panics").begun
    }

    fn poll_released(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.0.lock().expect("nobody panics");
        if state.is_released {
            return Poll::Ready(());
        }
        state.waiting.push(context.waker().clone());
        Poll::Pending
    }

    fn wait_for(&self, begun: usize) {
        let (state, changed) = &*self.0;
        drop(changed.wait_while(state.lock().expect("nobody panics"), |state| state.begun < begun));
    }

    fn release(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().expect("nobody panics");
        state.is_released = true;
        state.waiting.drain(..).for_each(Waker::wake);
        changed.notify_all();
    }
}

/// Bodies with a long call, and the number of calls after which sixteen flows of each can only wait, if each call has a
/// thread.
const BODIES: [(&str, usize); 7] = [
    ("%1: Int = call a.long at l ()\nyield %1", 16),
    ("%1: List(Int) = for %2: Int in [1, 2, 3]\n  %3: Int = call a.long at l ()\n  yield %3\nyield 7", 16),
    ("%1: Int = fold [1, 2] from 0 as %2: Int, %3: Int\n  %4: Int = call a.long at l ()\n  yield %4\nyield %1", 16),
    ("%1: Int = atomic (write shared s)\n  %2: Int = call a.long at l ()\n  yield %2\nyield %1", 1),
    ("%1: Int = call a.of_shared at l (shared s)\nyield %1", 16),
    (
        "%1: Option(Int) = within 5ms\n  %2: Int = call a.long at l ()\n  yield %2\n%3: Int = switch %1\n  \
         tag 1 (%4: Int)\n    yield %4\n  otherwise\n    yield -1\nyield %3",
        16,
    ),
    (
        "%1: Int = race\n  branch\n    %2: Int = call a.long at l ()\n    yield %2\n  branch\n    \
         %3: Int = call a.long at m ()\n    yield %3\nyield %1",
        32,
    ),
];

/// Starts a program whose flows run `body` if their input is 0, and otherwise return it at once.
fn started(body: &str, calls: &LongCalls, options: Options) -> (Feed, RunningProgram) {
    started_with(body, calls.function("a.long"), calls, options)
}

/// Starts a program like [`started`], with this function `a.long`.
fn started_with(body: &str, long: Function, calls: &LongCalls, options: Options) -> (Feed, RunningProgram) {
    started_on(body, long, on_shared(calls.function("a.of_shared"), Passing::Borrow), options)
}

/// Starts a program like [`started`], with these functions.
fn started_on(body: &str, long: Function, of_shared: Function, options: Options) -> (Feed, RunningProgram) {
    let (feed, mut library) = (Feed::new(), library([long, of_shared]));
    feed.put(&mut library, "test", "feed");
    let body: String = body.lines().map(|line| format!("        {line}\n")).collect();
    let text = format!(
        "shared s: Int\n  yield 0\nentry test from test.feed unordered\n  arguments\n    yield (0,)\n  \
         flow feed (%0 x: Int) -> Int\n    %80: Bool = equal(%0, 0)\n    %81: Int = switch %80\n      \
         value true\n{body}      otherwise\n        yield %0\n    yield %81\n"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(weir_ir::verify::expr(&program, &library), [], "{text}");
    (feed, start_expr(&program, &library, options))
}

fn flow(x: i64) -> Vec<Value> {
    vec![Value::Int(x)]
}

/// Returns the number of long calls that run at a time.
fn calls_max() -> usize {
    (4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).max(8)
}

#[test]
fn a_small_request_is_answered_beside_sixteen_long_calls() {
    for (row, (body, begun)) in ENGINES.iter().flat_map(|row| BODIES.map(|body| (row, body))) {
        let (calls, clock) = (LongCalls::default(), Arc::new(ScriptedPlatform::new(0)));
        let (feed, running) = started(body, &calls, Options { platform: clock, ..options(row.name, 2) });
        let long: Vec<_> = (0..16).map(|_| feed.begin(flow(0))).collect();
        calls.wait_for(begun.min(calls_max()));
        for number in 1..=8 {
            let answers = feed.answers(vec![feed.begin(flow(number))]);
            assert_eq!(answers, [Some(Ok(Value::Int(number)))], "under `{}`\n{body}", row.name);
        }
        calls.release();
        assert_eq!(feed.answers(long), vec![Some(Ok(Value::Int(7))); 16], "under `{}`\n{body}", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_call_that_declares_units_does_not_use_its_typed_entry_point() {
    for (row, (body, _)) in ENGINES.iter().flat_map(|row| BODIES.map(|body| (row, body))) {
        let calls = LongCalls::default();
        let mut long = calls.function("a.long");
        long.signature.effects.declares_units = true;
        long.words = Some(|_| Err(Box::new(Failure::function("a typed entry point knows no units"))));
        let (feed, running) = started_with(body, long, &calls, options(row.name, 2));
        let flow = feed.begin(flow(0));
        calls.release();
        let answers = feed.answers(vec![flow]);
        assert!(matches!(answers[..], [Some(Ok(_))]), "under `{}`: {answers:?}\n{body}", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_small_request_is_answered_beside_sixteen_calls_that_block() {
    // The threads of the other engines are for such calls, and bound how many of them run at a time.
    for (name, (body, begun)) in ["event", "elastic"].into_iter().flat_map(|name| BODIES.map(|body| (name, body))) {
        let body = body.replace("a.of_shared at l (shared s)", "a.long at l ()");
        let calls = LongCalls::default();
        let (feed, running) = started_with(&body, calls.blocking("a.long"), &calls, options(name, 2));
        let blocked: Vec<_> = (0..16).map(|_| feed.begin(flow(0))).collect();
        calls.wait_for(begun);
        let answers = feed.answers(vec![feed.begin(flow(1))]);
        assert_eq!(answers, [Some(Ok(Value::Int(1)))], "under `{name}`\n{body}");
        calls.release();
        assert!(feed.answers(blocked).iter().all(Option::is_some), "under `{name}`\n{body}");
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_time_limit_ends_a_flow_whose_call_goes_on() {
    for row in ENGINES {
        let (calls, clock) = (LongCalls::default(), Arc::new(ScriptedPlatform::new(0)));
        let (feed, running) = started(BODIES[5].0, &calls, Options { platform: clock.clone(), ..options(row.name, 2) });
        let limited = feed.begin(flow(0));
        calls.wait_for(1);
        clock.pass_ns(5 * MS);
        assert_eq!(feed.answers(vec![limited]), [Some(Ok(Value::Int(-1)))], "under `{}`", row.name);
        calls.release();
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_flow_that_nobody_awaits_ends_though_its_call_goes_on() {
    for (row, (body, _)) in ENGINES.iter().flat_map(|row| BODIES.map(|body| (row, body))) {
        if body.contains("atomic") {
            continue;
        }
        let calls = LongCalls::default();
        let (feed, running) = started(body, &calls, options(row.name, 2));
        let long = feed.begin(flow(0));
        calls.wait_for(1);
        drop(long);
        drop(feed);
        running.wait().unwrap();
        calls.release();
    }
}

#[test]
fn a_program_that_is_stopped_ends_though_a_call_goes_on() {
    for (row, (body, _)) in ENGINES.iter().flat_map(|row| BODIES.map(|body| (row, body))) {
        let calls = LongCalls::default();
        let options = Options { drain_within: Duration::from_millis(1), ..options(row.name, 2) };
        let (feed, running) = started(body, &calls, options);
        let _long = feed.begin(flow(0));
        calls.wait_for(1);
        running.stop();
        assert_eq!(running.wait(), Ok(()), "under `{}`\n{body}", row.name);
        calls.release();
    }
}

#[test]
fn a_call_that_panics_on_another_thread_fails_its_flow() {
    let calls = Arc::<AtomicUsize>::default();
    for row in ENGINES {
        let count = Arc::clone(&calls);
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            if !call.declare_units(1 << 40) {
                return Outcome::ExceedsUnits;
            }
            count.fetch_add(1, Ordering::Relaxed);
            panic!("too long")
        }));
        let (feed, mut library) = (Feed::new(), library([function("a.long", &[], World::Reads, code)]));
        feed.put(&mut library, "test", "feed");
        let program = weir_ir::parse::expr(
            "entry test from test.feed unordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n    \
             %1: Int = call a.long at l ()\n    yield %1\n",
        )
        .unwrap();
        let running = start_expr(&program, &library, options(row.name, 2));
        let failure = feed.run(flow(0)).unwrap_err();
        assert!(failure.message.contains("`a.long` panicked: too long"), "under `{}`: {failure}", row.name);
        drop(feed);
        running.wait().unwrap();
    }
    assert_eq!(calls.load(Ordering::Relaxed), ENGINES.len());
}

#[test]
fn calls_that_need_no_thread_are_as_many_as_their_flows() {
    for (row, (body, _)) in ENGINES.iter().flat_map(|row| BODIES[..1].iter().map(move |body| (row, body))) {
        let calls = LongCalls::default();
        let long = calls.without_thread("a.long", true);
        let (feed, running) = started_with(body, long, &calls, options(row.name, 2));
        let count = 3 * calls_max();
        let flows: Vec<_> = (0..count).map(|_| feed.begin(flow(0))).collect();
        calls.wait_for(count);
        calls.release();
        assert_eq!(feed.answers(flows), vec![Some(Ok(Value::Int(7))); count], "under `{}`\n{body}", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_call_without_a_thread_keeps_its_locks_if_it_needs_them_also_beyond_its_flow() {
    let body = "%1: Int = call a.of_shared at l (shared s)\nyield %1";
    for (row, keeps_locks) in ENGINES.iter().flat_map(|row| [false, true].map(|keeps| (row, keeps))) {
        let calls = LongCalls::default();
        let of_shared = on_shared(calls.without_thread("a.of_shared", keeps_locks), Passing::Change);
        let (feed, running) = started_on(body, calls.function("a.long"), of_shared, options(row.name, 2));
        let cancelled = feed.begin(flow(0));
        calls.wait_for(1);
        drop(cancelled);
        let second = feed.begin(flow(0));
        if keeps_locks {
            assert_eq!(feed.answers(vec![feed.begin(flow(3))]), [Some(Ok(Value::Int(3)))]);
            assert_eq!(calls.begun(), 1, "the first one goes on, under `{}`", row.name);
        } else {
            calls.wait_for(2);
        }
        calls.release();
        assert_eq!(feed.answers(vec![second]), [Some(Ok(Value::Int(7)))], "under `{}`", row.name);
        // Two beginnings, and two ends, of which that of a cancelled call which has no locks may be missing.
        calls.wait_for(if keeps_locks { 4 } else { 3 });
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_call_that_goes_on_on_another_thread_keeps_its_locks_if_it_needs_them() {
    let body = "%1: Int = call a.of_shared at l (shared s)\nyield %1";
    for (row, keeps_locks) in ENGINES.iter().flat_map(|row| [false, true].map(|keeps| (row, keeps))) {
        let calls = LongCalls::default();
        let of_shared = on_shared(calls.on_other_thread("a.of_shared", keeps_locks), Passing::Change);
        let (feed, running) = started_on(body, calls.function("a.long"), of_shared, options(row.name, 2));
        let first = feed.begin(flow(0));
        calls.wait_for(1);
        let second = feed.begin(flow(0));
        if keeps_locks {
            assert_eq!(feed.answers(vec![feed.begin(flow(3))]), [Some(Ok(Value::Int(3)))]);
            assert_eq!(calls.begun(), 1, "under `{}`", row.name);
        } else {
            calls.wait_for(2);
        }
        calls.release();
        assert_eq!(feed.answers(vec![first, second]), vec![Some(Ok(Value::Int(7))); 2], "under `{}`", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_step_that_is_one_call_keeps_its_locks_only_as_long_as_the_call_needs_them() {
    const CALL: &str = "a.of_shared at l (shared s)\n  yield %2\n";
    let step = |held: &str| format!("%1: Int = atomic ({held})\n  %2: Int = call {CALL}yield %1");
    // Each body, and whether its locks are released when the call has begun.
    let bodies = [
        (step("write shared s"), true),
        (step("write shared s, write constraint a"), true),
        // A constraint of the program orders more than the call.
        (step("write shared s, write constraint c").replace("atomic", "atomic cancellable"), false),
        (step("write shared s, write constraint c"), false),
        (step("write shared s").replace("  yield %2", "  %3: Int = call a.next at m ()\n  yield %2"), false),
        (
            format!(
                "%1: Int = atomic (write constraint c)\n  %4: Int = atomic (write shared s)\n    %2: Int = call {}  yield %4\nyield %1",
                CALL.replace("  yield", "    yield")
            ),
            false,
        ),
    ];
    for (row, ((body, released), keeps_locks)) in ENGINES
        .iter()
        .flat_map(|row| bodies.iter().map(move |body| (row, body)))
        .flat_map(|(row, body)| [false, true].map(|keeps| (row, (body, keeps))))
    {
        let calls = LongCalls::default();
        let of_shared = on_shared(calls.without_thread("a.of_shared", keeps_locks), Passing::Change);
        let next = FunctionCode::Immediate(Arc::new(|_: &mut weir_host::Call<'_>| Outcome::Value(Value::Int(0))));
        let next = function("a.next", &[], World::Reads, next);
        let (feed, running) = started_on(body, next, of_shared, options(row.name, 2));
        let cancelled = feed.begin(flow(0));
        calls.wait_for(1);
        drop(cancelled);
        let second = feed.begin(flow(0));
        if *released && !keeps_locks {
            calls.wait_for(2);
        } else {
            assert_eq!(feed.answers(vec![feed.begin(flow(3))]), [Some(Ok(Value::Int(3)))]);
            assert_eq!(calls.begun(), 1, "the step goes on, under `{}`\n{body}", row.name);
        }
        calls.release();
        assert_eq!(feed.answers(vec![second]), [Some(Ok(Value::Int(7)))], "under `{}`\n{body}", row.name);
        // Two beginnings and two ends: a step is whole, also if its flow is cancelled.
        calls.wait_for(4);
        drop(feed);
        running.wait().unwrap();
    }
}
