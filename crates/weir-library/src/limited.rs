//! Results of functions that may exceed a limit but return no `Result`.
//!
//! A function that can fail returns a `Result`, and every caller has to handle the failure. For failures that are too
//! rare to be handled at every call, the flow ends with the failure instead, as it does on integer overflow.

use weir::{Failure, HostType, Outcome, Type, TypeDefinition, Value};

/// A value, or the failure that ends the flow.
#[derive(Debug)]
pub struct Limited<T>(pub Result<T, Failure>);

impl<T: HostType> HostType for Limited<T> {
    fn ty() -> Type {
        T::ty()
    }

    fn define(definitions: &mut Vec<TypeDefinition>) {
        T::define(definitions);
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        T::from_value(value).map(|value| Limited(Ok(value)))
    }

    fn into_value(self) -> Result<Value, Failure> {
        self.0.and_then(T::into_value)
    }

    #[inline]
    fn into_outcome(self) -> Result<Outcome, Failure> {
        self.0.and_then(T::into_outcome)
    }
}
