//! The functions of the recording library whose calls are gathered into batches: some read a part of the outside world,
//! some change it.

use std::sync::Arc;

use weir_host::{
    Batch, BatchAnswers, BatchCode, Environment, Function, FunctionCode, Module, Outcome, PendingBatch, Settled, Type,
    Value, World,
};

use super::functions::{WORLDS, Yields, function, half, int};
use super::recording::Recording;

/// Small batches of which few are out at a time, so that random programs reach both limits.
const LIMITS: Batch = Batch { at_most: 3, in_flight: 2, gathered: 0 };

/// The answer of one request.
type AnswerOf = fn(&Recording, &'static str, i64) -> Outcome;

/// Adds the functions to a module, if it has a part of the outside world.
pub(super) fn add_batched(module: Module, recording: &Recording) -> Module {
    let Some(name) = WORLDS.into_iter().find(|name| *name == module.name.as_str()) else { return module };
    let batched = |path, world, failure, answer| batched(path, name, recording, (world, failure, answer));
    module
        .function(batched("gathered_look", World::Reads, None, look))
        .function(batched("try_gathered", World::Reads, Some(Type::Failure), |_, _, x| half(x)))
        .function(batched("gathered_change", World::Writes, None, change))
}

fn batched(
    name: &str,
    module: &'static str,
    recording: &Recording,
    (world, failure, answer): (World, Option<Type>, AnswerOf),
) -> Function {
    let recording = recording.clone();
    let code: Arc<BatchCode> = Arc::new(move |arguments: Vec<Value>, _: &[Value], _: &Environment| {
        let recording = recording.clone();
        let pending: PendingBatch = Box::pin(async move {
            let arguments: Vec<i64> = arguments.iter().map(int).collect();
            Yields(recording.yields(arguments.iter().fold(0, |sum, x| x.wrapping_add(sum)))).await;
            let answers = arguments.into_iter().map(|x| answer(&recording, module, x)).collect();
            BatchAnswers { answers, failed_as_a_whole: false }
        });
        Ok(pending)
    });
    let alone = Arc::clone(&code);
    let alone = FunctionCode::Waiting(Arc::new(move |call| {
        let answers = alone(vec![call.value(0)], &[], call.environment)?;
        Ok(Box::pin(async move {
            let outcome = answers.await.answers.remove(0);
            Settled { outcome, restored: Vec::new() }
        }))
    }));
    let mut function = function(name, world, failure, alone);
    function.signature.batch = Some(LIMITS);
    function.batch = Some(code);
    function
}

fn look(recording: &Recording, module: &'static str, x: i64) -> Outcome {
    Outcome::Value(Value::Int(recording.world(module).wrapping_add(x)))
}

fn change(recording: &Recording, module: &'static str, x: i64) -> Outcome {
    recording.write_down(module, format!("gathered_change {x}"));
    Outcome::Value(Value::Int(recording.change(module, x)))
}
