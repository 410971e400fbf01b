//! A flow that has what others wait for never waits for a thread that these hold. It may have run before, and have a lock; or it
//! may be a new one, which answers a call of another flow to the program itself.
//!
//! A thread that does not look after the queue when it sleeps is caught only if it sleeps already when the lock's owner is
//! woken. No test can see that from outside, so each case has several rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use test_support::flows::gates::{Gates, Waiting, function, int, library, on_shared};
use test_support::flows::{Feed, options, start_expr};
use tokio::sync::oneshot;
use weir_host::{
    AwaitedCall, Call, CallRest, Failure, Function, FunctionCode, Outcome, Passing, Settled, Type, Value, World,
};
use weir_runtime::{ENGINES, Options, RunningProgram, ScriptedPlatform};

/// Time limit for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);
const ROUNDS: usize = 10;
const HOLDS: i64 = 1;
const WAITS: i64 = 2;

/// Steps that wait for a peer under a lock.
const OWNERS: [&str; 3] = [
    "%1: Int = atomic (write shared s)\n  %2: Int = call a.peer at p (%0)\n  yield %2\nyield %1",
    "%1: Int = atomic (write shared s, write constraint c)\n  %2: Int = call a.peer at p (%0)\n  yield %2\nyield %1",
    "%1: Int = call a.peer_under at p (shared s, %0)\nyield %1",
];

/// Bodies that wait for the lock and for `b.wait`, and one that waits for `b.wait` alone and holds its thread.
const WAITERS: [&str; 5] = [
    "%5: Int = call b.wait at w (%0)\nyield %5",
    "%3: Int = race
  branch
    %4: Int = atomic (write shared s)
      yield 0
    yield %4
  branch
    %5: Int = call b.wait at w (%0)
    yield %5
yield %3",
    "%3: Option(Int) = within 5ms
  %5: Int = call b.wait at w (%0)
  %4: Int = atomic (write shared s)
    yield 0
  yield %5
yield 0",
    "%5: Int = call b.wait at w (%0)
%4: Int = atomic (write shared s)
  yield 0
yield %5",
    "%3: List(Int) = for %6: Int in [1]
  %5: Int = call b.wait at w (%6)
  %4: Int = atomic (write shared s)
    yield 0
  yield %5
yield 0",
];

/// Bodies that wait for a peer and for `b.wait`.
const BESIDE_PEER: [&str; 7] = [
    "%3: Int = race
  branch
    %4: Int = call a.peer at p (%0)
    yield %4
  branch
    %5: Int = call b.wait at w (%0)
    yield %5
yield %3",
    "%4: Int = call a.peer at p (%0)
%5: Int = call b.wait at w (%0)
yield %5",
    "%2: Option(Int) = within 5ms
  %3: Int = race
    branch
      %4: Int = call a.peer at p (%0)
      yield %4
    branch
      %5: Int = call b.wait at w (%0)
      yield %5
  yield %3
yield 0",
    "%2: Int = race
  branch
    %5: Int = call b.wait at w (%0)
    yield %5
  branch
    %3: Option(Int) = within 5ms
      %4: Int = call a.peer at p (%0)
      yield %4
    yield 0
yield %2",
    "%3: List(Int) = for %6: Int in [1, 2]
  %7: Bool = equal(%6, 1)
  %8: Int = switch %7
    value true
      %4: Int = call a.peer at p (%0)
      yield %4
    otherwise
      %5: Int = call b.wait at w (%0)
      yield %5
  yield %8
yield 0",
    "%1: Int = atomic (read shared s)
  %3: Int = race
    branch
      %4: Int = call a.peer at p (%0)
      yield %4
    branch
      %5: Int = call b.wait at w (%0)
      yield %5
  yield %3
yield %1",
    "%3: Int = race
  branch
    %1: Int = atomic (read shared s)
      %4: Int = call a.peer at p (%0)
      yield %4
    yield %1
  branch
    %5: Int = call b.wait at w (%0)
    yield %5
yield %3",
];

/// Starts a program with one route for each of these bodies.
fn started(functions: impl IntoIterator<Item = Function>, bodies: &[&str], options: Options) -> (Feed, RunningProgram) {
    let (feed, mut library) = (Feed::new(), library(functions));
    feed.put(&mut library, "test", "feed");
    let flow = |(number, body): (usize, &&str)| {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("  flow f{number} (%0 x: Int) -> Int\n    route GET \"/{number}\"\n      parameter x in query\n{body}")
    };
    let flows: String = bodies.iter().enumerate().map(flow).collect();
    let text =
        format!("shared s: Int\n  yield 0\nentry test from test.feed unordered\n  arguments\n    yield (0,)\n{flows}");
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(weir_ir::verify::expr(&program, &library), [], "{text}");
    let running = start_expr(&program, &library, Options { platform: Arc::new(ScriptedPlatform::new(0)), ..options });
    (feed, running)
}

