//! Policy for a malformed element of a stream: skip it, end the stream, or emit the failure as an element.

use weir::{Failure, HostType, Value};

/// Policy for a malformed element that valid elements may follow.
#[derive(Clone, Copy)]
pub(crate) enum BadElements {
    /// The element is reported and skipped, so that nobody stops a service by writing to its input.
    Skip,
    /// The element ends the stream.
    EndStream,
    /// The failure is emitted: every element of the stream is a `Result`.
    Emit,
}

/// The outcome of reading one element, if the stream goes on.
pub(crate) enum StreamElement {
    /// An element for which a flow begins.
    Begins(Value),
    /// A malformed element, which is reported.
    Skipped(Failure),
}

impl BadElements {
    /// Converts the outcome of reading one element into an element of the stream.
    ///
    /// # Errors
    /// Fails if a malformed element ends the stream.
    pub(crate) fn element(self, read: Result<Value, Failure>) -> Result<StreamElement, Failure> {
        match (self, read) {
            (BadElements::Skip | BadElements::EndStream, Ok(value)) => Ok(StreamElement::Begins(value)),
            (BadElements::Skip, Err(failure)) => Ok(StreamElement::Skipped(failure)),
            (BadElements::EndStream, Err(failure)) => Err(failure),
            (BadElements::Emit, Ok(value)) => Ok(StreamElement::Begins(Value::ok(value))),
            (BadElements::Emit, Err(failure)) => Ok(StreamElement::Begins(Value::err(failure.into_value()?))),
        }
    }
}
