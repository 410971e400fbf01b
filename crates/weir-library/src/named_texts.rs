//! Texts with names, such as the fields of a form or of a row with columns, decoded into values of a type that is known only
//! at run time.
//!
//! A record takes for each of its fields the text of that name, and a map from texts takes all of them. A text is read as in a
//! route or a JSON string, a variant without payload by its name, and any other type as JSON; in a form, a list takes all texts
//! of its name. An empty text counts as missing, except for a field of type `Text`: browsers send fields that nobody filled in.

use std::borrow::Cow;

use weir::memory::check;
use weir::{Field, Type, TypeShape, Value, Variant};

use crate::input::{InputError, NamedTypes, expected, is_scalar, scalar_or_error, shortened};
use crate::json::decode;

/// The advice for a form whose files do not arrive.
const FILES_ADVICE: &str =
    "the form needs `enctype=\"multipart/form-data\"`, and the part of a file a `filename` in UTF-8";

/// The origin of texts with names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedTextSource {
    /// A form, which has several texts of a name for a list, and none for a checkbox that is not checked.
    Form,
    /// A row with columns, which has one text of a name.
    Row,
}

/// Files with names, in order.
pub(crate) struct NamedFiles<'a> {
    /// The type of a field that takes a file.
    pub(crate) ty: &'a Type,
    pub(crate) files: &'a [(String, Value)],
}

/// Texts with names, in order.
pub(crate) struct NamedTexts<'a> {
    pub(crate) texts: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// The files of a form.
    pub(crate) files: Option<NamedFiles<'a>>,
    pub(crate) from: NamedTextSource,
    /// The place of the texts in messages, such as ` in line 3`; empty if it has no name.
    pub(crate) place: &'a str,
}

