//! Identifiers that the program has issued itself, and recognises when they come back.

use std::fmt;

use crate::value::Value;

/// A check for identifiers that the program has issued, such as tokens with a signature. The embedder puts it into the
/// environment. The runtime then keeps the sessions of issued identifiers when there is room for few: anybody can make up
/// other ones.
pub struct IssuedIds(Box<dyn Fn(&str) -> bool + Send + Sync>);

impl IssuedIds {
    /// Creates a check of this function, which returns true for a text that the program has issued.
    pub fn new(is_issued: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        IssuedIds(Box::new(is_issued))
    }

    /// Returns true if the key of a session is an issued identifier, or a tuple, record or `Option` that contains one.
    #[must_use]
    pub fn includes(&self, key: &Value) -> bool {
        match key {
            Value::Text(text) => (self.0)(text),
            Value::Record(parts) => parts.iter().any(|part| self.includes(part)),
            Value::Variant(_, Some(payload)) => payload.iter().any(|part| self.includes(part)),
            _ => false,
        }
    }
}

impl fmt::Debug for IssuedIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedIds")
    }
}
