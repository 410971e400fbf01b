//! The form of a list's elements, and the changes from one form to another.

use ecow::EcoVec;
use triomphe::Arc;

use super::packed::Packed;
use super::sequence::Sequence;
use crate::value::sort::sort;
use crate::{Elements, Value};

/// The representation of a list's elements, in two words.
#[derive(Clone)]
pub(super) enum ListForm {
    /// Elements of any type, one after the other.
    Values(EcoVec<Value>),
    /// Scalars of one type without their tags, or elements in nodes that are shared with other lists.
    Packed(Arc<Packed>),
}

impl ListForm {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            ListForm::Values(all) => all.len(),
            ListForm::Packed(all) => all.len(),
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Value> {
        match self {
            ListForm::Values(all) => all.get(index).cloned(),
            ListForm::Packed(all) => all.get(index),
        }
    }

    #[inline]
    pub(super) fn borrowed(&self, index: usize) -> Option<&Value> {
        match self {
            ListForm::Values(all) => all.get(index),
            ListForm::Packed(all) => match &**all {
                Packed::Persistent(all) => all.borrowed(index),
                _ => None,
            },
        }
    }

    /// Returns the address of the elements in memory.
    pub(super) fn address(&self) -> usize {
        match self {
            ListForm::Values(all) => all.as_ptr().addr(),
            ListForm::Packed(all) => Arc::as_ptr(all).addr(),
        }
    }

    /// Returns `true` if the elements are shared.
    pub(super) fn is_shared(&mut self) -> bool {
        match self {
            ListForm::Values(all) => !all.is_unique(),
            ListForm::Packed(all) => Arc::strong_count(all) > 1,
        }
    }

    pub(super) fn is_persistent(&self) -> bool {
        matches!(self, ListForm::Packed(all) if matches!(**all, Packed::Persistent(_)))
    }

    /// Adds an element at the end. An empty list takes the form of its first element.
    #[inline]
    pub(super) fn push(&mut self, element: Value) {
        let refused = match self {
            ListForm::Values(all) if !all.is_empty() => return all.push(element),
            ListForm::Values(_) => element,
            ListForm::Packed(all) => match Arc::make_mut(all).push(element) {
                Ok(()) => return,
                Err(element) => element,
            },
        };
        self.push_other(refused);
    }

    /// Adds the first element, or one that the current form cannot hold.
    fn push_other(&mut self, element: Value) {
        if self.len() == 0 {
            return self.push_first(element, 4);
        }
        self.unpack();
        self.values_mut().push(element);
    }

    /// Adds the first element, with room for so many.
    pub(super) fn push_first(&mut self, element: Value, room: usize) {
        if let Some(mut packed) = Packed::for_element(&element, room) {
            let pushed = packed.push(element);
            debug_assert!(pushed.is_ok(), "the form was chosen for the element");
            *self = ListForm::Packed(Arc::new(packed));
            return;
        }
        let mut all = EcoVec::with_capacity(room);
        all.push(element);
        *self = ListForm::Values(all);
    }

    /// Replaces an element.
    ///
    /// # Panics
    /// Panics if there is none.
    pub(super) fn set(&mut self, index: usize, element: Value) {
        let refused = match self {
            ListForm::Values(all) => {
                all.make_mut()[index] = element;
                return;
            }
            ListForm::Packed(all) => Arc::make_mut(all).set(index, element),
        };
        if let Err(element) = refused {
            self.unpack();
            self.values_mut().make_mut()[index] = element;
        }
    }

    /// Returns the elements in a range of positions.
    pub(super) fn range(&self, from: usize, to: usize) -> ListForm {
        match self {
            ListForm::Values(all) => ListForm::Values(all[from..to].into()),
            ListForm::Packed(all) => match all.range(from, to) {
                Some(packed) => ListForm::Packed(Arc::new(packed)),
                None => (from..to).filter_map(|index| all.get(index)).collect(),
            },
        }
    }

