//! Calls of batched functions wait without a limit for a later call that is certain, if all that needs their answers needs its
//! answer, too. This needs no estimate of a latency: each program runs once, with functions that are never seen before.

use std::sync::Arc;

use test_support::flows::batches::{BatchGates, WaitingBatch};
use test_support::flows::gates::{Gates, immediate, on_shared};
use test_support::flows::{Answer, Feed, options, started};
use weir_host::{Batch, Outcome, Passing, Type, Value, World};
use weir_runtime::{ENGINES, Options, RunningProgram, ScriptedPlatform};

/// The limits of the functions.
const LIMITS: Batch = Batch { at_most: 100, in_flight: 4, gathered: 0 };

/// Two calls `fast`, of which the second needs the answer of `key`; `between` stands before the second.
fn pair(between: &str) -> String {
    format!(
        "%1: Result(Int, Failure) = call fast.get at f1 (1)\n\
         %2: Result(Int, Failure) = call key.get at k (%0)\n\
         %3: Int = switch %2\n  tag 0 (%4: Int)\n    yield %4\n  tag 1 (%5: Failure)\n    yield -1\n\
         {between}\
         %7: Result(Int, Failure) = call fast.get at f2 (%3)\n"
    )
}

/// The end of a program: the answers are needed together.
const TOGETHER: &str = "%8: List(Result(Int, Failure)) = list(%1, %7)\nyield 0";

/// The end of a program: a failure of the first call ends the flow.
const FAILING: &str = "%8: Int = switch %1\n  tag 0 (%9: Int)\n    yield %9\n  tag 1 (%10: Failure)\n    \
                       %11: Never = fail %10\n    yield ()\n%12: Bool = equal(%7, %7)\nyield %8";

struct Started {
    gates: BatchGates,
    clients: Gates,
    feed: Feed,
    _running: RunningProgram,
}

impl Started {
    fn new(body: &str, options: Options, limits: Batch) -> Started {
        let (gates, clients) = (BatchGates::new(), Gates::new());
        let mut functions: Vec<_> =
            ["fast.get", "key.get", "slow.get"].map(|path| gates.batched(path, World::Reads, limits)).into();
        functions.push(clients.waiting("client.get", World::Reads));
        let mut of_part = gates.batched("part.get", World::Reads, limits);
        let mut part = of_part.signature.parameters[0].clone();
        part.name = "part".into();
        of_part.signature.parameters.push(part);
        functions.push(of_part);
        functions.push(gates.batched("narrow.get", World::Reads, Batch { at_most: 2, in_flight: 1, gathered: 0 }));
        let change = immediate("shown.change", &[("x", Type::Int, Passing::Value)], |_| Outcome::Value(Value::Int(0)));
        functions.push(on_shared(change, Passing::Change));
        // Time stands still for the program, so that no slice is over because the machine is busy.
        let options = Options { platform: Arc::new(ScriptedPlatform::new(0)), ..options };
        let (feed, running) = started(functions, "shared s: Int\n  yield 0\n", body, options);
        Started { gates, clients, feed, _running: running }
    }

    fn begin(&self) -> tokio::sync::oneshot::Receiver<Answer> {
        self.feed.begin(vec![Value::Int(5)])
    }

    /// Waits for the next batch, which is this one.
    fn next(&self, path: &str, arguments: &[i64], how: &str) -> WaitingBatch {
        let batch = self.gates.next();
        let mut sent = batch.arguments.clone();
        sent.sort_unstable();
        assert_eq!((batch.path, &sent[..]), (path, arguments), "{how}");
        batch
    }

    fn is_quiet(&self) -> bool {
        self.gates.is_quiet()
    }
}

fn end(flow: tokio::sync::oneshot::Receiver<Answer>) -> Answer {
    flow.blocking_recv().expect("the flow is answered")
}

/// Runs a program under every engine.
fn every_engine(body: &str, test: impl Fn(&Started, &str)) {
    ENGINES.iter().for_each(|row| test(&Started::new(body, options(row.name, 2), LIMITS), row.name));
}

