//! JSON values as immutable trees with shared subtrees, so that accessing a part copies nothing.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use weir::{Borrowable, Text, Value};

use super::fields::FieldMap;
use super::number::JsonNumber;

/// Maximum nesting depth; also the limit of `serde_json`.
pub(super) const DEPTH_MAX: u8 = 127;

/// Name of the type [`Json`] in programs.
pub(super) const JSON_VALUE: &str = "json.Value";

/// A JSON value: `null`, a Boolean, a number, a text, a list or an object. Cloning it copies nothing.
#[derive(Clone, Debug, PartialEq, weir::Type)]
#[weir(opaque, name = "json.Value")]
pub struct Json(pub(super) JsonNode);

/// The kind and contents of a JSON value. Lists and objects store their depth.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonNode {
    Null,
    Bool(bool),
    Number(JsonNumber),
    Text(Text),
    List(u8, Arc<[Json]>),
    Object(u8, Arc<ObjectFields>),
}

/// The values of an object by their keys, in its order.
pub(super) type ObjectFields = FieldMap<Json>;

/// Error for a value that would nest too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JSON nests at most {DEPTH_MAX} deep")
    }
}

impl std::error::Error for TooDeep {}

impl Json {
    /// Creates a list.
    pub(super) fn list(items: Vec<Json>) -> Result<Json, TooDeep> {
        Ok(Json(JsonNode::List(around(items.iter())?, items.into())))
    }

    /// Creates an object.
    pub(super) fn object(fields: ObjectFields) -> Result<Json, TooDeep> {
        Ok(Json(JsonNode::Object(around(fields.values())?, Arc::new(fields))))
    }

    pub(super) fn depth(&self) -> u8 {
        match &self.0 {
            JsonNode::List(depth, _) | JsonNode::Object(depth, _) => *depth,
            _ => 0,
        }
    }
}

/// Returns the units of reading a JSON value with everything in it. It looks at no more of the value than decides that
/// this takes long.
pub(super) fn units(value: &Value) -> u64 {
    /// The number of parts at which it takes long whatever they are.
    const PARTS_MAX: usize = 10_000;
    fn extend<'v>(open: &mut Vec<&'v Json>, parts: impl Iterator<Item = &'v Json>) {
        open.extend(parts.take(PARTS_MAX.saturating_sub(open.len())));
    }
    let Ok(value) = <Json as Borrowable>::borrow_from(value) else { return 0 };
    let (mut units, mut open) = (0_u64, vec![&*value]);
    for _ in 0..PARTS_MAX {
        let Some(part) = open.pop() else { break };
        units += 2;
        match &part.0 {
            JsonNode::Text(text) => units += text.len() as u64 / 32,
            JsonNode::List(_, items) => {
                units += items.len() as u64;
                extend(&mut open, items.iter());
            }
            JsonNode::Object(_, fields) => {
                units += fields.len() as u64;
                extend(&mut open, fields.values());
            }
            _ => {}
        }
    }
    units
}

/// Returns the depth of a value with these parts.
fn around<'a>(parts: impl Iterator<Item = &'a Json>) -> Result<u8, TooDeep> {
    match parts.map(Json::depth).max().unwrap_or(0) {
        deepest if deepest < DEPTH_MAX => Ok(deepest + 1),
        _ => Err(TooDeep),
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            JsonNode::Null => to.serialize_unit(),
            JsonNode::Bool(value) => to.serialize_bool(*value),
            JsonNode::Number(number) => number.serialize(to),
            JsonNode::Text(text) => to.serialize_str(text),
            JsonNode::List(_, items) => to.collect_seq(items.iter()),
            JsonNode::Object(_, fields) => to.collect_map(fields.iter().map(|(key, value)| (key.as_str(), value))),
        }
    }
}
