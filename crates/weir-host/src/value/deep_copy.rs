//! Copies of values that share no reference counts.

use bytes::Bytes;

use crate::value::NESTED_MAX;
use crate::{Text, Value};

impl Value {
    /// Returns `true` if cloning the value writes a reference count.
    #[must_use]
    pub fn counts_references(&self) -> bool {
        match self {
            Value::Text(text) => text.words().is_none(),
            Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Record(_) | Value::Host(_) => true,
            Value::Variant(_, payload) => payload.is_some(),
            _ => false,
        }
    }

    /// Returns a copy of the value and of everything in it, so that clones of the copy write other reference counts than
    /// clones of the value. Host values and failures are shared, and so is what nests very deep.
    ///
    /// ```
    /// use weir_host::{Text, Value};
    ///
    /// let text = Text::from("a text that does not lie inline");
    /// let Value::Text(copy) = Value::Text(text.clone()).deep_copy() else { panic!("it is a text") };
    /// assert!(copy == text && copy.as_ptr() != text.as_ptr());
    /// ```
    #[must_use]
    pub fn deep_copy(&self) -> Value {
        self.copied(0)
    }

    fn copied(&self, depth: u32) -> Value {
        if depth == NESTED_MAX {
            return self.clone();
        }
        let copied = |part: &Value| part.copied(depth + 1);
        match self {
            Value::Text(text) => Value::Text(Text::from(text.as_str())),
            Value::Bytes(bytes) => Value::bytes(Bytes::copy_from_slice(bytes)),
            Value::List(elements) => Value::List(elements.to_vec().iter().map(copied).collect()),
            Value::Map(entries) => {
                Value::Map(entries.iter().map(|(key, value)| (copied(key), copied(value))).collect())
            }
            Value::Record(fields) => Value::Record(fields.iter().map(copied).collect()),
            Value::Variant(tag, Some(payload)) => Value::Variant(*tag, Some(payload.iter().map(copied).collect())),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_equal_and_shares_no_part() {
        let text = || Value::text("a text that does not lie inline");
        let list = Value::list(vec![text(), Value::some(text())]);
        let numbers = Value::list((0..100).map(Value::Int).collect());
        let map = Value::Map([(text(), list.clone()), (Value::Int(1), numbers)].into_iter().collect());
        let value = Value::Record([map, Value::bytes("bytes"), Value::Float(0.5), Value::none()].into());
        let copy = value.deep_copy();
        assert_eq!(copy, value);
        let places = |value: &Value| -> Vec<usize> {
            let parts = value.walk();
            let text = |part: &Value| if let Value::Text(text) = part { Some(text.as_ptr().addr()) } else { None };
            parts.filter_map(|part| text(&part)).collect()
        };
        assert_eq!(places(&value).len(), 3);
        assert!(places(&value).iter().all(|place| !places(&copy).contains(place)));
    }

    #[test]
    fn a_value_of_any_depth_is_copied() {
        let deep = (0..100_000).fold(Value::none(), |inner, _| Value::some(inner));
        assert_eq!(deep.deep_copy(), deep);
    }

    #[test]
    fn only_what_lies_outside_of_the_value_counts_references() {
        for value in [Value::Int(1), Value::text("short"), Value::none(), Value::Unit] {
            assert!(!value.counts_references(), "{value}");
        }
        for value in [Value::text("a text that does not lie inline"), Value::list(vec![]), Value::some(Value::Int(1))] {
            assert!(value.counts_references(), "{value}");
        }
    }
}
