//! Borrowing: arguments that a function takes by `&` or `&mut`, in place wherever the value lies so.

use std::borrow::Borrow;
use std::ops::{Deref, DerefMut};

use crate::convert::mismatch;
use crate::{Failure, HostType, Type, Value};

/// What a function may take by `&`: every [`HostType`], `str`, and slices.
#[diagnostic::on_unimplemented(
    message = "`&{Self}` is not a parameter that Weir can pass",
    label = "a function of the host cannot take this by `&`",
    note = "it may take `&str`, slices, and every type that derives `weir::Type`"
)]
pub trait Borrowable: 'static {
    /// The type that has what is borrowed, and names it in Weir.
    type Owned: HostType;

    /// What holds the borrowed value during the call.
    type Ref<'a>: Deref<Target = Self>;

    /// Borrows the value.
    ///
    /// # Errors
    /// Fails where [`HostType::from_value`] of the owned type would.
    fn borrow_from(value: &Value) -> Result<Self::Ref<'_>, Failure>;
}

/// A borrowed argument: in place, or a temporary that was made for the call.
#[derive(Debug)]
pub enum BorrowedArgument<'a, T: ?Sized, O = T> {
    /// In place.
    InPlace(&'a T),
    /// Made for the call.
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

/// An argument that is taken by `&mut`: in place, or a temporary that [`BorrowedArgumentMut::finish`] carries back.
///
/// Where the function panics, a temporary is dropped, and the value is as it was.
#[derive(Debug)]
pub enum BorrowedArgumentMut<'a, T> {
    /// In place.
    InPlace(&'a mut T),
    /// Made for the call.
    Temporary {
        /// Where it belongs.
        slot: &'a mut Value,
        /// What the function changes.
        made: T,
    },
}

impl<'a, T: HostType> BorrowedArgumentMut<'a, T> {
    /// Borrows the value at `slot`.
    ///
    /// # Errors
    /// Fails where [`HostType::from_value`] does.
    #[inline]
    pub fn new(slot: &'a mut Value) -> Result<Self, Failure> {
        if T::in_place(slot).is_none() {
            let made = T::from_value(slot.clone())?;
            return Ok(BorrowedArgumentMut::Temporary { slot, made });
        }
        T::in_place_mut(slot).map(BorrowedArgumentMut::InPlace).ok_or_else(|| Failure::argument("cannot be changed"))
    }

    /// Carries the change back.
    ///
    /// # Errors
    /// Fails where [`HostType::into_value`] does; the value is then as it was.
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