#[test]
fn a_call_waits_for_a_later_one_although_nothing_is_known_of_latencies() {
    for body in [pair("") + TOGETHER, pair("") + FAILING] {
        every_engine(&body, |started, name| {
            let flow = started.begin();
            let key = started.next("key.get", &[5], name);
            assert!(started.is_quiet(), "{name}: the first call waits");
            key.answer();
            started.next("fast.get", &[1, 50], name).answer();
            end(flow).expect("no call fails");
        });
    }
}

#[test]
fn calls_of_rounds_that_have_their_arguments_wait_for_those_of_the_others() {
    let body = "%1: List(Int) = list(%0, 6, 7)\n\
                %2: List(Int) = for %3: Int in %1\n  \
                %4: Bool = equal(%3, 6)\n  \
                %5: Int = switch %4\n    value true\n      %6: Result(Int, Failure) = call slow.get at s (%3)\n      \
                %7: Int = switch %6\n        tag 0 (%8: Int)\n          yield %8\n        tag 1 (%9: Failure)\n          \
                yield -1\n      yield %7\n    otherwise\n      yield %3\n  \
                %10: Result(Int, Failure) = call fast.get at f (%5)\n  \
                %11: Result(Int, Failure) = call key.get at k (%5)\n  \
                %12: List(Result(Int, Failure)) = list(%10, %11)\n  yield 0\nyield 0";
    every_engine(body, |started, name| {
        let flow = started.begin();
        let slow = started.next("slow.get", &[6], name);
        assert!(started.is_quiet(), "{name}: the other rounds wait");
        slow.answer();
        let mut batches = [started.gates.next(), started.gates.next()];
        batches.sort_by_key(|batch| batch.path);
        for (batch, path) in batches.into_iter().zip(["fast.get", "key.get"]) {
            let mut sent = batch.arguments.clone();
            sent.sort_unstable();
            assert_eq!((batch.path, sent), (path, vec![5, 7, 60]), "{name}");
            batch.answer();
        }
        end(flow).expect("no call fails");
    });
}

#[test]
fn a_call_does_not_wait_for_one_that_may_not_be_made_or_waits_for_others() {
    // A step behind the first call alone; an answer without the second call; a client that is waited for.
    let ahead = "%9: Int = switch %1\n  tag 0 (%10: Int)\n    yield %10\n  tag 1 (%11: Failure)\n    \
                 %12: Result(Int, Failure) = call slow.get at s (%0)\n    %13: Bool = equal(%12, %12)\n    yield -1\n\
                 %14: Bool = equal(%9, %9)\n";
    let returns = "%9: () = switch %3\n  value 0\n    %10: Never = return 0\n    yield ()\n  otherwise\n    yield ()\n";
    for (between, what) in [(ahead, "a step ahead"), (returns, "a return")] {
        every_engine(&(pair(between) + TOGETHER), |started, name| {
            let how = format!("{what} under {name}");
            let flow = started.begin();
            let mut batches = [started.gates.next(), started.gates.next()];
            batches.sort_by_key(|batch| batch.path);
            assert_eq!(batches.each_ref().map(|batch| &batch.arguments[..]), [&[1][..], &[5]], "{how}");
            batches.into_iter().for_each(WaitingBatch::answer);
            started.next("fast.get", &[50], &how).answer();
            end(flow).expect("no call fails");
        });
    }
    let of_client = "%1: Result(Int, Failure) = call fast.get at f1 (1)\n%2: Int = call client.get at c (%0)\n\
                     %7: Result(Int, Failure) = call fast.get at f2 (%2)\n";
    every_engine(&(of_client.to_owned() + TOGETHER), |started, name| {
        let flow = started.begin();
        let client = started.clients.next();
        started.next("fast.get", &[1], name).answer();
        client.release();
        started.gates.next().answer();
        end(flow).expect("no call fails");
    });
}

