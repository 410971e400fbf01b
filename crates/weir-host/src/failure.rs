//! Failures, which end a flow or are returned by functions that can fail.

use std::fmt;

use crate::Text;

/// Maximum number of places in a backtrace; of a longer one the first are kept. Chosen by judgement.
const BACKTRACE_MAX: usize = 32;

/// Description of what went wrong, for people and for programs.
///
/// Failures with other backtraces are equal: a backtrace tells a person how a failure came about, and a program cannot see
/// it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// One sentence without a full stop.
    pub message: Text,
    backtrace: Vec<PropagationSite>,
    place: Option<u32>,
    is_refusal: bool,
}

/// A place where a `fn` has given a failure to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropagationSite {
    /// The function that failed there; empty if it was no call.
    pub failed: Text,
    /// The `fn` with that place; empty for the body of a flow or a test.
    pub function: Text,
    /// The place in the source, in bytes.
    pub position: u32,
}

impl PartialEq for Failure {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.message == other.message
    }
}

impl Eq for Failure {}

/// The kind of a failure; a closed list, so that tools can count by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// A host function returned an error.
    Function,
    /// Arithmetic overflowed or divided by zero, or an index or a conversion was out of range.
    Arithmetic,
    /// A value was outside the range of the Rust type that a host function takes.
    Argument,
    /// A host function panicked, which is a bug in that function and not in the program.
    Panic,
    /// A time limit expired.
    Timeout,
    /// The flow was cancelled, because its client disconnected or the program stops.
    Cancelled,
    /// A named limit was reached: of a loop, a queue or a size.
    Limit,
    /// The flow or the program has reached its limit of memory.
    Memory,
    /// A statement would break a rule of a table: its key, or a unique index.
    Constraint,
    /// A transaction of another program was in the way of one, also when it was tried again.
    Conflict,
    /// The connection to a database was lost, or had no answer, so that nobody knows whether a write has taken effect.
    Uncertain,
    /// The program failed deliberately.
    Program,
}

impl Failure {
    /// Creates a failure of this kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<Text>) -> Self {
        Failure { kind, message: message.into(), backtrace: Vec::new(), place: None, is_refusal: false }
    }

    /// Returns the failure of a transaction that was refused: nothing of it has taken effect, and it is executed again, so that the
    /// program does not see the failure.
    #[must_use]
    pub fn refusal(self) -> Failure {
        Failure { is_refusal: true, ..self }
    }

    /// Returns whether the transaction that has failed is executed again.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.is_refusal
    }

    /// Returns whether the failure ends the flow or the transaction in which it is learned, also if it is that of a function whose
    /// failures are values. So does a lack of memory, as in a flow that computes.
    #[must_use]
    pub fn is_no_value(&self) -> bool {
        self.is_refusal || self.place.is_some() || self.kind == FailureKind::Memory
    }

    /// Returns the places that the failure has passed on its way, innermost first.
    #[must_use]
    pub fn backtrace(&self) -> &[PropagationSite] {
        &self.backtrace
    }

    /// Returns the failure of a call whose failure is learned later ([`PlacedCalls`](crate::PlacedCalls)). `sites` are the places
    /// that it passes on its way, and `place` is the position in the source, in bytes, where it leaves the flow. It ends the flow
    /// wherever it is learned, and passes no other places.
    #[must_use]
    pub fn placed_at(mut self, place: u32, sites: Vec<PropagationSite>) -> Failure {
        sites.into_iter().for_each(|site| self.propagated(site));
        self.place = Some(place);
        self
    }

    /// Returns the position in the source, in bytes, of a failure that was learned later; `None` if it belongs to the operation
    /// that has ended the flow.
    #[must_use]
    pub fn place(&self) -> Option<u32> {
        self.place
    }

    /// Appends a place to the backtrace, up to a limit.
    pub fn propagated(&mut self, site: PropagationSite) {
        if self.backtrace.len() < BACKTRACE_MAX && self.place.is_none() {
            self.backtrace.push(site);
        }
    }

    /// Creates the failure of a host function.
    #[must_use]
    pub fn function(message: impl Into<Text>) -> Self {
        Failure::new(FailureKind::Function, message)
    }

    /// Creates an arithmetic failure.
    #[must_use]
    pub fn arithmetic(message: impl Into<Text>) -> Self {
        Failure::new(FailureKind::Arithmetic, message)
    }

    /// Creates the failure of an argument that a host function cannot take.
    #[must_use]
    pub fn argument(message: impl Into<Text>) -> Self {
        Failure::new(FailureKind::Argument, message)
    }
}

impl FailureKind {
    /// Returns the kind as one lower-case word, as printed in messages and in the IR.
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
            FailureKind::Memory => "memory",
            FailureKind::Constraint => "constraint",
            FailureKind::Conflict => "conflict",
            FailureKind::Uncertain => "uncertain",
            FailureKind::Program => "program",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

/// Converts a Rust error into a failure of the function that returned it; the messages of its sources are appended.
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
