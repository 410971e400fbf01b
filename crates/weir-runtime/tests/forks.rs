//! Rounds on several threads: they run beside each other and keep their order, unless plan or engine forbid it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use test_support::flows::gates::{function, library};
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

/// The number of calls that have begun.
#[derive(Clone, Default)]
struct Meeting(Arc<(Mutex<usize>, Condvar)>);

impl Meeting {
    /// Returns a function that blocks its thread until two calls of it have begun, unless its argument is 0; it
    /// returns its argument, or -1 if no other call begins in time.
    fn function(&self, path: &'static str, patience: Duration) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            let Value::Int(number) = call.value(0) else { return Outcome::Value(Value::Int(-1)) };
            if number == 0 {
                return Outcome::Value(Value::Int(0));
            }
            let (state, changed) = &*this.0;
            let mut state = state.lock().expect("nobody panics");
            *state += 1;
            changed.notify_all();
            let (state, waited) = changed.wait_timeout_while(state, patience, |begun| *begun < 2).expect("no panic");
            drop(state);
            Outcome::Value(Value::Int(if waited.timed_out() { -1 } else { number }))
        }));
        function(path, &[("x", Type::Int, Passing::Value)], World::Reads, code)
    }
}

/// Runs three rounds under this engine, of which the last two meet; returns their results.
fn rounds(engine: &str, patience: Duration, plan: &str) -> Result<Value, Failure> {
    let (feed, meeting) = (Feed::new(), Meeting::default());
    let mut library = library([meeting.function("a.meet", patience)]);
    feed.put(&mut library, "test", "feed");
    let program = weir_ir::parse::expr(PROGRAM).expect("the program is well formed");
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
fn rounds_run_one_after_the_other_if_the_plan_or_the_engine_keeps_a_flow_on_its_thread() {
    for row in ENGINES {
        let plan = if row.may_fork() { "parallel = \"off\"" } else { "" };
        // The second round waits in vain, and the third one finds that it has been there.
        assert_eq!(rounds(row.name, BRIEF, plan), numbers([0, -1, 2]), "under `{}`", row.name);
    }
}

#[test]
fn one_core_for_each_flow_is_the_same_as_off() {
    assert_eq!(rounds("event", BRIEF, "parallel = 1"), numbers([0, -1, 2]));
    assert_eq!(rounds("event", PATIENCE, "parallel = 2"), numbers([0, 1, 2]));
}
