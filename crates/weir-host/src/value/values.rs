//! The parts of a value, shared: elements, fields or a payload, and how they are dropped without a deep stack.
//!
//! A type that holds itself does so through the fields of a record or the payload of a variant, which is to say through
//! [`Values`]; so a value's depth is bounded by no type, and dropping one field by field would overflow the stack at some
//! ten thousand. Each thread therefore counts how deep in such drops it is:
//!
//! 1. A drop counts itself in. Up to [`NESTED_MAX`] it lets go of its parts at once, which may be the next drops.
//! 2. Deeper than that, it hangs its parts up in the thread's list, and says so with the count's highest bit.
//! 3. When the drop is through, its last field, [`Leave`], counts it out. The outermost one drops what hangs in the list,
//!    where 1 and 2 hold again, until the list is empty.
//!
//! Shallow values pay for two additions in a cell that needs neither a beginning nor an end.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::{fmt, slice};

use crate::Value;
use crate::value::NESTED_MAX;

/// Parts of a value, in order. Cloning counts a reference; dropping the last needs little stack, however deep they are.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values {
    shared: Arc<[Value]>,
    /// Stands last, so that it is dropped when the parts are.
    leave: Leave,
}

/// Counts a drop out.
#[derive(Clone, Default, PartialEq, Eq)]
struct Leave;

/// Set in [`DEPTH`] while something hangs in [`POSTPONED`].
const SOME_POSTPONED: u32 = 1 << 31;

thread_local! {
    /// How many drops the thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// What the outermost drop lets go of. Never dropped itself, so that it outlives all values of the thread; it is empty
    /// and without memory when no drop is under way.
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

/// Drops what hangs in the list, as the outermost drop.
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
    /// The parts, to be changed, where nobody else holds them.
    #[must_use]
    pub fn unshared(&mut self) -> Option<&mut [Value]> {
        Arc::get_mut(&mut self.shared)
    }

    /// Whether somebody else holds the parts too.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Leaves no parts behind; an empty slice of this type is one that all share.
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