/// Returns a gated function that waits for a peer.
fn peer(gates: &Gates, path: &'static str) -> Function {
    let mut peer = gates.waiting(path, World::Pure);
    peer.signature.effects.awaits_peer = true;
    peer
}

fn value(x: i64) -> Vec<Value> {
    vec![Value::Int(x)]
}

type Answers = Vec<Option<Result<Value, Failure>>>;

fn are_values(answers: &Answers) -> bool {
    answers.iter().all(|answer| matches!(answer, Some(Ok(_))))
}

#[test]
fn the_owner_of_a_lock_gets_a_thread_while_flows_that_wait_for_it_hold_all() {
    for (row, threads) in ENGINES.iter().flat_map(|row| [1, 2].map(|threads| (row, threads))) {
        for (owner, waiter) in OWNERS.iter().flat_map(|owner| WAITERS.iter().map(move |waiter| (owner, waiter))) {
            let (peers, waits) = (Gates::new(), Gates::new());
            let under = on_shared(peer(&peers, "a.peer_under"), Passing::Change);
            let functions = [peer(&peers, "a.peer"), under, waits.waiting("b.wait", World::Pure)];
            let (feed, running) = started(functions, &[owner, waiter], options(row.name, threads));
            for _ in 0..ROUNDS {
                let owning = feed.begin_at(0, value(HOLDS));
                let owner_waits = peers.next();
                let waiting: Vec<_> = (0..threads).map(|_| feed.begin_at(1, value(WAITS))).collect();
                let held: Vec<_> = (0..threads).map(|_| waits.next()).collect();
                owner_waits.release();
                let owned = feed.answers(vec![owning]);
                assert!(are_values(&owned), "`{}`, {threads} threads: {owned:?}\n{owner}\n{waiter}", row.name);
                held.into_iter().for_each(|call| call.release());
                assert!(are_values(&feed.answers(waiting)));
            }
            drop(feed);
            running.wait().expect("the source ends");
        }
    }
}

#[test]
fn a_new_flow_gets_a_thread_while_others_wait_for_an_answer_and_for_something_beside_it() {
    for (row, threads) in ENGINES.iter().flat_map(|row| [1, 2].map(|threads| (row, threads))) {
        for waiter in BESIDE_PEER {
            let gates = Gates::new();
            let functions = [peer(&gates, "a.peer"), gates.waiting("b.wait", World::Pure)];
            let (feed, running) = started(functions, &["yield %0", waiter], options(row.name, threads));
            let waiting: Vec<_> = (0..2 * threads).map(|_| feed.begin_at(1, value(WAITS))).collect();
            let calls: Vec<_> = (0..2 * waiting.len()).map(|_| gates.next()).collect();
            let answered = feed.answers(vec![feed.begin_at(0, value(HOLDS))]);
            assert!(are_values(&answered), "`{}`, {threads} threads: {answered:?}\n{waiter}", row.name);
            calls.into_iter().for_each(|call| call.release());
            assert!(are_values(&feed.answers(waiting)));
            drop(feed);
            running.wait().expect("the source ends");
        }
    }
}

/// Waits again and again until the shared value is positive.
const LOOKS: &str = "%1: Int = loop 0 at most 1000000000 as %2: Int
  %3: Int = call b.wait at w (%2)
  %4: Int = call c.get at g (shared s, %3)
  %5: Bool = less(0, %4)
  %6: (Int, Bool) = record(%4, %5)
  yield %6
yield %1";

/// Makes the shared value positive.
const SETS: &str = "%1: Int = call c.set at s (shared s, %0)\nyield %1";

