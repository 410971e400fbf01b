//! Constants as programs write them, for messages and documentation.

use crate::{Text, Type, TypeDefinition, TypeShape, Value};

/// Returns a constant of this type as source text. A variant whose type is not among the definitions is shown as its number.
#[must_use]
pub fn source_text(value: &Value, ty: &Type, definitions: &[TypeDefinition]) -> String {
    let part = |value: &Value, ty: &Type| source_text(value, ty, definitions);
    match (value, ty) {
        (Value::Text(text), _) => format!("{:?}", text.as_str()),
        (Value::Variant(Value::NONE, None), Type::Option(_)) => "None".to_owned(),
        (Value::Variant(_, Some(payload)), Type::Option(inner)) => {
            let parts: Vec<String> = payload.iter().map(|value| part(value, inner)).collect();
            format!("Some({})", parts.join(", "))
        }
        (Value::List(elements), Type::List(element)) => {
            let parts: Vec<String> = elements.iter().map(|value| part(value.as_ref(), element)).collect();
            format!("[{}]", parts.join(", "))
        }
        (Value::Variant(tag, None), Type::Named(name)) => {
            variant(name, *tag, definitions).unwrap_or_else(|| value.to_string())
        }
        _ => value.to_string(),
    }
}

/// Returns the name of a variant.
fn variant(name: &Text, tag: u32, definitions: &[TypeDefinition]) -> Option<String> {
    let definition = definitions.iter().find(|definition| definition.name == *name)?;
    let TypeShape::Enum(variants) = &definition.shape else { return None };
    let variant = variants.get(usize::try_from(tag).ok()?)?;
    Some(variant.name.to_string())
}
