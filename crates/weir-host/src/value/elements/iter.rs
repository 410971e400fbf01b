//! Iterators over the elements of a list.

use std::borrow::Cow;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use super::Element;
use super::form::Form;
use super::packed::Packed;
use crate::Value;
use crate::value::trie;

/// The elements of a list, in order.
#[derive(Clone)]
pub struct Iter<'v> {
    form: FormIter<'v>,
    left: usize,
}

#[derive(Clone)]
enum FormIter<'v> {
    Values(slice::Iter<'v, Value>),
    Packed(&'v Packed, usize),
    Persistent(trie::Iter<'v, Value>),
}

impl<'v> Iter<'v> {
    pub(super) fn new(form: &'v Form) -> Self {
        let left = form.len();
        let form = match form {
            Form::Values(all) => FormIter::Values(all.iter()),
            Form::Packed(all) => match &**all {
                Packed::Persistent(all) => FormIter::Persistent(all.iter()),
                packed => FormIter::Packed(packed, 0),
            },
        };
        Iter { form, left }
    }
}

impl<'v> Iterator for Iter<'v> {
    type Item = Element<'v>;

    #[inline]
    fn next(&mut self) -> Option<Element<'v>> {
        self.left = self.left.checked_sub(1)?;
        match &mut self.form {
            FormIter::Values(all) => all.next().map(Cow::Borrowed),
            FormIter::Packed(all, next) => {
                *next += 1;
                all.get(*next - 1).map(Cow::Owned)
            }
            FormIter::Persistent(all) => all.next().map(Cow::Borrowed),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// The elements of a list: moved if they are not shared, cloned otherwise.
pub struct IntoIter {
    form: FormIntoIter,
}

enum FormIntoIter {
    Values(ecow::vec::IntoIter<Value>),
    Packed(Arc<Packed>, Range<usize>),
    Persistent(std::vec::IntoIter<Value>),
}

impl IntoIter {
    pub(super) fn new(form: Form) -> Self {
        let form = match form {
            Form::Values(all) => FormIntoIter::Values(all.into_iter()),
            Form::Packed(all) if matches!(*all, Packed::Persistent(_)) => {
                FormIntoIter::Persistent(Arc::unwrap_or_clone(all).into_values().into_iter())
            }
            Form::Packed(all) => {
                let range = 0..all.len();
                FormIntoIter::Packed(all, range)
            }
        };
        IntoIter { form }
    }
}

impl Iterator for IntoIter {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        match &mut self.form {
            FormIntoIter::Values(all) => all.next(),
            FormIntoIter::Packed(all, range) => range.next().and_then(|index| all.get(index)),
            FormIntoIter::Persistent(all) => all.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.form {
            FormIntoIter::Values(all) => all.size_hint(),
            FormIntoIter::Packed(_, range) => range.size_hint(),
            FormIntoIter::Persistent(all) => all.size_hint(),
        }
    }
}

impl ExactSizeIterator for IntoIter {}
