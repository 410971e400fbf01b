//! What the model checks share: loom's primitives with the faces that the modules have, and how a mutant is tried.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::LocalKey;

/// A mutex that cannot be poisoned, as `parking_lot`'s.
pub(crate) struct ModelMutex<T>(loom::sync::Mutex<T>);

impl<T> ModelMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        ModelMutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// Whether the model fails with this mutant in the protocol's place.
pub(crate) fn caught<M>(place: &'static LocalKey<Cell<Option<M>>>, mutant: M, model: fn()) -> bool {
    place.set(Some(mutant));
    let outcome = catch_unwind(AssertUnwindSafe(model));
    place.set(None);
    outcome.is_err()
}
