//! Rounds that only make a typed call and keep its result, which run at once: each call is made once, in the order of the list,
//! and a failure ends the flow where it stands.

use std::sync::{Arc, Mutex};

use test_support::flows::gates::{function, int, library};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Call, Failure, Function, FunctionCode, Outcome, Passing, Type, Value, WordCode, World};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength};

/// The number of rounds.
const ROUNDS: i64 = 2_000;

/// The element at which some functions end the flow.
const LAST: i64 = 1_234;

/// The elements of the calls of [`refuses`].
static CALLS: Mutex<Vec<i64>> = Mutex::new(Vec::new());

fn number(words: &[u64]) -> i64 {
    words[0].cast_signed()
}

fn twice(words: &[u64]) -> Result<u64, Box<Failure>> {
    Ok((2 * number(words)).cast_unsigned())
}

/// Returns its second argument less the first.
fn less(words: &[u64]) -> Result<u64, Box<Failure>> {
    Ok((words[1].cast_signed() - number(words)).cast_unsigned())
}

/// Notes its calls, and refuses one.
fn refuses(words: &[u64]) -> Result<u64, Box<Failure>> {
    CALLS.lock().expect("nobody panics").push(number(words));
    if number(words) == LAST { Err(Box::new(Failure::function("refused"))) } else { Ok(words[0]) }
}

fn panics(words: &[u64]) -> Result<u64, Box<Failure>> {
    assert!(number(words) < LAST, "the call panics");
    Ok(words[0])
}

fn typed(path: &'static str, names: &[&'static str], code: WordCode) -> Function {
    let parameters: Vec<_> = names.iter().map(|name| (*name, Type::Int, Passing::Value)).collect();
    let boxed = FunctionCode::Immediate(Arc::new(move |call: &mut Call<'_>| {
        let words: Vec<u64> = (0..call.arguments.len()).map(|index| int(call, index).cast_unsigned()).collect();
        match code(&words) {
            Ok(word) => Outcome::Value(Value::Int(word.cast_signed())),
            Err(failure) => Outcome::Fault(failure),
        }
    }));
    Function { words: Some(code), ..function(path, &parameters, World::Pure, boxed) }
}

/// Runs rounds of this call in a flow with the input 7; returns their results.
fn rounds(call: &str, options: Options) -> Result<Value, Failure> {
    let feed = Feed::new();
    let functions = [
        typed("a.twice", &["x"], twice),
        typed("a.less", &["x", "y"], less),
        typed("a.refuses", &["x"], refuses),
        typed("a.panics", &["x"], panics),
    ];
    let mut library = library(functions);
    feed.put(&mut library, "test", "feed");
    let list: Vec<String> = (0..ROUNDS).map(|number| number.to_string()).collect();
    let text = format!(
        "entry test from test.feed unordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> List(Int)\n    \
         %1: List(Int) = for %2: Int in [{}]\n      %3: Int = call {call}\n      yield %3\n    yield %1\n",
        list.join(", ")
    );
    let program = weir_ir::parse::expr(&text).expect("the program is well formed");
    let running = start_expr(&program, &library, options);
    let result = feed.run(vec![Value::Int(7)]);
    drop(feed);
    running.wait().expect("the program ends");
    result
}

/// Options with whole slices and with slices of one unit, under each engine.
fn all_options() -> impl Iterator<Item = Options> {
    ENGINES.iter().flat_map(|row| {
        [SliceLength::default(), SliceLength::ONE_UNIT].map(|slice| Options { slice, ..options(row.name, 2) })
    })
}

#[test]
fn results_are_those_of_the_calls_in_the_order_of_the_list() {
    for options in all_options() {
        let doubled = (0..ROUNDS).map(|number| Value::Int(2 * number)).collect();
        assert_eq!(rounds("a.twice at l (%2)", options), Ok(Value::List(doubled)));
    }
    for forks in [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers] {
        let less = (0..ROUNDS).map(|number| Value::Int(7 - number)).collect();
        assert_eq!(rounds("a.less at l (%2, %0)", Options { forks, ..options("event", 2) }), Ok(Value::List(less)));
    }
}

#[test]
fn a_call_that_fails_ends_the_flow_and_is_made_once() {
    let (plan, problems) = Plan::parse("parallel = \"off\"\n");
    assert!(problems.is_empty(), "{problems:?}");
    for options in all_options() {
        let failure = rounds("a.refuses at l (%2)", Options { plan: plan.clone(), ..options });
        assert!(failure.is_err_and(|failure| failure.message.contains("refused")));
        let calls = std::mem::take(&mut *CALLS.lock().expect("nobody panics"));
        assert_eq!(calls, (0..=LAST).collect::<Vec<_>>());
    }
}

#[test]
fn a_call_that_panics_ends_the_flow() {
    for options in all_options() {
        let failure = rounds("a.panics at l (%2)", options).expect_err("one call panics");
        assert!(failure.message.contains("a.panics"), "{failure:?}");
    }
}
