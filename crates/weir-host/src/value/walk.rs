//! Pre-order walk through values of any depth, with a stack on the heap.

use crate::{Value, Values};

/// Pre-order iterator over a value and everything in it. The keys and values of a map alternate.
pub struct Walk<'v> {
    first: Option<&'v Value>,
    open: Vec<Open<'v>>,
}

/// A value whose parts are being visited, and the number of parts visited.
pub(super) type Open<'v> = (&'v Value, usize);

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
    pub(super) fn values(&self) -> Option<&Values> {
        match self {
            Value::List(values) | Value::Record(values) | Value::Variant(_, Some(values)) => Some(values),
            _ => None,
        }
    }

    /// Returns a part of the value by its index. In a map, keys have even indices and values odd ones.
    pub(super) fn part(&self, index: usize) -> Option<&Value> {
        let Value::Map(map) = self else { return self.values()?.get(index) };
        let (key, value) = map.get_index(index / 2)?;
        Some(if index.is_multiple_of(2) { key } else { value })
    }
}

impl<'v> Iterator for Walk<'v> {
    type Item = &'v Value;

    fn next(&mut self) -> Option<&'v Value> {
        let found = match self.first.take() {
            Some(first) => first,
            None => next_part(&mut self.open)?,
        };
        if found.part(0).is_some() {
            self.open.push((found, 0));
        }
        Some(found)
    }
}

fn next_part<'v>(open: &mut Vec<Open<'v>>) -> Option<&'v Value> {
    loop {
        let (value, index) = open.last_mut()?;
        *index += 1;
        match value.part(*index - 1) {
            Some(part) => return Some(part),
            None => open.pop(),
        };
    }
}
