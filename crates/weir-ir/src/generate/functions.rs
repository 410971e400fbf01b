//! The functions of the recording library.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use weir_host::{
    Call, Effects, Failure, Function, FunctionCode, HostValue, Mode, Module, Outcome, Parameter, Passing, Settled,
    Signature, StateOf, Type, TypeDefinition, TypeShape, Unique, Value, World,
};

use super::recording::{Recording, SHARED_FROM};
use super::replacing;

/// The type of the counters, which can only be moved.
pub(super) const COUNTER: &str = "count.Counter";

/// The modules with a part of the outside world.
pub(super) const WORLDS: [&str; 3] = ["a", "b", "c"];

/// The function with which every other call waits: [`super::Case::with_barriers`] makes its calls.
pub(super) const BARRIER: &str = "barrier";

/// A pause of a blocking call: as short as the system allows.
const PAUSE: Duration = Duration::from_nanos(1);

/// A number that counts up.
struct Counter {
    number: i64,
    count: Arc<AtomicI64>,
}

/// The handle of a counter.
struct CounterHandle(Arc<AtomicI64>);

macro_rules! host_value {
    ($ty:ident, $name:expr, $handle:expr) => {
        impl HostValue for $ty {
            fn type_name(&self) -> &'static str {
                $name
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
            fn handle(&self) -> Value {
                $handle(self)
            }
        }
    };
}

host_value!(Counter, COUNTER, |counter: &Counter| Value::Host(Arc::new(CounterHandle(Arc::clone(&counter.count)))));
host_value!(CounterHandle, "count.Handle", |_| Value::Absent);

pub(super) fn counter() -> Type {
    Type::Named(COUNTER.into())
}

fn new_counter(number: i64) -> Value {
    Value::Unique(Unique::new(Box::new(Counter { number, count: Arc::default() })))
}

fn as_counter(value: &mut Value) -> &mut Counter {
    match value {
        Value::Unique(unique) => unique.get_mut().and_then(|value| value.as_any_mut().downcast_mut()),
        _ => None,
    }
    .expect("the verifier has seen a counter, and nobody moved it before")
}

fn count_of(value: &Value) -> i64 {
    let counter: Option<&Counter> = match value {
        Value::Unique(unique) => unique.get().and_then(|value| value.as_any().downcast_ref()),
        _ => None,
    };
    counter.expect("the verifier has seen a counter, and nobody moved it before").count.load(Ordering::Relaxed)
}

/// Returns the present count of the counter with this handle.
pub(super) fn count_of_handle(handle: &Value) -> i64 {
    let handle: Option<&CounterHandle> = match handle {
        Value::Host(host) => host.as_any().downcast_ref(),
        _ => None,
    };
    handle.expect("a batch has the handle of its counter").0.load(Ordering::Relaxed)
}

pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(int) => *int,
        other => panic!("the verifier let {other:?} pass for an integer"),
    }
}

/// Returns the modules of the library.
pub(super) fn modules(recording: &Recording) -> Vec<Module> {
    let mut modules: Vec<Module> = WORLDS.into_iter().map(|name| world(name, recording)).collect();
    modules.push(counters(recording));
    modules.push(steps(recording));
    modules.push(replacing::module());
    modules
}

fn parameter(name: &str, ty: Type, passing: Passing) -> Parameter {
    Parameter { name: name.into(), ty, passing, default: None }
}

/// Returns the second parameter of a function of two integers.
pub(super) fn another() -> Parameter {
    parameter("by", Type::Int, Passing::Value)
}

/// Returns a function of one integer with this name.
pub(super) fn function(name: &str, world: World, failure: Option<Type>, code: FunctionCode) -> Function {
    let effects = Effects {
        world,
        waits: matches!(code, FunctionCode::Waiting(_)),
        blocking: matches!(code, FunctionCode::Blocking(_)),
        ..Effects::default()
    };
    let signature = Signature {
        module: "".into(),
        name: name.into(),
        doc: "".into(),
        parameters: vec![parameter("x", Type::Int, Passing::Value)],
        result: Type::Int,
        failure,
        effects,
        state: None,
        batch: None,
        internal: false,
    };
    Function { signature, code, words: None, batch: None, types: Vec::new(), location: None }
}

