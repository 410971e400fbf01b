//! Bodies that are forms, as browsers send them.

use bytes::Bytes;
use hyper::header::HeaderValue;
use weir::{Failure, HostType, Type, Value};

use super::input::{InputError, NamedTypes};
use crate::html::{FormPart, boundary, form_parts, form_texts};
use crate::named_texts::{NamedFiles, NamedTextSource, NamedTexts};

/// The encoding of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormEncoding {
    Urlencoded,
    /// With files, whose parts this text separates.
    Multipart(String),
}

impl FormEncoding {
    /// Returns the encoding of a body of this media type; `None` if it is no form.
    pub(super) fn of(media_type: Option<&HeaderValue>) -> Option<Self> {
        let media_type = media_type?.to_str().ok()?;
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        match essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            true => Some(FormEncoding::Urlencoded),
            false => boundary(media_type).ok().map(FormEncoding::Multipart),
        }
    }
}

/// Reads a form as a record, whose fields of the type `html.Part` are files.
///
/// # Errors
/// Fails if the form is malformed, or if a field is missing or is not of its type.
pub(super) fn decode(
    encoding: &FormEncoding,
    body: Bytes,
    ty: &Type,
    definitions: NamedTypes<'_>,
) -> Result<Value, InputError> {
    let malformed = |failure: Failure| InputError::new("", failure.message.as_str());
    let (texts, files) = match encoding {
        FormEncoding::Urlencoded => {
            let text = std::str::from_utf8(&body).map_err(|_| InputError::new("", "the form is not UTF-8"))?;
            (form_texts(text).map_err(malformed)?, Vec::new())
        }
        FormEncoding::Multipart(boundary) => {
            let (mut texts, mut files) = (Vec::new(), Vec::new());
            for part in form_parts(body, boundary.clone()).map_err(malformed)? {
                if part.file_name.is_some() {
                    files.extend(chosen_file(part));
                    continue;
                }
                let text = String::from_utf8(part.content.into());
                let text = text.map_err(|_| InputError::new(format!("`{}` in the form", part.name), "not UTF-8"))?;
                texts.push((part.name, text));
            }
            (texts, files)
        }
    };
    let texts: Vec<_> = texts.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
    let files = Some(NamedFiles { ty: &FormPart::ty(), files: &files });
    let named = NamedTexts { texts: &texts, files, from: NamedTextSource::Form, place: " in the form" };
    named.decode(ty, definitions)
}

/// Returns a file with its name in the form; `None` for the part without name and content that a browser sends if the visitor
/// has chosen no file.
fn chosen_file(part: FormPart) -> Option<(String, Value)> {
    let is_chosen = part.file_name.as_deref() != Some("") || !part.content.is_empty();
    let name = part.name.clone();
    Some((name, part.into_value().ok().filter(|_| is_chosen)?))
}
