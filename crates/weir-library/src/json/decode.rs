//! Decoding of JSON into values of a type that is known only at run time: request bodies, and the results of `json.decode`.
//!
//! Types are data here, so there is no Rust type for which a parser could be derived. The text is parsed into a tree
//! (which `serde_json` limits to a depth of 127), and the tree is converted. An enum is written as `"Name"`, or with a
//! payload as `{"Name": payload}`. Unknown fields of a record are ignored, a repeated key in an object is refused, and
//! an `Option` may be missing or `null`.

#[cfg(test)]
mod tests;

use weir::memory::check;
use weir::{Entries, Field, HostType, Type, TypeOf, TypeShape, Value};

use super::parse::{self, RepeatedKeys};
use super::tree::{JSON_VALUE, Json, JsonNode};
use super::why;
use crate::input::{
    InputError, NamedTypes, expected, expected_beside, is_scalar, scalar, scalar_or_error, shortened, shown,
};

/// Parses JSON as a value of the type. `place` names the whole of it in messages; it may be empty.
pub(crate) fn parse(json: &[u8], place: &str, ty: &Type, definitions: NamedTypes<'_>) -> Result<Value, InputError> {
    let json = parse::parse(json, RepeatedKeys::Refused).map_err(|error| {
        InputError::new(place, format!("{} at line {} column {}", why(&error), error.line(), error.column()))
    })?;
    JsonDecoder { definitions, path: place.into() }.value(ty, &json)
}

/// Converts a JSON value to a value of the type.
pub(super) fn convert(json: &Json, of: &TypeOf) -> Result<Value, InputError> {
    JsonDecoder { definitions: NamedTypes(&of.definitions), path: String::new() }.value(&of.ty, json)
}

/// Returns `true` if JSON can express values of this type.
pub(crate) fn is_sayable(ty: &Type, definitions: NamedTypes<'_>) -> bool {
    sayable(ty, definitions, &mut Vec::new())
}

/// `inside` holds the named types on the path, so that a recursive type is examined once.
fn sayable<'a>(ty: &'a Type, definitions: NamedTypes<'a>, inside: &mut Vec<&'a str>) -> bool {
    match ty {
        Type::Unit | Type::Bool | Type::Int | Type::Float | Type::Text | Type::Size | Type::Duration | Type::Time => {
            true
        }
        // `None` and the inner value would both be `null`.
        Type::Option(some) if matches!(**some, Type::Option(_) | Type::Unit) => false,
        Type::List(element) | Type::Option(element) => sayable(element, definitions, inside),
        Type::Map(pair) => is_scalar(&pair.0, definitions) && sayable(&pair.1, definitions, inside),
        Type::Tuple(elements) => elements.iter().all(|element| sayable(element, definitions, inside)),
        Type::Named(name) if inside.contains(&&**name) || &**name == JSON_VALUE => true,
        Type::Named(name) => {
            inside.push(name);
            let mut all = |fields: &'a [Field]| fields.iter().all(|field| sayable(&field.ty, definitions, inside));
            match definitions.shape(name) {
                Some(TypeShape::Record(fields)) => all(fields),
                Some(TypeShape::Enum(variants)) => variants.iter().all(|variant| all(&variant.fields)),
                Some(TypeShape::Opaque { .. }) | None => false,
            }
        }
        _ => false,
    }
}

/// Converter of a JSON tree.
struct JsonDecoder<'a> {
    definitions: NamedTypes<'a>,
    /// Path to the current value, for messages.
    path: String,
}

