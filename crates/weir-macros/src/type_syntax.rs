//! Inspection of types as syntax, before rustc resolves them.

use syn::{GenericArgument, PathArguments, Type};

/// Returns `true` if the type is written as a `Result`; an alias with another name counts as an ordinary value.
pub(crate) fn is_result(ty: &Type) -> bool {
    arguments_of(ty, "Result").is_some_and(|types| !types.is_empty())
}

/// Returns the types between the angle brackets of `name<…>`.
pub(crate) fn arguments_of<'t>(ty: &'t Type, name: &str) -> Option<Vec<&'t Type>> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let ty = |argument: &'t GenericArgument| if let GenericArgument::Type(ty) = argument { Some(ty) } else { None };
    Some(arguments.args.iter().filter_map(ty).collect())
}
