//! Forks that nobody needs any more: the flow does not wait for them, they end, and what they held is not charged to it.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use test_support::flows::gates::{function, library};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{
    Failure, Function, FunctionCode, HostValue, Library, Outcome, Passing, Type, TypeDefinition, TypeShape, Value,
    World, memory,
};
use weir_ir::expr::Program;
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength};

/// The time that the test waits for the end of a part.
const PATIENCE: Duration = Duration::from_secs(20);

/// A flow with a call that holds it up, and a loop behind that, of a billion rounds.
const PROGRAM: &str = "\
entry test from test.feed unordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> Int
    %1: a.Handle = call a.handle at h ()
    %2: Int = call a.hold at f (%0)
    %3: Int = loop 0 at most 1000000000 as %4: Int
      %5: Int = call a.round at r (%1, %4)
      %7: (Int, Bool) = record(%5, false)
      yield %7
    %6: Int = add(%2, %3)
    yield %6
";

/// A value that does this when it is dropped.
struct Handle(Box<dyn Fn() + Send + Sync>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0();
    }
}

impl HostValue for Handle {
    fn type_name(&self) -> &'static str {
        "a.Handle"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
    fn into_any_box(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        self
    }
}

/// The state of the calls.
#[derive(Clone, Default)]
struct Calls(Arc<(Mutex<CallState>, Condvar)>);

#[derive(Default)]
struct CallState {
    rounds: usize,
    is_released: bool,
}

impl Calls {
    /// Returns a function that declares many units and waits for the first round. It then fails if its argument is 0, and
    /// otherwise waits for its release.
    fn hold(&self) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            if !call.declare_units(1_000_000) {
                return Outcome::ExceedsUnits;
            }
            this.wait_for(|state| state.rounds > 0);
            if call.value(0) == Value::Int(0) {
                return Outcome::Fault(Box::new(Failure::function("on purpose")));
            }
            this.wait_for(|state| state.is_released);
            Outcome::Value(Value::Int(0))
        }));
        let mut hold = function("a.hold", &[("x", Type::Int, Passing::Value)], World::Pure, code);
        hold.signature.effects.declares_units = true;
        hold
    }

    /// Returns the function that the loop calls.
    fn round(&self) -> Function {
        let this = self.clone();
        let code = FunctionCode::Immediate(Arc::new(move |call: &mut weir_host::Call<'_>| {
            this.change(|state| state.rounds += 1);
            Outcome::Value(call.value(1))
        }));
        let handle = ("handle", handle_type(), Passing::Borrow);
        function("a.round", &[handle, ("x", Type::Int, Passing::Value)], World::Pure, code)
    }

    fn wait_for(&self, holds: impl Fn(&CallState) -> bool) {
        let (state, changed) = &*self.0;
        drop(changed.wait_while(state.lock().expect("nobody panics"), |state| !holds(state)));
    }

    fn change(&self, change: impl FnOnce(&mut CallState)) {
        let (state, changed) = &*self.0;
        change(&mut state.lock().expect("nobody panics"));
        changed.notify_all();
    }
}

fn handle_type() -> Type {
    Type::Named("a.Handle".into())
}

/// Returns the function that makes a handle.
fn handle(dropped: Sender<()>) -> Function {
    let code = FunctionCode::Immediate(Arc::new(move |_: &mut weir_host::Call<'_>| {
        let dropped = dropped.clone();
        Outcome::Value(Value::Host(Arc::new(Handle(Box::new(move || _ = dropped.send(()))))))
    }));
    let mut handle = function("a.handle", &[], World::Pure, code);
    handle.signature.result = handle_type();
    let shape = TypeShape::Opaque { shareable: true };
    handle.types.push(TypeDefinition { name: "a.Handle".into(), doc: "".into(), shape });
    handle
}

/// Returns the program, its library, the state of its calls, and the drops of its handles.
fn parts() -> (Program, Library, Calls, Receiver<()>) {
    let (calls, (sender, dropped)) = (Calls::default(), channel());
    let library = library([handle(sender), calls.hold(), calls.round()]);
    let program = weir_ir::parse::expr(PROGRAM).expect("the program is well formed");
    (program, library, calls, dropped)
}

