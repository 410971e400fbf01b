//! The elements of a list: a shared vector, which is changed in place while it has a single owner.

use std::ops::Deref;
use std::{fmt, slice};

use ecow::EcoVec;

use crate::Value;

/// The elements of a list, in order. Cloning increments a reference count; a change copies the elements only if they
/// are shared (copy-on-write).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Elements {
    shared: EcoVec<Value>,
}

impl Elements {
    /// Returns an empty list with this capacity.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Elements { shared: EcoVec::with_capacity(capacity) }
    }

    /// Returns the elements for a change in place; `None` if they are shared.
    #[must_use]
    pub fn unshared(&mut self) -> Option<&mut [Value]> {
        self.shared.is_unique().then(|| self.shared.make_mut())
    }

    /// Returns the elements for a change, after copying them if they are shared.
    #[must_use]
    pub fn make_mut(&mut self) -> &mut [Value] {
        self.shared.make_mut()
    }

    /// Adds an element at the end, in amortised constant time if they are not shared.
    pub fn push(&mut self, element: Value) {
        self.shared.push(element);
    }

    /// Adds all elements of another list at the end: moved if they are not shared, cloned otherwise.
    pub fn append(&mut self, other: Elements) {
        if self.is_empty() {
            *self = other;
        } else {
            self.shared.extend(other);
        }
    }

    /// Keeps the elements in this range of positions, which must lie within the list.
    ///
    /// # Panics
    /// Panics if the range ends beyond the list.
    pub fn keep(&mut self, from: usize, to: usize) {
        assert!(from <= to && to <= self.len(), "{from}..{to} of {} elements", self.len());
        if self.shared.is_unique() {
            self.shared.truncate(to);
            self.shared.drain(..from);
        } else {
            self.shared = EcoVec::from(&self.shared[from..to]);
        }
    }
}

impl Deref for Elements {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        &self.shared
    }
}

impl From<Vec<Value>> for Elements {
    #[inline]
    fn from(elements: Vec<Value>) -> Self {
        elements.into_iter().collect()
    }
}

impl From<&[Value]> for Elements {
    #[inline]
    fn from(elements: &[Value]) -> Self {
        Elements { shared: elements.into() }
    }
}

impl FromIterator<Value> for Elements {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Value>>(elements: I) -> Self {
        Elements { shared: elements.into_iter().collect() }
    }
}

impl Extend<Value> for Elements {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, elements: I) {
        self.shared.extend(elements);
    }
}

/// Yields the elements: moved if they are not shared, cloned otherwise.
impl IntoIterator for Elements {
    type Item = Value;
    type IntoIter = ecow::vec::IntoIter<Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.shared.into_iter()
    }
}

impl<'v> IntoIterator for &'v Elements {
    type Item = &'v Value;
    type IntoIter = slice::Iter<'v, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Elements {
        numbers.into_iter().map(Value::Int).collect()
    }

    #[test]
    fn a_holder_of_an_earlier_state_keeps_it() {
        let mut list = numbers(0..3);
        let earlier = list.clone();
        list.push(Value::Int(3));
        assert!(list.unshared().is_some());
        list.make_mut()[0] = Value::Int(9);
        assert_eq!((earlier, list), (numbers(0..3), numbers([9, 1, 2, 3])));
    }

    #[test]
    fn pushing_to_an_unshared_list_leaves_the_elements_where_they_are_most_of_the_time() {
        let mut list = Elements::default();
        let mut moves = 0;
        for number in 0..10_000 {
            let before = list.as_ptr();
            list.push(Value::Int(number));
            moves += usize::from(list.as_ptr() != before);
        }
        assert!(moves <= 20, "{moves} allocations for 10,000 elements");
    }

    #[test]
    fn a_range_is_kept_in_place_or_copied() {
        let mut list = numbers(0..5);
        let earlier = list.clone();
        list.keep(1, 4);
        assert_eq!(list, numbers(1..4));
        list.keep(1, 3);
        assert_eq!((list, earlier), (numbers(2..4), numbers(0..5)));
    }

    #[test]
    fn appending_moves_or_clones() {
        let mut list = numbers(0..2);
        let other = numbers(2..4);
        list.append(other.clone());
        list.append(other);
        assert_eq!(list, numbers([0, 1, 2, 3, 2, 3]));
    }
}
