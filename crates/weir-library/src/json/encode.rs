//! Encoding of values as JSON, in the format in which services read bodies.
//!
//! Records become objects, lists and tuples become arrays, and maps become objects, whose keys are texts or the JSON of
//! other keys. A variant is `"Name"` or `{"Name": payload}`; an `Option` is its value or `null`. Sizes, durations and
//! times are formatted as in programs; `NaN` and the infinities, which JSON cannot express, become `null`, and are refused as keys.

use std::io;

use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use weir::memory::ask;
use weir::{Failure, FailureKind, Field, HostType, Type, TypeOf, TypeShape, Value, Variant};

use super::Json;
use super::TEXT_BYTES_MAX;
use super::tree::{DEPTH_MAX, JSON_VALUE};

/// Encodes the value as JSON.
///
/// # Errors
/// Fails if the value nests deeper than JSON that can be read, or if its text is longer than [`TEXT_BYTES_MAX`]: a part
/// that a value shares with itself is written once for each occurrence.
pub(crate) fn written(value: &Value, of: &TypeOf) -> Result<Vec<u8>, Failure> {
    part_written(JsonView::whole(value, of))
}

fn part_written(part: JsonView<'_>) -> Result<Vec<u8>, Failure> {
    let mut text = BoundedBuffer { bytes: Vec::with_capacity(BYTES_AT_FIRST), is_full: false, refused: None };
    let written = serde_json::to_writer(&mut text, &part);
    if let Some(refused) = text.refused {
        return Err(refused);
    }
    match (written, text.is_full) {
        (Ok(()), _) => Ok(text.bytes),
        (Err(_), true) => Err(limit(format!("JSON longer than {TEXT_BYTES_MAX} bytes"))),
        (Err(error), false) => Err(limit(error.to_string())),
    }
}

/// Encodes the value as a text of a row: a value that JSON represents as a text without its quotes, `None` as nothing, and any
/// other value as JSON. Arbitrary JSON stays JSON.
///
/// # Errors
/// Fails as [`written`] does.
pub(crate) fn cell(value: &Value, ty: &Type, of: &TypeOf) -> Result<Vec<u8>, Failure> {
    if let (Type::Option(some), Value::Variant(Value::SOME, Some(payload))) = (ty, value)
        && let Some(value) = payload.first()
    {
        return cell(value, some, of);
    }
    let json = part_written(JsonView { value, ty, of, left: DEPTH_MAX })?;
    Ok(match json.as_slice() {
        _ if matches!(ty, Type::Named(name) if name.as_str() == JSON_VALUE) => json,
        b"null" => Vec::new(),
        [b'"', ..] => serde_json::from_slice::<String>(&json).map_or(json, String::into_bytes),
        _ => json,
    })
}

fn limit(message: String) -> Failure {
    Failure::new(FailureKind::Limit, message)
}

/// Initial capacity, enough for most responses.
const BYTES_AT_FIRST: usize = 128;

/// A buffer of at most [`TEXT_BYTES_MAX`] bytes.
struct BoundedBuffer {
    bytes: Vec<u8>,
    is_full: bool,
    /// Set if there was no memory for more.
    refused: Option<Failure>,
}

