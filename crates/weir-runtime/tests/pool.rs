//! The engine `pool`: the flows that its event loop begins by itself, and those that it leaves to the threads. Time
//! moves only when a test says so.

use std::sync::Arc;
use std::thread;

use test_support::flows::gates::{Gates, Waiting, function, immediate, int, library, on_shared};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Function, FunctionCode, Outcome, Passing, Settled, Type, Value, World};
use weir_runtime::{Options, RunningProgram, ScriptedPlatform};

/// The answers of [`place`].
const ON_A_THREAD: Value = Value::Int(0);
const ON_THE_LOOP: Value = Value::Int(1);
/// The number of flows that begin on threads at first, and after one that took ten times as long as a brief one may.
const AT_FIRST: usize = 2;
const AFTER_LONG: usize = 320;

/// A service of one route under `pool`.
fn service(
    functions: impl IntoIterator<Item = Function>,
    body: &str,
    threads: usize,
    clock: &Arc<ScriptedPlatform>,
) -> (Feed, RunningProgram) {
    let (feed, mut library) = (Feed::new(), library(functions));
    feed.put(&mut library, "test", "feed");
    let body: String = body.trim().lines().map(|line| format!("    {}\n", line.trim_end())).collect();
    let text = format!(
        "shared s: Int\n  yield 0\nentry test from test.feed unordered\n  arguments\n    yield (0,)\n  \
         flow feed (%0 x: Int) -> Int\n    route GET \"/\"\n      parameter x in query\n{body}"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(weir_ir::verify::expr(&program, &library), []);
    let running = start_expr(&program, &library, Options { platform: clock.clone(), ..options("pool", threads) });
    (feed, running)
}

/// Returns true on the event loop.
fn place() -> Value {
    let name = thread::current().name().unwrap_or_default().to_owned();
    if name.starts_with("weir loop") { ON_THE_LOOP } else { ON_A_THREAD }
}

/// Returns the place where it runs, and takes this many microseconds.
fn working(clock: &Arc<ScriptedPlatform>) -> Function {
    let clock = Arc::clone(clock);
    immediate("a.work", &[("x", Type::Int, Passing::Value)], move |call| {
        clock.pass_ns(int(call, 0).unsigned_abs() * 1_000);
        Outcome::Value(place())
    })
}

fn run(feed: &Feed, x: i64) -> Value {
    feed.run(vec![Value::Int(x)]).expect("the flow has an answer")
}

const WORK: &str = "%1: Int = call a.work at a (%0)\nyield %1";

#[test]
fn what_is_brief_is_begun_on_the_loop_and_what_takes_long_is_not() {
    let clock = Arc::new(ScriptedPlatform::new(0));
    let (feed, _running) = service([working(&clock)], WORK, 1, &clock);
    (0..AT_FIRST).for_each(|_| assert_eq!(run(&feed, 0), ON_A_THREAD));
    assert_eq!(run(&feed, 0), ON_THE_LOOP);
    assert_eq!(run(&feed, 100), ON_THE_LOOP, "nobody can know that it will take long");
    // The brief flow before it counts.
    (1..AFTER_LONG).for_each(|_| assert_eq!(run(&feed, 0), ON_A_THREAD));
    assert_eq!(run(&feed, 0), ON_THE_LOOP);
}

/// Calls `a.block` if x is 1, and otherwise returns x.
const SOMETIMES: &str = "
%1: Bool = equal(%0, 1)
%2: Int = switch %1
  value true
    %3: Int = call a.block at a (%0)
    yield %3
  otherwise
    yield %0
yield %2";

#[test]
fn what_holds_its_thread_never_holds_the_loop() {
    let clock = Arc::new(ScriptedPlatform::new(0));
    let block = FunctionCode::Blocking(Arc::new(|_| {
        Ok(Box::new(|| Settled { outcome: Outcome::Value(place()), restored: Vec::new() }))
    }));
    let block = function("a.block", &[("x", Type::Int, Passing::Value)], World::Writes, block);
    let (feed, _running) = service([block], SOMETIMES, 1, &clock);
    (0..2 * AT_FIRST).for_each(|_| assert_eq!(run(&feed, 5), Value::Int(5)));
    assert_eq!(run(&feed, 1), ON_A_THREAD);
}

/// Calls `a.wait` under the shared value if x is 1, `a.add` to it if x is 2, and otherwise returns x.
const SHARED: &str = "
%1: Int = switch %0
  value 1
    %2: Int = call a.wait at a (shared s, %0)
    yield %2
  value 2
    %3: Int = call a.add at b (shared s, %0)
    yield %3
  otherwise
    yield %0
yield %1";

#[test]
fn a_flow_that_the_loop_began_waits_for_a_lock_on_a_thread() {
    let (clock, gates) = (Arc::new(ScriptedPlatform::new(0)), Gates::new());
    let wait = on_shared(gates.waiting("a.wait", World::Pure), Passing::Change);
    let add = immediate("a.add", &[("x", Type::Int, Passing::Value)], |call| Outcome::Value(Value::Int(int(call, 1))));
    let (feed, _running) = service([wait, on_shared(add, Passing::Change)], SHARED, 3, &clock);
    (0..2 * AT_FIRST).for_each(|_| assert_eq!(run(&feed, 5), Value::Int(5)));
    let holds = feed.begin(vec![Value::Int(1)]);
    let held = gates.next();
    let queues = feed.begin(vec![Value::Int(2)]);
    assert_eq!(run(&feed, 7), Value::Int(7), "the loop goes on");
    held.release();
    assert_eq!(holds.blocking_recv().expect("it is answered"), Ok(Value::Int(1)));
    assert_eq!(queues.blocking_recv().expect("it is answered"), Ok(Value::Int(2)));
}

#[test]
fn a_call_that_may_wait_while_it_has_a_lock_begins_on_a_thread() {
    let clock = Arc::new(ScriptedPlatform::new(0));
    let place = FunctionCode::Waiting(Arc::new(|_| {
        let settled = Settled { outcome: Outcome::Value(place()), restored: Vec::new() };
        Ok(Box::pin(std::future::ready(settled)))
    }));
    let wait = function("a.wait", &[("x", Type::Int, Passing::Value)], World::Pure, place);
    let add = immediate("a.add", &[("x", Type::Int, Passing::Value)], |_| Outcome::Value(Value::Int(0)));
    let functions = [on_shared(wait, Passing::Change), on_shared(add, Passing::Change)];
    let (feed, _running) = service(functions, SHARED, 1, &clock);
    (0..2 * AT_FIRST).for_each(|_| assert_eq!(run(&feed, 5), Value::Int(5)));
    assert_eq!(run(&feed, 1), ON_A_THREAD);
}

/// Calls `a.wait` and then `a.add` under the shared value if x is 1, `a.add` if x is 2, and otherwise returns x.
const TWICE: &str = "
%1: Int = switch %0
  value 1
    %2: Int = call a.wait at a (shared s, %0)
    %3: Int = call a.add at b (shared s, %2)
    yield %3
  value 2
    %4: Int = call a.add at c (shared s, %0)
    yield %4
  otherwise
    yield %0
yield %1";

/// A flow that waited in the pool's queue with a place in the lock's queue would never get a thread: the flow behind it
/// at the lock would hold the only one, with its second call.
#[test]
fn flows_that_queue_at_one_lock_all_come_through_one_thread() {
    let (clock, gates) = (Arc::new(ScriptedPlatform::new(0)), Gates::new());
    let wait = on_shared(gates.waiting("a.wait", World::Pure), Passing::Change);
    let add = immediate("a.add", &[("x", Type::Int, Passing::Value)], |call| Outcome::Value(Value::Int(int(call, 1))));
    let (feed, _running) = service([wait, on_shared(add, Passing::Change)], TWICE, 1, &clock);
    (0..2 * AT_FIRST).for_each(|_| assert_eq!(run(&feed, 5), Value::Int(5)));
    let holds = feed.begin(vec![Value::Int(1)]);
    let held = gates.next();
    let queued: Vec<_> = (0..10).map(|_| feed.begin(vec![Value::Int(2)])).collect();
    assert_eq!(feed.refused(), 0);
    held.release();
    let answers = feed.answers(queued);
    assert_eq!(feed.answers(vec![holds]), [Some(Ok(Value::Int(1)))]);
    assert!(answers.iter().all(|answer| *answer == Some(Ok(Value::Int(2)))), "{answers:?}");
}

/// Waits at a gate that stands for the peer of a connection if x is 1, and then at another one.
const PEER: &str = "
%1: Int = switch %0
  value 1
    %2: Int = call a.peer at a (%0)
    %3: Int = call a.gate at b (%0)
    yield %3
  otherwise
    yield %0
yield %1";

#[test]
fn waiting_for_a_peer_holds_no_thread() {
    let clock = Arc::new(ScriptedPlatform::new(0));
    let (peers, gates) = (Gates::new(), Gates::new());
    let mut peer = peers.waiting("a.peer", World::Writes);
    peer.signature.effects.awaits_peer = true;
    let (feed, _running) = service([peer, gates.waiting("a.gate", World::Writes)], PEER, 1, &clock);
    let slow: Vec<_> = (0..50).map(|_| feed.begin(vec![Value::Int(1)])).collect();
    let arrived: Vec<_> = slow.iter().map(|_| peers.next()).collect();
    assert_eq!(run(&feed, 0), Value::Int(0));
    arrived.into_iter().for_each(Waiting::release);
    (0..slow.len()).for_each(|_| gates.next().release());
    assert_eq!(feed.answers(slow).len(), 50);
    drop(feed.begin(vec![Value::Int(1)]));
    peers.next().given_up();
    assert_eq!(run(&feed, 0), Value::Int(0));
}

/// Waits for a peer if x is not 0, and works for as many microseconds then.
const PEER_AND_WORK: &str = "
%1: Bool = equal(%0, 0)
%2: Int = switch %1
  value true
    yield %0
  otherwise
    %3: Int = call a.peer at a (%0)
    %4: Int = call a.work at b (%3)
    yield %4
yield %2";

/// Begins a flow that waits for its peer, and lets the peer answer.
fn answered_by_peer(feed: &Feed, peers: &Gates, x: i64) -> Value {
    let answer = feed.begin(vec![Value::Int(x)]);
    peers.next().release();
    answer.blocking_recv().expect("it is answered").expect("the flow has an answer")
}

#[test]
fn a_flow_that_waits_for_peers_goes_on_where_it_has_begun() {
    let (clock, peers) = (Arc::new(ScriptedPlatform::new(0)), Gates::new());
    let mut peer = peers.waiting("a.peer", World::Writes);
    peer.signature.effects.awaits_peer = true;
    let (feed, _running) = service([peer, working(&clock)], PEER_AND_WORK, 1, &clock);
    assert_eq!(answered_by_peer(&feed, &peers, 1), ON_A_THREAD, "nobody knows yet that it is brief");
    (0..2 * AT_FIRST).for_each(|_| assert_eq!(run(&feed, 0), Value::Int(0)));
    (0..AFTER_LONG).for_each(|_| assert_eq!(answered_by_peer(&feed, &peers, 1), ON_THE_LOOP));
    // What it does with the answer takes so long that the brief flows before it do not make up for it.
    assert_eq!(answered_by_peer(&feed, &peers, 1_000_000), ON_THE_LOOP, "nobody can know that it will take long");
    assert_eq!(answered_by_peer(&feed, &peers, 1), ON_A_THREAD);
}

#[test]
fn a_flow_that_waits_on_the_loop_is_cancelled_or_goes_to_a_thread_with_its_route() {
    let (clock, peers) = (Arc::new(ScriptedPlatform::new(0)), Gates::new());
    let mut peer = peers.waiting("a.peer", World::Writes);
    peer.signature.effects.awaits_peer = true;
    let (feed, _running) = service([peer, working(&clock)], PEER_AND_WORK, 1, &clock);
    (0..2 * AT_FIRST).for_each(|_| assert_eq!(run(&feed, 0), Value::Int(0)));
    drop(feed.begin(vec![Value::Int(1)]));
    peers.next().given_up();
    let [first, second] = [(); 2].map(|()| feed.begin(vec![Value::Int(1_000_000)]));
    let waiting = [peers.next(), peers.next()];
    waiting.into_iter().for_each(Waiting::release);
    let places = feed.answers(vec![first, second]);
    assert!(places.contains(&Some(Ok(ON_THE_LOOP))) && places.contains(&Some(Ok(ON_A_THREAD))), "{places:?}");
}
