//! A text that says what a type is: two types with the same text are the same.

use weir::{Field, Type, TypeShape};

use super::input::NamedTypes;

/// Returns the description of a type, with those of all types in it. That of an `Option` is that of the type in it, because a
/// value which may be missing is read and written like one which may not.
pub(super) fn description(ty: &Type, definitions: NamedTypes<'_>) -> String {
    let ty = if let Type::Option(some) = ty { some } else { ty };
    let mut text = ty.to_string();
    let mut described = Vec::new();
    describe_named(ty, definitions, &mut described, &mut text);
    text
}

/// Appends the definitions of the named types in a type that have not been described yet.
fn describe_named<'a>(ty: &'a Type, definitions: NamedTypes<'a>, described: &mut Vec<&'a str>, text: &mut String) {
    match ty {
        Type::List(of) | Type::Option(of) => describe_named(of, definitions, described, text),
        Type::Map(pair) => {
            describe_named(&pair.0, definitions, described, text);
            describe_named(&pair.1, definitions, described, text);
        }
        Type::Tuple(parts) => parts.iter().for_each(|part| describe_named(part, definitions, described, text)),
        Type::Named(name) if !described.contains(&&**name) => {
            described.push(name);
            let Some(shape) = definitions.shape(name) else { return };
            text.push_str(&format!("\n{name}"));
            let groups: Vec<&[Field]> = match shape {
                TypeShape::Record(fields) => vec![fields],
                TypeShape::Enum(variants) => variants.iter().map(|variant| &variant.fields[..]).collect(),
                TypeShape::Opaque { .. } => Vec::new(),
            };
            match shape {
                TypeShape::Enum(variants) => {
                    for variant in variants.iter() {
                        text.push_str(&format!(" | {:?}", variant.external_name().as_str()));
                        describe_fields(&variant.fields, text);
                    }
                }
                _ => groups.iter().for_each(|fields| describe_fields(fields, text)),
            }
            let fields = groups.into_iter().flatten();
            fields.for_each(|field| describe_named(&field.ty, definitions, described, text));
        }
        _ => {}
    }
}

fn describe_fields(fields: &[Field], text: &mut String) {
    let fields = fields.iter().map(|field| format!("{:?}: {}", field.external_name().as_str(), field.ty));
    text.push_str(&format!(" {{{}}}", fields.collect::<Vec<_>>().join(", ")));
}
