//! Conversions: how Rust types are carried to values of Weir and back.
//!
//! [`HostType`] carries a whole value over; `#[derive(weir::Type)]` implements it. [`Borrowable`] is what a function may
//! take by `&`: in place where the value lies so in Weir (`&str`, `&[u8]`, host types), else through an owned temporary.
//! [`BorrowedArgumentMut`] is the same for `&mut`.

mod borrow;
mod collections;
mod measures;
mod numbers;
mod parts;
mod simple;

pub use borrow::{Borrowable, BorrowedArgument, BorrowedArgumentMut};
pub use collections::{Elements, Entries};
pub use measures::Size;
pub use parts::Parts;
pub use simple::Generic;

use crate::{Failure, Outcome, Type, TypeDefinition, Value};

/// A Rust type that values of Weir can be turned into and made from. `#[derive(weir::Type)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of Weir",
    label = "a function of the host can neither take nor give this",
    note = "put `#[derive(weir::Type)]` on it, with `#[weir(opaque)]` where only functions of the host look into it"
)]
pub trait HostType: Sized + Send + 'static {
    /// Whether a parameter of this type gets a value together with what the value's type is: [`crate::Typed`] does.
    const TYPED: bool = false;

    /// The type in Weir.
    fn ty() -> Type;

    /// Adds the definitions of the named types that this type mentions to `definitions`, each once.
    fn define(_definitions: &mut Vec<TypeDefinition>) {}

    /// The Rust value.
    ///
    /// # Errors
    /// Fails where the value is of this type in Weir but outside what the Rust type can hold, such as 300 for a `u8`.
    fn from_value(value: Value) -> Result<Self, Failure>;

    /// The value in Weir.
    ///
    /// # Errors
    /// Fails where Weir's type cannot hold it, such as a `u64` above 2^63 - 1.
    fn into_value(self) -> Result<Value, Failure>;

    /// The value as a function answers it.
    ///
    /// # Errors
    /// Those of [`HostType::into_value`].
    #[inline]
    fn into_outcome(self) -> Result<Outcome, Failure> {
        self.into_value().map(Outcome::Value)
    }

    /// The Rust value read out of `value` without moving or cloning it, for scalars that are in range; `None` for all
    /// others, which go through [`HostType::from_value`].
    #[inline]
    #[must_use]
    fn copied(_value: &Value) -> Option<Self> {
        None
    }

    /// The Rust value in place, where `value` holds it as it is. A type has both this and
    /// [`HostType::in_place_mut`], or neither.
    #[inline]
    #[must_use]
    fn in_place(_value: &Value) -> Option<&Self> {
        None
    }

    /// The Rust value in place, to be changed.
    #[inline]
    #[must_use]
    fn in_place_mut(_value: &mut Value) -> Option<&mut Self> {
        None
    }

    /// The type of a `Vec` of these: a list, but `Bytes` for `u8`.
    #[must_use]
    fn list_type() -> Type {
        Type::list(Self::ty())
    }

    /// A `Vec` of these.
    ///
    /// # Errors
    /// Fails where an element does.
    fn list_from_value(value: Value) -> Result<Vec<Self>, Failure> {
        collections::list_from_value(value)
    }

    /// The value of a `Vec` of these.
    ///
    /// # Errors
    /// Fails where an element does.
    fn list_into_value(list: Vec<Self>) -> Result<Value, Failure> {
        collections::list_into_value(list)
    }

    /// A slice of these in place, where `value` holds them as they are.
    #[inline]
    #[must_use]
    fn list_in_place(_value: &Value) -> Option<&[Self]> {
        None
    }
}

/// A value that is not of the type that its place promises. The compiler lets no program come here: a host function
/// that lies about its type does, and a value that was moved away or is lent to a call that waits.
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