/// Returns a function of one integer that may return `None`.
fn optional(name: &str, code: FunctionCode) -> Function {
    let mut optional = function(name, World::Pure, None, code);
    optional.signature.result = Type::option(Type::Int);
    optional
}

/// Marks a function that declares its units.
fn declaring(mut function: Function) -> Function {
    function.signature.effects.declares_units = true;
    function
}

/// Marks a function that returns for every argument.
fn total(mut function: Function) -> Function {
    function.signature.effects.total = true;
    function
}

fn immediate(code: impl Fn(&mut Call<'_>) -> Outcome + Send + Sync + 'static) -> FunctionCode {
    FunctionCode::Immediate(Arc::new(code))
}

/// Returns a function that takes long for some arguments, so that a flow with short slices leaves it to another thread.
fn lengthy(code: fn(i64) -> Outcome) -> FunctionCode {
    immediate(move |call| {
        let units = if int(call.borrow(0)) % 5 == 0 { 100 } else { 0 };
        if call.declare_units(units) { code(argument(call)) } else { Outcome::ExceedsUnits }
    })
}

fn settled(value: i64) -> Settled {
    Settled { outcome: Outcome::Value(Value::Int(value)), restored: Vec::new() }
}

/// Returns the module of one part of the outside world.
fn world(name: &'static str, recording: &Recording) -> Module {
    let failure = || Some(Type::Failure);
    Module::new(name, "A part of the outside world.")
        .function(mixing())
        .function(total(declaring(function("half", World::Pure, failure(), lengthy(half)))))
        .function(declaring(function("picky", World::Pure, None, lengthy(picky))))
        .function(declaring(function("refuse", World::Pure, Some(Type::Text), lengthy(refuse))))
        .function(total(declaring(optional("quarter", lengthy(quarter)))))
        .function(declaring(optional("made_quarter", lengthy(made_quarter))))
        .function(total(function("look", World::Reads, None, look(name, recording))))
        .function(function("slow_look", World::Reads, None, slow_look(name, recording)))
        .function(function("change", World::Writes, None, change(name, recording)))
        .function(total(function("note", World::Writes, None, change(name, recording))))
        .function(function("try_change", World::Writes, failure(), try_change(name, recording)))
        .function(function("slow_change", World::Writes, None, slow_change(name, recording)))
        .function(barrier(name, recording))
        .function(function("block", World::Writes, None, block(name, recording)))
}

/// Returns a function that has a typed entry point too.
fn mixing() -> Function {
    let code = immediate(|call| Outcome::Value(Value::Int(mix(argument(call)))));
    let mut function = total(function("mix", World::Pure, None, code));
    function.words = Some(|words| Ok(mix(words[0].cast_signed()).cast_unsigned()));
    function
}

fn argument(call: &mut Call<'_>) -> i64 {
    int(&call.value(0))
}

pub(super) fn mix(x: i64) -> i64 {
    x.wrapping_mul(7).wrapping_add(3) % 101
}

/// Refuses one argument in seven: a fault, which ends the flow.
fn picky(x: i64) -> Outcome {
    if x % 7 == 0 {
        return Outcome::Fault(Box::new(Failure::argument(format!("{x} can be divided by 7"))));
    }
    Outcome::Value(Value::Int(x.wrapping_add(1)))
}

pub(super) fn half(x: i64) -> Outcome {
    if x % 2 == 0 {
        Outcome::Value(Value::Int(x / 2))
    } else {
        Outcome::Error(Value::Failure(Box::new(Failure::function(format!("{x} is odd")))))
    }
}

fn quarter(x: i64) -> Outcome {
    if x % 4 == 0 { Outcome::Some(Value::Int(x / 4)) } else { Outcome::None }
}

/// Does the same, but creates the `Option` value itself.
fn made_quarter(x: i64) -> Outcome {
    Outcome::Value(if x % 4 == 0 { Value::some(Value::Int(x / 4)) } else { Value::none() })
}

fn refuse(x: i64) -> Outcome {
    if x < 5 { Outcome::Value(Value::Int(x)) } else { Outcome::Error(Value::text("too large")) }
}

fn look(module: &'static str, recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    immediate(move |call| {
        let x = argument(call);
        Outcome::Value(Value::Int(recording.look(module, format!("{module} {x}")).wrapping_add(x)))
    })
}