impl JsonDecoder<'_> {
    fn value(&mut self, ty: &Type, json: &Json) -> Result<Value, InputError> {
        check().map_err(|failure| InputError::new(&self.path, failure.message.as_str()))?;
        match (ty, &json.0) {
            (Type::Option(_), JsonNode::Null) => Ok(Value::none()),
            (Type::Option(some), _) => self.value(some, json).map(Value::some),
            (Type::Unit, JsonNode::Null) => Ok(Value::Unit),
            (Type::Size | Type::Duration | Type::Time, JsonNode::Text(text)) => {
                scalar(ty, text, self.definitions).ok_or_else(|| self.problem(ty, json))
            }
            (Type::Bool, JsonNode::Bool(value)) => Ok(Value::Bool(*value)),
            (Type::Text, JsonNode::Text(value)) => Ok(Value::Text(value.clone())),
            (Type::Int, JsonNode::Number(number)) => {
                number.as_i64().map(Value::Int).ok_or_else(|| self.problem(ty, json))
            }
            (Type::Float, JsonNode::Number(number)) => {
                number.as_f64().map(Value::Float).ok_or_else(|| self.problem(ty, json))
            }
            (Type::List(element), JsonNode::List(_, elements)) => {
                let types = std::iter::repeat_n(&**element, elements.len());
                Ok(Value::List(self.elements(types, elements)?.into()))
            }
            (Type::Tuple(types), JsonNode::List(_, elements)) if types.len() == elements.len() => {
                Ok(Value::Record(self.elements(types.iter(), elements)?.into()))
            }
            (Type::Map(pair), JsonNode::Object(_, entries)) => {
                let mut map = Entries::with_capacity(entries.len());
                for (key, json) in entries.iter() {
                    self.at(&format!(".{}", shortened(key)), |decoder| {
                        let value = decoder.value(&pair.1, json)?;
                        match map.insert(decoder.key(&pair.0, key)?, value) {
                            None => Ok(()),
                            Some(_) => Err(decoder.key_again(key)),
                        }
                    })?;
                }
                Ok(Value::Map(map))
            }
            (Type::Named(name), _) if &**name == JSON_VALUE => {
                json.clone().into_value().map_err(|failure| InputError::new(&self.path, failure.message.as_str()))
            }
            (Type::Named(name), _) => self.named(ty, name, json),
            _ => Err(self.problem(ty, json)),
        }
    }

    /// Converts the key of an object to a key of a map.
    fn key(&self, ty: &Type, key: &str) -> Result<Value, InputError> {
        scalar_or_error(ty, key, self.definitions).map_err(|what| InputError::new(&self.path, format!("a key: {what}")))
    }

    /// Returns the error for a key that another one of the object equals, such as `"007"` beside `"7"`.
    fn key_again(&self, key: &str) -> InputError {
        InputError::new(&self.path, format!("the key {} is there twice, in another spelling", shown(key)))
    }

    fn named(&mut self, ty: &Type, name: &str, json: &Json) -> Result<Value, InputError> {
        match (self.definitions.shape(name), &json.0) {
            (Some(TypeShape::Record(fields)), JsonNode::Object(_, entries)) => {
                Ok(Value::Record(self.fields(fields, |field| entries.get(field.external_name()))?.into()))
            }
            (Some(TypeShape::Enum(variants)), _) => {
                let (name, payload) = tagged(json).ok_or_else(|| self.problem(ty, json))?;
                let tag = variants.iter().position(|variant| &**variant.external_name() == name);
                let tag = tag.ok_or_else(|| self.problem(ty, json))?;
                let payload =
                    self.at(&format!(".{name}"), |decoder| decoder.payload(&variants[tag].fields, payload))?;
                Ok(Value::Variant(u32::try_from(tag).unwrap_or(u32::MAX), payload))
            }
            _ => Err(self.problem(ty, json)),
        }
    }

    /// Converts the payload of a variant: a single positional field is written as itself, several as a list, named
    /// fields as an object.
    fn payload(&mut self, fields: &[Field], json: Option<&Json>) -> Result<Option<weir::Values>, InputError> {
        let positional = fields.first().is_some_and(|field| &*field.name == "0");
        match (fields, json.map(|json| &json.0)) {
            ([], None) => Ok(None),
            ([field], Some(_)) if positional && let Some(json) = json => {
                Ok(Some([self.value(&field.ty, json)?].into()))
            }
            (fields, Some(JsonNode::List(_, elements))) if positional && fields.len() == elements.len() => {
                Ok(Some(self.elements(fields.iter().map(|field| &field.ty), elements)?.into()))
            }
            ([_, ..], Some(JsonNode::Object(_, entries))) if !positional => {
                Ok(Some(self.fields(fields, |field| entries.get(field.external_name()))?.into()))
            }
            ([], Some(_)) => Err(InputError::new(&self.path, "expected no payload")),
            ([_], _) => Err(InputError::new(&self.path, "expected a payload")),
            _ => Err(InputError::new(&self.path, format!("expected a payload of {} fields", fields.len()))),
        }
    }

    fn elements<'t>(
        &mut self,
        types: impl Iterator<Item = &'t Type>,
        elements: &[Json],
    ) -> Result<Vec<Value>, InputError> {
        let numbered = types.zip(elements).enumerate();
        numbered.map(|(index, (ty, json))| self.at(&format!("[{index}]"), |decoder| decoder.value(ty, json))).collect()
    }

    fn fields<'j>(
        &mut self,
        fields: &[Field],
        find: impl Fn(&Field) -> Option<&'j Json>,
    ) -> Result<Vec<Value>, InputError> {
        let decode_field = |field: &Field| {
            self.at(&format!(".{}", field.external_name()), |decoder| match (find(field), &field.default, &field.ty) {
                (Some(json), _, ty) => decoder.value(ty, json),
                (None, Some(default), _) => Ok(default.clone()),
                (None, None, Type::Option(_)) => Ok(Value::none()),
                (None, None, ty) => {
                    let expected = expected(ty, decoder.definitions);
                    Err(InputError::new(&decoder.path, format!("missing, expected {expected}")))
                }
            })
        };
        fields.iter().map(decode_field).collect()
    }

    /// Runs `go` with `step` appended to the path.
    fn at<T>(&mut self, step: &str, go: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(if length == 0 { step.trim_start_matches('.') } else { step });
        let result = go(self);
        self.path.truncate(length);
        result
    }

    fn problem(&self, ty: &Type, found: &Json) -> InputError {
        let (found, expected) = match &found.0 {
            JsonNode::Number(number) => (kind_of(&found.0), expected_beside(ty, &number.to_string(), self.definitions)),
            JsonNode::Text(text) if *ty == Type::Time => {
                (kind_of(&found.0), expected_beside(ty, text, self.definitions))
            }
            other => (kind_of(other), expected(ty, self.definitions)),
        };
        InputError::new(&self.path, format!("expected {expected}, found {found}"))
    }
}

/// Describes a value for messages.
fn kind_of(found: &JsonNode) -> String {
    match found {
        JsonNode::Null => "`null`".into(),
        JsonNode::Bool(value) => format!("`{value}`"),
        JsonNode::Number(number) => format!("`{}`", shortened(&number.to_string())),
        JsonNode::Text(text) => shown(text),
        JsonNode::List(_, elements) => format!("a list of {}", elements.len()),
        JsonNode::Object(..) => "an object".into(),
    }
}

/// Returns the name of a variant and its payload.
fn tagged(json: &Json) -> Option<(&str, Option<&Json>)> {
    match &json.0 {
        JsonNode::Text(name) => Some((name, None)),
        JsonNode::Object(_, entries) if entries.len() == 1 => {
            entries.iter().next().map(|(name, payload)| (name.as_str(), Some(payload)))
        }
        _ => None,
    }
}
