//! Texts with names, such as the fields of a form or of a row with columns, decoded into values of a type that is known only
//! at run time.
//!
//! A record takes for each of its fields the text of that name, and a map from texts takes all of them. A text is read as in a
//! route or a JSON string; a list takes all texts of its name, and any other type is read as JSON. An empty text counts as
//! missing, except for a field of type `Text`: browsers send fields that nobody filled in.

use std::borrow::Cow;

use weir::memory::check;
use weir::{Field, Type, TypeOf, TypeShape, Value};

use crate::input::{InputError, NamedTypes, expected, is_scalar, scalar_or_error};
use crate::json::decode;

/// Texts with names, in order.
pub(crate) struct NamedTexts<'a> {
    pub(crate) texts: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// The place of the texts in messages, such as ` in line 3`; empty if it has no name.
    pub(crate) place: &'a str,
}

impl NamedTexts<'_> {
    /// Decodes the texts as a value of the type.
    ///
    /// # Errors
    /// Fails if a text is missing or is not of its type, or if the type is neither a record nor a map from texts.
    pub(crate) fn decode(&self, of: &TypeOf) -> Result<Value, InputError> {
        check().map_err(|failure| InputError::new("", failure.message.as_str()))?;
        let definitions = NamedTypes(&of.definitions);
        match &of.ty {
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
        let mut all = self.texts.iter().filter(|(other, _)| other == name).map(|(_, text)| &**text);
        if let Type::List(element) = &field.ty {
            let values: Vec<Value> =
                all.map(|text| self.value(name, text, element, definitions)).collect::<Result<_, _>>()?;
            let default = field.default.clone().filter(|_| values.is_empty());
            return Ok(default.unwrap_or_else(|| Value::list(values)));
        }
        let given = all.next_back().filter(|text| !text.is_empty() || field.ty == Type::Text);
        match (given, &field.default, &field.ty) {
            (Some(text), _, ty) => self.value(name, text, ty, definitions),
            (None, Some(default), _) => Ok(default.clone()),
            (None, None, Type::Option(_)) => Ok(Value::none()),
            (None, None, ty) => {
                Err(InputError::new(self.place_of(name), format!("missing, expected {}", expected(ty, definitions))))
            }
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
            ty => decode::parse(text.as_bytes(), &self.place_of(name), ty, definitions),
        }
    }

    fn place_of(&self, name: &str) -> String {
        format!("`{name}`{}", self.place)
    }
}
