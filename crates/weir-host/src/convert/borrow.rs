//! Borrowing of arguments by `&` and `&mut`, in place wherever possible.

use std::borrow::Borrow;
use std::ops::{Deref, DerefMut};

use crate::convert::mismatch;
use crate::{Failure, HostType, Type, Value};

/// A type that a function may take by `&`: every [`HostType`], `str`, and slices.
#[diagnostic::on_unimplemented(
    message = "Weir cannot pass an argument of type `&{Self}`",
    label = "host functions cannot take this type by `&`",
    note = "they can take `&str`, slices, and every type that derives `weir::Type`"
)]
pub trait Borrowable: 'static {
    /// The owned type, which determines the type in Weir.
    type Owned: HostType;

    /// The reference that the call holds.
    type Ref<'a>: Deref<Target = Self>;

    /// Borrows the value.
    ///
    /// # Errors
    /// Fails if [`HostType::from_value`] of the owned type does.
    fn borrow_from(value: &Value) -> Result<Self::Ref<'_>, Failure>;
}

/// An argument borrowed by `&`.
#[derive(Debug)]
pub enum BorrowedArgument<'a, T: ?Sized, O = T> {
    /// A reference to the value in place.
    InPlace(&'a T),
    /// A temporary, made for the call.
    Temporary(O),
}

impl<T: ?Sized, O: Borrow<T>> Deref for BorrowedArgument<'_, T, O> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            BorrowedArgument::InPlace(place) => place,
            BorrowedArgument::Temporary(made) => made.borrow(),
        }
    }
}

impl<T: HostType> Borrowable for T {
    type Owned = T;
    type Ref<'a> = BorrowedArgument<'a, T>;

    #[inline]
    fn borrow_from(value: &Value) -> Result<BorrowedArgument<'_, T>, Failure> {
        match T::in_place(value) {
            Some(place) => Ok(BorrowedArgument::InPlace(place)),
            None => T::from_value(value.clone()).map(BorrowedArgument::Temporary),
        }
    }
}

impl Borrowable for str {
    type Owned = String;
    type Ref<'a> = &'a str;

    #[inline]
    fn borrow_from(value: &Value) -> Result<&str, Failure> {
        if let Value::Text(text) = value { Ok(text.as_str()) } else { Err(mismatch(&Type::Text, value)) }
    }
}

impl<T: HostType> Borrowable for [T] {
    type Owned = Vec<T>;
    type Ref<'a> = BorrowedArgument<'a, [T], Vec<T>>;

    #[inline]
    fn borrow_from(value: &Value) -> Result<BorrowedArgument<'_, [T], Vec<T>>, Failure> {
        match T::list_in_place(value) {
            Some(place) => Ok(BorrowedArgument::InPlace(place)),
            None => T::list_from_value(value.clone()).map(BorrowedArgument::Temporary),
        }
    }
}

/// An argument borrowed by `&mut`; [`BorrowedArgumentMut::finish`] writes a temporary back.
///
/// If the function panics, a temporary is dropped and the argument keeps its previous value.
#[derive(Debug)]
pub enum BorrowedArgumentMut<'a, T> {
    /// A reference to the value in place.
    InPlace(&'a mut T),
    /// A temporary, made for the call.
    Temporary {
        /// The slot to which the temporary is written back.
        slot: &'a mut Value,
        /// The temporary; boxed because most arguments are borrowed in place, and their borrow is moved.
        made: Box<T>,
    },
}

impl<'a, T: HostType> BorrowedArgumentMut<'a, T> {
    /// Borrows the value in `slot`.
    ///
    /// # Errors
    /// Fails if [`HostType::from_value`] does.
    #[inline]
    pub fn new(slot: &'a mut Value) -> Result<Self, Failure> {
        if T::in_place(slot).is_none() {
            let made = Box::new(T::from_value(slot.clone())?);
            return Ok(BorrowedArgumentMut::Temporary { slot, made });
        }
        T::in_place_mut(slot).map(BorrowedArgumentMut::InPlace).ok_or_else(|| Failure::argument("cannot be changed"))
    }

    /// Writes a temporary back.
    ///
    /// # Errors
    /// Fails if [`HostType::into_value`] does; the argument then keeps its previous value.
    #[inline]
    pub fn finish(self) -> Result<(), Failure> {
        if let BorrowedArgumentMut::Temporary { slot, made } = self {
            *slot = made.into_value()?;
        }
        Ok(())
    }
}

impl<T> Deref for BorrowedArgumentMut<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            BorrowedArgumentMut::InPlace(place) => place,
            BorrowedArgumentMut::Temporary { made, .. } => made,
        }
    }
}

impl<T> DerefMut for BorrowedArgumentMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            BorrowedArgumentMut::InPlace(place) => place,
            BorrowedArgumentMut::Temporary { made, .. } => made,
        }
    }
}