    /// Removes everything outside a range of positions.
    pub(super) fn keep(&mut self, from: usize, to: usize) {
        if self.is_shared() {
            *self = self.range(from, to);
            return;
        }
        match self {
            ListForm::Values(all) => {
                all.truncate(to);
                all.drain(..from);
            }
            ListForm::Packed(all) => {
                if !Arc::make_mut(all).keep(from, to) {
                    *self = self.range(from, to);
                }
            }
        }
    }

    /// Sorts the elements in ascending order; the sort is stable.
    pub(super) fn sort(&mut self) {
        self.flatten();
        match self {
            ListForm::Values(all) => sort(all.make_mut()),
            ListForm::Packed(all) => Arc::make_mut(all).sort(),
        }
    }

    pub(super) fn reverse(&mut self) {
        self.flatten();
        match self {
            ListForm::Values(all) => all.make_mut().reverse(),
            ListForm::Packed(all) => Arc::make_mut(all).reverse(),
        }
    }

    /// Adds all elements of another list at the end.
    pub(super) fn append(&mut self, other: ListForm) {
        match (self, other) {
            (ListForm::Values(all), ListForm::Values(other)) if !all.is_empty() => all.extend(other),
            (form, other) => {
                if let (ListForm::Packed(all), ListForm::Packed(other)) = (&mut *form, &other)
                    && Arc::make_mut(all).append(other)
                {
                    return;
                }
                form.extend(other.into_values());
            }
        }
    }

    /// Returns the elements: moved if they are not shared, cloned otherwise.
    pub(super) fn into_values(self) -> Vec<Value> {
        match self {
            ListForm::Values(all) => all.into_iter().collect(),
            ListForm::Packed(all) => Arc::unwrap_or_clone(all).into_values(),
        }
    }

    /// Lays the elements of a persistent list out one after the other.
    pub(super) fn flatten(&mut self) {
        if self.is_persistent() {
            *self = std::mem::take(self).into_values().into_iter().collect();
        }
    }

    /// Makes a persistent sequence of the elements, whose nodes can be shared.
    pub(super) fn make_persistent(&mut self) {
        if !self.is_persistent() {
            *self =
                ListForm::Packed(Arc::new(Packed::Persistent(Sequence::over(Elements { form: std::mem::take(self) }))));
        }
    }

    /// Stores the elements as values, whatever their type.
    fn unpack(&mut self) {
        if let ListForm::Packed(_) = self {
            *self = ListForm::Values(std::mem::take(self).into_values().into_iter().collect());
        }
    }

    /// Returns the elements as values, whatever their type.
    fn values_mut(&mut self) -> &mut EcoVec<Value> {
        if let ListForm::Packed(_) = self {
            self.unpack();
        }
        match self {
            ListForm::Values(all) => all,
            ListForm::Packed(_) => unreachable!("the elements were unpacked"),
        }
    }
}

impl Default for ListForm {
    fn default() -> Self {
        ListForm::Values(EcoVec::new())
    }
}

impl Extend<Value> for ListForm {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

impl FromIterator<Value> for ListForm {
    fn from_iter<I: IntoIterator<Item = Value>>(elements: I) -> Self {
        let mut elements = elements.into_iter();
        let Some(first) = elements.next() else { return ListForm::default() };
        let capacity = elements.size_hint().0 + 1;
        match Packed::for_element(&first, capacity) {
            Some(packed) => collect_packed(packed, first, elements),
            None => {
                let mut all = EcoVec::with_capacity(capacity);
                all.push(first);
                all.extend(elements);
                ListForm::Values(all)
            }
        }
    }
}

/// Collects elements as long as the form holds them, and then as values.
fn collect_packed(mut packed: Packed, first: Value, mut elements: impl Iterator<Item = Value>) -> ListForm {
    let mut next = Some(first);
    while let Some(element) = next {
        if let Err(other) = packed.push(element) {
            let before = packed.into_values();
            return ListForm::Values(before.into_iter().chain([other]).chain(elements).collect());
        }
        next = elements.next();
    }
    ListForm::Packed(Arc::new(packed))
}