impl io::Write for BoundedBuffer {
    #[inline]
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.write_all(piece).map(|()| piece.len())
    }

    #[inline]
    fn write_all(&mut self, piece: &[u8]) -> io::Result<()> {
        if piece.len() > TEXT_BYTES_MAX - self.bytes.len() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.bytes.capacity() - self.bytes.len() < piece.len() {
            self.ask_to_grow(piece.len())?;
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BoundedBuffer {
    /// Asks for the room of a buffer that is twice as large.
    #[cold]
    fn ask_to_grow(&mut self, piece: usize) -> io::Result<()> {
        ask(self.bytes.capacity().max(piece)).map_err(|failure| {
            self.refused = Some(*failure);
            io::ErrorKind::OutOfMemory.into()
        })
    }
}

fn too_deep<E: Error>() -> E {
    E::custom(super::TooDeep)
}

/// A value with its type, serialised as JSON.
#[derive(Clone, Copy)]
pub(crate) struct JsonView<'a> {
    pub(crate) value: &'a Value,
    pub(crate) ty: &'a Type,
    pub(crate) of: &'a TypeOf,
    /// Number of levels that the value may still nest.
    left: u8,
}

impl<'a> JsonView<'a> {
    /// Wraps a whole value that came with its type.
    pub(crate) fn whole(value: &'a Value, of: &'a TypeOf) -> Self {
        JsonView { value, ty: &of.ty, of, left: DEPTH_MAX }
    }

    fn part(self, value: &'a Value, ty: &'a Type) -> Self {
        JsonView { value, ty, of: self.of, left: self.left }
    }

    /// Returns the same value one level deeper.
    fn inside<E: Error>(self) -> Result<Self, E> {
        self.left.checked_sub(1).map(|left| JsonView { left, ..self }).ok_or_else(too_deep)
    }

    fn array<S: Serializer>(
        self,
        values: &'a [Value],
        types: impl Iterator<Item = &'a Type>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let mut array = to.serialize_seq(Some(values.len()))?;
        for (value, ty) in values.iter().zip(types) {
            array.serialize_element(&self.part(value, ty))?;
        }
        array.end()
    }

    fn named<S: Serializer>(self, name: &str, to: S) -> Result<S::Ok, S::Error> {
        if let Some(json) = Json::in_place(self.value) {
            // The value itself has been counted already.
            let fits = json.depth() <= self.left.saturating_add(1);
            return if fits { json.serialize(to) } else { Err(too_deep()) };
        }
        match (self.of.shape(name), self.value) {
            (Some(TypeShape::Record(fields)), Value::Record(values)) => {
                JsonFields { whole: self, fields, values }.serialize(to)
            }
            (Some(TypeShape::Enum(variants)), Value::Variant(tag, payload)) => {
                let variant = usize::try_from(*tag).ok().and_then(|tag| variants.get(tag));
                self.variant(variant, payload.as_deref().unwrap_or_default(), to)
            }
            _ => to.serialize_unit(),
        }
    }

    fn variant<S: Serializer>(self, variant: Option<&Variant>, values: &[Value], to: S) -> Result<S::Ok, S::Error> {
        let Some(variant) = variant else { return to.serialize_unit() };
        if variant.fields.is_empty() {
            return to.serialize_str(variant.external_name());
        }
        let mut object = to.serialize_map(Some(1))?;
        let is_bare = matches!(variant.fields.as_slice(), [field] if &*field.name == "0");
        let whole = if is_bare { self } else { self.inside()? };
        let payload = JsonFields { whole, fields: &variant.fields, values };
        object.serialize_entry(&**variant.external_name(), &payload)?;
        object.end()
    }

    /// Serialises a value with parts; the level of the value itself is not counted.
    fn compound<S: Serializer>(self, to: S) -> Result<S::Ok, S::Error> {
        match (self.ty, self.value) {
            (Type::List(element), Value::List(values)) => {
                let mut array = to.serialize_seq(Some(values.len()))?;
                for value in values {
                    array.serialize_element(&self.part(&value, element))?;
                }
                array.end()
            }
            (Type::Tuple(types), Value::Record(values)) => self.array(values, types.iter(), to),
            (Type::Map(pair), Value::Map(entries)) => {
                let mut object = to.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    object.serialize_entry(&JsonKey(self.part(key, &pair.0)), &self.part(value, &pair.1))?;
                }
                object.end()
            }
            (Type::Result(_), Value::Variant(tag, payload)) => {
                self.result(*tag, payload.as_ref().and_then(|payload| payload.first()), to)
            }
            (Type::Named(name), _) => self.named(name, to),
            _ => to.serialize_unit(),
        }
    }

    /// Serialises `Ok` or `Err` with its payload.
    fn result<S: Serializer>(self, tag: u32, payload: Option<&'a Value>, to: S) -> Result<S::Ok, S::Error> {
        let (Type::Result(pair), Some(payload)) = (self.ty, payload) else { return to.serialize_unit() };
        let (name, ty) = if tag == Value::OK { ("Ok", &pair.0) } else { ("Err", &pair.1) };
        let mut object = to.serialize_map(Some(1))?;
        object.serialize_entry(name, &self.part(payload, ty))?;
        object.end()
    }
}

impl Serialize for JsonView<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self.ty, self.value) {
            (_, Value::Bool(value)) => to.serialize_bool(*value),
            (_, Value::Int(value)) => to.serialize_i64(*value),
            (_, Value::Float(value)) => to.serialize_f64(*value),
            (_, Value::Text(text)) => to.serialize_str(text),
            (_, Value::Failure(failure)) => to.serialize_str(&failure.message),
            (_, value @ (Value::Time(_) | Value::Duration(_) | Value::Size(_))) => to.collect_str(value),
            (Type::Option(some), Value::Variant(Value::SOME, Some(payload))) => match payload.first() {
                Some(value) => self.part(value, some).serialize(to),
                None => to.serialize_unit(),
            },
            (Type::Named(_), Value::Variant(_, None)) => self.compound(to),
            _ => self.inside()?.compound(to),
        }
    }
}

/// The fields of a record, or the payload of a variant: a single positional field is written as itself, several as an
/// array.
struct JsonFields<'a> {
    whole: JsonView<'a>,
    fields: &'a [Field],
    values: &'a [Value],
}

impl Serialize for JsonFields<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let is_positional = self.fields.first().is_some_and(|field| &*field.name == "0");
        match (is_positional, self.fields, self.values) {
            (true, [field], [value]) => self.whole.part(value, &field.ty).serialize(to),
            (true, fields, values) => self.whole.array(values, fields.iter().map(|field| &field.ty), to),
            (false, fields, values) => {
                let mut object = to.serialize_map(Some(fields.len()))?;
                for (field, value) in fields.iter().zip(values) {
                    object.serialize_entry(&**field.external_name(), &self.whole.part(value, &field.ty))?;
                }
                object.end()
            }
        }
    }
}

/// A key of an object: a text as it is, any other value as its JSON.
struct JsonKey<'a>(JsonView<'a>);

impl Serialize for JsonKey<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Value::Text(text) = self.0.value {
            return to.serialize_str(text);
        }
        if let Value::Float(number) = self.0.value
            && !number.is_finite()
        {
            return Err(S::Error::custom(format!("JSON cannot express the key `{}`", self.0.value)));
        }
        let written = serde_json::to_value(self.0).map_err(serde::ser::Error::custom)?;
        match written {
            serde_json::Value::String(text) => to.serialize_str(&text),
            other => to.collect_str(&other),
        }
    }
}
