//! Streams under every engine: nothing is lost or doubled, order is kept if it is asked for, and back-pressure reaches
//! the source.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::flows::gates::{Gates, Waiting, function, immediate, int, library, on_shared, with_state};
use test_support::flows::options;
use test_support::flows::stream::Numbers;
use weir_host::{Call, Function, FunctionCode, Outcome, Passing, Settled, Type, Value, World};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, Options, SliceLength, start};
use weir_trace::{Detail, EventKind, Recorder};

const COUNT: i64 = 3_000;

fn parameters() -> [(&'static str, Type, Passing); 1] {
    [("x", Type::Int, Passing::Value)]
}

/// Adds one.
fn step(path: &'static str) -> Function {
    immediate(path, &parameters(), |call| Outcome::Value(Value::Int(int(call, 0) + 1)))
}

/// Yields to its event loop as often as its argument's last digits say, and adds one.
fn dawdle(path: &'static str) -> Function {
    let code = FunctionCode::Waiting(Arc::new(|call: &mut Call<'_>| {
        let x = int(call, 0);
        let mut left = x % 4;
        Ok(Box::pin(std::future::poll_fn(move |context| {
            if left == 0 {
                return Poll::Ready(Settled { outcome: Outcome::Value(Value::Int(x + 1)), restored: Vec::new() });
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })))
    }));
    function(path, &parameters(), World::Reads, code)
}

/// Fails unless its argument is the next one, and adds one.
fn in_order(path: &'static str) -> Function {
    with_state(immediate(path, &parameters(), |call| {
        let x = int(call, 0);
        let mut next = call.state.expect("it has a state").write();
        let expected = std::mem::replace(&mut *next, Value::Int(x + 1));
        match expected {
            // The first call finds the initial value of its state.
            Value::Int(expected) if expected == x || expected == 0 => Outcome::Value(Value::Int(x + 1)),
            other => panic!("{x} came where {other} was next"),
        }
    }))
}

/// Adds its argument to a shared sum.
fn add_to_sum() -> Function {
    let code = FunctionCode::Immediate(Arc::new(|call: &mut Call<'_>| {
        let x = int(call, 1);
        let mut sum = call.shared(0).expect("a shared value").write();
        let Value::Int(before) = *sum else { panic!("the sum is a number") };
        *sum = Value::Int(before + x);
        Outcome::Value(Value::Int(x))
    }));
    on_shared(function("a.sum", &parameters(), World::Pure, code), Passing::Change)
}

fn program(body: &str) -> String {
    format!(
        "shared s: Int\n  yield 0\nentry test from test.feed ordered\n  arguments\n    yield (0,)\n  \
         flow feed (%0 x: Int) -> Int\n{body}"
    )
}

/// Keeps its argument.
fn keep(kept: &Arc<Mutex<Vec<i64>>>) -> Function {
    let kept = Arc::clone(kept);
    immediate("a.keep", &parameters(), move |call| {
        let x = int(call, 0);
        kept.lock().push(x);
        Outcome::Value(Value::Int(x))
    })
}

/// Runs the numbers through the body, and returns how often there was no room.
fn check(functions: Vec<Function>, body: &str, added: i64, options: Options) -> usize {
    let numbers = Numbers::new(COUNT);
    let mut library = library(functions);
    numbers.put(&mut library);
    let text = program(body);
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let running = start(&weir_ir::lower(&program, &library), &library, options).expect("it starts");
    running.wait().expect("the source ends");
    for (number, answer) in (0..).zip(numbers.answers()) {
        assert_eq!(answer, Ok(Value::Int(number + added)));
    }
    numbers.full()
}

const PIPELINE: &str = "    %1: Int = call a.dawdle at dawdle (%0)
    %2: Int = call a.first at first (%1)
    %3: Int = call a.step at step (%2)
    %4: Int = call a.dawdle at dawdle#2 (%3)
    %5: Int = call a.second at second (%4)
    %6: Int = call a.sum at sum (shared s, %5)
    yield %6
";

fn pipeline() -> Vec<Function> {
    vec![dawdle("a.dawdle"), in_order("a.first"), step("a.step"), in_order("a.second"), add_to_sum()]
}

#[test]
fn stateful_calls_see_a_stream_in_its_order_under_every_engine() {
    for row in ENGINES {
        for threads in [1, 3] {
            check(pipeline(), PIPELINE, 5, options(row.name, threads));
        }
    }
}

