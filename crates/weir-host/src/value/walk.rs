//! Pre-order walk through values of any depth, with a stack on the heap.

use crate::Value;

/// Pre-order iterator over a value and everything in it. The keys and values of a map alternate.
pub struct Walk<'v> {
    first: Option<&'v Value>,
    open: Vec<PartCursor<'v>>,
}

/// A value and a cursor over its parts.
pub(super) struct PartCursor<'v> {
    /// The value that has the parts.
    pub(super) value: &'v Value,
    /// Index of the next part. Of a map, twice the next position, plus one if the key was yielded and its value was not.
    next: usize,
    /// Number of parts yielded.
    pub(super) yielded: usize,
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

    /// Returns the elements of a list, the fields of a record or the payload of a variant.
    #[inline]
    pub(super) fn parts(&self) -> Option<&[Value]> {
        match self {
            Value::List(elements) => Some(elements),
            Value::Record(values) | Value::Variant(_, Some(values)) => Some(values),
            _ => None,
        }
    }

    /// Returns `true` if the value has parts.
    fn has_parts(&self) -> bool {
        match self {
            Value::Map(entries) => !entries.is_empty(),
            _ => self.parts().is_some_and(|parts| !parts.is_empty()),
        }
    }
}

impl<'v> PartCursor<'v> {
    /// Returns a cursor before the first part.
    pub(super) fn new(value: &'v Value) -> Self {
        PartCursor { value, next: 0, yielded: 0 }
    }

    /// Returns the next part; `None` after the last.
    pub(super) fn advance(&mut self) -> Option<&'v Value> {
        let Value::Map(entries) = self.value else {
            let part = self.value.parts()?.get(self.next)?;
            (self.next, self.yielded) = (self.next + 1, self.yielded + 1);
            return Some(part);
        };
        let (position, (key, value)) = entries.entry_from(self.next / 2)?;
        let is_key = self.next.is_multiple_of(2);
        (self.next, self.yielded) = (position * 2 + 1 + usize::from(!is_key), self.yielded + 1);
        Some(if is_key { key } else { value })
    }
}

impl<'v> Iterator for Walk<'v> {
    type Item = &'v Value;

    fn next(&mut self) -> Option<&'v Value> {
        let found = match self.first.take() {
            Some(first) => first,
            None => next_part(&mut self.open)?,
        };
        if found.has_parts() {
            self.open.push(PartCursor::new(found));
        }
        Some(found)
    }
}

fn next_part<'v>(open: &mut Vec<PartCursor<'v>>) -> Option<&'v Value> {
    loop {
        match open.last_mut()?.advance() {
            Some(part) => return Some(part),
            None => open.pop(),
        };
    }
}