#[test]
fn a_call_does_not_wait_if_something_needs_it_behind_a_step_that_is_skipped() {
    // The last call needs the answer of the first one only, because the call between them is in an arm that is not chosen.
    let skipped = "%20: Bool = equal(%0, 0)\n%21: Int = switch %1\n  tag 0 (%22: Int)\n    yield %22\n  \
                   tag 1 (%23: Failure)\n    yield -1\n\
                   %24: Int = switch %20\n  value true\n    %25: Result(Int, Failure) = call slow.get at s1 (%21)\n    \
                   %26: Int = switch %25\n      tag 0 (%27: Int)\n        yield %27\n      tag 1 (%28: Failure)\n        \
                   yield -1\n    yield %26\n  otherwise\n    yield %21\n\
                   %29: Result(Int, Failure) = call slow.get at s2 (%24)\n";
    every_engine(&(pair(skipped) + "%8: List(Result(Int, Failure)) = list(%1, %7, %29)\nyield 0"), |started, name| {
        let flow = started.begin();
        let mut batches = [started.gates.next(), started.gates.next()];
        batches.sort_by_key(|batch| batch.path);
        let [first, key] = batches;
        assert_eq!([&first.arguments[..], &key.arguments], [&[1][..], &[5]], "{name}");
        first.answer();
        let last = started.next("slow.get", &[10], name);
        key.answer();
        started.next("fast.get", &[50], name).answer();
        last.answer();
        end(flow).expect("no call fails");
    });
}

#[test]
fn a_call_waits_no_longer_when_its_flow_fails() {
    let fails = "%20: Int = divide(1, %3)\n";
    // The failure of the first call would be the flow's: its answer is waited for, although the second call is not made.
    let body = pair("").replace("yield -1", "%6: Never = fail %5\n    yield ()");
    let first = "%15: Int = switch %1\n  tag 0 (%16: Int)\n    yield %16\n  tag 1 (%17: Failure)\n    \
                 %18: Never = fail %17\n    yield ()\n";
    let body = body.replace("%2: Result", &format!("{first}%2: Result")) + fails + TOGETHER;
    every_engine(&body, |started, name| {
        let flow = started.begin();
        let key = started.next("key.get", &[5], name);
        assert!(started.is_quiet(), "{name}: the first call waits");
        key.fail("no key");
        started.next("fast.get", &[1], name).fail("the first");
        assert!(end(flow).expect_err("the flow fails").to_string().contains("the first"), "{name}");
    });
    // The second call is not made, because the flow fails at once.
    every_engine(&(pair("%20: Int = divide(1, 0)\n") + TOGETHER), |started, name| {
        let flow = started.begin();
        let mut batches = [started.gates.next(), started.gates.next()];
        batches.sort_by_key(|batch| batch.path);
        assert_eq!(batches.each_ref().map(|batch| &batch.arguments[..]), [&[1][..], &[5]], "{name}");
        batches.into_iter().for_each(WaitingBatch::answer);
        end(flow).expect_err("the flow fails");
    });
}

#[test]
fn a_batch_that_waits_gives_its_sender_to_one_that_the_later_call_needs() {
    // The second call has another `part`, and the third one needs its answer.
    let body = "%1: Result(Int, Failure) = call part.get at p1 (1, 0)\n\
                %2: Result(Int, Failure) = call part.get at p2 (%0, 7)\n\
                %3: Int = switch %2\n  tag 0 (%4: Int)\n    yield %4\n  tag 1 (%5: Failure)\n    yield -1\n\
                %7: Result(Int, Failure) = call part.get at p3 (%3, 0)\n";
    for row in ENGINES {
        let body = body.to_owned() + TOGETHER;
        let started = Started::new(&body, options(row.name, 2), Batch { in_flight: 1, ..LIMITS });
        let flow = started.begin();
        for arguments in [[1], [5], [50]] {
            started.next("part.get", &arguments, row.name).answer();
        }
        end(flow).expect("no call fails");
    }
}

