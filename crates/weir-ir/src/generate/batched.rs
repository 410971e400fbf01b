//! The functions of the recording library whose calls are gathered into batches, and programs that mostly call these.
//!
//! Some functions read a part of the outside world, some change it, and one does neither. Two have a further argument, by
//! which their batches differ. Two cannot answer a batch of three requests or more, which the sender then splits.

use std::sync::Arc;

use weir_host::{
    Batch, BatchAnswers, BatchCode, Environment, Failure, FailureKind, Function, FunctionCode, Module, Outcome,
    Passing, PendingBatch, Settled, Type, Value, World,
};

use super::functions::{WORLDS, Yields, another, count_of_handle, function, half, int, mix, with_counter};
use super::program::Generator;
use super::recording::Recording;
use super::values::fallible;
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op};

/// Small batches of which few are out at a time, so that random programs reach both limits.
const LIMITS: Batch = Batch { at_most: 3, in_flight: 2, gathered: 0 };

/// The limits of functions that cannot answer [`TOO_MANY`] requests at once: if a batch is halved again and again, never do
/// both halves fail.
const FRAGILE: Batch = Batch { at_most: 5, in_flight: 2, gathered: 0 };

/// The number of requests from which on a batch of a fragile function fails as a whole.
const TOO_MANY: usize = 3;

/// The functions of one integer whose calls are gathered and which return an integer; those that change something are rarer.
const FUNCTIONS: [&str; 12] = [
    "gathered_look",
    "gathered_look",
    "gathered_look",
    "gathered_look",
    "gathered_look",
    "gathered_look",
    "gathered_mix",
    "failing_look",
    "fragile_look",
    "fragile_look",
    "gathered_change",
    "fragile_keep",
];

/// The functions of two integers.
const FUNCTIONS_OF_TWO: [&str; 3] = ["look_by", "look_by", "change_by"];

