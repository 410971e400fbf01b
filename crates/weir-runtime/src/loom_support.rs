//! Support for model checks: loom's primitives under the interfaces of the modules' own, and the trial of a mutant.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::LocalKey;

/// A mutex of loom with the interface of `parking_lot`'s, which cannot be poisoned.
pub(crate) struct ModelMutex<T>(loom::sync::Mutex<T>);

impl<T> ModelMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        ModelMutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// Returns true if the model fails with this mutant in the protocol's place.
pub(crate) fn caught<M>(place: &'static LocalKey<Cell<Option<M>>>, mutant: M, model: fn()) -> bool {
    place.set(Some(mutant));
    let outcome = catch_unwind(AssertUnwindSafe(model));
    place.set(None);
    outcome.is_err()
}
