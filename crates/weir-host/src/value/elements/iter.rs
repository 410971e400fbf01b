//! Iterators over the elements of a list.

use std::borrow::Cow;
use std::ops::Range;
use std::slice;

use triomphe::Arc;

use super::Element;
use super::form::ListForm;
use super::packed::Packed;
use super::sequence::SequenceIter;
use crate::Value;

/// The elements of a list, in order.
#[derive(Clone)]
pub struct ElementIter<'v> {
    form: ListFormIter<'v>,
    left: usize,
}

#[derive(Clone)]
enum ListFormIter<'v> {
    Values(slice::Iter<'v, Value>),
    Packed(&'v Packed, usize),
    Persistent(SequenceIter<'v>),
}

impl<'v> ElementIter<'v> {
    pub(super) fn new(form: &'v ListForm) -> Self {
        let left = form.len();
        let form = match form {
            ListForm::Values(all) => ListFormIter::Values(all.iter()),
            ListForm::Packed(all) => match &**all {
                Packed::Persistent(all) => ListFormIter::Persistent(all.iter()),
                packed => ListFormIter::Packed(packed, 0),
            },
        };
        ElementIter { form, left }
    }
}

impl<'v> Iterator for ElementIter<'v> {
    type Item = Element<'v>;

    #[inline]
    fn next(&mut self) -> Option<Element<'v>> {
        self.left = self.left.checked_sub(1)?;
        match &mut self.form {
            ListFormIter::Values(all) => all.next().map(Cow::Borrowed),
            ListFormIter::Packed(all, next) => {
                *next += 1;
                all.get(*next - 1).map(Cow::Owned)
            }
            ListFormIter::Persistent(all) => all.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ElementIter<'_> {}

/// The elements of a list: moved if they are not shared, cloned otherwise.
pub struct ElementIntoIter {
    form: ListFormIntoIter,
}

enum ListFormIntoIter {
    Values(ecow::vec::IntoIter<Value>),
    Packed(Arc<Packed>, Range<usize>),
    Persistent(std::vec::IntoIter<Value>),
}

impl ElementIntoIter {
    pub(super) fn new(form: ListForm) -> Self {
        let form = match form {
            ListForm::Values(all) => ListFormIntoIter::Values(all.into_iter()),
            ListForm::Packed(all) if matches!(*all, Packed::Persistent(_)) => {
                ListFormIntoIter::Persistent(Arc::unwrap_or_clone(all).into_values().into_iter())
            }
            ListForm::Packed(all) => {
                let range = 0..all.len();
                ListFormIntoIter::Packed(all, range)
            }
        };
        ElementIntoIter { form }
    }
}

impl Iterator for ElementIntoIter {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        match &mut self.form {
            ListFormIntoIter::Values(all) => all.next(),
            ListFormIntoIter::Packed(all, range) => range.next().and_then(|index| all.get(index)),
            ListFormIntoIter::Persistent(all) => all.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.form {
            ListFormIntoIter::Values(all) => all.size_hint(),
            ListFormIntoIter::Packed(_, range) => range.size_hint(),
            ListFormIntoIter::Persistent(all) => all.size_hint(),
        }
    }
}

impl ExactSizeIterator for ElementIntoIter {}
