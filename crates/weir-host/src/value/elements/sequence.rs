//! A persistent sequence: a trie of elements by number, whose nodes are shared by the sequence's clones.

use crate::Value;
use crate::value::trie::{self, Trie};

/// Elements that are added at the end and removed at the front, each in logarithmic time.
#[derive(Clone, Default)]
pub(super) struct Sequence {
    elements: Trie<Value>,
    /// The number of the first element.
    first: u64,
    length: usize,
}

impl Sequence {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, index: usize) -> Option<&Value> {
        if index < self.length { self.elements.get(self.number(index)) } else { None }
    }

    /// Replaces an element and returns it.
    ///
    /// # Panics
    /// Panics if there is none.
    pub(super) fn replace(&mut self, index: usize, element: Value) -> Value {
        assert!(index < self.length, "index {index} of {} elements", self.length);
        let number = self.number(index);
        std::mem::replace(self.elements.get_mut(number).expect("the numbers have no gaps"), element)
    }

    pub(super) fn push(&mut self, element: Value) {
        self.elements.insert(self.number(self.length), element);
        self.length += 1;
    }

    pub(super) fn remove_first(&mut self) {
        if self.length > 0 {
            self.elements.remove(self.first);
            (self.first, self.length) = (self.first + 1, self.length - 1);
        }
    }

    pub(super) fn iter(&self) -> trie::TrieIter<'_, Value> {
        self.elements.iter()
    }

    /// Returns the elements: moved if they are not shared, cloned otherwise.
    pub(super) fn into_values(self) -> Vec<Value> {
        let mut all = Vec::with_capacity(self.length);
        self.elements.append_to(&mut all);
        all
    }

    fn number(&self, index: usize) -> u64 {
        self.first + index as u64
    }
}

impl FromIterator<Value> for Sequence {
    fn from_iter<I: IntoIterator<Item = Value>>(elements: I) -> Self {
        let mut length = 0;
        let elements = elements.into_iter().inspect(|_| length += 1).collect();
        Sequence { elements, first: 0, length }
    }
}
