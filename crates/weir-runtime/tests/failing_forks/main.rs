//! Forks that fail: calls in rounds that refuse their argument, panic or take long, in loops within loops, in bodies that are
//! cancelled by time or by a race, and in atomic steps; random programs against the reference evaluator.

use std::sync::Arc;

use parking_lot::Mutex;
use test_support::flows::gates::{function, int, library};
use test_support::flows::{Feed, options, start_expr};
use test_support::random::Random;
use weir_host::{
    Call, Failure, FailureKind, Function, FunctionCode, Library, Outcome, Passing, Settled, Type, Value, World,
};
use weir_ir::evaluate::Evaluator;
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, EngineRow, ForkPolicy, Options, SliceLength};

use program::FailingProgram;

mod program;

/// The programs that are tried; `WEIR_REGION_PROGRAMS` and `WEIR_REGION_FROM` are for other numbers of them.
const PROGRAMS: u64 = 150;
/// A program that once waited for ever: a step had waited, and one behind it panicked while others had run already.
const REGRESSIONS: [u64; 1] = [1_627];
/// The units of a call that takes long, more than a flow may spend on its thread.
const UNITS: u64 = 2_000;

/// Returns the number of an environment variable.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The effects of an execution.
type Effects = Arc<Mutex<Vec<i64>>>;

fn mixed(x: i64) -> i64 {
    x.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17).rem_euclid(1_000)
}

fn refused(x: i64) -> Option<Outcome> {
    let failure = Failure::function(format!("{x} is refused"));
    (x.rem_euclid(9) == 4).then(|| Outcome::Fault(Box::new(failure)))
}

/// Panics for some arguments; in the evaluator, fails as an engine does.
fn panicked(path: &'static str, x: i64, evaluates: bool) -> Option<Outcome> {
    if x.rem_euclid(11) != 5 {
        return None;
    }
    if !evaluates {
        // Without a report on the standard error stream.
        std::panic::resume_unwind(Box::new(format!("no number like {x}")));
    }
    let failure = Failure::new(FailureKind::Panic, format!("`{path}` panicked: no number like {x}"));
    Some(Outcome::Fault(Box::new(failure)))
}

/// Returns the functions; of the evaluator none panics.
fn functions(effects: &Effects, evaluates: bool) -> Library {
    let parameters = [("x", Type::Int, Passing::Value)];
    let immediate = |path, world, code: fn(i64, bool) -> Option<Outcome>| {
        let code = move |call: &mut Call<'_>| {
            let x = int(call, 0);
            code(x, evaluates).unwrap_or(Outcome::Value(Value::Int(mixed(x))))
        };
        function(path, &parameters, world, FunctionCode::Immediate(Arc::new(code)))
    };
    let long = |path, code: fn(i64, bool) -> Option<Outcome>| {
        let code = move |call: &mut Call<'_>| {
            if !call.declare_units(UNITS) {
                return Outcome::ExceedsUnits;
            }
            let x = int(call, 0);
            code(x, evaluates).unwrap_or(Outcome::Value(Value::Int(mixed(x))))
        };
        let mut long: Function = function(path, &parameters, World::Pure, FunctionCode::Immediate(Arc::new(code)));
        long.signature.effects.declares_units = true;
        long
    };
    let effects = Arc::clone(effects);
    let change = move |call: &mut Call<'_>| {
        let x = int(call, 0);
        effects.lock().push(x);
        Outcome::Value(Value::Int(mixed(x)))
    };
    let wait = |call: &mut Call<'_>| {
        let x = int(call, 0);
        Ok(Box::pin(async move {
            tokio::task::yield_now().await;
            Settled { outcome: Outcome::Value(Value::Int(mixed(x))), restored: Vec::new() }
        }) as weir_host::Pending)
    };
    library([
        immediate("f.mix", World::Pure, |_, _| None),
        immediate("f.refuse", World::Pure, |x, _| refused(x)),
        immediate("f.panic", World::Reads, |x, evaluates| panicked("f.panic", x, evaluates)),
        long("f.long", |_, _| None),
        long("f.long_refuse", |x, _| refused(x)),
        long("f.long_panic", |x, evaluates| panicked("f.long_panic", x, evaluates)),
        function("f.change", &parameters, World::Writes, FunctionCode::Immediate(Arc::new(change))),
        function("f.wait", &parameters, World::Pure, FunctionCode::Waiting(Arc::new(wait))),
    ])
}

/// The outcomes of flows, and their effects, unless one has failed: effects and faults have no order among each other.
type Outcomes = (Vec<Result<Value, Failure>>, Option<Vec<i64>>);

fn outcomes(results: Vec<Result<Value, Failure>>, effects: &Effects) -> Outcomes {
    let has_failed = results.iter().any(Result::is_err);
    (results, (!has_failed).then(|| effects.lock().clone()))
}

const INPUTS: [i64; 4] = [0, 5, 4, 123];

