//! Values that belong to the memory of the program: what a store keeps of a write when its flow goes on.
//!
//! Another thread may release such a value, and the flow would be charged for it to its end. So it is a copy, which is no memory of the
//! flow that makes it, nor of one that releases it.

use std::ops::Deref;

use weir::{Value, memory};

/// A value that belongs to the memory of the program.
#[derive(Debug, PartialEq)]
pub(super) struct ProgramOwned<T>(Option<T>);

impl<T> ProgramOwned<T> {
    /// Makes a value, which shares nothing with those of the running flow.
    pub(super) fn new(make: impl FnOnce() -> T) -> ProgramOwned<T> {
        ProgramOwned(Some(memory::of_program(make)))
    }
}

impl<T: Clone> Clone for ProgramOwned<T> {
    fn clone(&self) -> Self {
        ProgramOwned::new(|| T::clone(self))
    }
}

impl<T> Deref for ProgramOwned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is taken when it is dropped")
    }
}

impl<T> Drop for ProgramOwned<T> {
    fn drop(&mut self) {
        memory::of_program(|| self.0 = None);
    }
}

/// Returns a copy of a row, or of the value of a column, that shares nothing with it.
pub(super) fn unshared_copy(value: &Value) -> Value {
    match value {
        Value::Record(parts) => Value::Record(parts.iter().map(unshared_copy).collect()),
        Value::Variant(tag, Some(held)) => Value::Variant(*tag, Some(held.iter().map(unshared_copy).collect())),
        Value::Text(text) => Value::text(text.as_str()),
        Value::Bytes(bytes) => Value::bytes(bytes.to_vec()),
        other => other.clone(),
    }
}

/// Returns about the bytes of the texts and byte strings in a row or a value of a column: nothing else of it can be large.
pub(super) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Record(parts) => parts.iter().map(text_bytes).sum(),
        Value::Variant(_, Some(held)) => held.iter().map(text_bytes).sum(),
        Value::Text(text) => text.as_str().len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
