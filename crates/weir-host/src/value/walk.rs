//! Pre-order walk through values of any depth, with a stack on the heap.

use std::borrow::Cow;
use std::slice;

use crate::value::elements::{self, Element};
use crate::value::entries;
use crate::{Value, Values};

/// Pre-order iterator over a value and everything in it. The keys and values of a map alternate.
pub struct Walk<'v> {
    first: Option<&'v Value>,
    open: Vec<PartCursor<'v>>,
}

/// A value and a cursor over its parts.
pub(super) struct PartCursor<'v> {
    /// The value that has the parts.
    pub(super) value: Element<'v>,
    parts: PartIter<'v>,
    /// Number of parts yielded.
    pub(super) yielded: usize,
}

/// The parts that were not yet yielded.
enum PartIter<'v> {
    List(elements::ElementIter<'v>),
    Values(slice::Iter<'v, Value>),
    /// The fields of a packed record, and the position of the next one.
    Fields(Values, usize),
    /// Entries, and the value of the entry whose key was yielded.
    Map(entries::EntryIter<'v>, Option<&'v Value>),
}

impl Value {
    /// Iterates in pre-order over the value and everything in it. The keys and values of a map alternate.
    ///
    /// ```
    /// use weir_host::Value;
    ///
    /// let value = Value::list(vec![Value::some(Value::Int(1)), Value::none()]);
    /// let walked: Vec<String> = value.walk().map(|value| value.to_string()).collect();
    /// assert_eq!(walked, ["[#1(1), #0]", "#1(1)", "1", "#0"]);
    /// ```
    #[must_use]
    pub fn walk(&self) -> Walk<'_> {
        Walk { first: Some(self), open: Vec::new() }
    }

    /// Returns about the bytes that the value takes, with everything in it: each part as if it were stored by itself, and
    /// nothing for host values.
    ///
    /// ```
    /// use weir_host::Value;
    ///
    /// assert!(Value::Int(1).approximate_bytes() < 64);
    /// assert!(Value::text(&"a".repeat(1_000)).approximate_bytes() >= 1_000);
    /// assert!(Value::list(vec![Value::Int(1); 100]).approximate_bytes() >= 800);
    /// ```
    #[must_use]
    pub fn approximate_bytes(&self) -> u64 {
        let own = |part: Element<'_>| match &*part {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.walk().map(|part| (size_of::<Value>() + own(part)) as u64).sum()
    }

    /// Returns the elements of a list, the fields of a record or the payload of a variant, if they are stored as values,
    /// one after the other.
    #[inline]
    pub(super) fn parts(&self) -> Option<&[Value]> {
        match self {
            Value::List(elements) => elements.as_values(),
            Value::Record(values) | Value::Variant(_, Some(values)) => Some(values),
            _ => None,
        }
    }

    /// Returns `true` if the value has parts.
    fn has_parts(&self) -> bool {
        match self {
            Value::Map(entries) => !entries.is_empty(),
            Value::List(elements) => !elements.is_empty(),
            _ => self.parts().is_some_and(|parts| !parts.is_empty()),
        }
    }
}

impl<'v> PartCursor<'v> {
    /// Returns a cursor before the first part.
    pub(super) fn new(value: &'v Value) -> Self {
        let parts = match value {
            Value::List(elements) => match elements.as_values() {
                Some(values) => PartIter::Values(values.iter()),
                None => PartIter::List(elements.iter()),
            },
            Value::Map(entries) => PartIter::Map(entries.iter(), None),
            _ => PartIter::Values(value.parts().unwrap_or_default().iter()),
        };
        PartCursor { value: Cow::Borrowed(value), parts, yielded: 0 }
    }

    /// Returns a cursor before the first part of an element.
    pub(super) fn of_element(element: Element<'v>) -> Self {
        match element {
            Cow::Borrowed(value) => PartCursor::new(value),
            Cow::Owned(value) => {
                let fields = if let Value::Record(fields) = &value { fields.clone() } else { Values::default() };
                PartCursor { value: Cow::Owned(value), parts: PartIter::Fields(fields, 0), yielded: 0 }
            }
        }
    }

    /// Returns the next part; `None` after the last. A part that is not borrowed is a scalar or a record of scalars.
    pub(super) fn advance(&mut self) -> Option<Element<'v>> {
        let part = match &mut self.parts {
            PartIter::Values(values) => values.next().map(Cow::Borrowed),
            PartIter::List(elements) => elements.next(),
            PartIter::Fields(fields, next) => {
                *next += 1;
                fields.get(*next - 1).cloned().map(Cow::Owned)
            }
            PartIter::Map(entries, value) => value.take().map(Cow::Borrowed).or_else(|| {
                let (key, next) = entries.next()?;
                *value = Some(next);
                Some(Cow::Borrowed(key))
            }),
        }?;
        self.yielded += 1;
        Some(part)
    }
}

impl<'v> Iterator for Walk<'v> {
    type Item = Element<'v>;

    fn next(&mut self) -> Option<Element<'v>> {
        let found = match self.first.take() {
            Some(first) => Cow::Borrowed(first),
            None => next_part(&mut self.open)?,
        };
        if found.has_parts() {
            self.open.push(PartCursor::of_element(found.clone()));
        }
        Some(found)
    }
}

fn next_part<'v>(open: &mut Vec<PartCursor<'v>>) -> Option<Element<'v>> {
    loop {
        match open.last_mut()?.advance() {
            Some(part) => return Some(part),
            None => open.pop(),
        };
    }
}
