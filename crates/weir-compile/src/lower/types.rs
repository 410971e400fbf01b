//! Collects the named types of a program.

use indexmap::IndexMap;
use weir_host::{Library, Text, TypeDefinition};

use crate::typed_tree::TypedTree;
use crate::types::{fields_of, names_in};

/// Returns the named types of the file, and those of the library that it uses.
pub(super) fn types_of(typed: &TypedTree, library: &Library) -> Vec<TypeDefinition> {
    let mut found: IndexMap<Text, TypeDefinition> = IndexMap::new();
    let mut wanted: Vec<Text> = typed.declarations.types.keys().rev().cloned().collect();
    wanted.extend(typed.files.iter().flat_map(|file| file.named_types.iter().cloned()));
    for shared in typed.declarations.shared.values() {
        names_in(&shared.ty.to_type(), &mut wanted);
    }
    for entry in typed.entries() {
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
