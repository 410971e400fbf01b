//! Conversion of the fields of a record or the payload of a variant, one after the other.
//!
//! Recursive Rust types are converted by recursion, so their depth is limited.

use std::cell::Cell;
use std::fmt;

use crate::{Failure, FailureKind, HostType, Value, Values};

/// The parts of a value: moved out if the value is not shared, cloned otherwise.
pub struct Parts {
    values: Values,
    next: usize,
}

impl Parts {
    /// Creates an iterator over the parts of `values`.
    #[must_use]
    pub fn new(values: Values) -> Self {
        Parts { values, next: 0 }
    }

    /// Returns the number of parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if there are no parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Converts the next part.
    ///
    /// # Errors
    /// Fails if there is none, if its conversion fails, or if it is nested in more than 127 others.
    #[expect(clippy::should_implement_trait, reason = "each part has a type of its own, so this is no iterator")]
    pub fn next<T: HostType>(&mut self) -> Result<T, Failure> {
        let index = self.next;
        self.next += 1;
        let part = match self.values.unshared() {
            Some(values) => values.get_mut(index).map(Value::take),
            None => self.values.get(index).cloned(),
        };
        self::part(part.unwrap_or_default())
    }

    /// Converts the next part; a failure names it as the field `name`.
    ///
    /// # Errors
    /// Fails if [`Parts::next`] does.
    pub fn field<T: HostType>(&mut self, name: &str) -> Result<T, Failure> {
        self.next().map_err(|failure| within(format_args!("`{name}`"), failure))
    }
}

/// Converts a part of another value.
pub(super) fn part<T: HostType>(value: Value) -> Result<T, Failure> {
    let _deeper = DepthGuard::enter()?;
    T::from_value(value)
}

/// Prefixes a failure with its location. The failure of a value that nests too deep stays as it is: its location would
/// be as long as the value is deep.
#[cold]
pub(super) fn within(place: fmt::Arguments<'_>, failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Limit => failure,
        kind => Failure::new(kind, format!("{place}: {}", failure.message)),
    }
}

/// Maximum nesting depth of a value that is converted into a Rust value; the same as for JSON.
const NESTED_MAX: u32 = 127;

thread_local! {
    /// Number of nested parts that are being converted.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// Counts a nesting level until it is dropped.
struct DepthGuard;

impl DepthGuard {
    fn enter() -> Result<DepthGuard, Failure> {
        let nested = NESTED.get();
        if nested == NESTED_MAX {
            return Err(too_deep());
        }
        NESTED.set(nested + 1);
        Ok(DepthGuard)
    }
}

impl Drop for DepthGuard {
    fn drop(&mut self) {
        NESTED.set(NESTED.get() - 1);
    }
}

#[cold]
fn too_deep() -> Failure {
    Failure::new(
        FailureKind::Limit,
        format!("the value nests more than {NESTED_MAX} deep, which is too deep for this function"),
    )
}