#[test]
fn a_source_that_is_faster_than_its_flows_waits_for_room() {
    for row in ENGINES {
        let options = Options { flows_max: 8, ..options(row.name, 2) };
        let full = check(pipeline(), PIPELINE, 5, options);
        // If the event loop does the work itself, it is no faster than its flows. On one processor it may do so for
        // every section of one thread, and threads of single flows may end before it goes on.
        let one_processor = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        let may_work_itself = one_processor || ["event", "elastic"].contains(&row.name);
        assert!(full > 0 || may_work_itself, "{}: there was always room", row.name);
    }
}

#[test]
fn short_queues_and_many_sections_lose_nothing() {
    for engine in ENGINES.iter().filter(|row| row.has_sections()) {
        let text = format!(
            "engine = {:?}\nthreads = 2\nqueue_length_max = 1\n\
             [[section]]\nname = \"one\"\nnodes = [\"dawdle*\", \"step\"]\nreplicas = 3\n\
             [[section]]\nname = \"two\"\nnodes = [\"first\", \"sum\"]\nengine = \"manual\"\n\
             [[section]]\nname = \"three\"\nnodes = [\"second\"]\nengine = \"dedicated\"\n",
            engine.name
        );
        let (plan, problems) = Plan::parse(&text);
        assert_eq!(problems, []);
        check(pipeline(), PIPELINE, 5, Options { plan, ..options("event", 2) });
    }
}

#[test]
fn flows_whose_answer_nobody_wants_run_all_the_same() {
    let body = PIPELINE.replace("yield %6", "%7: Int = call a.keep at keep (%6)\n    yield %7");
    for row in ENGINES {
        for (flows_max, plan) in [(10_000, ""), (8, ""), (10_000, "queue_length_max = 1\n")] {
            let (kept, numbers) = (Arc::default(), Numbers::given(COUNT));
            let mut library = library(pipeline().into_iter().chain([keep(&kept)]));
            numbers.put(&mut library);
            let program = weir_ir::parse::expr(&program(&body)).expect("a program");
            let options = Options { flows_max, plan: Plan::parse(plan).0, ..options(row.name, 2) };
            let running = start(&weir_ir::lower(&program, &library), &library, options).expect("it starts");
            running.wait().expect("the source ends");
            let mut kept = std::mem::take(&mut *kept.lock());
            kept.sort_unstable();
            assert_eq!(kept, (5..COUNT + 5).collect::<Vec<_>>(), "{}", row.name);
        }
    }
}

/// The flows that are between two calls, now and at most.
#[derive(Default)]
struct Between {
    now: AtomicI64,
    most: AtomicI64,
}

#[test]
fn a_stream_of_flows_that_compute_for_long_does_not_begin_all_of_them() {
    let body = "    %1: Int = call a.enter at enter (%0)
    %2: Int = loop 0 at most 5000 as %3: Int
      %4: Int = add(%3, 1)
      %5: Bool = equal(%4, 5000)
      %6: (Int, Bool) = record(%4, %5)
      yield %6
    %7: Int = add(%1, %2)
    %8: Int = call a.leave at leave (%7)
    yield %8
";
    let slice = SliceLength { quantum: 100, quanta: 2 };
    for row in ENGINES {
        let between = Arc::new(Between::default());
        let (entered, left) = (Arc::clone(&between), Arc::clone(&between));
        let enter = immediate("a.enter", &parameters(), move |call| {
            let now = entered.now.fetch_add(1, Ordering::Relaxed) + 1;
            entered.most.fetch_max(now, Ordering::Relaxed);
            Outcome::Value(Value::Int(int(call, 0)))
        });
        let leave = immediate("a.leave", &parameters(), move |call| {
            left.now.fetch_sub(1, Ordering::Relaxed);
            Outcome::Value(Value::Int(int(call, 0)))
        });
        let numbers = Numbers::given(60);
        let mut library = library([enter, leave]);
        numbers.put(&mut library);
        let program = weir_ir::parse::expr(&program(body)).expect("a program");
        let options = Options { slice, ..options(row.name, 2) };
        let running = start(&weir_ir::lower(&program, &library), &library, options).expect("it starts");
        running.wait().expect("the source ends");
        let most = between.most.load(Ordering::Relaxed);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).max(2) as i64;
        // Other engines have queued all of them before the first has yielded.
        assert!(most <= cores || row.name != "event", "{most} flows were in progress");
        assert_eq!(between.now.load(Ordering::Relaxed), 0, "under `{}`", row.name);
    }
}

