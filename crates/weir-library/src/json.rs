//! JSON: values of any shape, looked into by functions, and the lines of a file that are such values.

pub(crate) mod decode;
pub(crate) mod encode;
mod lines;
mod tree;
mod unique_keys;

pub use tree::{Json, TooDeep};

use indexmap::IndexMap;
use serde_json::error::Category;
use tree::{DEPTH_MAX, JsonNode};
use weir::{Failure, FailureKind, Module, Text, Typed};

use crate::Limited;

/// Bytes of a text that is parsed: 64 MiB.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The module `json`.
pub(crate) fn json() -> Module {
    lines::within(functions::json())
}

mod functions {
    //! The functions of the module, apart so that the module made of them can be named as it is.

    weir::library! {
        /// JSON: values of any shape, looked into by functions.
        pub(crate) json: super::parse, super::parse_bytes, super::get, super::at, super::find, super::items,
            super::keys, super::text, super::int, super::float, super::bool, super::is_null, super::write,
            super::encode, super::of_text, super::of_int, super::of_float, super::of_bool, super::null, super::list,
            super::object
    }
}

/// The value that a text says. Objects keep one of each key, the last; values nest at most 128 deep.
///
/// # Errors
/// Fails where the text is no JSON, with the line and column.
#[weir::function(pure)]
pub fn parse(text: &str) -> Result<Json, Failure> {
    parse_bytes(text.as_bytes())
}

/// The value that bytes say, such as the body of a request.
///
/// # Errors
/// Fails where the bytes are no JSON, with the line and column.
#[weir::function(pure)]
pub fn parse_bytes(bytes: &[u8]) -> Result<Json, Failure> {
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(Failure::new(FailureKind::Limit, format!("JSON of more than {TEXT_BYTES_MAX} bytes")));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::function(format!("{} at line {} column {}", why(&error), error.line(), error.column()))
    })
}

/// Why something is no JSON, without the place.
fn why(error: &serde_json::Error) -> String {
    let (said, place) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    match (error.classify(), said.strip_suffix(&place).unwrap_or(&said)) {
        (_, "recursion limit exceeded") => format!("not JSON: nests more than {DEPTH_MAX} deep"),
        // What is said of JSON that is in order.
        (Category::Data, said) => said.to_owned(),
        (_, said) => format!("not JSON: {said}"),
    }
}

/// The value of a line, or the column where it is none and why.
fn parse_line(line: &str) -> Result<Json, String> {
    serde_json::from_str(line).map_err(|error: serde_json::Error| format!("column {}: {}", error.column(), why(&error)))
}

/// What an object has under a key.
#[weir::function(pure)]
pub fn get(value: &Json, key: &str) -> Option<Json> {
    if let JsonNode::Object(_, fields) = &value.0 { fields.get(key).cloned() } else { None }
}

/// The item of a list at a position, counted from 0.
#[weir::function(pure)]
pub fn at(value: &Json, position: i64) -> Option<Json> {
    if let JsonNode::List(_, items) = &value.0 { items.get(usize::try_from(position).ok()?).cloned() } else { None }
}

/// What is at the end of a path of keys and positions, such as `user/emails/0`.
#[weir::function(pure)]
pub fn find(value: &Json, path: &str) -> Option<Json> {
    path.split('/').try_fold(value.clone(), |value, key| match &value.0 {
        JsonNode::List(..) => at(&value, key.parse().ok()?),
        _ => get(&value, key),
    })
}

/// The items of a list; none of anything else.
#[weir::function(pure)]
pub fn items(value: &Json) -> Vec<Json> {
    if let JsonNode::List(_, items) = &value.0 { items.to_vec() } else { Vec::new() }
}

/// The keys of an object, in its order; none of anything else.
#[weir::function(pure)]
pub fn keys(value: &Json) -> Vec<Text> {
    if let JsonNode::Object(_, fields) = &value.0 { fields.keys().cloned().collect() } else { Vec::new() }
}

/// The text that the value is.
#[weir::function(pure)]
pub fn text(value: &Json) -> Option<Text> {
    if let JsonNode::Text(text) = &value.0 { Some(text.clone()) } else { None }
}

/// The whole number that the value is, where 64 bits hold it.
#[weir::function(pure)]
pub fn int(value: &Json) -> Option<i64> {
    if let JsonNode::Number(number) = &value.0 { number.as_i64() } else { None }
}

/// The number that the value is, as near as a `Float` comes to it.
#[weir::function(pure)]
pub fn float(value: &Json) -> Option<f64> {
    if let JsonNode::Number(number) = &value.0 { number.as_f64() } else { None }
}

/// The truth value that the value is.
#[weir::function(pure)]
pub fn bool(value: &Json) -> Option<bool> {
    if let JsonNode::Bool(value) = value.0 { Some(value) } else { None }
}

/// Whether the value is `null`.
#[weir::function(pure)]
pub fn is_null(value: &Json) -> bool {
    value.0 == JsonNode::Null
}

/// The value as a text of one line.
#[weir::function(pure)]
pub fn write(value: &Json) -> String {
    serde_json::to_string(value).expect("keys are texts, numbers are finite, and memory takes all that is written")
}

/// Any value as a text of one line: records as objects, lists as arrays, `None` as `null`. Services read bodies in the
/// same form. A value that nests more than 127 deep, or whose text is longer than 64 MiB, ends the flow.
#[weir::function(pure)]
pub fn encode(value: Typed<'T'>) -> Limited<String> {
    let written = encode::written(&value.value, &value.of);
    Limited(written.map(|text| String::from_utf8(text).expect("JSON is written in UTF-8")))
}

/// A text as a value.
#[weir::function(pure)]
pub fn of_text(text: Text) -> Json {
    Json(JsonNode::Text(text))
}

/// A whole number as a value.
#[weir::function(pure)]
pub fn of_int(number: i64) -> Json {
    Json(JsonNode::Number(number.into()))
}

/// A number as a value.
///
/// # Errors
/// Fails for what JSON cannot say: infinities, and what is not a number.
#[weir::function(pure)]
pub fn of_float(number: f64) -> Result<Json, Failure> {
    let number = serde_json::Number::from_f64(number).ok_or_else(|| Failure::argument("JSON has no such number"))?;
    Ok(Json(JsonNode::Number(number)))
}

/// A truth value as a value.
#[weir::function(pure)]
pub fn of_bool(value: bool) -> Json {
    Json(JsonNode::Bool(value))
}

/// `null`.
#[weir::function(pure)]
pub fn null() -> Json {
    Json(JsonNode::Null)
}

/// A list of values.
///
/// # Errors
/// [`TooDeep`].
#[weir::function(pure)]
pub fn list(items: Vec<Json>) -> Result<Json, TooDeep> {
    Json::list(items)
}

/// An object of the values under their keys.
///
/// # Errors
/// [`TooDeep`].
#[weir::function(pure)]
pub fn object(fields: IndexMap<Text, Json>) -> Result<Json, TooDeep> {
    Json::object(fields)
}
