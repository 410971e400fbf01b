//! The elements of a list.
//!
//! They have one of three forms, which a program cannot tell apart:
//! * *packed*: scalars of one type, or records of such scalars, one after the other, without their tags;
//! * *values*: elements of any type, one after the other;
//! * *persistent*: elements in nodes that are shared with other lists.
//!
//! A list is packed if its first element is a scalar or a record of scalars, until an element of another type is stored.
//! The first two forms are changed in place while they have one owner, and have to be copied as a whole beside another
//! owner. A long list becomes persistent instead, so that a change beside a snapshot copies only the path to the changed
//! element. A long list that loses elements at its front becomes persistent too, so that the others do not move up.

mod conversions;
mod form;
mod iter;
mod packed;
mod records;
mod sequence;
mod words;

use std::borrow::Cow;
use std::fmt;

use triomphe::Arc;

use self::form::ListForm;
pub(super) use self::iter::{ElementIntoIter, ElementIter};
use self::packed::Packed;
use crate::Value;

/// An element of a list: borrowed from the list, or a scalar or record of scalars that the list stores without tags.
pub type Element<'v> = Cow<'v, Value>;

/// The elements of a list, in order. Cloning increments a reference count; a change copies elements only if they are
/// shared (copy-on-write), and a bounded number of them.
#[derive(Clone, Default)]
pub struct Elements {
    form: ListForm,
}

/// The maximum number of elements that a change copies if they are shared, and that move up if the first is removed. A
/// change of a persistent list is cheaper from some 100 elements on (`bench-language --snapshots`).
const COPIED_MAX: usize = 128;
/// The same for the bytes of packed elements, which are copied as plain memory.
const COPIED_BYTES_MAX: usize = 8_192;
/// The maximum number of elements for which a list has room because they are expected.
const EXPECTED_MAX: usize = 64;
/// A list is copied if it is joined with another one that has at least this part of its length.
const COPIED_SHARE: usize = 16;

