//! Bodies of requests to routes that take a form.

use bytes::Bytes;
use percent_encoding::utf8_percent_encode;
use weir::{Failure, Field, HostType, Type, TypeOf, TypeShape, Value};

use crate::client::RESERVED;
use crate::html::FormPart;
use crate::input::NamedTypes;
use crate::json::encode::cell;

/// Media type of forms without files.
const URLENCODED: &str = "application/x-www-form-urlencoded";
/// Text that separates the parts of a form with files.
const BOUNDARY: &str = "a-boundary-of-weir-test";

/// A field of a form that is filled in.
enum FilledField<'f> {
    Text(&'f str, Vec<u8>),
    File(&'f str, FormPart),
}

/// Returns the body and the media type of a form: a text as it is, and a record as a browser sends a form with its fields.
///
/// # Errors
/// Fails if the value is neither.
pub(super) fn form_of(value: &Value, of: &TypeOf) -> Result<(Bytes, String), Failure> {
    if let Value::Text(text) = value {
        return Ok((Bytes::copy_from_slice(text.as_bytes()), URLENCODED.to_owned()));
    }
    let shape = match &of.ty {
        Type::Named(name) => NamedTypes(&of.definitions).shape(name),
        _ => None,
    };
    let (Some(TypeShape::Record(fields)), Value::Record(values)) = (shape, value) else {
        return Err(Failure::argument(format!("the route takes a form: a record, or a text, not `{}`", of.ty)));
    };
    let mut filled = Vec::new();
    for (field, value) in fields.iter().zip(values.iter()) {
        fill_in(field, &field.ty, value, of, &mut filled)?;
    }
    Ok(encoded(&filled))
}

/// Adds the fields that a value becomes: none for `None`, and one for each element of a list.
fn fill_in<'f>(
    field: &'f Field,
    ty: &Type,
    value: &Value,
    of: &TypeOf,
    filled: &mut Vec<FilledField<'f>>,
) -> Result<(), Failure> {
    let name = field.external_name().as_str();
    match (ty, value) {
        (Type::Option(_), Value::Variant(Value::NONE, _)) => {}
        (Type::Option(some), Value::Variant(_, Some(payload))) => fill_in(field, some, &payload[0], of, filled)?,
        (Type::List(element), Value::List(values)) if **element == FormPart::ty() => {
            values.iter().try_for_each(|value| fill_in(field, element, &value, of, filled))?;
        }
        // A list in a list is one text.
        (Type::List(element), Value::List(values)) => {
            for value in values.iter() {
                filled.push(FilledField::Text(name, cell(&value, element, of)?));
            }
        }
        _ if *ty == FormPart::ty() => filled.push(FilledField::File(name, FormPart::from_value(value.clone())?)),
        _ => filled.push(FilledField::Text(name, cell(value, ty, of)?)),
    }
    Ok(())
}

/// Encodes a form as a browser does: with parts if there are files.
fn encoded(filled: &[FilledField<'_>]) -> (Bytes, String) {
    if filled.iter().any(|field| matches!(field, FilledField::File(..))) {
        let mut body: Vec<u8> = filled.iter().flat_map(part).collect();
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        return (body.into(), format!("multipart/form-data; boundary={BOUNDARY}"));
    }
    let pairs = filled.iter().filter_map(|field| match field {
        FilledField::Text(name, text) => {
            let text = String::from_utf8_lossy(text);
            Some(format!("{}={}", utf8_percent_encode(name, RESERVED), utf8_percent_encode(&text, RESERVED)))
        }
        FilledField::File(..) => None,
    });
    (pairs.collect::<Vec<_>>().join("&").into(), URLENCODED.to_owned())
}

fn part(field: &FilledField<'_>) -> Vec<u8> {
    let (name, file, content) = match field {
        FilledField::Text(name, text) => (name, String::new(), &text[..]),
        FilledField::File(name, part) => {
            let file_name = part.file_name.as_deref().unwrap_or("file").replace(['"', '\r', '\n'], "_");
            let media_type =
                part.media_type.as_deref().unwrap_or("application/octet-stream").replace(['\r', '\n'], " ");
            (name, format!("; filename=\"{file_name}\"\r\nContent-Type: {media_type}"), &part.content[..])
        }
    };
    let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
    [head.as_bytes(), content, b"\r\n"].concat()
}
