//! Batching: many calls of a host function answered by a single call of Rust.
//!
//! `#[weir::batched(at_most = 500)]` on `async fn posts(ids: &[PostId]) -> Vec<Result<Post, Failure>>` defines the
//! function `posts(id: Int) -> Result(Post, Failure)`. It can be called alone like any other
//! ([`crate::Function::code`]), and an engine gathers independent calls into one ([`crate::Function::batch`]).
//!
//! Protocol of a batch:
//! 1. the engine passes the gathered arguments, one for each call, in any number, and the arguments that all of these
//!    calls have in common;
//! 2. a call whose argument cannot be converted is answered with a fault and is not part of the batch;
//! 3. the Rust function receives the other arguments in order, at most `at_most` at a time;
//! 4. it returns one answer for each argument, in the same order; if the number differs, answers cannot be assigned to
//!    calls, and all calls of this round end with a fault;
//! 5. a function that returns a `Result` of all answers may fail as a whole: each call is answered with the failure, and
//!    the engine is told ([`BatchAnswers::failed_as_a_whole`]).

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
    /// Maximum number of batches that are out at a time; meanwhile further calls gather.
    pub in_flight: usize,
    /// Index of the parameter whose arguments are gathered. Calls of one batch agree in all other arguments.
    pub gathered: usize,
}

impl Batch {
    /// The number of batches of a function that are out at a time unless it says otherwise. Chosen by judgement: about the
    /// connections that a service has to one store.
    pub const IN_FLIGHT: usize = 8;

    /// Returns these limits, with the default for what is not said.
    #[must_use]
    pub fn new(at_most: usize, in_flight: Option<usize>, gathered: usize) -> Batch {
        Batch { at_most, in_flight: in_flight.unwrap_or(Batch::IN_FLIGHT), gathered }
    }
}

/// The answers of a batch.
#[derive(Debug, PartialEq)]
pub struct BatchAnswers {
    /// The answers, in the order of the arguments.
    pub answers: Vec<Outcome>,
    /// True if the Rust function has failed without answering single calls, so that a part of the batch might succeed.
    pub failed_as_a_whole: bool,
}

/// Future of a batch. Dropping it cancels the calls.
pub type PendingBatch = Pin<Box<dyn Future<Output = BatchAnswers> + Send>>;

/// The adaptor of a batch; takes the gathered argument of each call, and the arguments that they have in common.
pub type BatchCode = dyn Fn(Vec<Value>, &[Value], &Environment) -> Result<PendingBatch, Box<Failure>> + Send + Sync;

/// Progress of a batch through the Rust function; used by the attribute's expansion.
pub struct BatchCalls<K> {
    /// Arguments not yet passed to the Rust function, with the index of their call.
    waiting: VecDeque<(usize, K)>,
    /// Indices of the calls that the Rust function is answering.
    asked: Vec<usize>,
    answers: Vec<Outcome>,
    failed_as_a_whole: bool,
}

impl<K: HostType> BatchCalls<K> {
    /// Converts the arguments, which belong to this parameter.
    #[must_use]
    pub fn new(arguments: Vec<Value>, parameter: &str) -> Self {
        let mut calls = BatchCalls {
            waiting: VecDeque::with_capacity(arguments.len()),
            asked: Vec::new(),
            answers: Vec::with_capacity(arguments.len()),
            failed_as_a_whole: false,
        };
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

    /// Records the failure of a call of Rust as the answer of each of its calls.
    pub fn fail(&mut self, failure: Outcome) {
        self.failed_as_a_whole = true;
        for place in self.asked.drain(..) {
            self.answers[place] = failure.clone();
        }
    }

    /// Returns the answers, in the order of the arguments.
    #[must_use]
    pub fn answers(self) -> BatchAnswers {
        BatchAnswers { answers: self.answers, failed_as_a_whole: self.failed_as_a_whole }
    }
}

/// Converts an argument that all calls of a batch have in common.
///
/// # Errors
/// Fails if the value is outside the range of the Rust type; the message names the parameter.
pub fn common_argument<T: HostType>(common: &[Value], index: usize, parameter: &str) -> Result<T, Box<Failure>> {
    let missing = || Box::new(Failure::function(format!("argument `{parameter}` is missing")));
    let value = common.get(index).ok_or_else(missing)?;
    T::from_value(value.clone()).map_err(|failure| named(parameter, failure))
}

/// Wraps the code of a batch.
pub fn batch(
    begin: impl Fn(Vec<Value>, &[Value], &Environment) -> Result<PendingBatch, Box<Failure>> + Send + Sync + 'static,
) -> Arc<BatchCode> {
    Arc::new(begin)
}