impl Elements {
    /// Returns the number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.form.len()
    }

    /// Returns `true` if there are no elements.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of an element, which increments at most a reference count.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        self.form.get(index)
    }

    /// Borrows an element that is stored as a value; `None` if it is packed, or if there is none.
    #[inline]
    #[must_use]
    pub fn borrowed(&self, index: usize) -> Option<&Value> {
        self.form.borrowed(index)
    }

    /// Iterates over the elements.
    #[must_use]
    pub fn iter(&self) -> ElementIter<'_> {
        ElementIter::new(&self.form)
    }

    /// Returns the elements in a range of positions, which must lie within the list.
    ///
    /// # Panics
    /// Panics if the range ends beyond the list.
    #[must_use]
    pub fn range(&self, from: usize, to: usize) -> Elements {
        assert!(from <= to && to <= self.len(), "{from}..{to} of {} elements", self.len());
        Elements { form: self.form.range(from, to) }
    }

    /// Returns the elements in a range of positions, which must lie within the list: moved out if the list is not shared, so that
    /// [`Value::Absent`] stays behind, and otherwise copied. Packed and persistent elements are always copied.
    ///
    /// # Panics
    /// Panics if the range ends beyond the list.
    #[must_use]
    pub fn take_range(&mut self, from: usize, to: usize) -> Elements {
        if let ListForm::Values(all) = &mut self.form
            && all.is_unique()
        {
            return Elements { form: all.make_mut()[from..to].iter_mut().map(Value::take).collect() };
        }
        self.range(from, to)
    }

    /// Returns the bytes that the elements take in another list.
    #[must_use]
    pub fn bytes_to_append(&self) -> usize {
        match &self.form {
            ListForm::Values(all) => size_of_val(all.as_slice()),
            ListForm::Packed(all) => all.bytes(),
        }
    }

    /// Returns the bytes that a copy takes: few if the elements are in nodes that the copy shares.
    #[must_use]
    pub fn bytes_to_copy(&self) -> usize {
        if self.form.is_persistent() { 0 } else { self.bytes_to_append() }
    }

    /// Returns copies of all elements.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Value> {
        self.iter().map(Cow::into_owned).collect()
    }

    /// Returns the elements if they are stored as values, one after the other.
    #[inline]
    #[must_use]
    pub fn as_values(&self) -> Option<&[Value]> {
        if let ListForm::Values(all) = &self.form { Some(all) } else { None }
    }

    /// Returns a copy of a field of an element that is a record; `None` if there is no such element or field.
    #[must_use]
    pub fn field(&self, index: usize, field: usize) -> Option<Value> {
        if let Some(records) = self.records() {
            return records.field(index, field);
        }
        let field_of = |record: &Value| match record {
            Value::Record(fields) => fields.get(field).cloned(),
            _ => None,
        };
        match self.borrowed(index) {
            Some(record) => field_of(record),
            None => field_of(&self.get(index)?),
        }
    }

    /// Returns the elements for a change in place; `None` if they are shared or packed.
    #[must_use]
    pub fn unshared(&mut self) -> Option<&mut [Value]> {
        if self.form.is_shared() {
            return None;
        }
        self.form.flatten();
        if let ListForm::Values(all) = &mut self.form { Some(all.make_mut()) } else { None }
    }

    /// Borrows an element for a change in place; `None` if the elements are shared or packed.
    #[must_use]
    pub fn unshared_element(&mut self, index: usize) -> Option<&mut Value> {
        match &mut self.form {
            ListForm::Values(all) if !all.is_empty() => match all.is_unique() {
                true => all.make_mut().get_mut(index),
                false => None,
            },
            _ => None,
        }
    }

    /// Returns an element: moved out if the list is not shared, so that [`Value::Absent`] stays behind, and otherwise
    /// copied. Packed elements are always copied.
    #[inline]
    #[must_use]
    pub fn take(&mut self, index: usize) -> Option<Value> {
        match &mut self.form {
            ListForm::Values(all) => match all.is_unique() {
                true => all.make_mut().get_mut(index).map(Value::take),
                false => all.get(index).cloned(),
            },
            ListForm::Packed(all) => match Arc::get_mut(all) {
                Some(Packed::Persistent(all)) if index < all.len() => Some(all.replace(index, Value::Absent)),
                _ => all.get(index),
            },
        }
    }

    /// Does the same as [`Elements::take`], with a slot for the element.
    ///
    /// # Panics
    /// Panics if there is no such element.
    #[inline]
    pub fn take_to(&mut self, index: usize, slot: &mut Value) {
        match &mut self.form {
            ListForm::Values(all) => match all.is_unique() {
                true => all.make_mut()[index].move_to(slot),
                false => all[index].clone_to(slot),
            },
            ListForm::Packed(_) => {
                let element = self.take(index);
                slot.put(element.unwrap_or_else(|| panic!("index {index} of {} elements", self.len())));
            }
        }
    }

    /// Replaces an element.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn set(&mut self, index: usize, element: Value) {
        assert!(index < self.len(), "index {index} of {} elements", self.len());
        self.share_nodes();
        self.form.set(index, element);
    }

    /// Adds an element at the end, in amortised constant time; in logarithmic time if the elements are shared.
    #[inline]
    pub fn push(&mut self, element: Value) {
        self.share_nodes();
        self.form.push(element);
    }

    /// Adds an element at the end. If it is the first one, the list has room for so many, within a bound.
    #[inline]
    pub fn push_expecting(&mut self, element: Value, expected: usize) {
        if self.is_empty() {
            return self.form.push_first(element, expected.clamp(1, EXPECTED_MAX));
        }
        self.push(element);
    }

    /// Adds all elements of another list at the end: moved if they are not shared, cloned otherwise.
    pub fn append(&mut self, other: Elements) {
        if self.is_empty() {
            *self = other;
        } else {
            // The copy takes little longer than adding many elements does.
            if other.len() < self.len() / COPIED_SHARE {
                self.share_nodes();
            }
            self.form.append(other.form);
        }
    }

    /// Removes up to `count` elements at the front, each in logarithmic time at most.
    pub fn remove_first(&mut self, count: usize) {
        let left = self.len().saturating_sub(count);
        if count == 0 {
            return;
        }
        if count < left && self.is_long(left) {
            self.form.make_persistent();
        }
        match self.packed_mut() {
            Some(Packed::Persistent(sequence)) if count < left => (0..count).for_each(|_| sequence.remove_first()),
            _ => self.form.keep(self.len() - left, self.len()),
        }
    }

    /// Keeps the elements in this range of positions, which must lie within the list.
    ///
    /// # Panics
    /// Panics if the range ends beyond the list.
    pub fn keep(&mut self, from: usize, to: usize) {
        assert!(from <= to && to <= self.len(), "{from}..{to} of {} elements", self.len());
        self.form.keep(from, to);
    }

    /// Sorts the elements in ascending order; the sort is stable.
    pub fn sort(&mut self) {
        self.form.sort();
    }

    /// Reverses the order of the elements.
    pub fn reverse(&mut self) {
        self.form.reverse();
    }

    /// Returns the address of the elements in memory.
    pub(super) fn address(&self) -> usize {
        self.form.address()
    }

    /// Returns `true` if two lists are the same in memory.
    pub(super) fn is_same(&self, other: &Elements) -> bool {
        self.address() == other.address() && self.len() == other.len()
    }

    /// Returns `true` if a copy of this many elements takes longer than a change of a persistent list.
    fn is_long(&self, length: usize) -> bool {
        match self.packed() {
            Some(packed) if self.is_packed() => packed.bytes() / self.len().max(1) * length > COPIED_BYTES_MAX,
            _ => length > COPIED_MAX,
        }
    }

    /// Makes a long list that is shared persistent, before it is changed.
    #[inline]
    fn share_nodes(&mut self) {
        if self.len() > COPIED_MAX && self.form.is_shared() && self.is_long(self.len()) {
            self.form.make_persistent();
        }
    }
}

/// Equal if they have equal elements in the same order.
impl PartialEq for Elements {
    fn eq(&self, other: &Self) -> bool {
        Value::List(self.clone()) == Value::List(other.clone())
    }
}

impl Eq for Elements {}

impl fmt::Debug for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests;
