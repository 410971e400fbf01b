//! Failures: what ends a flow, or what a function that can fail gives instead of its value.

use std::fmt;

use crate::Text;

/// What went wrong, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: FailureKind,
    /// One sentence, without a full stop.
    pub message: Text,
}

/// The sort of a failure, closed so that tools can count by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// A host function returned an error.
    Function,
    /// Arithmetic overflowed or divided by zero, or an index or a conversion was out of range.
    Arithmetic,
    /// A value was outside the range of the Rust type that a host function takes.
    Argument,
    /// A host function panicked; a bug in it, not in the program.
    Panic,
    /// A time limit passed.
    Timeout,
    /// The flow was given up: its client has gone, or the program stops.
    Cancelled,
    /// A named limit was reached: a loop's bound, a queue, a size.
    Limit,
    /// The program failed on purpose.
    Program,
}

impl Failure {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<Text>) -> Self {
        Failure { kind, message: message.into() }
    }

    /// The failure of a host function.
    #[must_use]
    pub fn function(message: impl Into<Text>) -> Self {
        Failure::new(FailureKind::Function, message)
    }

    /// Arithmetic that has no result.
    #[must_use]
    pub fn arithmetic(message: impl Into<Text>) -> Self {
        Failure::new(FailureKind::Arithmetic, message)
    }

    /// An argument that a host function cannot take.
    #[must_use]
    pub fn argument(message: impl Into<Text>) -> Self {
        Failure::new(FailureKind::Argument, message)
    }
}

impl FailureKind {
    /// The kind in one lower-case word, as messages and the IR print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Function => "function",
            FailureKind::Arithmetic => "arithmetic",
            FailureKind::Argument => "argument",
            FailureKind::Panic => "panic",
            FailureKind::Timeout => "timeout",
            FailureKind::Cancelled => "cancelled",
            FailureKind::Limit => "limit",
            FailureKind::Program => "program",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

/// Every Rust error is a failure of the function that returned it; the chain of its sources joins the message.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Failure::function(message)
    }
}