#[test]
fn a_new_flow_gets_a_thread_while_others_look_again_and_again_for_what_it_does() {
    for (row, threads) in ENGINES.iter().flat_map(|row| [1, 2].map(|threads| (row, threads))) {
        let (gates, value_of_s) = (Gates::new(), Arc::new(AtomicI64::new(0)));
        let (set, got) = (Arc::clone(&value_of_s), value_of_s);
        let immediate = |path, code: Box<dyn Fn(&mut Call<'_>) -> i64 + Send + Sync>| {
            let code = FunctionCode::Immediate(Arc::new(move |call| Outcome::Value(Value::Int(code(call)))));
            function(path, &[("x", Type::Int, Passing::Value)], World::Reads, code)
        };
        let set = immediate("c.set", Box::new(move |call| set.swap(int(call, 1), Ordering::SeqCst)));
        let get = immediate("c.get", Box::new(move |_| got.load(Ordering::SeqCst)));
        let functions =
            [gates.waiting("b.wait", World::Reads), on_shared(set, Passing::Change), on_shared(get, Passing::Borrow)];
        let (feed, running) = started(functions, &[SETS, LOOKS], options(row.name, threads));
        let mut flows: Vec<_> = (0..threads).map(|_| feed.begin_at(1, value(WAITS))).collect();
        let mut calls: Vec<_> = (0..threads).map(|_| gates.next()).collect();
        flows.push(feed.begin_at(0, value(HOLDS)));
        let began = Instant::now();
        while !flows.is_empty() {
            assert!(began.elapsed() < PATIENCE, "`{}`, {threads} threads", row.name);
            calls.drain(..).for_each(|call: Waiting| call.release());
            calls.extend(gates.begun());
            flows.retain_mut(|flow| flow.try_recv().map(|answer| answer.expect("it is a value")).is_err());
            std::thread::yield_now();
        }
        drop(feed);
        running.wait().expect("the source ends");
    }
}

/// Returns a function that begins a call which keeps the lock of its shared value until it ends.
fn begins_long_call(begun: std::sync::mpsc::Sender<oneshot::Sender<()>>) -> Function {
    let code = FunctionCode::Immediate(Arc::new(move |call: &mut Call<'_>| {
        let (release, released) = oneshot::channel();
        if let Some(awaited) = call.awaited.take() {
            begun.send(release).expect("the test listens");
            let pending = Box::pin(async move {
                _ = released.await;
                Settled { outcome: Outcome::Value(Value::Int(HOLDS)), restored: Vec::new() }
            });
            *awaited = Some(AwaitedCall { rest: CallRest::Awaited(pending), keeps_locks: true, sent_on: None });
        }
        Outcome::ExceedsUnits
    }));
    on_shared(function("a.long", &[("x", Type::Int, Passing::Value)], World::Pure, code), Passing::Borrow)
}

#[test]
fn so_does_one_that_the_event_loop_has_begun() {
    const OWNER: &str = "%1: Int = switch %0
  value 1
    %2: Int = call b.beside at b (%0)
    %8: Int = call a.long at l (shared s, %0)
    %9: Int = add(%2, %8)
    yield %9
  otherwise
    yield %0
yield %1";
    const WAITER: &str = "%3: Int = race
  branch
    %6: Int = call b.first at f (%0)
    %4: Int = atomic (write shared s)
      %7: Int = add(%6, 1)
      yield %7
    yield %4
  branch
    %5: Int = call b.wait at w (%0)
    yield %5
yield %3";
    for threads in [1, 2] {
        let (waits, (begun, has_begun)) = (Gates::new(), std::sync::mpsc::channel());
        let waiting = ["b.beside", "b.first", "b.wait"].map(|path| waits.waiting(path, World::Pure));
        let functions = waiting.into_iter().chain([begins_long_call(begun)]);
        let (feed, running) = started(functions, &[OWNER, WAITER], options("pool", threads));
        // From then on, the event loop begins flows of this route.
        (0..4).for_each(|_| assert_eq!(feed.answers(vec![feed.begin_at(0, value(0))]), [Some(Ok(Value::Int(0)))]));
        let waiting: Vec<_> = (0..threads).map(|_| feed.begin_at(1, value(WAITS))).collect();
        let held: Vec<_> = (0..2 * threads).map(|_| waits.next()).collect();
        let owning = feed.begin_at(0, value(HOLDS));
        let release: oneshot::Sender<()> = has_begun.recv_timeout(PATIENCE).expect("the event loop begins it");
        let beside = waits.next();
        let (first, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|call| call.path == "b.first");
        first.into_iter().for_each(|call| call.release());
        release.send(()).expect("the call waits");
        assert!(are_values(&feed.answers(waiting)), "{threads} threads");
        beside.release();
        assert_eq!(feed.answers(vec![owning]), [Some(Ok(Value::Int(2 * HOLDS)))]);
        drop(held);
        drop(feed);
        running.wait().expect("the source ends");
    }
}