#[test]
fn calls_of_a_function_that_never_waits_leave_at_once_beside_a_call_that_may_wait() {
    // The last round gets its `narrow` later than the others, because it has no place in the first batch. Its `part` is one more
    // of a batch that another round has begun, so nothing needs the sender of the batch that the second round has begun.
    let body = "%1: List(Int) = list(%0, 6, %0)\n\
                %2: List(Int) = for %3: Int in %1\n  %4: Result(Int, Failure) = call narrow.get at n1 (%3)\n  \
                %5: Int = switch %4\n    tag 0 (%6: Int)\n      yield %6\n    tag 1 (%7: Failure)\n      yield -1\n  \
                %8: Result(Int, Failure) = call part.get at p (1, %5)\n  yield 0\n\
                %9: Result(Int, Failure) = call slow.get at s (%0)\n\
                %10: Int = switch %9\n  tag 0 (%11: Int)\n    yield %11\n  tag 1 (%12: Failure)\n    yield -1\n\
                %13: Result(Int, Failure) = call narrow.get at n2 (%10)\nyield 0";
    every_engine(body, |started, name| {
        let flow = started.begin();
        let mut batches = [started.gates.next(), started.gates.next()];
        batches.sort_by_key(|batch| batch.path);
        let [narrow, slow] = batches;
        assert_eq!([&narrow.arguments[..], &slow.arguments], [&[5, 6][..], &[5]], "{name}");
        narrow.answer();
        let mut batches = [started.gates.next(), started.gates.next(), started.gates.next()];
        batches.sort_by_key(|batch| batch.path);
        let sent = batches.each_ref().map(|batch| (batch.path, &batch.arguments[..]));
        assert_eq!(sent, [("narrow.get", &[5][..]), ("part.get", &[1]), ("part.get", &[1])], "{name}");
        batches.into_iter().for_each(WaitingBatch::answer);
        started.next("part.get", &[1], name).answer();
        slow.answer();
        started.next("narrow.get", &[50], name).answer();
        end(flow).expect("no call fails");
    });
}

#[test]
fn a_call_does_not_wait_for_one_in_another_section() {
    // Under this engine a section ends where a shared value is changed, and a flow leaves it when all calls are answered.
    let body = pair("%20: Int = call shown.change at n (shared s, 0)\n") + TOGETHER;
    let started = Started::new(&body, options("dedicated", 2), LIMITS);
    let flow = started.begin();
    let mut batches = [started.gates.next(), started.gates.next()];
    batches.sort_by_key(|batch| batch.path);
    assert_eq!(batches.each_ref().map(|batch| &batch.arguments[..]), [&[1][..], &[5]]);
    batches.into_iter().for_each(WaitingBatch::answer);
    started.next("fast.get", &[50], "the section behind").answer();
    end(flow).expect("no call fails");
}

#[test]
fn the_calls_of_many_flows_wait_for_each_others_later_ones() {
    let started = Started::new(&(pair("") + TOGETHER), options("event", 1), LIMITS);
    let flows = [5, 6].map(|number| started.feed.begin(vec![Value::Int(number)]));
    // The flows may begin at different times: then their keys are two batches. Each has made its first call before.
    let mut keys = vec![started.gates.next()];
    while keys.iter().map(|batch| batch.arguments.len()).sum::<usize>() < flows.len() {
        keys.push(started.gates.next());
    }
    assert!(keys.iter().all(|batch| batch.path == "key.get") && started.is_quiet(), "the first calls wait");
    let mut sent: Vec<i64> = Vec::new();
    for key in keys {
        // The first calls, which are equal reads and thus one, leave together with the first of the second ones.
        let mut expected: Vec<i64> = key.arguments.iter().map(|argument| argument * 10).collect();
        expected.extend(sent.is_empty().then_some(1));
        expected.sort_unstable();
        key.answer();
        started.next("fast.get", &expected, "both flows").answer();
        sent.extend(expected);
    }
    flows.into_iter().for_each(|flow| drop(end(flow).expect("no call fails")));
}
