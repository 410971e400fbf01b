//! Calls of batched functions wait for further calls while their flow waits for something slower anyway, under every
//! engine, on a scripted clock.

use std::sync::Arc;
use std::time::Duration;

use test_support::flows::batches::{BatchGates, WaitingBatch};
use test_support::flows::{Feed, options, started};
use weir_host::{Batch, Value, World};
use weir_runtime::{ENGINES, Options, RunningProgram, ScriptedPlatform};
use weir_trace::{BatchDeparture, Detail, EventKind, Recorder, TraceEvent, TraceReader};

const MS: u64 = 1_000_000;

/// The time limit for an event that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The flows from which latencies are learned.
const LEARNING: usize = 4;

/// A fast call `f1`, and another one if it fails: so `f1` does not wait for later ones without a limit.
#[rustfmt::skip]
macro_rules! first {
    ($indent:literal, $argument:literal) => {
        concat!(
            $indent, "%2: Result(Int, Failure) = call fast.get at f1 (", $argument, ")\n",
            $indent, "%20: Int = switch %2\n",
            $indent, "  tag 0 (%21: Int)\n",
            $indent, "    yield %21\n",
            $indent, "  tag 1 (%22: Failure)\n",
            $indent, "    %23: Result(Int, Failure) = call fast.get at f3 (%0)\n",
            $indent, "    %24: Bool = equal(%23, %23)\n",
            $indent, "    yield -1\n",
        )
    };
}

/// A fast call `f2`, which needs the answer of a third function.
#[rustfmt::skip]
macro_rules! second {
    ($indent:literal, $argument:literal) => {
        concat!(
            $indent, "%3: Result(Int, Failure) = call key.get at k (", $argument, ")\n",
            $indent, "%4: Int = switch %3\n",
            $indent, "  tag 0 (%5: Int)\n",
            $indent, "    yield %5\n",
            $indent, "  tag 1 (%6: Failure)\n",
            $indent, "    yield -1\n",
            $indent, "%7: Result(Int, Failure) = call fast.get at f2 (%4)\n",
        )
    };
}

/// One call of a slow function, and two of a fast one.
const BESIDE: &str = concat!(
    "%1: Result(Int, Failure) = call slow.get at s (%0)\n",
    first!("", "1"),
    second!("", "%0"),
    "%8: List(Result(Int, Failure)) = list(%1, %2, %7)\nyield %20"
);

/// The same in each round of a `for` over two numbers.
const ROUNDS: &str = concat!(
    "%10: List(Int) = list(%0, 6)\n%11: List(Int) = for %12: Int in %10\n",
    "  %1: Result(Int, Failure) = call slow.get at s (%12)\n",
    first!("  ", "%12"),
    second!("  ", "%12"),
    "  %8: List(Result(Int, Failure)) = list(%1, %2, %7)\n  yield %20\nyield 0"
);

/// One call of a slow function beside such a `for`, which makes two calls of a fast one in each round.
const ROUNDS_BESIDE: &str = concat!(
    "%1: Result(Int, Failure) = call slow.get at s (%0)\n",
    "%10: List(Int) = list(%0, 6)\n%11: List(Int) = for %12: Int in %10\n",
    first!("  ", "%12"),
    second!("  ", "%12"),
    "  %8: List(Result(Int, Failure)) = list(%2, %7)\n  yield %20\n%9: Bool = equal(%1, %1)\nyield 0"
);

/// The two fast calls, and one of a slow function only if the answer of the third function is a failure.
const PERHAPS: &str = concat!(
    first!("", "1"),
    "%3: Result(Int, Failure) = call key.get at k (%0)\n%4: Int = switch %3\n  tag 0 (%5: Int)\n    yield %5\n",
    "  tag 1 (%6: Failure)\n    %1: Result(Int, Failure) = call slow.get at s (%0)\n    %9: Bool = equal(%1, %1)\n",
    "    yield -1\n%7: Result(Int, Failure) = call fast.get at f2 (%4)\n",
    "%8: List(Result(Int, Failure)) = list(%2, %7)\nyield %20"
);

/// A program with a slow function (10 ms), a fast one (2 ms), and one that takes 3 ms.
struct Scripted {
    platform: Arc<ScriptedPlatform>,
    gates: BatchGates,
    feed: Feed,
    trace: TraceReader,
    _running: RunningProgram,
}