fn evaluated(text: &str) -> Outcomes {
    let (effects, program) = (Effects::default(), parsed(text));
    let mut library = functions(&effects, true);
    Feed::new().put(&mut library, "test", "feed");
    let mut evaluator = Evaluator::new(&program, &library).unwrap_or_else(|_| panic!("no initial value fails"));
    let run = |x| evaluator.run(0, 0, vec![Value::Int(x)]).map_err(|failure| *failure);
    let results = INPUTS.map(run).into();
    outcomes(results, &effects)
}

fn parsed(text: &str) -> weir_ir::expr::Program {
    weir_ir::parse::expr(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn executed(text: &str, row: &EngineRow, forks: ForkPolicy, plan: &str) -> Outcomes {
    let effects = Effects::default();
    let mut library = functions(&effects, false);
    let feed = Feed::new();
    feed.put(&mut library, "test", "feed");
    let (plan, problems) = Plan::parse(plan);
    assert!(problems.is_empty(), "{problems:?}");
    let slice = if forks == ForkPolicy::AsPlanned { SliceLength::default() } else { SliceLength::ONE_UNIT };
    let running = start_expr(&parsed(text), &library, Options { forks, slice, plan, ..options(row.name, 3) });
    let results = INPUTS.map(|x| feed.run(vec![Value::Int(x)])).into();
    drop(feed);
    running.wait().expect("the program ends");
    outcomes(results, &effects)
}

#[test]
fn failures_of_forks_are_those_of_the_evaluator() {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    let forks = [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers, ForkPolicy::AsPlanned];
    let plans = ["", "parallel = \"off\"", "parallel = 3"];
    for seed in (from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS)).chain(REGRESSIONS) {
        let [text, evaluates] = FailingProgram::texts(seed);
        let expected = evaluated(&evaluates);
        let row = &ENGINES[seed as usize % ENGINES.len()];
        let (forks, plan) = (forks[seed as usize / 3 % 3], plans[seed as usize / 9 % 3]);
        let found = executed(&text, row, forks, plan);
        assert_eq!(found, expected, "seed {seed} under `{}`, {forks:?}, {plan}\n{text}", row.name);
    }
}

/// The flows of each program that are begun at once, of which two thirds are cancelled.
const FLOWS: usize = 24;

#[test]
fn flows_beside_others_that_are_cancelled_end_as_in_the_evaluator() {
    let from = variable("WEIR_REGION_FROM").unwrap_or(0);
    for seed in from..from + variable("WEIR_REGION_PROGRAMS").unwrap_or(PROGRAMS / 3) {
        let ([text, evaluates], mut random) = (FailingProgram::texts(seed), Random::new(seed));
        let expected = evaluated(&evaluates).0;
        let row = &ENGINES[seed as usize % ENGINES.len()];
        let feed = Feed::new();
        let mut library = functions(&Effects::default(), false);
        feed.put(&mut library, "test", "feed");
        let forks = [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers][seed as usize / 7 % 2];
        let slice = SliceLength::ONE_UNIT;
        let running = start_expr(&parsed(&text), &library, Options { forks, slice, ..options(row.name, 3) });
        let mut kept = Vec::new();
        for number in 0..FLOWS {
            let at = random.below(INPUTS.len() as u64) as usize;
            let answer = feed.begin(vec![Value::Int(INPUTS[at])]);
            if number % 3 == 0 {
                kept.push((at, answer));
            } else if random.below(3) == 0 {
                // Others run for a while before this one is cancelled.
                let waited = feed.begin(vec![Value::Int(INPUTS[at])]).blocking_recv();
                assert_eq!(waited.as_ref(), Ok(&expected[at]), "seed {seed} under `{}`\n{text}", row.name);
            }
        }
        for (at, answer) in kept {
            let answer = answer.blocking_recv();
            assert_eq!(answer.as_ref(), Ok(&expected[at]), "seed {seed} under `{}`\n{text}", row.name);
        }
        drop(feed);
        running.wait().expect("the program ends");
    }
}

/// A panic behind a step that has waited, while one behind it has run already.
const PANIC_BEHIND_A_WAIT: &str = "\
shared hits: Int
  yield 3
entry test from test.feed unordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> Text
    %1: Int = call f.wait at w (%0)
    %2: Int = atomic (write shared hits)
      %3: Int = call f.panic at p (%0)
      yield %3
    %4: Int = fold [1, 2] from 2 as %5: Int, %6: Int
      yield %0
    %7: Text = interpolate(%1, \" \", %2, \" \", %4)
    yield %7
";

#[test]
fn a_panic_behind_a_step_that_has_waited_ends_the_flow() {
    let expected = evaluated(PANIC_BEHIND_A_WAIT);
    for row in ENGINES {
        let found = executed(PANIC_BEHIND_A_WAIT, row, ForkPolicy::AsPlanned, "");
        assert_eq!(found, expected, "under `{}`", row.name);
    }
}
