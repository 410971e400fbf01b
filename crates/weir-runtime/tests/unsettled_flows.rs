//! Flows that have seen commits which are not durable: before they fail, and before they ask somebody outside, they wait until these are.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use test_support::flows::gates::{function, immediate, int, library};
use test_support::flows::{Feed, one_flow, options, start_expr};
use tokio::sync::oneshot;
use weir_host::{
    Closing, DurableCommits, Failure, Function, FunctionCode, Outcome, Passing, PlacedCalls, SeenCommits, Settled,
    Settling, Starting, StepEnd, StepEnds, Text, Type, Value, World,
};
use weir_runtime::{ENGINES, RunningProgram};

/// Time limit for each event that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);
/// Makes every sum with a positive number fail.
const MAX: &str = "9223372036854775807";

/// A wait of a flow, and the last commit that it has seen.
struct Wait {
    commit: u64,
    end: oneshot::Sender<Result<(), Failure>>,
}

/// A store of which nothing is durable before the test says so.
struct Store(Mutex<Sender<Wait>>);

impl Store {
    fn new() -> (Store, Receiver<Wait>) {
        let (sender, waits) = channel();
        (Store(Mutex::new(sender)), waits)
    }
}

impl DurableCommits for Store {
    fn settled(&self, commits: SeenCommits) -> Option<Settling> {
        let (end, ended) = oneshot::channel();
        let wait = (commits.last > 0).then_some(Wait { commit: commits.last, end })?;
        self.0.lock().expect("no test has panicked").send(wait).expect("the test listens");
        Some(Box::pin(async { ended.await.expect("the test ends the wait") }))
    }
}