fn slow_look(module: &'static str, recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    FunctionCode::Waiting(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), argument(call));
        Ok(Box::pin(async move {
            Yields(recording.yields(x)).await;
            settled(recording.look(module, format!("{module} waits {x}")).wrapping_add(x))
        }))
    }))
}

fn change(module: &'static str, recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    immediate(move |call| {
        let x = argument(call);
        recording.write_down(module, format!("change {x}"));
        Outcome::Value(Value::Int(recording.change(module, x)))
    })
}

fn try_change(module: &'static str, recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    immediate(move |call| {
        let x = argument(call);
        recording.write_down(module, format!("try_change {x}"));
        half(recording.change(module, x))
    })
}

fn slow_change(module: &'static str, recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    FunctionCode::Waiting(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), argument(call));
        Ok(Box::pin(async move {
            recording.write_down(module, format!("slow_change {x} begins"));
            Yields(recording.yields(x)).await;
            recording.write_down(module, format!("slow_change {x} ends"));
            settled(recording.change(module, x))
        }))
    }))
}

/// Returns a function that waits, and with which every other call waits.
fn barrier(module: &'static str, recording: &Recording) -> Function {
    let recording = recording.clone();
    let code = FunctionCode::Waiting(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), argument(call));
        Ok(Box::pin(async move {
            recording.write_down_everywhere(module, &format!("barrier {x} begins"));
            Yields(recording.yields(x)).await;
            recording.write_down_everywhere(module, &format!("barrier {x} ends"));
            settled(recording.change(module, x))
        }))
    }));
    let mut barrier = function(BARRIER, World::Writes, None, code);
    barrier.signature.effects.barrier = true;
    barrier
}

fn block(module: &'static str, recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    FunctionCode::Blocking(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), argument(call));
        Ok(Box::new(move || {
            recording.write_down(module, format!("block {x}"));
            // No `yield_now`: a thread of low priority would get no processor for a tenth of a second, if others compute.
            (0..recording.pauses(x)).for_each(|_| std::thread::sleep(PAUSE));
            settled(recording.change(module, x))
        }))
    }))
}

pub(super) fn with_counter(mut function: Function, passing: Passing) -> Function {
    function.signature.parameters.insert(0, parameter("counter", counter(), passing));
    function
}

fn counters(recording: &Recording) -> Module {
    let definition =
        TypeDefinition { name: COUNTER.into(), doc: "".into(), shape: TypeShape::Opaque { shareable: false } };
    let mut new = function("new", World::Pure, None, immediate(|call| Outcome::Value(new_counter(argument(call)))));
    new.signature.result = counter();
    new.types.push(definition);
    let finish = immediate(|call| Outcome::Value(Value::Int(count_of(&call.value(0)))));
    let mut finish = with_counter(function("finish", World::Pure, None, finish), Passing::Value);
    finish.signature.parameters.truncate(1);
    Module::new("count", "Counters that can only be moved.")
        .function(new)
        .function(finish)
        .function(with_counter(function("value", World::Pure, None, immediate(value)), Passing::Borrow))
        .function(with_counter(function("slow_value", World::Pure, None, slow_value(recording)), Passing::Borrow))
        .function(with_counter(function("add", World::Pure, None, add(recording)), Passing::Change))
        .function(with_counter(function("slow_add", World::Pure, None, slow_add(recording)), Passing::Change))
}

fn value(call: &mut Call<'_>) -> Outcome {
    let x = int(&call.value(1));
    let count = match call.shared(0) {
        Some(shared) => count_of(&shared.read()),
        None => count_of(call.borrow(0)),
    };
    Outcome::Value(Value::Int(count.wrapping_add(x)))
}

