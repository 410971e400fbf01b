//! Move-only types: types whose values can be neither shared nor cloned.

use std::collections::BTreeSet;

use weir_host::{Field, Library, Text, Type, TypeDefinition, TypeShape, Variant};

/// The definitions of a program's named types: its own, then those of its library.
#[derive(Clone, Copy)]
pub(crate) struct TypeDefinitions<'a> {
    pub(crate) program: &'a [TypeDefinition],
    pub(crate) library: &'a Library,
}

impl<'a> TypeDefinitions<'a> {
    /// Returns the shape of the named type.
    pub(crate) fn shape(self, name: &str) -> Option<&'a TypeShape> {
        let own = self.program.iter().find(|definition| definition.name.as_str() == name);
        own.or_else(|| self.library.definition(name)).map(|definition| &definition.shape)
    }

    /// Returns the types of the fields of a tuple or record.
    pub(crate) fn fields(self, ty: &Type) -> Option<Vec<Type>> {
        match ty {
            Type::Tuple(parts) => Some(parts.to_vec()),
            Type::Named(name) => match self.shape(name)? {
                TypeShape::Record(fields) => Some(fields.iter().map(|field| field.ty.clone()).collect()),
                TypeShape::Enum(_) | TypeShape::Opaque { .. } => None,
            },
            _ => None,
        }
    }

    /// Returns true if a value of the type is or holds a value that can only be moved.
    pub(crate) fn is_move_only(self, ty: &Type) -> bool {
        self.holds_move_only(ty, &mut BTreeSet::new())
    }

    /// Implements [`Self::is_move_only`]; `seen` stops at types that mention themselves.
    fn holds_move_only(self, ty: &Type, seen: &mut BTreeSet<Text>) -> bool {
        match ty {
            Type::List(inner) | Type::Option(inner) => self.holds_move_only(inner, seen),
            Type::Result(pair) | Type::Map(pair) => {
                self.holds_move_only(&pair.0, seen) || self.holds_move_only(&pair.1, seen)
            }
            Type::Tuple(parts) => parts.iter().any(|part| self.holds_move_only(part, seen)),
            Type::Named(name) => match self.shape(name) {
                Some(TypeShape::Opaque { shareable }) => !shareable,
                Some(shape) => {
                    seen.insert(name.clone()) && fields(shape).any(|field| self.holds_move_only(&field.ty, seen))
                }
                None => false,
            },
            _ => false,
        }
    }
}

fn fields(shape: &TypeShape) -> impl Iterator<Item = &Field> {
    let (own, variants): (&[Field], &[Variant]) = match shape {
        TypeShape::Record(fields) => (fields, &[]),
        TypeShape::Enum(variants) => (&[], variants),
        TypeShape::Opaque { .. } => (&[], &[]),
    };
    own.iter().chain(variants.iter().flat_map(|variant| &variant.fields))
}
