//! Batching: many calls of a host function answered by a single call of Rust.
//!
//! `#[weir::batched(at_most = 500)]` on `async fn posts(ids: &[PostId]) -> Vec<Result<Post, Failure>>` defines the
//! function `posts(id: Int) -> Result(Post, Failure)`. It can be called alone like any other
//! ([`crate::Function::code`]), and the compiler may gather independent calls into one ([`crate::Function::batch`]).
//!
//! Protocol of a batch:
//! 1. the engine passes the arguments, one for each call, in any number;
//! 2. a call whose argument cannot be converted is answered with a fault and is not part of the batch;
//! 3. the Rust function receives the other arguments in order, at most `at_most` at a time;
//! 4. it returns one answer for each argument, in the same order; if the number differs, answers cannot be assigned to
//!    calls, and all calls of this round end with a fault.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::call::named;
use crate::{Environment, Failure, HostType, Outcome, Value};

/// Limits on gathering calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Maximum number of calls that one call of Rust answers.
    pub at_most: usize,
}

/// Future of a batch: the answers, in the order of the arguments. Dropping it cancels the calls.
pub type PendingBatch = Pin<Box<dyn Future<Output = Vec<Outcome>> + Send>>;

/// The adaptor of a batch; takes the single argument of each call.
pub type BatchCode = dyn Fn(Vec<Value>, &Environment) -> Result<PendingBatch, Box<Failure>> + Send + Sync;

/// Progress of a batch through the Rust function; used by the attribute's expansion.
pub struct BatchCalls<K> {
    /// Arguments not yet passed to the Rust function, with the index of their call.
    waiting: VecDeque<(usize, K)>,
    /// Indices of the calls that the Rust function is answering.
    asked: Vec<usize>,
    answers: Vec<Outcome>,
}

impl<K: HostType> BatchCalls<K> {
    /// Converts the arguments, which belong to this parameter.
    #[must_use]
    pub fn new(arguments: Vec<Value>, parameter: &str) -> Self {
        let mut calls = BatchCalls { waiting: VecDeque::new(), asked: Vec::new(), answers: Vec::new() };
        for (place, argument) in arguments.into_iter().enumerate() {
            calls.answers.push(Outcome::Value(Value::Absent));
            match K::from_value(argument) {
                Ok(key) => calls.waiting.push_back((place, key)),
                Err(failure) => calls.answers[place] = Outcome::Fault(named(parameter, failure)),
            }
        }
        calls
    }

    /// Returns the arguments of the next call of Rust, at most `at_most`; `None` when all have been passed.
    pub fn next(&mut self, at_most: usize) -> Option<Vec<K>> {
        let count = self.waiting.len().min(at_most.max(1));
        let (places, keys): (Vec<_>, Vec<_>) = self.waiting.drain(..count).unzip();
        self.asked = places;
        (count > 0).then_some(keys)
    }

    /// Records the answers of a call of Rust.
    pub fn answer(&mut self, answers: Vec<Outcome>) {
        if answers.len() != self.asked.len() {
            let message = format!("the function returned {} answers for {} calls", answers.len(), self.asked.len());
            for place in self.asked.drain(..) {
                self.answers[place] = Outcome::Fault(Box::new(Failure::function(message.as_str())));
            }
            return;
        }
        for (place, answer) in self.asked.drain(..).zip(answers) {
            self.answers[place] = answer;
        }
    }

    /// Returns the answers, in the order of the arguments.
    #[must_use]
    pub fn answers(self) -> Vec<Outcome> {
        self.answers
    }
}

/// Wraps the code of a batch.
pub fn batch(
    begin: impl Fn(Vec<Value>, &Environment) -> Result<PendingBatch, Box<Failure>> + Send + Sync + 'static,
) -> Arc<BatchCode> {
    Arc::new(begin)
}
