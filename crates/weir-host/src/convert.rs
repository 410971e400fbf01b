//! Conversions between Rust types and Weir values.
//!
//! [`HostType`] converts whole values; `#[derive(weir::Type)]` implements it. [`Borrowable`] covers what a function may
//! take by `&`: in place if Weir stores the value in that form (`&str`, `&[u8]`, host types), otherwise through an
//! owned temporary. [`BorrowedArgumentMut`] does the same for `&mut`.

mod borrow;
mod collections;
mod measures;
mod numbers;
mod parts;
mod scalars;
mod simple;

pub use borrow::{Borrowable, BorrowedArgument, BorrowedArgumentMut};
pub use measures::Size;
pub use parts::Parts;
pub use simple::Generic;

use crate::{Failure, Outcome, Passing, Type, TypeDefinition, Value};

/// A Rust type that can be converted from and to Weir values. `#[derive(weir::Type)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of Weir",
    label = "host functions can neither take nor return this type",
    note = "derive `weir::Type` for it, with `#[weir(opaque)]` if only host functions look into it"
)]
pub trait HostType: Sized + Send + 'static {
    /// Passing mode of a parameter that takes this type by value: another one than [`Passing::Value`] for
    /// [`crate::Typed`], [`crate::NamedArguments`] and [`crate::TypeArgument`].
    const PASSING: Passing = Passing::Value;

    /// `true` for scalars, whose values are passed as words by typed entry points ([`crate::WordCode`]).
    const WORD: bool = false;

    /// Returns the type in Weir.
    fn ty() -> Type;

    /// Adds the definitions of all named types that this type mentions to `definitions`, each once.
    fn define(_definitions: &mut Vec<TypeDefinition>) {}

    /// Converts a Weir value into the Rust value.
    ///
    /// # Errors
    /// Fails if the value has the right type in Weir but is outside the range of the Rust type, such as 300 for a `u8`.
    fn from_value(value: Value) -> Result<Self, Failure>;

    /// Converts the Rust value into a Weir value.
    ///
    /// # Errors
    /// Fails if Weir's type cannot represent it, such as a `u64` above 2^63 - 1.
    fn into_value(self) -> Result<Value, Failure>;

    /// Converts the Rust value into the answer of a call.
    ///
    /// # Errors
    /// Fails if [`HostType::into_value`] does.
    #[inline]
    fn into_outcome(self) -> Result<Outcome, Failure> {
        self.into_value().map(Outcome::Value)
    }

    /// Copies the Rust value out of `value`, for scalars in range; `None` for all others, which are converted by
    /// [`HostType::from_value`].
    #[inline]
    #[must_use]
    fn copied(_value: &Value) -> Option<Self> {
        None
    }

    /// Converts a word into the Rust value.
    ///
    /// # Errors
    /// Fails if [`HostType::from_value`] does, or if the type is no scalar.
    #[inline]
    fn from_word(_word: u64) -> Result<Self, Failure> {
        Err(Failure::argument(format!("{} is not passed as a word", Self::ty())))
    }

    /// Converts the Rust value into a word.
    ///
    /// # Errors
    /// Fails if [`HostType::into_value`] does, or if the type is no scalar.
    #[inline]
    fn into_word(self) -> Result<u64, Failure> {
        Err(Failure::argument(format!("{} is not passed as a word", Self::ty())))
    }

    /// Borrows the Rust value in place, if `value` stores it in its Rust form. A type implements both this and
    /// [`HostType::in_place_mut`], or neither.
    #[inline]
    #[must_use]
    fn in_place(_value: &Value) -> Option<&Self> {
        None
    }

    /// Borrows the Rust value mutably in place.
    #[inline]
    #[must_use]
    fn in_place_mut(_value: &mut Value) -> Option<&mut Self> {
        None
    }

    /// Returns the type of a `Vec` of this type: a list, or `Bytes` for `u8`.
    #[must_use]
    fn list_type() -> Type {
        Type::list(Self::ty())
    }

    /// Converts a Weir value into a `Vec` of this type.
    ///
    /// # Errors
    /// Fails if the conversion of an element fails.
    fn list_from_value(value: Value) -> Result<Vec<Self>, Failure> {
        collections::list_from_value(value)
    }

    /// Converts a `Vec` of this type into a Weir value.
    ///
    /// # Errors
    /// Fails if the conversion of an element fails.
    fn list_into_value(list: Vec<Self>) -> Result<Value, Failure> {
        collections::list_into_value(list)
    }

    /// Borrows a slice of this type in place, if `value` stores the elements in their Rust form.
    #[inline]
    #[must_use]
    fn list_in_place(_value: &Value) -> Option<&[Self]> {
        None
    }
}

/// Returns the failure for a value of the wrong type. Checked programs do not cause it; host functions with an
/// incorrect type do, and values that were moved away or are borrowed by a call that waits.
#[cold]
pub(crate) fn mismatch(expected: &Type, found: &Value) -> Failure {
    match found {
        Value::Absent => Failure::argument(format!("must be {expected}, but was moved or is in use")),
        Value::Unique(unique) if unique.get().is_none() => {
            Failure::argument(format!("must be {expected}, but was moved: it cannot be shared"))
        }
        found => Failure::argument(format!("must be {expected}, not {found}")),
    }
}