/// The answer of one request, with the argument that is not gathered or 0.
type AnswerOf = fn(&Recording, &'static str, (i64, i64)) -> Outcome;

/// The properties of a function.
struct Kind {
    world: World,
    limits: Batch,
    failure: Option<Type>,
    /// True if executing a call twice has the same effect as once.
    idempotent: bool,
    /// True if there is another argument.
    of_two: bool,
}

/// A function with one argument, which always answers.
const READ: Kind = Kind { world: World::Reads, limits: LIMITS, failure: None, idempotent: false, of_two: false };

/// The same, which changes something.
const WRITE: Kind = Kind { world: World::Writes, ..READ };

/// The limits of a function whose second argument is gathered.
const SECOND: Batch = Batch { at_most: 2, in_flight: 1, gathered: 1 };

/// The module of counters.
const COUNTERS: &str = "count";

/// Adds the functions to a module, if it has counters or a part of the outside world.
pub(super) fn add_batched(module: Module, recording: &Recording) -> Module {
    if module.name.as_str() == COUNTERS {
        return module.function(with_counter(gathered_value(recording), Passing::Borrow));
    }
    let Some(name) = WORLDS.into_iter().find(|name| *name == module.name.as_str()) else { return module };
    let batched = |path, kind, answer| batched(path, (name, recording), kind, answer);
    let failure = || Some(Type::Failure);
    module
        .function(batched("gathered_look", READ, look))
        .function(batched("try_gathered", Kind { failure: failure(), ..READ }, |_, _, (x, _)| half(x)))
        .function(batched("gathered_mix", Kind { world: World::Pure, ..READ }, |_, _, (x, _)| number(mix(x))))
        .function(batched("failing_look", READ, |recording, module, (x, by)| match refuses(x) {
            true => fault(FailureKind::Argument, format!("{x} is refused")),
            false => look(recording, module, (x, by)),
        }))
        .function(batched("fragile_look", Kind { limits: FRAGILE, ..READ }, look))
        .function(batched("look_by", Kind { limits: SECOND, of_two: true, ..READ }, look))
        .function(batched("gathered_change", WRITE, |recording, module, (x, _)| {
            number(change(recording, module, format!("gathered_change {x}"), x))
        }))
        .function(batched("try_gathered_change", Kind { failure: failure(), ..WRITE }, |recording, module, (x, _)| {
            half(change(recording, module, format!("try_gathered_change {x}"), x))
        }))
        .function(batched("fragile_keep", Kind { limits: FRAGILE, idempotent: true, ..WRITE }, keep))
        .function(batched("change_by", Kind { of_two: true, ..WRITE }, |recording, module, (x, by)| {
            number(change(recording, module, format!("change_by {x} {by}"), x.wrapping_sub(by)))
        }))
}

fn batched(name: &str, (module, recording): (&'static str, &Recording), kind: Kind, answer: AnswerOf) -> Function {
    let recording = recording.clone();
    let is_fragile = name.starts_with("fragile");
    let code: Arc<BatchCode> = Arc::new(move |arguments: Vec<Value>, others: &[Value], _: &Environment| {
        let recording = recording.clone();
        let by = others.first().map_or(0, int);
        let pending: PendingBatch = Box::pin(async move {
            let arguments: Vec<i64> = arguments.iter().map(int).collect();
            Yields(recording.yields(arguments.iter().fold(0, |sum, x| x.wrapping_add(sum)))).await;
            if is_fragile && arguments.len() >= TOO_MANY {
                return refused(arguments.len());
            }
            let answers = arguments.into_iter().map(|x| answer(&recording, module, (x, by))).collect();
            BatchAnswers { answers, failed_as_a_whole: false }
        });
        Ok(pending)
    });
    let (alone, gathered) = (Arc::clone(&code), kind.limits.gathered);
    let alone = FunctionCode::Waiting(Arc::new(move |call| {
        let others: Vec<Value> = if kind.of_two { vec![call.value(1 - gathered)] } else { Vec::new() };
        let answers = alone(vec![call.value(gathered)], &others, call.environment)?;
        Ok(Box::pin(async move {
            let outcome = answers.await.answers.remove(0);
            Settled { outcome, restored: Vec::new() }
        }))
    }));
    let mut function = function(name, kind.world, kind.failure, alone);
    if kind.of_two {
        function.signature.parameters.push(another());
    }
    function.signature.effects.idempotent = kind.idempotent;
    function.signature.batch = Some(kind.limits);
    function.batch = Some(code);
    function
}

/// Returns a function that reads a shared counter, which it borrows, and whose calls are gathered.
fn gathered_value(recording: &Recording) -> Function {
    let recording = recording.clone();
    let code: Arc<BatchCode> = Arc::new(move |arguments: Vec<Value>, borrowed: &[Value], _: &Environment| {
        let (recording, counter) = (recording.clone(), borrowed[0].clone());
        let pending: PendingBatch = Box::pin(async move {
            let count = count_of_handle(&counter);
            Yields(recording.yields(arguments.iter().map(int).fold(0, i64::wrapping_add))).await;
            let answers = arguments.iter().map(|x| number(count.wrapping_add(int(x)))).collect();
            BatchAnswers { answers, failed_as_a_whole: false }
        });
        Ok(pending)
    });
    let alone = Arc::clone(&code);
    let alone = FunctionCode::Waiting(Arc::new(move |call| {
        let handle = call.shared(0).map(|counter| counter.read().handle());
        let answers = alone(vec![call.value(1)], &[handle.expect("a shared counter")], call.environment)?;
        Ok(Box::pin(async move {
            let outcome = answers.await.answers.remove(0);
            Settled { outcome, restored: Vec::new() }
        }))
    }));
    let mut function = function("gathered_value", World::Pure, None, alone);
    function.signature.batch = Some(SECOND);
    function.batch = Some(code);
    function
}

/// Returns the answers of a batch that fails as a whole.
fn refused(requests: usize) -> BatchAnswers {
    let failure = Failure::function(format!("{requests} requests are too many"));
    BatchAnswers { answers: vec![Outcome::Fault(Box::new(failure)); requests], failed_as_a_whole: true }
}

/// Returns true if a function that refuses some arguments refuses this one.
fn refuses(x: i64) -> bool {
    x.rem_euclid(7) == 4
}

fn fault(kind: FailureKind, message: String) -> Outcome {
    Outcome::Fault(Box::new(Failure::new(kind, message)))
}

fn number(number: i64) -> Outcome {
    Outcome::Value(Value::Int(number))
}

fn look(recording: &Recording, module: &'static str, (x, by): (i64, i64)) -> Outcome {
    number(
        recording.look(module, format!("{module} gathers {x} {by}")).wrapping_add(x).wrapping_sub(by.wrapping_mul(3)),
    )
}

fn change(recording: &Recording, module: &'static str, effect: String, x: i64) -> i64 {
    recording.write_down(module, effect);
    recording.change(module, x)
}

fn keep(recording: &Recording, module: &'static str, (x, _): (i64, i64)) -> Outcome {
    recording.write_down(module, format!("fragile_keep {x}"));
    number(recording.keep(module, x))
}

impl Generator {
    /// Generates an operation of a program that mostly calls batched functions: a call, or a construct that holds some.
    pub(super) fn of_batches(&mut self, ty: &Type, nests: bool, lets: &mut Vec<Let>) -> Option<Op> {
        if !self.batches {
            return None;
        }
        if let Some(op) = self.of_left_loops(ty, nests, lets) {
            return Some(op);
        }
        match ty {
            Type::Int => match self.random.below(20) {
                0..=7 => Some(self.gathered(lets)),
                8..=10 => Some(self.gathered_by(lets)),
                11..=13 if nests => Some(self.or_fail(lets)),
                14 | 15 if nests => Some(self.switch(ty, lets)),
                16 if nests => Some(self.fold(ty, lets)),
                17 | 18 => self.gathered_count(lets),
                _ => None,
            },
            ty if *ty == fallible() && self.random.chance(70) => Some(self.fallible_call(lets)),
            Type::List(element) if nests && self.random.chance(70) => Some(self.map(element, lets)),
            _ => None,
        }
    }

    fn gathered(&mut self, lets: &mut Vec<Let>) -> Op {
        let function = *self.random.pick(&FUNCTIONS);
        let argument = self.operand(&Type::Int, lets);
        self.call_in_a_world(function, vec![argument])
    }

    fn gathered_by(&mut self, lets: &mut Vec<Let>) -> Op {
        let function = *self.random.pick(&FUNCTIONS_OF_TWO);
        let arguments = vec![self.operand(&Type::Int, lets), self.operand(&Type::Int, lets)];
        self.call_in_a_world(function, arguments)
    }

    /// Generates a read of a shared counter, if one may be touched.
    fn gathered_count(&mut self, lets: &mut Vec<Let>) -> Option<Op> {
        let by = self.operand(&Type::Int, lets);
        let counter = self.shared_here()?;
        Some(self.call_of("count.gathered_value", vec![Atom::Shared(counter), by]))
    }

    fn fallible_call(&mut self, lets: &mut Vec<Let>) -> Op {
        let functions = ["try_gathered", "try_gathered", "try_gathered_change"];
        let function = if self.reads_only { functions[0] } else { *self.random.pick(&functions) };
        let argument = self.operand(&Type::Int, lets);
        self.call_in_a_world(function, vec![argument])
    }

    pub(super) fn call_in_a_world(&mut self, function: &str, arguments: Vec<Atom>) -> Op {
        // Mostly one part of the world, so that calls meet.
        let module = *self.random.pick(&["a", "a", "a", "b"]);
        self.call_of(&format!("{module}.{function}"), arguments)
    }

    /// Generates a call whose failure ends the flow, as `?` does.
    pub(super) fn or_fail(&mut self, lets: &mut Vec<Let>) -> Op {
        let call = self.fallible_call(lets);
        let result = self.bind(fallible(), call, lets);
        let (held, failure) = (self.variable(Type::Int), self.variable(Type::Failure));
        let some = Block { lets: Vec::new(), result: Atom::Var(held.var) };
        let mut ending = Vec::new();
        let from = self.scope.len();
        self.bind(Type::Never, Op::Fail(Atom::Var(failure.var)), &mut ending);
        self.scope.truncate(from);
        let none = Block { lets: ending, result: Atom::Value(Value::Unit) };
        let arms = vec![
            Arm { test: ArmTest::Tag(Value::OK), payload: vec![held], body: some },
            Arm { test: ArmTest::Tag(Value::ERR), payload: vec![failure], body: none },
        ];
        Op::Switch { subject: Atom::Var(result), arms }
    }
}
