//! JSON: values of any shape with accessor functions, and files whose lines are JSON values.

pub(crate) mod decode;
pub(crate) mod encode;
mod fields;
mod lines;
mod number;
mod parse;
mod syntax_errors;
mod tree;

pub use tree::{Json, TooDeep};

use indexmap::IndexMap;
use number::JsonNumber;
use parse::RepeatedKeys;
use serde_json::error::Category;
use tree::{DEPTH_MAX, JsonNode};
use weir::{Failure, FailureKind, Module, Text, TypeArgument, Typed, Value};

use crate::input::NamedTypes;
use crate::{Limited, units};

/// Maximum length of a parsed text: 64 MiB.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Builds the module `json`.
pub(crate) fn json() -> Module {
    lines::within(functions::json())
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// JSON: parsing, inspecting and writing values of any shape.
        pub(crate) json: super::parse, super::parse_bytes, super::get, super::at, super::find, super::items,
            super::keys, super::text, super::int, super::float, super::bool, super::is_null, super::write,
            super::encode, super::decode_text, super::decode_value, super::of_text, super::of_int, super::of_float, super::of_bool, super::null, super::list,
            super::object
    }
}

/// Parses a text. If an object repeats a key, the last value counts; values nest at most 127 deep. A number keeps all of its
/// digits, so that `write` writes the same number.
///
/// # Errors
/// Fails if the text is not JSON or has a number beyond ±1.8·10³⁰⁸; the message gives the line and the column.
#[weir::function(pure, units = units::to_divide(text))]
pub fn parse(text: &str) -> Result<Json, Failure> {
    parse_bytes(text.as_bytes())
}

/// Parses bytes, such as the body of a request.
///
/// # Errors
/// Fails if the bytes are not JSON; the message gives the line and the column.
#[weir::function(pure, units = units::to_divide(bytes))]
pub fn parse_bytes(bytes: &[u8]) -> Result<Json, Failure> {
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    parse::parse(bytes, RepeatedKeys::LastCounts).map_err(|error| {
        Failure::function(format!("{} at line {} column {}", why(&error), error.line(), error.column()))
    })
}

fn too_long() -> Failure {
    Failure::new(FailureKind::Limit, format!("JSON longer than {TEXT_BYTES_MAX} bytes"))
}

/// Returns the message of a JSON error without its position.
fn why(error: &serde_json::Error) -> String {
    let (said, place) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    match (error.classify(), said.strip_suffix(&place).unwrap_or(&said)) {
        (_, "recursion limit exceeded") => format!("JSON nests more than {DEPTH_MAX} deep"),
        // An error about JSON that is well-formed.
        (Category::Data, said) => said.to_owned(),
        (_, said) => format!("not JSON: {}", syntax_errors::in_plain_words(said)),
    }
}

/// Parses a line; an error names the column.
fn parse_line(line: &str) -> Result<Json, String> {
    let parsed = parse::parse(line.as_bytes(), RepeatedKeys::LastCounts);
    parsed.map_err(|error| format!("column {}: {}", error.column(), why(&error)))
}

/// Returns the value of an object under a key.
#[weir::function(pure)]
pub fn get(value: &Json, key: &str) -> Option<Json> {
    if let JsonNode::Object(_, fields) = &value.0 { fields.get(key).cloned() } else { None }
}

/// Returns the item of a list at a position, counted from 0.
#[weir::function(pure)]
pub fn at(value: &Json, position: i64) -> Option<Json> {
    if let JsonNode::List(_, items) = &value.0 { items.get(usize::try_from(position).ok()?).cloned() } else { None }
}

/// Returns the value at a path of keys and positions, such as `user/emails/0`.
#[weir::function(pure, units = units::to_transform(path))]
pub fn find(value: &Json, path: &str) -> Option<Json> {
    path.split('/').try_fold(value.clone(), |value, key| match &value.0 {
        JsonNode::List(..) => at(&value, key.parse().ok()?),
        _ => get(&value, key),
    })
}

/// Returns the items of a list; an empty list for any other value.
#[weir::function(pure, units = tree::units(value))]
pub fn items(value: &Json) -> Vec<Json> {
    if let JsonNode::List(_, items) = &value.0 { items.to_vec() } else { Vec::new() }
}

/// Returns the keys of an object, in its order; an empty list for any other value.
#[weir::function(pure, units = tree::units(value))]
pub fn keys(value: &Json) -> Vec<Text> {
    if let JsonNode::Object(_, fields) = &value.0 { fields.keys().cloned().collect() } else { Vec::new() }
}

/// Returns the text, if the value is one.
#[weir::function(pure)]
pub fn text(value: &Json) -> Option<Text> {
    if let JsonNode::Text(text) = &value.0 { Some(text.clone()) } else { None }
}

