//! What a stream does with an element that is bad: it ends, or leaves it to the program.

use weir::{Failure, HostType, Value};

/// What becomes of a bad element, behind which the next one may be right.
#[derive(Clone, Copy)]
pub(crate) enum Bad {
    /// It ends the stream; the program reads the source of this name if it is to go on.
    Ends(&'static str),
    /// It is an element too: every one is a `Result`.
    IsGiven,
}

impl Bad {
    /// What was read as an element.
    ///
    /// # Errors
    /// The failure of a bad element that ends the stream, with what a program can do to go on.
    pub(crate) fn element(self, read: Result<Value, Failure>) -> Result<Value, Failure> {
        match (self, read) {
            (Bad::Ends(_), Ok(value)) => Ok(value),
            (Bad::Ends(source), Err(failure)) => Err(advised(&failure, source)),
            (Bad::IsGiven, Ok(value)) => Ok(Value::ok(value)),
            (Bad::IsGiven, Err(failure)) => Ok(Value::err(failure.into_value()?)),
        }
    }
}

fn advised(failure: &Failure, source: &str) -> Failure {
    Failure::new(failure.kind, format!("{failure} (a program that is to go on reads `{source}`)"))
}
