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
mod tests {
    use super::*;
    use crate::Entries;

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Elements {
        numbers.into_iter().map(Value::Int).collect()
    }

    #[test]
    fn a_holder_of_an_earlier_state_keeps_it() {
        let mut list = numbers(0..3);
        let earlier = list.clone();
        list.push(Value::Int(3));
        list.set(0, Value::Int(9));
        assert_eq!((earlier, list), (numbers(0..3), numbers([9, 1, 2, 3])));
    }

    #[test]
    fn random_changes_beside_snapshots_agree_with_a_vector_and_leave_the_snapshots_alone() {
        let texts = |from: i64, to: i64| (from..to).map(|number| Value::text(&number.to_string()));
        let record = |number| Value::Record([Value::Int(number), Value::Bool(number % 3 == 0)].into());
        let starts: [Elements; 3] = [numbers(0..2_000), texts(0, 500).collect(), (0..1_000).map(record).collect()];
        for (mut list, mut random) in starts.into_iter().zip([1_u64, 2, 3]) {
            let (mut model, mut snapshots) = (list.to_vec(), Vec::new());
            for round in 0..2_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if round % 100 == 0 {
                    snapshots.push((list.clone(), model.clone()));
                }
                let at = (random >> 33) as usize % model.len().max(1);
                match (random >> 20) % 5 {
                    0 | 1 => {
                        list.push(model[at].clone());
                        model.push(model[at].clone());
                    }
                    2 => {
                        list.set(at, model[0].clone());
                        model[at] = model[0].clone();
                    }
                    3 => {
                        list.remove_first(at % 3);
                        model.drain(..at % 3);
                    }
                    _ => assert_eq!(list.get(at), model.get(at).cloned()),
                }
                assert_eq!(list.len(), model.len());
            }
            snapshots.push((list, model));
            snapshots.iter().for_each(|(list, model)| assert_eq!(&list.to_vec(), model));
            snapshots.into_iter().for_each(|(list, model)| assert!(list.into_iter().eq(model)));
        }
    }

    #[test]
    fn pushing_to_an_unshared_list_leaves_the_elements_where_they_are_most_of_the_time() {
        let mut list = Elements::default();
        let mut moves = 0;
        for number in 0..10_000 {
            let before = list.address();
            list.push(Value::Int(number));
            moves += usize::from(list.address() != before);
        }
        assert!(moves <= 20, "{moves} allocations for 10,000 elements");
    }

    #[test]
    fn sorting_agrees_with_comparing_whole_elements() {
        let text =
            |number: i64| Value::text(["", "a", "a\0", "longer text", "longer text 2", "é"][number as usize % 6]);
        let float =
            |number: i64| Value::Float([0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, -1.5, 2.5][number as usize % 7]);
        let nested = |number: i64| Value::Record([Value::Record([text(number)].into()), Value::Int(-number)].into());
        let makers: [&dyn Fn(i64) -> Value; 8] = [
            &|number| Value::Record([Value::Int(number % 7 - 3), text(number)].into()),
            &|number| Value::Record([text(number), Value::Int(-number)].into()),
            &|number| Value::Record([float(number), text(number * 5)].into()),
            &|number| if number % 3 == 0 { Value::none() } else { Value::some(text(number)) },
            &|number| Value::list(vec![text(number), text(number / 2)]),
            &|number| Value::Record([Value::Bool(number % 2 == 0), text(number)].into()),
            &|number| Value::Record([Value::Size(number.unsigned_abs()), text(number)].into()),
            &nested,
        ];
        for make in makers {
            let mut model: Vec<Value> = (0..500).map(|number| make(number * 7_919 % 101)).collect();
            let mut list: Elements = model.iter().cloned().collect();
            list.sort();
            model.sort();
            assert_eq!(list.to_vec(), model);
        }
    }

    #[test]
    fn a_list_with_room_for_further_words_stays_where_it_is() {
        let mut list: Elements = [Value::Int(0)].into_iter().collect();
        list.reserve_words(10_000);
        let address = list.as_ints().map(<[i64]>::as_ptr);
        assert!((1..=10_000).all(|word| list.push_word(word)));
        assert_eq!((list.len(), list.as_ints().map(<[i64]>::as_ptr)), (10_001, address));
        let mut texts: Elements = [Value::text("a")].into_iter().collect();
        texts.reserve_words(10_000);
        assert_eq!(texts.get(0), Some(Value::text("a")));
    }

    #[test]
    fn several_words_are_stored_or_added_if_the_list_has_the_places_and_one_owner() {
        let mut list = numbers(0..7);
        assert!(list.set_words(1, 2, 3, 9) && !list.set_words(1, 3, 3, 8) && !list.set_words(7, 1, 1, 8));
        assert!(!list.set_words(1, usize::MAX, 2, 8) && !list.set_words(0, 1, 0, 8));
        assert!(list.push_words(5, 2) && list.push_words(5, 0));
        assert_eq!(list, numbers([0, 9, 2, 9, 4, 9, 6, 5, 5]));
        let other = list.clone();
        assert!(!list.set_words(0, 1, 1, 7) && !list.push_words(7, 1));
        assert_eq!(list, other);
        let mut texts: Elements = [Value::text("a")].into_iter().collect();
        assert!(!texts.set_words(0, 1, 1, 7) && !texts.push_words(7, 1) && !Elements::default().push_words(7, 1));
    }

    #[test]
    fn packed_records_take_other_elements_too() {
        let record = |number| Value::Record([Value::Int(number), Value::Float(0.5)].into());
        let other = Value::Record([Value::Int(1), Value::text("no scalar")].into());
        let mut list: Elements = (0..3).map(record).collect();
        assert_eq!((list.is_packed(), list.len(), list.field_word(1, 0)), (true, 3, Some(1)));
        assert!(list.push_record([3, 0.5_f64.to_bits()].into_iter()) && !list.push_record([3].into_iter()));
        list.set(0, record(9));
        assert_eq!(list, [9, 1, 2, 3].map(record).into_iter().collect());
        list.set(1, other.clone());
        assert!(!list.is_packed());
        list.push(other.clone());
        assert_eq!(list.to_vec(), [record(9), other.clone(), record(2), record(3), other]);
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

    /// The sign of NaN depends on the processor and the compiler.
    #[test]
    fn nan_equals_nan_and_comes_last_whatever_its_bits_are() {
        let float = |number: f64| Value::Float(number);
        let pair = |number: f64, other: i64| Value::Record([float(number), Value::Int(other)].into());
        assert_eq!(float(f64::NAN), float(-f64::NAN));
        assert_eq!(Value::list(vec![float(f64::NAN)]), Value::list(vec![float(-f64::NAN)]));
        let records = |number: f64, other: i64| Value::list(vec![pair(number, other)]);
        assert_eq!(records(f64::NAN, 1), records(-f64::NAN, 1));
        assert!(records(f64::NAN, 1) < records(-f64::NAN, 2) && records(-f64::NAN, 1) < records(f64::NAN, 2));

        let mut map = Entries::default();
        map.insert(float(f64::NAN), Value::Int(1));
        map.insert(float(-f64::NAN), Value::Int(2));
        assert_eq!((map.len(), map.get(&float(f64::NAN))), (1, Some(&Value::Int(2))));

        let sorted = |numbers: &[f64]| {
            let mut list: Elements = numbers.iter().map(|number| Value::Float(*number)).collect();
            list.sort();
            list
        };
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!(sorted(&[-nan, infinity, 1.0, -infinity]), sorted(&[-infinity, 1.0, infinity, nan]));
        let last = sorted(&[-nan, infinity]).get(1);
        assert!(matches!(last, Some(Value::Float(number)) if number.is_nan()));
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
