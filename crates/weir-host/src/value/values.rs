//! Shared parts of a value (elements, fields or a payload), dropped without deep recursion.
//!
//! A recursive type contains itself through the fields of a record or the payload of a variant, and therefore through
//! [`Values`]. No type bounds a value's depth, and dropping it field by field would overflow the stack at some ten
//! thousand levels. Each thread therefore counts its nested drops:
//!
//! 1. A drop increments the count. Up to [`NESTED_MAX`] it drops its parts immediately, which may cause further drops.
//! 2. Beyond that, it moves its parts to the thread's list of postponed drops, and sets the highest bit of the count.
//! 3. When the drop ends, its last field, [`Leave`], decrements the count. The outermost drop then drops the postponed
//!    parts, to which 1 and 2 apply again, until the list is empty.
//!
//! The cost for shallow values is two additions to a thread-local cell that needs neither initialisation nor a
//! destructor.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::{fmt, slice};

use crate::Value;
use crate::value::NESTED_MAX;

/// Parts of a value, in order. Cloning increments a reference count; dropping the last clone needs little stack at any
/// depth.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values {
    shared: Arc<[Value]>,
    /// The last field, so that it is dropped after the parts.
    leave: Leave,
}

/// Decrements the count of nested drops when it is dropped.
#[derive(Clone, Default, PartialEq, Eq)]
struct Leave;

/// Bit of [`DEPTH`] that is set while [`POSTPONED`] is not empty.
const SOME_POSTPONED: u32 = 1 << 31;

thread_local! {
    /// Number of nested drops of this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Parts that the outermost drop has to drop. Never dropped itself, so that it outlives all values of the thread;
    /// between drops it is empty and owns no memory.
    static POSTPONED: Cell<ManuallyDrop<Vec<Values>>> = const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

impl Drop for Values {
    #[inline]
    fn drop(&mut self) {
        let depth = DEPTH.get() + 1;
        DEPTH.set(depth);
        if depth & !SOME_POSTPONED > NESTED_MAX {
            self.postpone();
        }
    }
}

impl Drop for Leave {
    #[inline]
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == SOME_POSTPONED {
            drop_postponed();
        }
    }
}

/// Drops the postponed parts, as the outermost drop.
#[cold]
fn drop_postponed() {
    DEPTH.set(SOME_POSTPONED | 1);
    let outermost = Leave;
    while let Some(values) = with_postponed(Vec::pop) {
        drop(values);
    }
    with_postponed(|postponed| *postponed = Vec::new());
    DEPTH.set(1);
    drop(outermost);
}

fn with_postponed<R>(change: impl FnOnce(&mut Vec<Values>) -> R) -> R {
    let mut postponed = ManuallyDrop::into_inner(POSTPONED.replace(ManuallyDrop::new(Vec::new())));
    let result = change(&mut postponed);
    POSTPONED.set(ManuallyDrop::new(postponed));
    result
}

impl Values {
    /// Borrows the parts mutably if they are not shared.
    #[must_use]
    pub fn unshared(&mut self) -> Option<&mut [Value]> {
        Arc::get_mut(&mut self.shared)
    }

    /// Returns `true` if the parts are shared.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Moves the parts to the list of postponed drops. The empty slice left behind is shared by all.
    #[cold]
    fn postpone(&mut self) {
        let values = Values::from(std::mem::take(&mut self.shared));
        with_postponed(|postponed| postponed.push(values));
        DEPTH.set(DEPTH.get() | SOME_POSTPONED);
    }
}

impl Deref for Values {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        &self.shared
    }
}

impl From<Arc<[Value]>> for Values {
    #[inline]
    fn from(shared: Arc<[Value]>) -> Self {
        Values { shared, leave: Leave }
    }
}

impl From<Vec<Value>> for Values {
    #[inline]
    fn from(values: Vec<Value>) -> Self {
        Values { shared: values.into(), leave: Leave }
    }
}

impl From<&[Value]> for Values {
    #[inline]
    fn from(values: &[Value]) -> Self {
        Values { shared: values.into(), leave: Leave }
    }
}

impl<const N: usize> From<[Value; N]> for Values {
    #[inline]
    fn from(values: [Value; N]) -> Self {
        Values { shared: Arc::new(values), leave: Leave }
    }
}

impl FromIterator<Value> for Values {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Values { shared: values.into_iter().collect(), leave: Leave }
    }
}

impl<'v> IntoIterator for &'v Values {
    type Item = &'v Value;
    type IntoIter = slice::Iter<'v, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
