//! Failures: made, and looked into.

use weir::{Failure, FailureKind, Text};

weir::library! {
    /// Failures: made, and looked into.
    pub(crate) failure: of, message, kind
}

/// A failure of the program's own.
#[weir::function(pure)]
pub fn of(message: Text) -> Failure {
    Failure::new(FailureKind::Program, message)
}

/// What went wrong, in a sentence.
#[weir::function(pure)]
pub fn message(failure: Failure) -> Text {
    failure.message
}

/// What sort of failure it is, in a word: `timeout`, `limit`, `function`.
#[weir::function(pure)]
pub fn kind(failure: Failure) -> String {
    failure.kind.name().to_owned()
}
