//! What a function gives that may come to a limit, and is of no type that can say so.
//!
//! A function that fails has a `Result`, and every program that calls it says what happens then. Where that would be said
//! everywhere for what hardly ever comes, the flow ends with the failure instead, as at a number that does not fit.

use weir::{Failure, HostType, Type, TypeDefinition, Value};

/// A value, or the failure that the flow ends with.
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
}
