//! Bodies that a plan cuts: a flow moves to the section of a node inside a loop, and back.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use test_support::flows::gates::{Gates, immediate, int, library};
use test_support::flows::stream::Numbers;
use test_support::flows::{Feed, options};
use weir_host::{Function, Library, Outcome, Passing, Type, Value, World};
use weir_ir::graph::Program;
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, Options, RunningProgram, engine_facts, start};
use weir_trace::{Detail, Recorder};

mod rounds;

/// Ten rounds of two calls.
const LOOP: &str = "    %1: Int = loop %0 at most 100 as %2: Int
      %3: Int = call a.first at first (%2)
      %4: Int = call a.second at second (%3)
      %5: Bool = equal(%4, 10)
      %6: (Int, Bool) = record(%4, %5)
      yield %6
    %7: Int = call a.last at last (%1)
    yield %7
";

const PLAN: &str = "engine = \"manual\"\nthreads = 1\n\
                    [[section]]\nname = \"one\"\nnodes = [\"first\"]\n\
                    [[section]]\nname = \"two\"\nnodes = [\"second\"]\n";

/// Calls with the name of their thread.
type Called = Arc<Mutex<Vec<(&'static str, String)>>>;

fn parameters() -> [(&'static str, Type, Passing); 1] {
    [("x", Type::Int, Passing::Value)]
}

/// Adds a number, and notes its thread.
fn noted(path: &'static str, added: i64, called: &Called) -> Function {
    let called = Arc::clone(called);
    immediate(path, &parameters(), move |call| {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        called.lock().push((path, thread));
        Outcome::Value(Value::Int(int(call, 0) + added))
    })
}

fn plan(text: &str) -> Plan {
    let (plan, problems) = Plan::parse(text);
    assert_eq!(problems, []);
    plan
}

fn run(functions: Vec<Function>, body: &str, options: Options) -> (Feed, RunningProgram) {
    let feed = Feed::new();
    let (program, library) = program(functions, body, &feed);
    let running = start(&program, &library, options).expect("it starts");
    (feed, running)
}

/// Returns a program of one flow, and its library.
fn program(functions: Vec<Function>, body: &str, feed: &Feed) -> (Program, Library) {
    let mut library = library(functions);
    feed.put(&mut library, "test", "feed");
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{body}"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (weir_ir::lower(&program, &library), library)
}

#[test]
fn nodes_in_a_loop_run_on_the_threads_of_their_sections() {
    let called = Called::default();
    let functions = [("a.first", 0), ("a.second", 1), ("a.last", 100)];
    let functions = functions.map(|(path, added)| noted(path, added, &called)).to_vec();
    let (recorder, reader) = Recorder::new(Detail::Sections, 256);
    let (feed, running) = run(functions, LOOP, Options { plan: plan(PLAN), recorder, ..options("manual", 1) });
    assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(110)));
    drop(feed);
    running.wait().expect("the source ends");
    let called = std::mem::take(&mut *called.lock());
    let order: Vec<&str> = called.iter().map(|(path, _)| *path).collect();
    let expected: Vec<&str> = [["a.first", "a.second"]; 10].concat().into_iter().chain(["a.last"]).collect();
    assert_eq!(order, expected);
    // On a single processor, the event loop runs all sections.
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        for (path, section) in [("a.first", "one"), ("a.second", "two"), ("a.last", "rest")] {
            let threads = called.iter().filter(|(called, _)| *called == path);
            assert!(threads.clone().all(|(_, thread)| thread.contains(section)), "{path} on {called:?}");
        }
    }
    let said: Vec<String> = reader.take().iter().map(|event| event.kind.to_string()).collect();
    for section in ["one", "two"] {
        let passed = said.iter().rfind(|said| said.starts_with(&format!("section {section}: ")));
        assert_eq!(passed, Some(&format!("section {section}: 1 threads, 0 waiting, 10 passed")));
    }
}

