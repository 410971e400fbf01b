//! The error of preparation: the place where a program does not match the library, and the problem.

use weir_ir::program::Origin;

/// The reason why a program cannot be prepared: it does not match the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareError {
    /// The node or entry point.
    pub place: String,
    /// The problem.
    pub message: String,
    /// The call whose private state cannot be created, if that is the problem: its arguments are at fault.
    pub state_of: Option<Origin>,
}

impl PrepareError {
    /// Adds the enclosing node or entry point to the place.
    pub(super) fn within(mut self, place: &str) -> Self {
        self.place = if self.place.is_empty() { place.to_owned() } else { format!("{place}/{}", self.place) };
        self
    }
}

impl std::fmt::Display for PrepareError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for PrepareError {}

/// Returns the error of a node or entry point.
pub(super) fn error(place: &str, message: String) -> PrepareError {
    PrepareError { place: place.to_owned(), message, state_of: None }
}