impl NamedTexts<'_> {
    /// Decodes the texts as a value of the type.
    ///
    /// # Errors
    /// Fails if a text is missing or is not of its type, or if the type is neither a record nor a map from texts.
    pub(crate) fn decode(&self, ty: &Type, definitions: NamedTypes<'_>) -> Result<Value, InputError> {
        check().map_err(|failure| InputError::new("", failure.message.as_str()))?;
        match ty {
            Type::Named(name) if let Some(TypeShape::Record(fields)) = definitions.shape(name) => {
                let fields = fields.iter().map(|field| self.field(field, definitions));
                Ok(Value::Record(fields.collect::<Result<Vec<_>, _>>()?.into()))
            }
            Type::Map(pair) if pair.0 == Type::Text => {
                let entry = |(name, text): &(Cow<'_, str>, Cow<'_, str>)| {
                    Ok((Value::text(name), self.value(name, text, &pair.1, definitions)?))
                };
                Ok(Value::Map(self.texts.iter().map(entry).collect::<Result<_, _>>()?))
            }
            ty => Err(InputError::new("", format!("texts with names are read as a record or a map, not as `{ty}`"))),
        }
    }

    fn field(&self, field: &Field, definitions: NamedTypes<'_>) -> Result<Value, InputError> {
        let name = field.external_name().as_str();
        if let Some(files) = self.files(name, &field.ty) {
            return files;
        }
        let mut all = self.texts.iter().filter(|(other, _)| other == name).map(|(_, text)| &**text);
        if let Some((element, is_optional)) = self.repeated(&field.ty) {
            let given = all.filter(|text| !text.is_empty() || *element == Type::Text);
            let values: Vec<Value> =
                given.map(|text| self.value(name, text, element, definitions)).collect::<Result<_, _>>()?;
            return Ok(match &field.default {
                Some(default) if values.is_empty() => default.clone(),
                _ if is_optional && values.is_empty() => Value::none(),
                _ if is_optional => Value::some(Value::list(values)),
                _ => Value::list(values),
            });
        }
        let given = all.next_back().filter(|text| !text.is_empty() || field.ty == Type::Text);
        match (given, &field.default, &field.ty) {
            (Some(text), _, ty) => self.value(name, text, ty, definitions),
            // The default is no exception: a browser sends nothing for a checkbox that is not checked.
            (None, _, Type::Bool) if self.from == NamedTextSource::Form => Ok(Value::Bool(false)),
            (None, Some(default), _) => Ok(default.clone()),
            (None, None, Type::Option(_)) => Ok(Value::none()),
            (None, None, Type::List(_)) => Ok(Value::list(Vec::new())),
            (None, None, Type::Unit) => Ok(Value::Unit),
            (None, None, ty) => {
                Err(InputError::new(self.place_of(name), format!("missing, expected {}", expected(ty, definitions))))
            }
        }
    }

    /// Returns the value of a field of the type of files, of an option or a list of it; `None` for another type.
    ///
    /// A text of its name is an error, because the form has lost a file, of which browsers send the name only: a form with files
    /// needs an encoding that it has to state. A text that is empty is a file that the visitor has not chosen.
    fn files(&self, name: &str, ty: &Type) -> Option<Result<Value, InputError>> {
        let NamedFiles { ty: file, files } = self.files.as_ref()?;
        let of_files = if let Type::List(of) | Type::Option(of) = ty { &**of } else { ty };
        if of_files != *file {
            return None;
        }
        let fault = |found| InputError::new(self.place_of(name), format!("{found}, expected a file; {FILES_ADVICE}"));
        if self.texts.iter().any(|(other, text)| other == name && !text.is_empty()) {
            return Some(Err(fault("a text")));
        }
        let mut named = files.iter().filter(|(other, _)| other == name).map(|(_, file)| file.clone());
        Some(match ty {
            Type::List(_) => Ok(Value::list(named.collect())),
            Type::Option(_) => Ok(named.next_back().map_or(Value::none(), Value::some)),
            _ => named.next_back().ok_or_else(|| fault("missing")),
        })
    }

    /// Returns the type of the elements if the type is a list that takes all texts of its name, and whether it is optional.
    fn repeated<'t>(&self, ty: &'t Type) -> Option<(&'t Type, bool)> {
        match ty {
            _ if self.from == NamedTextSource::Row => None,
            Type::List(element) => Some((element, false)),
            Type::Option(some) => self.repeated(some).map(|(element, _)| (element, true)),
            _ => None,
        }
    }

    fn value(&self, name: &str, text: &str, ty: &Type, definitions: NamedTypes<'_>) -> Result<Value, InputError> {
        match ty {
            Type::Option(_) if text.is_empty() => Ok(Value::none()),
            Type::Option(some) => self.value(name, text, some, definitions).map(Value::some),
            // A browser sends `on` for a checkbox that is checked.
            Type::Bool if text == "on" => Ok(Value::Bool(true)),
            ty if is_scalar(ty, definitions) => {
                scalar_or_error(ty, text, definitions).map_err(|what| InputError::new(self.place_of(name), what))
            }
            Type::Named(enumeration) if let Some(tag) = plain_variant(enumeration, text, definitions) => {
                Ok(Value::Variant(tag, None))
            }
            ty => {
                let error = |error: InputError| InputError::new(format!("`{}`{}", error.place, self.place), error.what);
                decode::parse(text.as_bytes(), &shortened(name), ty, definitions).map_err(error)
            }
        }
    }

    fn place_of(&self, name: &str) -> String {
        format!("`{}`{}", shortened(name), self.place)
    }
}

/// Returns the tag of the variant without payload that the text names.
fn plain_variant(enumeration: &str, text: &str, definitions: NamedTypes<'_>) -> Option<u32> {
    let Some(TypeShape::Enum(variants)) = definitions.shape(enumeration) else { return None };
    let named = |variant: &Variant| variant.fields.is_empty() && variant.external_name().as_str() == text;
    variants.iter().position(named).and_then(|tag| u32::try_from(tag).ok())
}