/// The number of calls that have begun.
#[derive(Default)]
struct Begun {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Begun {
    fn add(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits until there are so many; returns false if they do not come in time.
    fn wait_for(&self, count: usize) -> bool {
        let mut now = self.count.lock();
        !self.changed.wait_while_for(&mut now, |now| *now < count, Duration::from_secs(60)).timed_out()
    }
}

#[test]
fn the_rounds_of_different_flows_are_in_different_sections_at_the_same_time() {
    for engine in ["manual", "staged", "dedicated"] {
        let begun = Arc::new(Begun::default());
        let (counted, awaited) = (Arc::clone(&begun), Arc::clone(&begun));
        let first = immediate("a.first", &parameters(), move |call| {
            counted.add();
            Outcome::Value(Value::Int(int(call, 0)))
        });
        // It holds the thread of its section until the other flow has been in the first section.
        let second = immediate("a.second", &parameters(), move |call| {
            assert!(awaited.wait_for(2), "no other flow has come to the first section");
            Outcome::Value(Value::Int(int(call, 0) + 1))
        });
        let functions = vec![first, second, noted("a.last", 0, &Called::default())];
        let text = PLAN.replace("manual", engine);
        let (feed, running) = run(functions, LOOP, Options { plan: plan(&text), ..options("event", 1) });
        let flows = vec![feed.begin(vec![Value::Int(0)]), feed.begin(vec![Value::Int(5)])];
        let answers = feed.answers(flows);
        assert_eq!(answers, vec![Some(Ok(Value::Int(10))); 2], "under {engine}");
        drop(feed);
        running.wait().expect("the source ends");
    }
}

#[test]
fn an_endless_loop_that_moves_holds_nobody_up_and_is_given_up() {
    let body = "    %1: Bool = equal(%0, 1)
    %2: Int = switch %1
      value true
        %3: Int = loop %0 at most 9223372036854775807 as %4: Int
          %5: Int = call a.first at first (%4)
          %6: Int = call a.second at second (%5)
          %7: (Int, Bool) = record(%6, false)
          yield %7
        yield %3
      otherwise
        %8: Int = call a.first at first#2 (%0)
        yield %8
    yield %2
";
    for row in ENGINES.iter().filter(|row| row.has_sections()) {
        let called = Called::default();
        let functions = vec![
            immediate("a.first", &parameters(), |call| Outcome::Value(Value::Int(int(call, 0)))),
            immediate("a.second", &parameters(), |call| Outcome::Value(Value::Int(int(call, 0)))),
        ];
        let text = PLAN.replace("manual", row.name).replace("\"first\"", "\"first*\"");
        let options = Options { plan: plan(&text), drain_within: Duration::ZERO, ..options("event", 1) };
        let (feed, running) = run(functions, body, options);
        let endless = feed.begin(vec![Value::Int(1)]);
        let flows = (0..200).map(|_| feed.begin(vec![Value::Int(7)])).collect();
        assert_eq!(feed.answers(flows), vec![Some(Ok(Value::Int(7))); 200], "under {}", row.name);
        running.stop();
        running.wait().expect("the source ends");
        assert!(endless.blocking_recv().is_err(), "{}: {:?}", row.name, called.lock());
    }
}

#[test]
fn rounds_that_overlap_in_several_sections_give_the_answers_of_their_order() {
    let body = "    %1: List(Int) = list(%0, 1, 2, 3, 4, 5, 6, 7)
    %2: List(Int) = for %3: Int in %1
      %4: Int = call a.first at first (%3)
      %5: Int = call a.wait at wait (%4)
      %6: Int = call a.second at second (%5)
      yield %6
    %7: Int = fold %2 from 0 as %8: Int, %9: Int
      %10: Int = multiply(%8, 10)
      %11: Int = add(%10, %9)
      yield %11
    yield %7
";
    for row in ENGINES.iter().filter(|row| row.has_sections()) {
        let (gates, called) = (Gates::new(), Called::default());
        let functions =
            vec![noted("a.first", 0, &called), gates.waiting("a.wait", World::Reads), noted("a.second", 1, &called)];
        let text = PLAN.replace("manual", row.name);
        let (feed, running) = run(functions, body, Options { plan: plan(&text), ..options("event", 2) });
        let flow = feed.begin(vec![Value::Int(0)]);
        // All rounds wait at the same time, and go on in the reverse order.
        let waiting: Vec<_> = (0..8).map(|_| gates.next()).collect();
        for waiting in waiting.into_iter().rev() {
            waiting.release();
        }
        assert_eq!(feed.answers(vec![flow]), [Some(Ok(Value::Int(12_345_678)))], "under {}", row.name);
        drop(feed);
        running.wait().expect("the source ends");
    }
}

#[test]
fn an_atomic_step_is_not_left_for_another_section() {
    let body = "    %1: Int = loop %0 at most 100 as %2: Int
      %7: Int = call a.last at last (%2)
      %3: Int = atomic (write shared s)
        %4: Int = call a.first at first (%7)
        yield %4
      %5: Int = call a.second at second (%3)
      %6: Bool = equal(%5, 10)
      %8: (Int, Bool) = record(%5, %6)
      yield %8
    yield %1
";
    let called = Called::default();
    let functions = [("a.first", 0), ("a.second", 1), ("a.last", 0)];
    let functions = functions.map(|(path, added)| noted(path, added, &called));
    let mut library = library(functions);
    let numbers = Numbers::given(20);
    numbers.put(&mut library);
    let text = format!(
        "shared s: Int\n  yield 0\nentry test from test.feed ordered\n  arguments\n    yield (0,)\n  \
         flow feed (%0 x: Int) -> Int\n{body}"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let running =
        start(&weir_ir::lower(&program, &library), &library, Options { plan: plan(PLAN), ..options("manual", 1) })
            .expect("it starts");
    running.wait().expect("the source ends");
    let threads = called.lock();
    assert!(threads.iter().filter(|(path, _)| *path == "a.first").all(|(_, thread)| !thread.contains("one")));
}

#[test]
fn a_plan_is_told_what_it_names_inside_bodies() {
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{LOOP}"
    );
    let library = library(["a.first", "a.second", "a.last"].map(|path| noted(path, 0, &Called::default())));
    let program = weir_ir::lower(&weir_ir::parse::expr(&text).expect("a program"), &library);
    assert_eq!(plan(PLAN).check(&program, &engine_facts()), []);
    let wrong = plan(&PLAN.replace("\"second\"", "\"secnd\""));
    let problems: Vec<String> = wrong.check(&program, &engine_facts()).iter().map(|one| one.message.clone()).collect();
    assert_eq!(problems, ["no node matches `secnd`"]);
}
