//! Definitions: what a derived type says of itself, and how functions come together in a module.

use crate::{Failure, Field, Function, HostType, Module, Text, Type, TypeDefinition, TypeShape, Value, Variant};

/// The failure of a value that is not of the type `T`.
#[cold]
#[must_use]
pub fn mismatched<T: HostType>(found: &Value) -> Failure {
    crate::convert::mismatch(&T::ty(), found)
}

/// One field of a definition.
#[must_use]
pub fn field<T: HostType>(name: &str) -> Field {
    Field { name: name.into(), ty: T::ty() }
}

/// One variant of a definition.
#[must_use]
pub fn variant(name: &str, fields: Vec<Field>) -> Variant {
    Variant { name: name.into(), fields }
}

/// Adds the definition of `T`, and with `parts` those of the types that it mentions, unless it is there already.
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

/// The module, with one function more.
///
/// # Panics
/// Where two functions, or two different types, have one name: a mistake of the library's author, found at start.
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
