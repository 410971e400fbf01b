//! Lists from vectors and iterators, and iterators of lists.

use triomphe::Arc;

use super::form::ListForm;
use super::packed::Packed;
use super::{Element, ElementIntoIter, ElementIter, Elements};
use crate::Value;

impl From<Vec<Value>> for Elements {
    #[inline]
    fn from(elements: Vec<Value>) -> Self {
        elements.into_iter().collect()
    }
}

impl From<&[Value]> for Elements {
    #[inline]
    fn from(elements: &[Value]) -> Self {
        elements.iter().cloned().collect()
    }
}

impl From<Packed> for Elements {
    fn from(packed: Packed) -> Self {
        Elements { form: ListForm::Packed(Arc::new(packed)) }
    }
}

impl From<Vec<i64>> for Elements {
    fn from(elements: Vec<i64>) -> Self {
        Packed::Ints(elements).into()
    }
}

impl From<Vec<f64>> for Elements {
    fn from(elements: Vec<f64>) -> Self {
        Packed::Floats(elements).into()
    }
}

impl From<Vec<bool>> for Elements {
    fn from(elements: Vec<bool>) -> Self {
        Packed::Bools(elements).into()
    }
}

impl FromIterator<Value> for Elements {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Value>>(elements: I) -> Self {
        Elements { form: elements.into_iter().collect() }
    }
}

impl Extend<Value> for Elements {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, elements: I) {
        self.share_nodes();
        self.form.extend(elements);
    }
}

/// Yields the elements: moved if they are not shared, cloned otherwise.
impl IntoIterator for Elements {
    type Item = Value;
    type IntoIter = ElementIntoIter;

    fn into_iter(self) -> ElementIntoIter {
        ElementIntoIter::new(self.form)
    }
}

impl<'v> IntoIterator for &'v Elements {
    type Item = Element<'v>;
    type IntoIter = ElementIter<'v>;

    fn into_iter(self) -> ElementIter<'v> {
        self.iter()
    }
}
