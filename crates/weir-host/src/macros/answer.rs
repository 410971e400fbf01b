//! Answers: from what a function returned to the [`Outcome`] of its call.
//!
//! The error of a function is carried over as precisely as its Rust type allows: as its own type in Weir where it has
//! one, else as a `Failure` made of the error and its sources, else of its `Display`. The three traits below are told
//! apart by how often `&&&ErrorTag` has to be dereferenced until one applies (autoref specialisation).

use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use crate::{Call, Failure, HostType, Outcome, Type, TypeDefinition, Value};

/// The value of a function that did not fail.
#[inline]
pub fn answer<T: HostType>(value: T) -> Outcome {
    value.into_outcome().unwrap_or_else(|failure| Outcome::Fault(Box::new(failure)))
}

/// The value of a function that cannot fail, as the answer of this call, which it no longer borrows from.
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

/// A `Result` by whichever name its alias has.
#[diagnostic::on_unimplemented(message = "`{Self}` is not the `Result` of the standard library")]
pub trait Fallible {
    /// The type of `Ok`.
    type Ok;
    /// The type of `Err`.
    type Err;
    /// The `Result` under its own name.
    ///
    /// # Errors
    /// Its own.
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
    /// The tag of `E`.
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
    /// The type of the failure.
    fn failure_type(&self) -> Type;
    /// The definitions that it needs.
    fn failure_define(&self, definitions: &mut Vec<TypeDefinition>);
    /// The answer.
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
            Ok(value) => Outcome::Error(value),
            Err(failure) => Outcome::Fault(Box::new(failure)),
        }
    }
}

/// Errors of Rust without a type in Weir.
pub trait FailsWithError<E> {
    /// The type of the failure.
    fn failure_type(&self) -> Type {
        Type::Failure
    }
    /// The definitions that it needs: none.
    fn failure_define(&self, _definitions: &mut Vec<TypeDefinition>) {}
    /// The answer.
    fn failure(&self, error: E) -> Outcome;
}

impl<E: Error> FailsWithError<E> for &ErrorTag<E> {
    fn failure(&self, error: E) -> Outcome {
        Outcome::Error(Value::Failure(Box::new(Failure::from(error))))
    }
}

/// Errors that can only be shown, such as `Box<dyn Error>`.
pub trait FailsDisplayed<E> {
    /// The type of the failure.
    fn failure_type(&self) -> Type {
        Type::Failure
    }
    /// The definitions that it needs: none.
    fn failure_define(&self, _definitions: &mut Vec<TypeDefinition>) {}
    /// The answer.
    fn failure(&self, error: E) -> Outcome;
}

impl<E: Display> FailsDisplayed<E> for ErrorTag<E> {
    fn failure(&self, error: E) -> Outcome {
        // `{:#}` is how errors that keep their sources show them all.
        Outcome::Error(Value::Failure(Box::new(Failure::function(format!("{error:#}")))))
    }
}
