//! Functions on failures: creating one, and reading its message and kind.

use weir::{Failure, FailureKind, Text};

weir::library! {
    /// Functions on failures: creating one, and reading its message and kind.
    pub(crate) failure: of, message, kind
}

/// Creates a failure of the program's own.
#[weir::function(pure)]
pub fn of(message: Text) -> Failure {
    Failure::new(FailureKind::Program, message)
}

/// Returns the message of a failure: one sentence that says what went wrong.
#[weir::function(pure)]
pub fn message(failure: Failure) -> Text {
    failure.message
}

/// Returns the kind of a failure as one word, such as `timeout`, `limit` or `function`.
#[weir::function(pure)]
pub fn kind(failure: Failure) -> String {
    failure.kind.name().to_owned()
}
