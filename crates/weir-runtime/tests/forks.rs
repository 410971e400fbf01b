//! Rounds and independent calls on several threads: they run beside each other, and results and failures are those of the
//! text's order, unless plan, engine or program forbid it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use test_support::flows::gates::{function, int, library};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Failure, Function, FunctionCode, Outcome, Passing, Type, Value, World};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength};

/// The time that a call waits for another one.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time that a call waits for another one that does not begin.
const BRIEF: Duration = Duration::from_millis(20);

const PROGRAM: &str = "\
entry test from test.feed unordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> List(Int)
    %1: List(Int) = for %2: Int in [0, 1, 2]
      %3: Int = call a.meet at l (%2)
      yield %3
    yield %1
";

/// The number of calls that have begun, and the number of those that meet.
#[derive(Clone)]
struct Meeting(Arc<(Mutex<usize>, Condvar)>, usize);

impl Default for Meeting {
    fn default() -> Self {
        Meeting(Arc::default(), 2)
    }
}

impl Meeting {
    /// Returns a function that blocks its thread until so many calls of it have begun, unless its argument is 0; it
    /// returns its argument, or -1 if the other calls do not begin in time.
    fn function(&self, path: &'static str, patience: Duration) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            Outcome::Value(Value::Int(this.meet(int(call, 0), patience)))
        }));
        function(path, &[("x", Type::Int, Passing::Value)], World::Reads, code)
    }

    fn meet(&self, number: i64, patience: Duration) -> i64 {
        if number == 0 {
            return 0;
        }
        let (state, changed) = &*self.0;
        let mut state = state.lock().expect("nobody panics");
        *state += 1;
        changed.notify_all();
        let (state, waited) = changed.wait_timeout_while(state, patience, |begun| *begun < self.1).expect("no panic");
        drop(state);
        if waited.timed_out() { -1 } else { number }
    }

    /// Returns the number of calls that have begun.
    fn begun(&self) -> usize {
        *self.0.0.lock().expect("nobody panics")
    }

    /// Returns a function that does the same, declares more units than a flow may spend on its thread, and then fails if its
    /// argument is at least 10.
    fn long_function(&self, path: &'static str, world: World, patience: Duration) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            if !call.declare_units(UNITS) {
                return Outcome::ExceedsUnits;
            }
            match this.meet(int(call, 0), patience) {
                number if number >= 10 => Outcome::Fault(Box::new(Failure::function(format!("{number} is refused")))),
                number => Outcome::Value(Value::Int(number)),
            }
        }));
        let mut long = function(path, &[("x", Type::Int, Passing::Value)], world, code);
        long.signature.effects.declares_units = true;
        long
    }
}

/// The units of a long call.
const UNITS: u64 = 1_000;

/// Runs three rounds under this engine, of which the last two meet; returns their results.
fn rounds(engine: &str, patience: Duration, plan: &str) -> Result<Value, Failure> {
    rounds_of(PROGRAM, engine, &Meeting::default(), (patience, plan))
}

/// Runs the rounds of a program.
fn rounds_of(
    program: &str,
    engine: &str,
    meeting: &Meeting,
    (patience, plan): (Duration, &str),
) -> Result<Value, Failure> {
    let feed = Feed::new();
    let mut library = library([meeting.function("a.meet", patience)]);
    feed.put(&mut library, "test", "feed");
    let program = weir_ir::parse::expr(program).expect("the program is well formed");
    let (plan, problems) = Plan::parse(plan);
    assert!(problems.is_empty(), "{problems:?}");
    let forked = Options { forks: ForkPolicy::Always, slice: SliceLength::ONE_UNIT, plan, ..options(engine, 2) };
    let running = start_expr(&program, &library, forked);
    let results = feed.run(vec![Value::Int(0)]);
    drop(feed);
    running.wait().expect("the program ends");
    results
}

fn numbers(numbers: [i64; 3]) -> Result<Value, Failure> {
    Ok(Value::list(numbers.map(Value::Int).to_vec()))
}

#[test]
fn rounds_run_beside_each_other_and_their_results_stay_in_order() {
    for row in ENGINES.iter().filter(|row| row.may_fork()) {
        assert_eq!(rounds(row.name, PATIENCE, ""), numbers([0, 1, 2]), "under `{}`", row.name);
    }
}

#[test]
fn rounds_are_shared_with_several_cores_before_any_of_them_ends() {
    for engine in forking() {
        let program = PROGRAM.replace("[0, 1, 2]", "[0, 1, 2, 3, 4]");
        let meeting = Meeting(Arc::default(), 4);
        let results = rounds_of(&program, engine, &meeting, (PATIENCE, ""));
        assert_eq!(results, Ok(Value::list((0..5).map(Value::Int).collect())), "under `{engine}`");
    }
}

