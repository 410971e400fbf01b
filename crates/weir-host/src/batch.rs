//! Batches: many calls of one function answered by one call of Rust.
//!
//! `#[weir::batched(at_most = 500)]` on `async fn posts(ids: &[PostId]) -> Vec<Result<Post, Failure>>` makes the function
//! `posts(id: Int) -> Result(Post, Failure)`. It can be called alone, like any other ([`crate::Function::code`]), and the
//! compiler may gather calls that do not need each other into one ([`crate::Function::batch`]).
//!
//! Protocol of a batch:
//! 1. the engine gives the arguments, one of each call, in any number;
//! 2. those that cannot be converted are answered by a fault of their own, and are not in the batch;
//! 3. the Rust function gets the others in order, at most `at_most` at a time;
//! 4. it gives one answer for each, in their order; where it gives more or fewer, nobody knows whose they are, and all of
//!    that time end with a fault.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::call::named;
use crate::{Environment, Failure, HostType, Outcome, Value};

/// How calls of a function may be gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The most calls that one call of Rust takes.
    pub at_most: usize,
}

/// A batch that waits: the answers, in the order of the arguments. Dropping it gives the calls up.
pub type PendingBatch = Pin<Box<dyn Future<Output = Vec<Outcome>> + Send>>;

/// The adaptor of a batch: takes the one argument of each call.
pub type BatchCode = dyn Fn(Vec<Value>, &Environment) -> Result<PendingBatch, Box<Failure>> + Send + Sync;

/// The calls of a batch on their way through the Rust function; for the attribute.
pub struct BatchCalls<K> {
    /// The arguments that are still to be answered, by the place of their call.
    waiting: VecDeque<(usize, K)>,
    /// The places of the calls that the Rust function has now.
    asked: Vec<usize>,
    answers: Vec<Outcome>,
}

impl<K: HostType> BatchCalls<K> {
    /// The calls with these arguments of the parameter.
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

    /// The arguments of the next call of Rust, `at_most` of them; `None` when all are answered.
    pub fn next(&mut self, at_most: usize) -> Option<Vec<K>> {
        let count = self.waiting.len().min(at_most.max(1));
        let (places, keys): (Vec<_>, Vec<_>) = self.waiting.drain(..count).unzip();
        self.asked = places;
        (count > 0).then_some(keys)
    }

    /// What the call of Rust gave.
    pub fn answer(&mut self, answers: Vec<Outcome>) {
        if answers.len() != self.asked.len() {
            let message = format!("the function gave {} answers to {} calls", answers.len(), self.asked.len());
            for place in self.asked.drain(..) {
                self.answers[place] = Outcome::Fault(Box::new(Failure::function(message.as_str())));
            }
            return;
        }
        for (place, answer) in self.asked.drain(..).zip(answers) {
            self.answers[place] = answer;
        }
    }

    /// The answers, in the order of the arguments.
    #[must_use]
    pub fn answers(self) -> Vec<Outcome> {
        self.answers
    }
}

/// The code of a batch.
pub fn batch(
    begin: impl Fn(Vec<Value>, &Environment) -> Result<PendingBatch, Box<Failure>> + Send + Sync + 'static,
) -> Arc<BatchCode> {
    Arc::new(begin)
}
