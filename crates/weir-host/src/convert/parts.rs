//! Parts: the fields of a record or the payload of a variant, carried over one after the other.

use std::sync::Arc;

use crate::{Failure, HostType, Value};

/// The parts of a value, moved out where nobody else holds the value, else cloned.
pub struct Parts {
    values: Arc<[Value]>,
    next: usize,
}

impl Parts {
    /// All parts of `values`.
    #[must_use]
    pub fn new(values: Arc<[Value]>) -> Self {
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
    /// Fails where there is none, or where its conversion does.
    #[expect(clippy::should_implement_trait, reason = "each part has a type of its own, so this is no iterator")]
    pub fn next<T: HostType>(&mut self) -> Result<T, Failure> {
        let index = self.next;
        self.next += 1;
        let part = match Arc::get_mut(&mut self.values) {
            Some(values) => values.get_mut(index).map(Value::take),
            None => self.values.get(index).cloned(),
        };
        T::from_value(part.unwrap_or_default())
    }

    /// The next part, which a failure names as the field `name`.
    ///
    /// # Errors
    /// Fails where [`Parts::next`] does.
    pub fn field<T: HostType>(&mut self, name: &str) -> Result<T, Failure> {
        self.next().map_err(|failure| Failure::new(failure.kind, format!("`{name}`: {}", failure.message)))
    }
}
