//! Gated batched functions: each batch reports to the test that it was sent, and waits until the test releases it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tokio::sync::oneshot;
use weir_host::{
    Batch, BatchAnswers, Failure, Function, FunctionCode, Outcome, Passing, Settled, Type, Value, World, memory,
};

use super::gates::{fallible, function};

/// Time limit for each batch that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time in which a batch would be sent that a test does not expect.
const QUIET: Duration = Duration::from_millis(100);

/// A batch that was sent and waits for its release.
pub struct WaitingBatch {
    /// The path of the function, `module.name`.
    pub path: &'static str,
    /// The arguments of its calls.
    pub arguments: Vec<i64>,
    release: oneshot::Sender<Release>,
}

/// The end of a batch.
enum Release {
    /// Each call is answered with ten times its argument.
    Answers,
    /// The same, after the function has allocated so many bytes, unless the flows may not hold them.
    AnswersOfBytes(usize),
    /// Each call is answered with this failure.
    Failure(String),
    /// The function panics.
    Panic,
}

impl WaitingBatch {
    /// Lets the function answer each call with ten times its argument.
    pub fn answer(self) {
        _ = self.release.send(Release::Answers);
    }

    /// Does the same after the function has reported an allocation of so many bytes ([`memory::allocated`]). If the flows may not hold
    /// them, the batch fails as a whole instead, and they are released.
    pub fn answer_of_bytes(self, bytes: usize) {
        _ = self.release.send(Release::AnswersOfBytes(bytes));
    }

    /// Lets the batch fail as a whole.
    pub fn fail(self, message: &str) {
        _ = self.release.send(Release::Failure(message.to_owned()));
    }

    /// Lets the function panic.
    pub fn panic(self) {
        _ = self.release.send(Release::Panic);
    }

    /// Waits until the batch has been cancelled.
    pub fn given_up(mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let closed = async { tokio::time::timeout(PATIENCE, self.release.closed()).await };
        runtime.block_on(closed).expect("the batch is given up");
    }
}

/// Creates gated batched functions and receives their batches.
pub struct BatchGates {
    sender: Sender<WaitingBatch>,
    receiver: Receiver<WaitingBatch>,
}

impl Default for BatchGates {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchGates {
    /// Creates an instance that has received no batch.
    #[must_use]
    pub fn new() -> BatchGates {
        let (sender, receiver) = channel();
        BatchGates { sender, receiver }
    }

    /// Waits for the next batch that is sent.
    pub fn next(&self) -> WaitingBatch {
        self.receiver.recv_timeout(PATIENCE).expect("a batch is sent")
    }

    /// Returns true if no further batch is sent for some time.
    pub fn is_quiet(&self) -> bool {
        self.receiver.recv_timeout(QUIET).is_err()
    }

    /// Creates a gated function of an `Int`, whose calls are gathered. It fails with a `Failure`.
    pub fn batched(&self, path: &'static str, world: World, limits: Batch) -> Function {
        let sender = self.sender.clone();
        let code = move |arguments: Vec<Value>, _: &[Value], _: &weir_host::Environment| {
            let sender = sender.clone();
            let pending: weir_host::PendingBatch = Box::pin(async move {
                let numbers: Vec<i64> = arguments.iter().map(number).collect();
                let (release, released) = oneshot::channel();
                let announced = sender.send(WaitingBatch { path, arguments: numbers.clone(), release });
                announced.expect("the test listens");
                end(numbers, released.await.unwrap_or(Release::Answers))
            });
            Ok(pending)
        };
        let alone = FunctionCode::Waiting(Arc::new(|call| {
            let argument = number(&call.value(0));
            Ok(Box::pin(async move { Settled { outcome: answer(argument), restored: Vec::new() } }))
        }));
        let mut function = fallible(function(path, &[("x", Type::Int, Passing::Value)], world, alone));
        function.signature.batch = Some(limits);
        function.batch = Some(Arc::new(code));
        function
    }
}

fn end(arguments: Vec<i64>, release: Release) -> BatchAnswers {
    match release {
        Release::Answers => {
            BatchAnswers { answers: arguments.into_iter().map(answer).collect(), failed_as_a_whole: false }
        }
        Release::AnswersOfBytes(bytes) => {
            memory::allocated(bytes);
            let Err(failure) = memory::check() else { return end(arguments, Release::Answers) };
            memory::released(bytes);
            BatchAnswers { answers: vec![Outcome::Fault(failure); arguments.len()], failed_as_a_whole: true }
        }
        Release::Failure(message) => {
            let failure = Outcome::Error(Value::Failure(Box::new(Failure::function(message.as_str()))));
            BatchAnswers { answers: vec![failure; arguments.len()], failed_as_a_whole: true }
        }
        Release::Panic => panic!("the test wants it"),
    }
}

fn answer(argument: i64) -> Outcome {
    Outcome::Value(Value::Int(argument * 10))
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no integer"),
    }
}
