//! Parsing of JSON into a tree.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use weir::Text;
use weir::memory::check;

use super::number::{JsonNumber, NumberTexts};
use super::tree::{Json, JsonNode, ObjectFields};
use crate::input::shown;

/// The rule for an object that repeats a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatedKeys {
    /// The last value counts.
    LastCounts,
    /// The object is refused, because two readers could disagree about which of the values counts.
    Refused,
}

/// Parses a text of JSON.
pub(super) fn parse(json: &[u8], repeated_keys: RepeatedKeys) -> Result<Json, serde_json::Error> {
    let numbers = NumberTexts::new(json);
    let mut parser = serde_json::Deserializer::from_slice(json);
    let parsed = JsonBuilder { numbers: &numbers, repeated_keys }.deserialize(&mut parser)?;
    parser.end().map(|()| parsed)
}

/// Visitor that builds a tree from the parser's events.
#[derive(Clone, Copy)]
struct JsonBuilder<'a> {
    numbers: &'a NumberTexts<'a>,
    repeated_keys: RepeatedKeys,
}

impl JsonBuilder<'_> {
    fn integer(self, number: impl Into<serde_json::Number>) -> Json {
        self.numbers.pass();
        Json(JsonNode::Number(JsonNumber::Machine(number.into())))
    }
}

impl<'de> DeserializeSeed<'de> for JsonBuilder<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonBuilder<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json(JsonNode::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json(JsonNode::Bool(value)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(self.integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(self.integer(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        let number = self.numbers.next().and_then(|text| JsonNumber::of_text(number, text));
        number.map(|number| Json(JsonNode::Number(number))).ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json(JsonNode::Text(text.into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = parts.next_element_seed(self)? {
            check().map_err(A::Error::custom)?;
            items.push(item);
        }
        Json::list(items).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Json, A::Error> {
        let mut fields = ObjectFields::default();
        while let Some(ObjectKey(key)) = parts.next_key()? {
            if self.repeated_keys == RepeatedKeys::Refused && fields.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {} is repeated", shown(&key))));
            }
            let value = parts.next_value_seed(self)?;
            check().map_err(A::Error::custom)?;
            fields.insert(key, value);
        }
        Json::object(fields).map_err(A::Error::custom)
    }
}

/// A key of an object. Reading it makes no `String` in between.
struct ObjectKey(Text);

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(ObjectKeyVisitor)
    }
}

/// Visitor that takes a key.
struct ObjectKeyVisitor;

impl Visitor<'_> for ObjectKeyVisitor {
    type Value = ObjectKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<ObjectKey, E> {
        Ok(ObjectKey(key.into()))
    }
}
