//! Parts: the fields of a record or the payload of a variant, carried over one after the other.
//!
//! A type of Rust that holds itself is carried over by recursion, so that there is a limit to its depth.

use std::cell::Cell;
use std::fmt;

use crate::{Failure, FailureKind, HostType, Value, Values};

/// The parts of a value, moved out where nobody else holds the value, else cloned.
pub struct Parts {
    values: Values,
    next: usize,
}

impl Parts {
    /// All parts of `values`.
    #[must_use]
    pub fn new(values: Values) -> Self {
        Parts { values, next: 0 }
    }

    /// How many parts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The next part.
    ///
    /// # Errors
    /// Fails where there is none, where its conversion does, or where it is a part of more than 127 others.
    #[expect(clippy::should_implement_trait, reason = "each part has a type of its own, so this is no iterator")]
    pub fn next<T: HostType>(&mut self) -> Result<T, Failure> {
        let index = self.next;
        self.next += 1;
        let part = match self.values.unshared() {
            Some(values) => values.get_mut(index).map(Value::take),
            None => self.values.get(index).cloned(),
        };
        let _deeper = DepthGuard::enter()?;
        T::from_value(part.unwrap_or_default())
    }

    /// The next part, which a failure names as the field `name`.
    ///
    /// # Errors
    /// Fails where [`Parts::next`] does.
    pub fn field<T: HostType>(&mut self, name: &str) -> Result<T, Failure> {
        self.next().map_err(|failure| within(format_args!("`{name}`"), failure))
    }
}

/// The failure with its place. One of a value that is too deep has none: it would be as long as the value is deep.
#[cold]
pub(super) fn within(place: fmt::Arguments<'_>, failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Limit => failure,
        kind => Failure::new(kind, format!("{place}: {}", failure.message)),
    }
}

/// How deep a value may be that becomes one of Rust: as deep as JSON.
const NESTED_MAX: u32 = 127;

thread_local! {
    /// How many parts in each other are being carried over.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// One part, while it is carried over.
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
        format!("more than {NESTED_MAX} values in each other are too many for this function"),
    )
}