impl Scripted {
    fn start(body: &str, options: Options) -> Scripted {
        let (platform, gates) = (Arc::new(ScriptedPlatform::new(7)), BatchGates::new());
        let limits = Batch { at_most: 100, in_flight: 4, gathered: 0 };
        let functions = ["slow.get", "fast.get", "key.get"].map(|path| gates.batched(path, World::Reads, limits));
        let (recorder, trace) = Recorder::new(Detail::Flows, 1_000);
        let options = Options { platform: Arc::<ScriptedPlatform>::clone(&platform), recorder, ..options };
        let (feed, running) = started(functions, "", body, options);
        Scripted { platform, gates, feed, trace, _running: running }
    }

    /// Waits for this many batches; returns them in the order of the functions' names.
    fn batches<const N: usize>(&self) -> [WaitingBatch; N] {
        let mut batches = std::array::from_fn(|_| self.gates.next());
        batches.sort_by_key(|batch| batch.path);
        batches
    }

    /// Returns the batches that were answered until one was for this reason, with the numbers of their calls.
    fn answered_until(&self, reason: BatchDeparture) -> Vec<(String, u64, BatchDeparture)> {
        let mut found = Vec::new();
        while !found.iter().any(|(_, _, because)| *because == reason) {
            let events = self.trace.wait(PATIENCE);
            assert!(!events.is_empty(), "a batch is sent because of {reason:?}, not only {found:?}");
            for event in events {
                if let EventKind::BatchAnswered { function, calls, sent_because, .. } = event.kind {
                    found.push((function.to_string(), calls, sent_because));
                }
            }
        }
        found
    }

    /// Lets time pass, and then answers a batch and waits until its calls have their answers.
    fn answer_after(&self, ms: u64, batch: WaitingBatch) {
        self.platform.pass_ns(ms * MS);
        batch.answer();
        let is_answer = |event: &TraceEvent| matches!(event.kind, EventKind::BatchAnswered { .. });
        while !self.trace.wait(PATIENCE).iter().any(is_answer) {}
    }
}

fn sent(batch: &WaitingBatch) -> (&str, Vec<i64>) {
    let mut arguments = batch.arguments.clone();
    arguments.sort_unstable();
    (batch.path, arguments)
}

/// Starts a program like [`BESIDE`], and lets it learn the latencies.
fn learned(body: &str, options: Options) -> Scripted {
    let scripted = Scripted::start(body, options);
    for _ in 0..LEARNING {
        let flow = scripted.feed.begin(vec![Value::Int(0)]);
        let [first, key, slow] = scripted.batches();
        scripted.answer_after(2, first);
        scripted.answer_after(1, key);
        let [second] = scripted.batches();
        scripted.answer_after(2, second);
        scripted.answer_after(5, slow);
        flow.blocking_recv().expect("the flow is answered").expect("no call fails");
    }
    scripted
}

