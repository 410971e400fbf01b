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
    type Held<'a>: Deref<Target = Self>;

    /// Borrows the value.
    ///
    /// # Errors
    /// Fails where [`HostType::from_value`] of the owned type would.
    fn hold(value: &Value) -> Result<Self::Held<'_>, Failure>;
}

/// A borrowed argument: in place, or a temporary that was made for the call.
#[derive(Debug)]
pub enum Lent<'a, T: ?Sized, O = T> {
    /// In place.
    Place(&'a T),
    /// Made for the call.
    Made(O),
}

impl<T: ?Sized, O: Borrow<T>> Deref for Lent<'_, T, O> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Lent::Place(place) => place,
            Lent::Made(made) => made.borrow(),
        }
    }
}

impl<T: HostType> Borrowable for T {
    type Owned = T;
    type Held<'a> = Lent<'a, T>;

    #[inline]
    fn hold(value: &Value) -> Result<Lent<'_, T>, Failure> {
        match T::in_place(value) {
            Some(place) => Ok(Lent::Place(place)),
            None => T::from_value(value.clone()).map(Lent::Made),
        }
    }
}

impl Borrowable for str {
    type Owned = String;
    type Held<'a> = &'a str;

    #[inline]
    fn hold(value: &Value) -> Result<&str, Failure> {
        if let Value::Text(text) = value { Ok(text.as_str()) } else { Err(mismatch(&Type::Text, value)) }
    }
}

impl<T: HostType> Borrowable for [T] {
    type Owned = Vec<T>;
    type Held<'a> = Lent<'a, [T], Vec<T>>;

    #[inline]
    fn hold(value: &Value) -> Result<Lent<'_, [T], Vec<T>>, Failure> {
        match T::list_in_place(value) {
            Some(place) => Ok(Lent::Place(place)),
            None => T::list_from_value(value.clone()).map(Lent::Made),
        }
    }
}

/// An argument that is taken by `&mut`: in place, or a temporary that [`Changing::finish`] carries back.
///
/// Where the function panics, a temporary is dropped, and the value is as it was.
#[derive(Debug)]
pub enum Changing<'a, T> {
    /// In place.
    Place(&'a mut T),
    /// Made for the call.
    Made {
        /// Where it belongs.
        home: &'a mut Value,
        /// What the function changes.
        made: T,
    },
}

impl<'a, T: HostType> Changing<'a, T> {
    /// Borrows the value at `home`.
    ///
    /// # Errors
    /// Fails where [`HostType::from_value`] does.
    #[inline]
    pub fn new(home: &'a mut Value) -> Result<Self, Failure> {
        if T::in_place(home).is_none() {
            let made = T::from_value(home.clone())?;
            return Ok(Changing::Made { home, made });
        }
        T::in_place_mut(home).map(Changing::Place).ok_or_else(|| Failure::argument("cannot be changed"))
    }

    /// Carries the change back.
    ///
    /// # Errors
    /// Fails where [`HostType::into_value`] does; the value is then as it was.
    #[inline]
    pub fn finish(self) -> Result<(), Failure> {
        if let Changing::Made { home, made } = self {
            *home = made.into_value()?;
        }
        Ok(())
    }
}

impl<T> Deref for Changing<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Changing::Place(place) => place,
            Changing::Made { made, .. } => made,
        }
    }
}

impl<T> DerefMut for Changing<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Changing::Place(place) => place,
            Changing::Made { made, .. } => made,
        }
    }
}
