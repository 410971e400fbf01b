//! Opaque types: Rust values that only host functions look into, shared behind an `Arc` or moved in a box.

use std::sync::Arc;

use crate::macros::mismatched;
use crate::{Failure, HostType, HostValue, Value};

/// Takes a shareable value by value: moved out if nobody else holds it, cloned otherwise.
///
/// # Errors
/// Fails if the value is of another type.
pub fn shared_from_value<T: HostType + HostValue + Clone>(value: Value) -> Result<T, Failure> {
    match value {
        Value::Host(host) if host.as_any().is::<T>() => {
            let host = host.into_any().downcast::<T>().map_err(|_| mismatched::<T>(&Value::Absent))?;
            Ok(Arc::unwrap_or_clone(host))
        }
        other => Err(mismatched::<T>(&other)),
    }
}

/// Borrows a shareable value in place.
#[inline]
#[must_use]
pub fn shared_in_place<T: 'static>(value: &Value) -> Option<&T> {
    if let Value::Host(host) = value { host.as_any().downcast_ref() } else { None }
}

/// Borrows a shareable value mutably in place; copy-on-write if it is shared.
#[must_use]
pub fn shared_in_place_mut<T: HostValue + Clone>(value: &mut Value) -> Option<&mut T> {
    let Value::Host(host) = value else { return None };
    if Arc::get_mut(host).is_none() {
        let copy = host.as_any().downcast_ref::<T>()?.clone();
        *host = Arc::new(copy);
    }
    Arc::get_mut(host)?.as_any_mut().downcast_mut()
}

/// Moves out a value that cannot be shared.
///
/// # Errors
/// Fails if the value is of another type or was moved away.
pub fn unique_from_value<T: HostType>(value: Value) -> Result<T, Failure> {
    if unique_in_place::<T>(&value).is_none() {
        return Err(mismatched::<T>(&value));
    }
    let Value::Unique(unique) = value else { return Err(mismatched::<T>(&value)) };
    let inner = unique.into_inner().and_then(|inner| inner.into_any_box().downcast::<T>().ok());
    inner.map(|inner| *inner).ok_or_else(|| mismatched::<T>(&Value::Absent))
}

/// Borrows a value that cannot be shared in place.
#[inline]
#[must_use]
pub fn unique_in_place<T: 'static>(value: &Value) -> Option<&T> {
    if let Value::Unique(unique) = value { unique.get()?.as_any().downcast_ref() } else { None }
}

/// Borrows a value that cannot be shared mutably in place.
#[inline]
#[must_use]
pub fn unique_in_place_mut<T: 'static>(value: &mut Value) -> Option<&mut T> {
    if let Value::Unique(unique) = value { unique.get_mut()?.as_any_mut().downcast_mut() } else { None }
}
