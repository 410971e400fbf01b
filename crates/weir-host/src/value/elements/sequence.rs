//! A persistent sequence: a trie of elements by number, whose nodes are shared by the sequence's clones.
//!
//! It begins over a *base*, the elements that a snapshot holds too, so that creating it takes constant time. Each change
//! adopts a few elements of the base, [`ADOPTED`], from the first on, until none is left. Until then the trie has the
//! elements that were adopted, replaced or added; all others are in the base.

use std::borrow::Cow;

use super::Element;
use crate::value::trie::{self, Trie};
use crate::{Elements, Value};

/// Elements that are added at the end and removed at the front, each in logarithmic time.
#[derive(Clone)]
pub(super) struct Sequence {
    elements: Trie<Value>,
    base: Option<SequenceBase>,
    /// The number of the first element.
    first: u64,
    length: usize,
}

/// Elements that lie one after the other, some of which are in the trie already.
#[derive(Clone)]
struct SequenceBase {
    elements: Elements,
    /// No element below this position is looked for here.
    adopted: usize,
}

/// The number of elements of the base that each change adopts.
const ADOPTED: usize = 8;

impl SequenceBase {
    fn get(&self, number: u64) -> Option<Element<'_>> {
        let position = usize::try_from(number).ok().filter(|position| *position >= self.adopted)?;
        match self.elements.borrowed(position) {
            Some(element) => Some(Cow::Borrowed(element)),
            None => self.elements.get(position).map(Cow::Owned),
        }
    }
}

impl Sequence {
    /// Creates a sequence of elements that lie one after the other.
    pub(super) fn over(elements: Elements) -> Sequence {
        let length = elements.len();
        Sequence { elements: Trie::default(), base: Some(SequenceBase { elements, adopted: 0 }), first: 0, length }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, index: usize) -> Option<Element<'_>> {
        if index >= self.length {
            return None;
        }
        let number = self.number(index);
        match self.elements.get(number) {
            Some(element) => Some(Cow::Borrowed(element)),
            None => self.base.as_ref()?.get(number),
        }
    }

    /// Borrows an element that is stored as a value.
    pub(super) fn borrowed(&self, index: usize) -> Option<&Value> {
        match self.get(index)? {
            Cow::Borrowed(element) => Some(element),
            Cow::Owned(_) => None,
        }
    }

    /// Replaces an element and returns it.
    ///
    /// # Panics
    /// Panics if there is none.
    pub(super) fn replace(&mut self, index: usize, element: Value) -> Value {
        assert!(index < self.length, "index {index} of {} elements", self.length);
        self.adopt();
        let number = self.number(index);
        if let Some(place) = self.elements.get_mut(number) {
            return std::mem::replace(place, element);
        }
        let before = self.get(index).map(Cow::into_owned);
        self.elements.insert(number, element);
        before.expect("the numbers have no gaps")
    }

    pub(super) fn push(&mut self, element: Value) {
        self.adopt();
        self.elements.insert(self.number(self.length), element);
        self.length += 1;
    }

    pub(super) fn remove_first(&mut self) {
        if self.length > 0 {
            self.adopt();
            self.elements.remove(self.first);
            (self.first, self.length) = (self.first + 1, self.length - 1);
        }
    }

    /// Iterates over the elements in their order.
    pub(super) fn iter(&self) -> SequenceIter<'_> {
        match &self.base {
            None => SequenceIter::Trie(self.elements.iter()),
            Some(_) => SequenceIter::Positions(self, 0),
        }
    }

    /// Returns the elements: moved if they are not shared, cloned otherwise.
    pub(super) fn into_values(self) -> Vec<Value> {
        if self.base.is_some() {
            return self.iter().map(Cow::into_owned).collect();
        }
        let mut all = Vec::with_capacity(self.length);
        self.elements.append_to(&mut all);
        all
    }

    fn number(&self, index: usize) -> u64 {
        self.first + index as u64
    }

    /// Moves a few elements of the base into the trie; lets the base go if none is left.
    fn adopt(&mut self) {
        let Some(base) = &mut self.base else { return };
        base.adopted = base.adopted.max(usize::try_from(self.first).unwrap_or(usize::MAX));
        let end = base.elements.len().min(base.adopted + ADOPTED);
        for number in base.adopted as u64..end as u64 {
            if self.elements.get(number).is_none()
                && let Some(element) = base.get(number)
            {
                self.elements.insert(number, element.into_owned());
            }
        }
        base.adopted = base.adopted.max(end);
        if base.adopted >= base.elements.len() {
            self.base = None;
        }
    }
}

/// The elements of a persistent sequence, in order.
#[derive(Clone)]
pub(super) enum SequenceIter<'v> {
    /// All elements are in the trie.
    Trie(trie::TrieIter<'v, Value>),
    /// The position of the next element, of a sequence with a base.
    Positions(&'v Sequence, usize),
}

impl<'v> Iterator for SequenceIter<'v> {
    type Item = Element<'v>;

    #[inline]
    fn next(&mut self) -> Option<Element<'v>> {
        match self {
            SequenceIter::Trie(elements) => elements.next().map(Cow::Borrowed),
            SequenceIter::Positions(sequence, next) => {
                *next += 1;
                sequence.get(*next - 1)
            }
        }
    }
}