/// Returns the whole number, if the value is one and fits into 64 bits.
#[weir::function(pure)]
pub fn int(value: &Json) -> Option<i64> {
    if let JsonNode::Number(number) = &value.0 { number.as_i64() } else { None }
}

/// Returns the number, rounded to the nearest `Float`, if the value is one.
#[weir::function(pure)]
pub fn float(value: &Json) -> Option<f64> {
    if let JsonNode::Number(number) = &value.0 { number.as_f64() } else { None }
}

/// Returns the Boolean, if the value is one.
#[weir::function(pure)]
pub fn bool(value: &Json) -> Option<bool> {
    if let JsonNode::Bool(value) = value.0 { Some(value) } else { None }
}

/// Returns `true` if the value is `null`.
#[weir::function(pure)]
pub fn is_null(value: &Json) -> bool {
    value.0 == JsonNode::Null
}

/// Formats the value as JSON on a single line.
#[weir::function(pure, units = tree::units(value))]
pub fn write(value: &Json) -> String {
    serde_json::to_string(value).expect("keys are texts, numbers are finite, and memory takes all that is written")
}

/// Formats any value as JSON on a single line: records become objects, lists arrays, and `None` becomes `null`.
/// Services read bodies in the same format. A value that nests more than 127 deep, or whose text is longer than 64 MiB,
/// ends the flow.
#[weir::function(pure, units = 2 * units::to_read(value))]
pub fn encode(value: Typed<'a'>) -> Limited<String> {
    let written = encode::written(&value.value, &value.of);
    Limited(written.map(|text| String::from_utf8(text).expect("JSON is written in UTF-8")))
}

/// Reads JSON as a value of the type that the place of the call expects: `let user: User = json.decode(text)?`. The format is
/// that of `encode` and of request bodies: objects become records or maps, arrays lists or tuples, and a missing or `null`
/// value `None`. Members that a record does not have are ignored, and a repeated key is refused.
///
/// # Errors
/// Fails if the text is not JSON or does not have the type; the message says where, what was expected and what was found:
/// `items[3].price: expected a number, found "abc"`.
#[weir::function(pure, name = "decode", units = units::to_divide(text))]
pub fn decode_text(text: &str, of: TypeArgument<'a'>) -> Result<Value, Failure> {
    decoded(text.as_bytes(), &of)
}

/// Reads JSON as a value of the type that a call expects.
pub(crate) fn decoded(json: &[u8], of: &TypeArgument<'a'>) -> Result<Value, Failure> {
    if json.len() > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    Ok(decode::parse(json, "", &of.0.ty, NamedTypes(&of.0.definitions))?)
}

/// Reads a JSON value as a value of the type that the place of the call expects, as `decode` does with a text:
/// `for line in json.lines("users.jsonl") { let user: User = line.decode_value()? … }`.
///
/// # Errors
/// Fails if the value does not have the type; the message says where, what was expected and what was found.
#[weir::function(pure, units = 2 * tree::units(value))]
pub fn decode_value(value: &Json, of: TypeArgument<'a'>) -> Result<Value, Failure> {
    Ok(decode::convert(value, &of.0)?)
}

/// Creates a JSON text.
#[weir::function(pure)]
pub fn of_text(text: Text) -> Json {
    Json(JsonNode::Text(text))
}

/// Creates a JSON number from a whole number.
#[weir::function(pure)]
pub fn of_int(number: i64) -> Json {
    Json(JsonNode::Number(JsonNumber::Machine(number.into())))
}

/// Creates a JSON number.
///
/// # Errors
/// Fails for infinities and NaN, which JSON cannot express.
#[weir::function(pure)]
pub fn of_float(number: f64) -> Result<Json, Failure> {
    let number = serde_json::Number::from_f64(number)
        .ok_or_else(|| Failure::argument("JSON cannot express infinities and NaN"))?;
    Ok(Json(JsonNode::Number(JsonNumber::Machine(number))))
}

/// Creates a JSON Boolean.
#[weir::function(pure)]
pub fn of_bool(value: bool) -> Json {
    Json(JsonNode::Bool(value))
}

/// Returns `null`.
#[weir::function(pure)]
pub fn null() -> Json {
    Json(JsonNode::Null)
}

/// Creates a JSON list.
///
/// # Errors
/// Fails if the list nests too deep.
#[weir::function(pure, units = units::length(items))]
pub fn list(items: Vec<Json>) -> Result<Json, TooDeep> {
    Json::list(items)
}

/// Creates a JSON object.
///
/// # Errors
/// Fails if the object nests too deep.
#[weir::function(pure, units = 4 * units::length(fields))]
pub fn object(fields: IndexMap<Text, Json>) -> Result<Json, TooDeep> {
    Json::object(fields.into_iter().collect())
}
