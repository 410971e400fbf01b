//! Policy for a malformed element of a stream: end the stream, or emit the failure as an element.

use weir::{Failure, HostType, Value};

/// Policy for a malformed element that valid elements may follow.
#[derive(Clone, Copy)]
pub(crate) enum BadElements {
    /// The element ends the stream; the failure advises the program to read this source instead if it is to continue.
    EndStream(&'static str),
    /// The failure is emitted: every element of the stream is a `Result`.
    Emit,
}

impl BadElements {
    /// Converts the outcome of reading one element into an element of the stream.
    ///
    /// # Errors
    /// Fails if a malformed element ends the stream; the message tells the program how to continue.
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
    Failure::new(failure.kind, format!("{failure} (to continue after it, read `{source}`)"))
}
