//! Collects the named types of a program.

use indexmap::IndexMap;
use weir_host::{Library, Text, Type, TypeDefinition, TypeShape};

use crate::typed_tree::TypedTree;

/// Returns the named types of the file, and those of the library that it uses.
pub(super) fn types_of(typed: &TypedTree, library: &Library) -> Vec<TypeDefinition> {
    let mut found: IndexMap<Text, TypeDefinition> = IndexMap::new();
    let mut wanted: Vec<Text> = typed.declarations.types.keys().rev().cloned().collect();
    let types = typed.expr_types.iter().chain(&typed.pattern_types).chain(typed.locals.iter().map(|local| &local.ty));
    for ty in types.chain(typed.declarations.shared.values().map(|shared| &shared.ty)) {
        names_in(&ty.to_type(), &mut wanted);
    }
    for entry in &typed.entries {
        names_in(&entry.answer, &mut wanted);
        entry.element.iter().for_each(|element| names_in(element, &mut wanted));
    }
    if !typed.declarations.tables.is_empty() {
        wanted.extend(["tables.Schema", "tables.Query"].map(Text::from));
    }
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        if let Some(definition) = typed.declarations.definition(library, &name) {
            found.insert(name, definition.clone());
            for field in fields_of(&definition.shape) {
                names_in(&field.ty, &mut wanted);
            }
        }
    }
    found.into_values().collect()
}

/// Returns the fields of a record, or those of all variants of an enum.
pub(super) fn fields_of(shape: &TypeShape) -> Vec<&weir_host::Field> {
    match shape {
        TypeShape::Record(fields) => fields.iter().collect(),
        TypeShape::Enum(variants) => variants.iter().flat_map(|variant| &variant.fields).collect(),
        TypeShape::Opaque { .. } => Vec::new(),
    }
}

/// Adds the named types that a type mentions.
pub(super) fn names_in(ty: &Type, found: &mut Vec<Text>) {
    match ty {
        Type::Named(name) if found.last() != Some(name) => found.push(name.clone()),
        Type::List(part) | Type::Option(part) => names_in(part, found),
        Type::Map(pair) | Type::Result(pair) => {
            names_in(&pair.0, found);
            names_in(&pair.1, found);
        }
        Type::Tuple(parts) => parts.iter().for_each(|part| names_in(part, found)),
        Type::Function(signature) => {
            signature.0.iter().for_each(|part| names_in(part, found));
            names_in(&signature.1, found);
        }
        _ => {}
    }
}
