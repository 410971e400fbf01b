//! Forks that their helpers hand back in the middle: each round runs once, results stay in order, and long calls stay off the
//! thread of the flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use test_support::flows::gates::{function, int, library};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Function, FunctionCode, Outcome, Passing, Type, Value, World};
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength};

const PARAMETERS: [(&str, Type, Passing); 1] = [("x", Type::Int, Passing::Value)];
/// The rounds of the program.
const ROUNDS: i64 = 24;
/// The units of a long call, more than a flow may spend on its thread.
const UNITS: u64 = 1_000;
/// In every run other threads hand pieces back at other places.
const RUNS: usize = 12;

/// Each round computes for some safe points, makes a long call, and has an inner loop of further ones.
fn program() -> String {
    let list: Vec<String> = (0..ROUNDS).map(|number| number.to_string()).collect();
    format!(
        "entry test from test.feed unordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> List(Int)
    %1: List(Int) = for %2: Int in [{}]
      %3: Int = call a.short at s (%2)
      %4: Int = call a.long at l (%3)
      %5: List(Int) = for %6: Int in [0, 1]
        %7: Int = add(%6, %4)
        %8: Int = call a.long at m (%7)
        yield %8
      %9: Int = index(%5, 1)
      yield %9
    yield %1
",
        list.join(", ")
    )
}

fn short() -> Function {
    let code = FunctionCode::Immediate(Arc::new(|call| Outcome::Value(Value::Int(int(call, 0)))));
    function("a.short", &PARAMETERS, World::Reads, code)
}

/// Returns a long function that counts its calls, and notes whether one of them was made on an event loop.
fn long(calls: &Arc<AtomicU64>, on_loop: &Arc<AtomicBool>) -> Function {
    let (calls, on_loop) = (Arc::clone(calls), Arc::clone(on_loop));
    let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
        if !call.declare_units(UNITS) {
            return Outcome::ExceedsUnits;
        }
        calls.fetch_add(1, Ordering::Relaxed);
        let is_loop = std::thread::current().name().is_some_and(|name| name.starts_with("weir loop"));
        on_loop.fetch_or(is_loop, Ordering::Relaxed);
        Outcome::Value(Value::Int(int(call, 0)))
    }));
    let mut long = function("a.long", &PARAMETERS, World::Reads, code);
    long.signature.effects.declares_units = true;
    long
}

#[test]
fn each_round_of_a_fork_that_is_handed_back_runs_once() {
    let program = weir_ir::parse::expr(&program()).expect("the program is well formed");
    let expected = Value::list((1..=ROUNDS).map(Value::Int).collect());
    for row in ENGINES.iter().filter(|row| row.may_fork()) {
        for forks in [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers, ForkPolicy::AlwaysInPlace] {
            let (calls, on_loop) = (Arc::default(), Arc::default());
            let feed = Feed::new();
            let mut library = library([short(), long(&calls, &on_loop)]);
            feed.put(&mut library, "test", "feed");
            let forked = Options { forks, slice: SliceLength::ONE_UNIT, ..options(row.name, 2) };
            let running = start_expr(&program, &library, forked);
            for run in 0..RUNS {
                let before = calls.load(Ordering::Relaxed);
                assert_eq!(feed.run(vec![Value::Int(0)]), Ok(expected.clone()), "{}, {forks:?}, {run}", row.name);
                assert_eq!(
                    calls.load(Ordering::Relaxed) - before,
                    3 * ROUNDS.unsigned_abs(),
                    "{}, {forks:?}",
                    row.name
                );
            }
            let may_be_on_loop = forks == ForkPolicy::AlwaysInPlace;
            assert!(
                may_be_on_loop || !on_loop.load(Ordering::Relaxed),
                "{}, {forks:?}: a long call on a loop",
                row.name
            );
            drop(feed);
            running.wait().expect("the program ends");
        }
    }
}