fn every_engine(test: impl Fn(Options, &'static str)) {
    ENGINES.iter().for_each(|row| test(options(row.name, 2), row.name));
}

#[test]
fn a_call_waits_for_a_later_one_while_its_flow_waits_for_a_slower_one() {
    every_engine(|options, name| {
        let scripted = learned(BESIDE, options);
        let flow = scripted.feed.begin(vec![Value::Int(5)]);
        let [key, slow] = scripted.batches();
        assert!(scripted.gates.is_quiet(), "{name}: the fast function can wait");
        scripted.platform.pass_ns(3 * MS);
        key.answer();
        let [fast] = scripted.batches();
        assert_eq!(sent(&fast), ("fast.get", vec![1, 50]), "{name}");
        fast.answer();
        slow.answer();
        flow.blocking_recv().expect("the flow is answered").expect("no call fails");
    });
}

#[test]
fn calls_in_the_rounds_of_a_for_wait_for_later_ones_of_these_rounds() {
    for (body, slow_calls) in [(ROUNDS, vec![5, 6]), (ROUNDS_BESIDE, vec![5])] {
        every_engine(|options, name| {
            let scripted = learned(body, options);
            let flow = scripted.feed.begin(vec![Value::Int(5)]);
            let [key, slow] = scripted.batches();
            assert_eq!(
                [sent(&key), sent(&slow)],
                [("key.get", vec![5, 6]), ("slow.get", slow_calls.clone())],
                "{name}"
            );
            assert!(scripted.gates.is_quiet(), "{name}: the fast function can wait");
            scripted.platform.pass_ns(3 * MS);
            key.answer();
            let [fast] = scripted.batches();
            assert_eq!(sent(&fast), ("fast.get", vec![5, 6, 50, 60]), "{name}");
            fast.answer();
            slow.answer();
            flow.blocking_recv().expect("the flow is answered").expect("no call fails");
        });
    }
}

#[test]
fn calls_in_the_rounds_of_a_for_leave_before_their_flow_would_end_later() {
    every_engine(|options, name| {
        let scripted = learned(ROUNDS, options);
        let flow = scripted.feed.begin(vec![Value::Int(5)]);
        let [key, slow] = scripted.batches();
        scripted.platform.pass_ns(8 * MS);
        let [first] = scripted.batches();
        assert_eq!(sent(&first), ("fast.get", vec![5, 6]), "{name}");
        [first, slow].into_iter().for_each(WaitingBatch::answer);
        key.answer();
        let [second] = scripted.batches();
        assert_eq!(sent(&second), ("fast.get", vec![50, 60]), "{name}");
        second.answer();
        flow.blocking_recv().expect("the flow is answered").expect("no call fails");
    });
}

#[test]
fn a_call_leaves_before_its_flow_would_end_later() {
    every_engine(|options, name| {
        let scripted = learned(BESIDE, options);
        let flow = scripted.feed.begin(vec![Value::Int(5)]);
        let [key, slow] = scripted.batches();
        scripted.platform.pass_ns(8 * MS);
        let [first] = scripted.batches();
        assert_eq!(sent(&first), ("fast.get", vec![1]), "{name}");
        [first, slow].into_iter().for_each(WaitingBatch::answer);
        let answered = scripted.answered_until(BatchDeparture::Due);
        assert!(answered.contains(&("fast.get".to_owned(), 1, BatchDeparture::Due)), "{name}: {answered:?}");
        key.answer();
        let [second] = scripted.batches();
        assert_eq!(sent(&second), ("fast.get", vec![50]), "{name}");
        second.answer();
        flow.blocking_recv().expect("the flow is answered").expect("no call fails");
    });
}

#[test]
fn calls_of_several_flows_that_have_time_wait_together() {
    // On one thread, so that no flow joins a batch just when this leaves.
    let scripted = learned(BESIDE, options("event", 1));
    let flows = [5, 6].map(|number| scripted.feed.begin(vec![Value::Int(number)]));
    let mut batches: Vec<WaitingBatch> = Vec::new();
    while batches.iter().map(|batch| batch.arguments.len()).sum::<usize>() < 4 {
        batches.push(scripted.gates.next());
    }
    assert!(batches.iter().all(|batch| batch.path != "fast.get") && scripted.gates.is_quiet());
    scripted.platform.pass_ns(3 * MS);
    batches.into_iter().for_each(WaitingBatch::answer);
    // The calls after the keys, and those that waited for them.
    let mut gathered = Vec::new();
    while gathered.len() < 3 {
        let fast = scripted.gates.next();
        gathered.extend(fast.arguments.clone());
        fast.answer();
    }
    gathered.sort_unstable();
    assert_eq!(gathered, [1, 50, 60]);
    flows.into_iter().for_each(|flow| drop(flow.blocking_recv().expect("the flow is answered")));
}

#[test]
fn nothing_waits_for_the_sake_of_a_call_that_may_not_be_made() {
    every_engine(|options, name| {
        let scripted = Scripted::start(PERHAPS, options);
        for _ in 0..=LEARNING {
            let flow = scripted.feed.begin(vec![Value::Int(0)]);
            let [fast, key] = scripted.batches();
            assert_eq!(sent(&fast), ("fast.get", vec![1]), "{name}");
            scripted.answer_after(2, fast);
            scripted.platform.pass_ns(MS);
            key.fail("no key");
            let [second, slow] = scripted.batches();
            assert_eq!(sent(&second), ("fast.get", vec![-1]), "{name}");
            scripted.platform.pass_ns(10 * MS);
            [second, slow].into_iter().for_each(WaitingBatch::answer);
            flow.blocking_recv().expect("the flow is answered").expect("no call fails");
        }
    });
}