#[test]
fn a_flow_that_fails_waits_for_no_part_behind_the_failure() {
    for row in ENGINES.iter().filter(|row| row.may_fork()) {
        let (program, mut library, _calls, dropped) = parts();
        let feed = Feed::new();
        feed.put(&mut library, "test", "feed");
        let forked = Options { forks: ForkPolicy::Always, slice: SliceLength::ONE_UNIT, ..options(row.name, 2) };
        let running = start_expr(&program, &library, forked);
        let failure = feed.run(vec![Value::Int(0)]).expect_err("the call fails");
        assert_eq!(failure.message.as_str(), "on purpose", "under `{}`", row.name);
        dropped.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the part goes on under `{}`", row.name));
        drop(feed);
        running.wait().expect("the program ends");
    }
}

#[test]
fn the_parts_of_a_cancelled_flow_end() {
    for row in ENGINES.iter().filter(|row| row.may_fork()) {
        let (program, mut library, calls, dropped) = parts();
        let feed = Feed::new();
        feed.put(&mut library, "test", "feed");
        let forked = Options { forks: ForkPolicy::Always, slice: SliceLength::ONE_UNIT, ..options(row.name, 2) };
        let running = start_expr(&program, &library, forked);
        let answer = feed.begin(vec![Value::Int(1)]);
        calls.wait_for(|state| state.rounds > 0);
        drop(answer);
        dropped.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the part goes on under `{}`", row.name));
        calls.change(|state| state.is_released = true);
        drop(feed);
        running.wait().expect("the program ends");
    }
}

/// A sum in one of whose rounds a call fails that holds much memory. The flow runs this round once more.
const FAILING_SUM: &str = "\
entry test from test.feed unordered
  arguments
    yield (0,)
  flow feed (%0 x: Int) -> Int
    %1: Int = fold [1, 2, 3, 4, 5, 6, 7, 8, 9] from %0 as %2: Int, %3: Int
      %4: a.Handle = call a.hold at h (%3)
      %5: Int = call a.use at u (%4, %3)
      %6: Int = add(%2, %5)
      yield %6
    yield %1
";
/// The round that fails.
const FAILING: i64 = 8;
/// The memory that it holds, and the limit of the flow.
const HELD: usize = 10 << 20;
const LIMIT: u64 = 15 << 20;

/// Returns a function that holds much memory in the round that fails, and one that fails there.
fn holding() -> [Function; 2] {
    let x = || ("x", Type::Int, Passing::Value);
    let hold = |call: &mut weir_host::Call<'_>| {
        let bytes = if call.value(0) == Value::Int(FAILING) { HELD } else { 0 };
        memory::allocated(bytes);
        Outcome::Value(Value::Host(Arc::new(Handle(Box::new(move || memory::released(bytes))))))
    };
    let mut hold = function("a.hold", &[x()], World::Pure, FunctionCode::Immediate(Arc::new(hold)));
    hold.signature.result = handle_type();
    let shape = TypeShape::Opaque { shareable: true };
    hold.types.push(TypeDefinition { name: "a.Handle".into(), doc: "".into(), shape });
    let use_held = |call: &mut weir_host::Call<'_>| match call.value(1) {
        Value::Int(FAILING) => Outcome::Fault(Box::new(Failure::function("on purpose"))),
        number => Outcome::Value(number),
    };
    let parameters = [("handle", handle_type(), Passing::Borrow), x()];
    [hold, function("a.use", &parameters, World::Pure, FunctionCode::Immediate(Arc::new(use_held)))]
}

#[test]
fn a_flow_is_not_charged_for_what_a_fork_that_has_failed_held() {
    let program = weir_ir::parse::expr(FAILING_SUM).expect("the program is well formed");
    for row in ENGINES.iter().filter(|row| row.may_fork()) {
        for forks in [ForkPolicy::AlwaysOnHelpers, ForkPolicy::AlwaysInPlace] {
            let mut library = library(holding());
            let feed = Feed::new();
            feed.put(&mut library, "test", "feed");
            let memory_per_flow = Some(LIMIT);
            let slice = SliceLength::ONE_UNIT;
            let running =
                start_expr(&program, &library, Options { forks, slice, memory_per_flow, ..options(row.name, 2) });
            for _ in 0..4 {
                let failure = feed.run(vec![Value::Int(0)]).expect_err("a round fails");
                assert_eq!(failure.message.as_str(), "on purpose", "under `{}`, {forks:?}", row.name);
            }
            drop(feed);
            running.wait().expect("the program ends");
        }
    }
}
