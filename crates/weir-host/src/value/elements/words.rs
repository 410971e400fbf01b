//! The words of packed elements: numbers and Booleans without tags, and the fields of records of such.

use std::cmp::Ordering;

use triomphe::Arc;

use super::Elements;
use super::form::ListForm;
use super::packed::Packed;
use super::records::PackedRecords;

impl Elements {
    /// Returns the elements if they are packed integers.
    #[inline]
    #[must_use]
    pub fn as_ints(&self) -> Option<&[i64]> {
        if let Some(Packed::Ints(all)) = self.packed() { Some(all) } else { None }
    }

    /// Returns the elements if they are packed floats.
    #[inline]
    #[must_use]
    pub fn as_floats(&self) -> Option<&[f64]> {
        if let Some(Packed::Floats(all)) = self.packed() { Some(all) } else { None }
    }

    /// Returns the elements if they are packed Booleans.
    #[inline]
    #[must_use]
    pub fn as_bools(&self) -> Option<&[bool]> {
        if let Some(Packed::Bools(all)) = self.packed() { Some(all) } else { None }
    }

    /// Moves packed integers out; `None` if they are shared or stored otherwise.
    pub(crate) fn take_ints(&mut self) -> Option<Vec<i64>> {
        if let Some(Packed::Ints(all)) = self.unshared_packed() { Some(std::mem::take(all)) } else { None }
    }

    /// Moves packed floats out; `None` if they are shared or stored otherwise.
    pub(crate) fn take_floats(&mut self) -> Option<Vec<f64>> {
        if let Some(Packed::Floats(all)) = self.unshared_packed() { Some(std::mem::take(all)) } else { None }
    }

    /// Moves packed Booleans out; `None` if they are shared or stored otherwise.
    pub(crate) fn take_bools(&mut self) -> Option<Vec<bool>> {
        if let Some(Packed::Bools(all)) = self.unshared_packed() { Some(std::mem::take(all)) } else { None }
    }

    /// Returns the word of a packed scalar: the bits of a number, or 0 or 1; `None` if the elements are not packed, or if
    /// there is no such element.
    #[inline]
    #[must_use]
    pub fn word(&self, index: usize) -> Option<u64> {
        self.packed()?.word(index)
    }

    /// Replaces a packed scalar by the one with this word; returns `false` and changes nothing if the elements are shared or
    /// not packed, or if there is no such element.
    #[inline]
    #[must_use]
    pub fn set_word(&mut self, index: usize, word: u64) -> bool {
        self.unshared_packed().is_some_and(|packed| packed.set_word(index, word))
    }

    /// Replaces so many packed scalars, each `step` positions behind the one before; returns `false` and changes nothing if the
    /// elements are shared or not packed, or if there are fewer.
    #[must_use]
    pub fn set_words(&mut self, from: usize, step: usize, count: usize, word: u64) -> bool {
        self.unshared_packed().is_some_and(|packed| packed.set_words(from, step, count, word))
    }

    /// Adds the scalar with this word at the end, so many times; returns `false` and changes nothing if the elements are shared
    /// or not packed.
    #[must_use]
    pub fn push_words(&mut self, word: u64, count: usize) -> bool {
        self.unshared_packed().is_some_and(|packed| packed.push_words(word, count))
    }

    /// Makes room for so many further packed scalars at once; does nothing if the elements are shared or not packed.
    pub fn reserve_words(&mut self, count: usize) {
        self.unshared_packed().into_iter().for_each(|packed| packed.reserve_words(count));
    }

    /// Adds the scalar with this word at the end; returns `false` and changes nothing if the elements are shared or not
    /// packed.
    #[inline]
    #[must_use]
    pub fn push_word(&mut self, word: u64) -> bool {
        self.unshared_packed().is_some_and(|packed| packed.push_word(word))
    }

    /// Returns the words of the fields of a packed record; `None` if the elements are no packed records, or if there is no
    /// such element.
    #[inline]
    #[must_use]
    pub fn record_words(&self, index: usize) -> Option<&[u64]> {
        self.records()?.row(index)
    }

    /// Returns the word of a scalar field of a packed record; `None` if the elements are no packed records, or if there is
    /// no such element or field.
    #[inline]
    #[must_use]
    pub fn field_word(&self, index: usize, field: usize) -> Option<u64> {
        self.records()?.row(index)?.get(field).copied()
    }

    /// Adds a record with the words of these fields at the end; returns `false` and changes nothing if the elements are
    /// shared, or if they are no packed records with as many fields. The words must be of the types of the fields.
    #[inline]
    #[must_use]
    pub fn push_record(&mut self, words: impl ExactSizeIterator<Item = u64>) -> bool {
        match self.unshared_packed() {
            Some(Packed::Records(records)) => records.push_words(words),
            _ => false,
        }
    }

    /// Returns `true` if the elements are scalars of one type or records of such scalars, without tags.
    #[inline]
    #[must_use]
    pub fn is_packed(&self) -> bool {
        !matches!(self.packed(), None | Some(Packed::Persistent(_)))
    }

    /// Compares the elements with those of another list, both of which are packed records; `None` if they are not.
    pub(in super::super) fn compare_records(&self, other: &Elements) -> Option<Ordering> {
        self.records()?.compare(other.records()?)
    }

    #[inline]
    pub(super) fn records(&self) -> Option<&PackedRecords> {
        if let Some(Packed::Records(records)) = self.packed() { Some(records) } else { None }
    }

    #[inline]
    pub(super) fn packed(&self) -> Option<&Packed> {
        if let ListForm::Packed(packed) = &self.form { Some(packed) } else { None }
    }

    /// Returns packed or persistent elements for a change, after copying them if they are shared.
    #[inline]
    pub(super) fn packed_mut(&mut self) -> Option<&mut Packed> {
        if let ListForm::Packed(packed) = &mut self.form { Some(Arc::make_mut(packed)) } else { None }
    }

    /// Returns packed or persistent elements for a change, if they are not shared.
    #[inline]
    pub(super) fn unshared_packed(&mut self) -> Option<&mut Packed> {
        if let ListForm::Packed(packed) = &mut self.form { Arc::get_mut(packed) } else { None }
    }
}