#[test]
fn two_rounds_of_a_slow_function_that_declares_no_units_run_beside_each_other() {
    let two = PROGRAM.replace("[0, 1, 2]", "[1, 2]");
    for engine in forking() {
        let met = rounds_of(&two, engine, &Meeting::default(), (PATIENCE, ""));
        assert_eq!(met, Ok(Value::list([1, 2].map(Value::Int).to_vec())), "{engine}");
    }
}

#[test]
fn rounds_run_one_after_the_other_if_the_plan_or_the_engine_keeps_a_flow_on_its_thread() {
    for row in ENGINES {
        let plan = if row.may_fork() { "parallel = \"off\"" } else { "" };
        // The second round waits in vain, and the third one finds that it has been there.
        assert_eq!(rounds(row.name, BRIEF, plan), numbers([0, -1, 2]), "under `{}`", row.name);
    }
}

#[test]
fn rounds_stay_on_the_thread_of_a_section_that_has_one() {
    for engine in ["manual", "staged"] {
        assert_eq!(rounds(engine, BRIEF, "threads = 1"), numbers([0, -1, 2]), "under `{engine}`");
    }
}

#[test]
fn one_core_for_each_flow_is_the_same_as_off() {
    assert_eq!(rounds("event", BRIEF, "parallel = 1"), numbers([0, -1, 2]));
    assert_eq!(rounds("event", PATIENCE, "parallel = 2"), numbers([0, 1, 2]));
}

/// Runs a flow with these lines under this engine; returns its answer and the number of calls that have begun.
fn parts(engine: &str, lines: &str, patience: Duration) -> (Result<Value, Failure>, usize) {
    let (feed, meeting) = (Feed::new(), Meeting::default());
    let reads = meeting.long_function("a.meet", World::Reads, patience);
    let writes = meeting.long_function("a.write", World::Writes, patience);
    let mut library = library([reads, writes]);
    feed.put(&mut library, "test", "feed");
    let program = weir_ir::parse::expr(&program(lines)).expect("the program is well formed");
    let forked = Options { forks: ForkPolicy::Always, slice: SliceLength::ONE_UNIT, ..options(engine, 2) };
    let running = start_expr(&program, &library, forked);
    let answer = feed.run(vec![Value::Int(1)]);
    drop(feed);
    running.wait().expect("the program ends");
    (answer, meeting.begun())
}

fn program(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "shared s: Int\n  yield 0\nentry test from test.feed unordered\n  arguments\n    yield (0,)\n  \
         flow feed (%0 x: Int) -> Int\n{lines}"
    )
}

fn forking() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().filter(|row| row.may_fork()).map(|row| row.name)
}

/// Independent calls: alone, behind arithmetic of their own, in a loop, and in an arm.
const INDEPENDENT: [&str; 4] = [
    "%1: Int = call a.meet at f (1)\n%2: Int = call a.meet at g (2)\n%3: Int = add(%1, %2)\nyield %3",
    "%4: Int = add(%0, 0)\n%1: Int = call a.meet at f (%4)\n%5: Int = add(%0, 1)\n%2: Int = call a.meet at g (%5)\n\
     %3: Int = add(%1, %2)\nyield %3",
    "%1: Int = fold [1] from 0 as %4: Int, %5: Int\n  %6: Int = call a.meet at f (%5)\n  %7: Int = add(%4, %6)\n  \
     yield %7\n%2: Int = call a.meet at g (2)\n%3: Int = add(%1, %2)\nyield %3",
    "%4: Bool = less(0, %0)\n%8: Int = switch %4\n  value true\n    %1: Int = call a.meet at f (1)\n    \
     %2: Int = call a.meet at g (2)\n    %3: Int = add(%1, %2)\n    yield %3\n  otherwise\n    yield 0\nyield %8",
];

#[test]
fn independent_calls_run_beside_each_other() {
    for engine in forking() {
        for lines in INDEPENDENT {
            assert_eq!(parts(engine, lines, PATIENCE), (Ok(Value::Int(3)), 2), "under `{engine}`:\n{lines}");
        }
    }
}

#[test]
fn independent_calls_run_one_after_the_other_if_the_engine_keeps_a_flow_on_its_thread() {
    for row in ENGINES.iter().filter(|row| !row.may_fork()) {
        // The first call waits in vain, and the second one finds that it has been there.
        assert_eq!(parts(row.name, INDEPENDENT[0], BRIEF), (Ok(Value::Int(1)), 2), "under `{}`", row.name);
    }
}