#[test]
fn flows_whose_answer_nobody_wants_are_given_up_when_the_time_is_up() {
    for row in ENGINES.iter().filter(|row| row.has_sections()) {
        let (gates, numbers) = (Gates::new(), Numbers::given(3));
        let mut library = library([gates.waiting("a.wait", World::Reads)]);
        numbers.put(&mut library);
        let program = program("    %1: Int = call a.wait at wait (%0)\n    yield %1\n");
        let program = weir_ir::parse::expr(&program).expect("a program");
        let options = Options { drain_within: Duration::ZERO, ..options(row.name, 1) };
        let running = start(&weir_ir::lower(&program, &library), &library, options).expect("it starts");
        let waiting = [gates.next(), gates.next(), gates.next()];
        running.stop();
        running.wait().expect("the source ends");
        waiting.into_iter().for_each(Waiting::given_up);
    }
}

#[test]
fn a_section_in_which_a_flow_would_do_nothing_is_not_entered() {
    let body = "    %1: Int = call a.step at step (%0)
    %2: Bool = less(%1, 1000)
    %3: Int = switch %2
      value true
        %4: Int = call a.rare at rare (%1)
        yield %4
      otherwise
        %5: Int = add(%1, 1)
        yield %5
    %6: Int = call a.last at last (%3)
    yield %6
";
    for (rare, thread) in [(step("a.rare"), "calls"), (dawdle("a.rare"), "waits")] {
        let (recorder, reader) = Recorder::new(Detail::Sections, 256);
        let (plan, problems) = Plan::parse("engine = \"manual\"\n[[section]]\nname = \"rare\"\nnodes = [\"rare\"]\n");
        assert_eq!(problems, []);
        let functions = vec![step("a.step"), rare, step("a.last")];
        check(functions, body, 3, Options { plan, recorder, ..options("event", 1) });
        let said: Vec<String> = reader.take().iter().map(|event| event.kind.to_string()).collect();
        let passed = said.iter().rfind(|said| said.starts_with("section rare: ")).expect("it is told of");
        assert_eq!(passed, "section rare: 1 threads, 0 waiting, 999 passed", "{thread}");
    }
}

#[test]
fn the_trace_tells_what_sections_and_routes_have_done() {
    let (recorder, reader) = Recorder::new(Detail::Sections, 256);
    let (plan, _) = Plan::parse("engine = \"manual\"\n[[section]]\nname = \"sums\"\nnodes = [\"sum\"]\n");
    check(pipeline(), PIPELINE, 5, Options { plan, recorder, ..options("event", 1) });
    let events = reader.take();
    let said: Vec<String> = events.iter().map(|event| event.kind.to_string()).collect();
    let last = &said[said.len() - 3..];
    assert!(last[0].starts_with("section rest: 1 threads, 0 waiting, "), "{said:?}");
    assert_eq!(last[1], format!("section sums: 1 threads, 0 waiting, {COUNT} passed"));
    assert_eq!(last[2], format!("route feed: {COUNT} begun, {COUNT} ended, 0 failed"));
    let Some(EventKind::Route { took, .. }) = events.last().map(|event| &event.kind) else { panic!("{said:?}") };
    assert_eq!(took.count(), u64::try_from(COUNT).unwrap(), "every flow was watched from its new_flow");
}

#[test]
fn the_trace_tells_of_every_engine_on_what_its_sections_run() {
    for engine in weir_runtime::ENGINES {
        let (recorder, reader) = Recorder::new(Detail::Sections, 256);
        check(pipeline(), PIPELINE, 5, Options { recorder, engine, ..options("event", 2) });
        let events = reader.take();
        let mut sections = events.iter().filter_map(|event| match &event.kind {
            EventKind::Section { engine, threads, threads_max, waiting_max, .. } => {
                Some((*engine, *threads <= *threads_max, *waiting_max > 0))
            }
            _ => None,
        });
        assert!(events.len() > 1 && sections.all(|section| section == (engine.name, true, true)), "{events:?}");
    }
}
