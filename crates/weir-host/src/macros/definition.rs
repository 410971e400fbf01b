//! Definitions of derived types, and assembly of functions into a module.

use crate::{Failure, Field, Function, HostType, Module, Text, Type, TypeDefinition, TypeShape, Value, Variant};

/// Returns the failure for a value that is not of the type `T`.
#[cold]
#[must_use]
pub fn mismatched<T: HostType>(found: &Value) -> Failure {
    crate::convert::mismatch(&T::ty(), found)
}

/// Returns the definition of a field.
#[must_use]
pub fn field<T: HostType>(name: &str) -> Field {
    Field::new(name, T::ty())
}

/// Returns the definition of a variant.
#[must_use]
pub fn variant(name: &str, fields: Vec<Field>) -> Variant {
    Variant::new(name, fields)
}

/// Adds the definition of `T`, and through `parts` those of the types that it mentions, unless it is there already.
pub fn define<T: HostType>(
    definitions: &mut Vec<TypeDefinition>,
    doc: &str,
    shape: fn() -> TypeShape,
    parts: fn(&mut Vec<TypeDefinition>),
) {
    let Type::Named(name) = T::ty() else { return };
    if definitions.iter().any(|definition| definition.name == name) {
        return;
    }
    definitions.push(TypeDefinition { name, doc: Text::from(doc), shape: shape() });
    parts(definitions);
}

/// Returns the module with a further function.
///
/// # Panics
/// Panics if two functions, or two different types, have the same name: a mistake of the library's author, detected at
/// start-up.
#[must_use]
pub fn with_function(module: Module, function: Function) -> Module {
    let (name, whose) = (&function.signature.name, &module.name);
    assert!(
        !module.functions.contains_key(name),
        "two functions of `{whose}` are named `{name}`: rename one by `#[weir::function(name = \"…\")]`"
    );
    for definition in &function.types {
        let other = module.types.get(&definition.name).filter(|other| *other != definition);
        assert!(
            other.is_none(),
            "two types of `{whose}` are named `{}`: rename one by `#[weir(name = \"…\")]`",
            definition.name
        );
    }
    module.function(function)
}