#[test]
fn of_two_failures_the_one_that_is_first_in_the_text_counts() {
    let lines = "%1: Int = call a.meet at f (10)\n%2: Int = call a.meet at g (11)\n%3: Int = add(%1, %2)\nyield %3";
    for engine in forking() {
        let (answer, begun) = parts(engine, lines, PATIENCE);
        assert_eq!((answer.expect_err("it fails").message.as_str(), begun), ("10 is refused", 2), "under `{engine}`");
    }
}

#[test]
fn a_failure_of_the_second_part_is_reported_behind_the_first_one() {
    let lines = "%1: Int = call a.meet at f (1)\n%2: Int = call a.meet at g (11)\n%3: Int = add(%1, %2)\nyield %3";
    for engine in forking() {
        let (answer, begun) = parts(engine, lines, PATIENCE);
        assert_eq!((answer.expect_err("it fails").message.as_str(), begun), ("11 is refused", 2), "under `{engine}`");
    }
}

/// Calls of which the second one does not begin before the first one has ended, with the paths of the second ones and the
/// reasons.
const DEPENDENT: [(&str, i64, &str); 4] = [
    (
        "%1: Int = call a.meet at f (1)\n%2: Int = add(%1, 3)\n%3: Int = call a.meet at g (%2)\nyield %3",
        2,
        "it needs the result of `f`",
    ),
    (
        "%1: Int = call a.write at f (1)\n%2: Int = call a.write at g (2)\n%3: Int = add(%1, %2)\nyield %3",
        1,
        "both write `world a`",
    ),
    (
        "%1: Int = call a.write at f (1)\n%2: Int = call a.meet at g (2)\n%3: Int = add(%1, %2)\nyield %3",
        1,
        "it reads `world a`, which `f` writes",
    ),
    (
        "%1: Int = call a.meet at f (1)\n%2: Int = call a.write at g (2)\n%3: Int = add(%1, %2)\nyield %3",
        1,
        "it writes `world a`",
    ),
];

#[test]
fn a_call_that_needs_the_first_one_or_writes_runs_behind_it() {
    for engine in forking() {
        for (lines, sum, _) in DEPENDENT {
            assert_eq!(parts(engine, lines, BRIEF), (Ok(Value::Int(sum)), 2), "under `{engine}`:\n{lines}");
        }
    }
}

#[test]
fn what_is_not_certain_to_be_reached_does_not_begin() {
    let lines = "%1: Int = call a.meet at f (1)\n%2: Bool = less(%1, 0)\n%3: Int = switch %2\n  value true\n    \
                 %4: Never = return 7\n    yield ()\n  otherwise\n    yield 0\n%5: Int = call a.meet at g (2)\n\
                 %6: Int = add(%3, %5)\nyield %6";
    for engine in forking() {
        assert_eq!(parts(engine, lines, BRIEF), (Ok(Value::Int(7)), 1), "under `{engine}`");
    }
}

#[test]
fn calls_of_an_atomic_step_stay_on_the_thread_that_holds_its_locks() {
    let lines = "%8: Int = atomic (write shared s)\n  %1: Int = call a.meet at f (1)\n  %2: Int = call a.meet at g (2)\n  \
                 %3: Int = add(%1, %2)\n  yield %3\nyield %8";
    for engine in forking() {
        assert_eq!(parts(engine, lines, BRIEF), (Ok(Value::Int(1)), 2), "under `{engine}`");
    }
}

/// Returns the calls of these lines that stand behind others: the calls beside which each may run, or the reason why it may
/// not.
fn described(lines: &str) -> Vec<(String, Result<Vec<String>, String>)> {
    let meeting = Meeting::default();
    let functions = [("a.meet", World::Reads), ("a.write", World::Writes)];
    let mut library = library(functions.map(|(path, world)| meeting.long_function(path, world, BRIEF)));
    Feed::new().put(&mut library, "test", "feed");
    let program = weir_ir::parse::expr(&program(lines)).expect("the program is well formed");
    let graph = weir_ir::lower(&program, &library);
    let found = weir_runtime::independent_parts(&graph, &library).expect("the program fits the library");
    found.into_iter().map(|part| (part.path, part.obstacle.map_or(Ok(part.beside), Err))).collect()
}

#[test]
fn the_reasons_for_and_against_other_threads_are_named() {
    for (lines, _, reason) in DEPENDENT {
        assert_eq!(described(lines), [("feed: g".to_owned(), Err(reason.to_owned()))], "{lines}");
    }
    for (lines, beside) in INDEPENDENT.iter().zip(["f", "f", "fold", "f"]) {
        assert_eq!(described(lines), [("feed: g".to_owned(), Ok(vec![beside.to_owned()]))], "{lines}");
    }
}
