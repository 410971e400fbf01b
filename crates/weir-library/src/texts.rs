//! `Texts`: the parameter of functions that read a list of texts where it is.

use std::borrow::Cow;

use weir::{Elements, Failure, HostType, Type, Value};

/// A list of texts. As a parameter `&Texts` it costs no copies, where `&[Text]` makes a vector of all texts.
#[derive(Clone, Debug, Default)]
pub struct Texts(Elements);

impl Texts {
    /// Returns the number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the texts.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|element| match element {
            Cow::Borrowed(value) => text_of(value),
            // Only scalars and records of scalars are not borrowed.
            Cow::Owned(_) => None,
        })
    }

    /// Calls `visit` with each text.
    pub(crate) fn each<'t>(&'t self, visit: impl FnMut(&'t str)) {
        match self.0.as_values() {
            // Mostly they are stored one after the other, for which an iterator over all forms takes longer.
            Some(values) => values.iter().filter_map(text_of).for_each(visit),
            None => self.iter().for_each(visit),
        }
    }
}

fn text_of(value: &Value) -> Option<&str> {
    if let Value::Text(text) = value { Some(text.as_str()) } else { None }
}

impl<'t> FromIterator<&'t str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'t str>>(texts: I) -> Self {
        Texts(texts.into_iter().map(Value::text).collect())
    }
}

impl HostType for Texts {
    fn ty() -> Type {
        Type::list(Type::Text)
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        Elements::from_value(value).map(Texts)
    }

    fn into_value(self) -> Result<Value, Failure> {
        self.0.into_value()
    }
}
