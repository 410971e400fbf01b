//! Conversion of a function's return value into the [`Outcome`] of its call.
//!
//! The error of a function is converted as precisely as its Rust type allows: to its own type in Weir if it has one,
//! otherwise to a `Failure` made of the error and its sources, otherwise of its `Display`. The three traits below are
//! selected by the number of dereferences of `&&&ErrorTag` until one applies (autoref specialisation).

use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use crate::{Call, Failure, HostType, Outcome, Type, TypeDefinition, Value};

/// Converts the value of a function that did not fail.
#[inline]
pub fn answer<T: HostType>(value: T) -> Outcome {
    value.into_outcome().unwrap_or_else(|failure| Outcome::Fault(Box::new(failure)))
}

/// Converts the value of a function that cannot fail, and writes it to the call's slot for the answer if there is one.
#[inline]
pub fn answer_to<T: HostType>(call: &mut Call<'_>, value: T) -> Outcome {
    let Some(slot) = call.room() else { return answer(value) };
    match value.into_outcome() {
        Ok(Outcome::Value(value)) => {
            slot.fill(value);
            Outcome::Filled
        }
        Ok(outcome) => outcome,
        Err(failure) => Outcome::Fault(Box::new(failure)),
    }
}

/// Converts the value of a function that cannot fail into a word.
///
/// # Errors
/// Fails if Weir's type cannot represent it.
#[inline]
pub fn answer_word<T: HostType>(value: T) -> Result<u64, Box<Failure>> {
    value.into_word().map_err(Box::new)
}

/// The standard `Result`, also under an alias.
#[diagnostic::on_unimplemented(message = "`{Self}` is not the `Result` of the standard library")]
pub trait Fallible {
    /// The type of `Ok`.
    type Ok;
    /// The type of `Err`.
    type Err;
    /// Returns `self` as a `Result`.
    ///
    /// # Errors
    /// Fails if `self` is an error.
    fn result(self) -> Result<Self::Ok, Self::Err>;
}

impl<T, E> Fallible for Result<T, E> {
    type Ok = T;
    type Err = E;

    #[inline]
    fn result(self) -> Result<T, E> {
        self
    }
}

/// Stands for the error type `E`.
pub struct ErrorTag<E>(PhantomData<fn() -> E>);

impl<E> ErrorTag<E> {
    /// Creates the tag of `E`.
    #[must_use]
    pub const fn new() -> Self {
        ErrorTag(PhantomData)
    }
}

impl<E> Default for ErrorTag<E> {
    fn default() -> Self {
        ErrorTag::new()
    }
}

/// Errors that have a type in Weir.
pub trait FailsTyped<E> {
    /// Returns the type of the failure.
    fn failure_type(&self) -> Type;
    /// Adds the definitions that the type needs.
    fn failure_define(&self, definitions: &mut Vec<TypeDefinition>);
    /// Converts the error into an answer.
    fn failure(&self, error: E) -> Outcome;
}

impl<E: HostType> FailsTyped<E> for &&ErrorTag<E> {
    fn failure_type(&self) -> Type {
        E::ty()
    }

    fn failure_define(&self, definitions: &mut Vec<TypeDefinition>) {
        E::define(definitions);
    }

    fn failure(&self, error: E) -> Outcome {
        match error.into_value() {
            // The failure of an earlier call, or of the transaction.
            Ok(Value::Failure(failure)) if failure.is_no_value() => Outcome::Fault(failure),
            Ok(value) => Outcome::Error(value),
            Err(failure) => Outcome::Fault(Box::new(failure)),
        }
    }
}

/// Rust errors without a type in Weir.
pub trait FailsWithError<E> {
    /// Returns the type of the failure.
    fn failure_type(&self) -> Type {
        Type::Failure
    }
    /// Adds the definitions that the type needs: none.
    fn failure_define(&self, _definitions: &mut Vec<TypeDefinition>) {}
    /// Converts the error into an answer.
    fn failure(&self, error: E) -> Outcome;
}

impl<E: Error> FailsWithError<E> for &ErrorTag<E> {
    fn failure(&self, error: E) -> Outcome {
        Outcome::Error(Value::Failure(Box::new(Failure::from(error))))
    }
}

/// Errors that implement only `Display`, such as `Box<dyn Error>`.
pub trait FailsDisplayed<E> {
    /// Returns the type of the failure.
    fn failure_type(&self) -> Type {
        Type::Failure
    }
    /// Adds the definitions that the type needs: none.
    fn failure_define(&self, _definitions: &mut Vec<TypeDefinition>) {}
    /// Converts the error into an answer.
    fn failure(&self, error: E) -> Outcome;
}

impl<E: Display> FailsDisplayed<E> for ErrorTag<E> {
    fn failure(&self, error: E) -> Outcome {
        // With `{:#}`, error types that keep their sources print them all.
        Outcome::Error(Value::Failure(Box::new(Failure::function(format!("{error:#}")))))
    }
}