impl Closing for Store {
    fn close(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl PlacedCalls for Store {
    fn failed(&self, _group: i64) -> std::pin::Pin<Box<dyn Future<Output = Option<Failure>> + Send>> {
        Box::pin(async { None })
    }
}

impl StepEnds for Store {
    fn of(&self, _constraint: &str) -> Option<Arc<dyn StepEnd>> {
        None
    }
}

impl Starting for Store {
    fn check_start(&self, _tables: &[Value]) -> Result<(), (Text, Failure)> {
        Ok(())
    }

    fn complete_start(&self) -> Result<(), (Text, Failure)> {
        Ok(())
    }
}

/// Returns a function that notes that its flow has seen this commit.
fn see() -> Function {
    immediate("a.see", &[("x", Type::Int, Passing::Value)], |call| {
        let commit = int(call, 0);
        SeenCommits::note(commit.unsigned_abs());
        Outcome::Value(Value::Int(commit))
    })
}

/// Returns a function that tells the test when it asks a peer, and is answered at once.
fn ask(world: World, asked: Sender<i64>) -> Function {
    let code = FunctionCode::Waiting(Arc::new(move |call| {
        let (x, asked) = (int(call, 0), asked.clone());
        Ok(Box::pin(async move {
            asked.send(x).expect("the test listens");
            Settled { outcome: Outcome::Value(Value::Int(x)), restored: Vec::new() }
        }))
    }));
    let mut ask = function("b.ask", &[("x", Type::Int, Passing::Value)], world, code);
    ask.signature.effects.awaits_peer = true;
    ask
}

/// Returns the function that waits until everything is durable, or what the flow has seen.
fn settle() -> Function {
    immediate("tables.settle", &[("all", Type::Bool, Passing::Value)], |_| Outcome::Value(Value::Int(0)))
}

fn started(
    engine: &str,
    functions: impl IntoIterator<Item = Function>,
    body: &str,
) -> (Feed, Receiver<Wait>, RunningProgram) {
    let (feed, (store, waits)) = (Feed::new(), Store::new());
    let mut library = library(functions);
    feed.put(&mut library, "test", "feed");
    library.environment.insert_placing(store);
    let program = one_flow("shared s: Int\n  yield 0\n", body);
    assert_eq!(weir_ir::verify::expr(&program, &library), [], "{body}");
    let running = start_expr(&program, &library, options(engine, 2));
    (feed, waits, running)
}

fn every_engine(test: impl Fn(&str)) {
    ENGINES.iter().for_each(|row| test(row.name));
}

fn value(x: i64) -> Vec<Value> {
    vec![Value::Int(x)]
}

#[test]
fn a_flow_that_fails_waits_for_what_it_has_seen_and_holds_no_lock_meanwhile() {
    every_engine(|engine| {
        let body = format!(
            "%1: Int = atomic (write shared s)\n  %2: Int = call a.see at a (%0)\n  %3: Int = add(%2, {MAX})\n  yield %3\nyield %1"
        );
        let (feed, waits, running) = started(engine, [see()], &body);
        let mut failing = feed.begin(value(7));
        let wait = waits.recv_timeout(PATIENCE).expect("the flow waits");
        assert_eq!(wait.commit, 7);
        assert!(failing.try_recv().is_err(), "{engine}: it has no answer yet");
        let answer = feed.run(value(0)).expect("it has seen nothing, and needs the lock");
        assert_eq!(answer.to_string(), MAX);
        wait.end.send(Ok(())).expect("the flow waits");
        let failure = failing.blocking_recv().expect("it is answered").expect_err("the sum is too large");
        assert!(failure.message.contains("out of range"), "{failure}");
        drop(feed);
        running.wait().expect("the source ends");
        assert!(waits.try_recv().is_err(), "it waits once");
    });
}

#[test]
fn a_flow_fails_with_the_failure_of_its_wait() {
    every_engine(|engine| {
        let body = format!("%1: Int = call a.see at a (%0)\n%2: Int = add(%1, {MAX})\nyield %2");
        let (feed, waits, running) = started(engine, [see()], &body);
        let failing = feed.begin(value(7));
        let wait = waits.recv_timeout(PATIENCE).expect("the flow waits");
        wait.end.send(Err(Failure::function("the disk is gone"))).expect("the flow waits");
        let failure = failing.blocking_recv().expect("it is answered").expect_err("the wait has failed");
        assert_eq!(&*failure.message, "the disk is gone");
        drop(feed);
        running.wait().expect("the source ends");
    });
}

#[test]
fn a_flow_that_may_learn_of_any_commit_waits_for_all() {
    every_engine(|engine| {
        for (all, commit) in [("true", Some(SeenCommits::ALL)), ("false", None)] {
            let body = format!("%1: Int = add(%0, {MAX})\n%2: Int = call tables.settle at s ({all})\nyield %1");
            let (feed, waits, running) = started(engine, [settle()], &body);
            let failing = feed.begin(value(1));
            let waited = commit.map(|_| {
                let Wait { commit, end } = waits.recv_timeout(PATIENCE).expect("the flow waits");
                end.send(Ok(())).expect("the flow waits");
                commit
            });
            assert_eq!(waited, commit, "{engine}");
            failing.blocking_recv().expect("it is answered").expect_err("the sum is too large");
            drop(feed);
            running.wait().expect("the source ends");
            assert!(waits.try_recv().is_err());
        }
    });
}

#[test]
fn a_call_that_only_reads_asks_a_peer_behind_what_its_flow_has_seen() {
    every_engine(|engine| {
        let (asks, asked) = channel();
        let body = "%1: Int = call a.see at a (%0)\n%2: Int = call b.ask at b (%1)\nyield %2";
        let (feed, waits, running) = started(engine, [see(), ask(World::Reads, asks)], body);
        assert_eq!(feed.run(value(0)), Ok(Value::Int(0)), "{engine}");
        assert_eq!(asked.try_recv(), Ok(0));
        let asking = feed.begin(value(7));
        let wait = waits.recv_timeout(PATIENCE).expect("the flow waits");
        assert!(wait.commit == 7 && asked.try_recv().is_err(), "{engine}: it has asked nobody yet");
        wait.end.send(Ok(())).expect("the flow waits");
        assert_eq!(asking.blocking_recv().expect("it is answered"), Ok(Value::Int(7)));
        assert_eq!(asked.try_recv(), Ok(7));
        let asking = feed.begin(value(8));
        let wait = waits.recv_timeout(PATIENCE).expect("the flow waits");
        wait.end.send(Err(Failure::function("the disk is gone"))).expect("the flow waits");
        // The flow fails, and has forgotten nothing.
        let wait = waits.recv_timeout(PATIENCE).expect("the flow waits");
        wait.end.send(Ok(())).expect("the flow waits");
        asking.blocking_recv().expect("it is answered").expect_err("nobody knows what is durable");
        assert!(asked.try_recv().is_err(), "{engine}");
        drop(feed);
        running.wait().expect("the source ends");
    });
}
