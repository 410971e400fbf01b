//! What a stream does with an element that is bad: it ends, or leaves it to the program.

use weir::{Failure, HostType, Value};

/// What becomes of a bad element, behind which the next one may be right.
#[derive(Clone, Copy)]
pub(crate) enum BadElements {
    /// It ends the stream; the program reads the source of this name if it is to go on.
    EndStream(&'static str),
    /// It is an element too: every one is a `Result`.
    Emit,
}

impl BadElements {
    /// What was read as an element.
    ///
    /// # Errors
    /// The failure of a bad element that ends the stream, with what a program can do to go on.
    pub(crate) fn element(self, read: Result<Value, Failure>) -> Result<Value, Failure> {
        match (self, read) {
            (BadElements::EndStream(_), Ok(value)) => Ok(value),
            (BadElements::EndStream(source), Err(failure)) => Err(advised(&failure, source)),
            (BadElements::Emit, Ok(value)) => Ok(Value::ok(value)),
            (BadElements::Emit, Err(failure)) => Ok(Value::err(failure.into_value()?)),
        }
    }
}

fn advised(failure: &Failure, source: &str) -> Failure {
    Failure::new(failure.kind, format!("{failure} (a program that is to go on reads `{source}`)"))
}