fn slow_value(recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    FunctionCode::Waiting(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), int(&call.value(1)));
        let guard = call.shared(0).map(weir_host::Shared::read_owned);
        let own = if guard.is_none() { call.take_unique(0) } else { Value::Absent };
        Ok(Box::pin(async move {
            Yields(recording.yields(x)).await;
            let count = guard.as_ref().map_or_else(|| count_of(&own), |guard| count_of(guard));
            let restored = if guard.is_none() { vec![(0, own)] } else { Vec::new() };
            Settled { restored, ..settled(count.wrapping_add(x)) }
        }))
    }))
}

impl Recording {
    /// Adds to a counter, and returns its new count. Of a flow's own counter, whose number may be any, nothing is recorded.
    fn add(&self, counter: &mut Counter, is_shared: bool, x: i64, what: &str) -> i64 {
        if is_shared && counter.number >= SHARED_FROM {
            self.write_down(&format!("counter {}", counter.number), format!("{what} {x}"));
        }
        let count = counter.count.load(Ordering::Relaxed).wrapping_mul(3).wrapping_add(x) % 1_000;
        if !is_shared || self.keeps(counter.number) {
            counter.count.store(count, Ordering::Relaxed);
        }
        count
    }
}

fn add(recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    immediate(move |call| {
        let x = int(&call.value(1));
        let mut own = if call.shared(0).is_none() { call.take_unique(0) } else { Value::Absent };
        let sum = match call.shared(0) {
            Some(shared) => recording.add(as_counter(&mut shared.write()), true, x, "add"),
            None => recording.add(as_counter(&mut own), false, x, "add"),
        };
        call.restore(0, own);
        Outcome::Value(Value::Int(sum))
    })
}

fn slow_add(recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    FunctionCode::Waiting(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), int(&call.value(1)));
        let mut guard = call.shared(0).map(weir_host::Shared::write_owned);
        let mut own = if guard.is_none() { call.take_unique(0) } else { Value::Absent };
        Ok(Box::pin(async move {
            Yields(recording.yields(x)).await;
            let is_shared = guard.is_some();
            let counter = guard.as_mut().map_or_else(|| as_counter(&mut own), |guard| as_counter(guard));
            let sum = recording.add(counter, is_shared, x, "slow_add");
            let restored = if guard.is_none() { vec![(0, own)] } else { Vec::new() };
            Settled { restored, ..settled(sum) }
        }))
    }))
}

/// Returns the module of functions with private state: each call site has a counter of its own.
fn steps(recording: &Recording) -> Module {
    let stateful = |mut function: Function, mode| {
        function.signature.state = Some(StateOf { name: "Steps".into(), mode, make: |_| Ok(new_counter(0)) });
        function
    };
    let peek = immediate(|call| {
        let x = argument(call);
        let state = call.state.expect("a stateful function has its state");
        Outcome::Value(Value::Int(count_of(&state.read()).wrapping_add(x)))
    });
    let next = recording.clone();
    let next = immediate(move |call| {
        let x = argument(call);
        let state = call.state.expect("a stateful function has its state");
        Outcome::Value(Value::Int(next.add(as_counter(&mut state.write()), false, x, "next")))
    });
    Module::new("step", "Functions with private state.")
        .function(stateful(function("peek", World::Pure, None, peek), Mode::Read))
        .function(stateful(function("next", World::Pure, None, next), Mode::Write))
        .function(stateful(function("slow_next", World::Pure, None, slow_next(recording)), Mode::Write))
}

fn slow_next(recording: &Recording) -> FunctionCode {
    let recording = recording.clone();
    FunctionCode::Waiting(Arc::new(move |call| {
        let (recording, x) = (recording.clone(), argument(call));
        let mut state = call.state.expect("a stateful function has its state").write_owned();
        Ok(Box::pin(async move {
            Yields(recording.yields(x)).await;
            settled(recording.add(as_counter(&mut state), false, x, "slow_next"))
        }))
    }))
}

/// A future that yields the thread this number of times before it is ready.
pub(super) struct Yields(pub(super) usize);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.0.checked_sub(1) {
            None => Poll::Ready(()),
            Some(left) => {
                self.0 = left;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
