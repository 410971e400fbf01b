//! The definitions of named types, and the test that a constant has a type.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Field, Library, Text, Type, TypeShape, Value};

use crate::move_only::TypeDefinitions;
use crate::program::Program;

/// The definitions of named types, and the types of shared values.
pub(super) struct TypeTable<'a> {
    pub(super) definitions: TypeDefinitions<'a>,
    pub(super) shared: BTreeMap<&'a str, &'a Type>,
    /// The session-scoped shared values.
    pub(super) per_session: BTreeSet<&'a str>,
}

/// The types that the parameters of a generic function stand for in one call.
pub(super) type Bindings = BTreeMap<Text, Type>;

impl<'a> TypeTable<'a> {
    pub(super) fn new<B>(program: &'a Program<B>, library: &'a Library) -> Self {
        let own = program.shared.iter().filter(|shared| shared.per_session);
        TypeTable {
            definitions: TypeDefinitions { program: &program.types, library },
            shared: program.shared.iter().map(|shared| (&*shared.name, &shared.ty)).collect(),
            per_session: own.map(|shared| &*shared.name).collect(),
        }
    }

    /// Returns the types of the fields of a tuple or record.
    pub(super) fn fields(&self, ty: &Type) -> Option<Vec<Type>> {
        self.definitions.fields(ty)
    }

    /// Returns the types of the payload of each variant, by tag.
    pub(super) fn variants(&self, ty: &Type) -> Option<Vec<Vec<Type>>> {
        match ty {
            Type::Option(some) => Some(vec![Vec::new(), vec![Type::clone(some)]]),
            Type::Result(pair) => Some(vec![vec![pair.0.clone()], vec![pair.1.clone()]]),
            Type::Named(name) => match self.definitions.shape(name)? {
                TypeShape::Enum(variants) => Some(variants.iter().map(|variant| types(&variant.fields)).collect()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns true if the constant is of the type. An unbound type parameter is any type.
    pub(super) fn holds(&self, ty: &Type, value: &Value) -> bool {
        let all = |types: &[Type], values: &[Value]| {
            types.len() == values.len() && types.iter().zip(values).all(|(ty, value)| self.holds(ty, value))
        };
        match (value, ty) {
            (_, Type::Parameter(_)) => true,
            (Value::List(values), Type::List(element)) => values.iter().all(|value| self.holds(element, &value)),
            (Value::Map(map), Type::Map(pair)) => {
                map.iter().all(|(key, value)| self.holds(&pair.0, key) && self.holds(&pair.1, value))
            }
            (Value::Record(values), ty) => self.fields(ty).is_some_and(|types| all(&types, values)),
            (Value::Variant(tag, payload), ty) => {
                let fields = self.variants(ty).and_then(|mut variants| {
                    let tag = *tag as usize;
                    (tag < variants.len()).then(|| variants.swap_remove(tag))
                });
                fields.is_some_and(|types| match payload {
                    None => types.is_empty(),
                    Some(values) => !types.is_empty() && all(&types, values),
                })
            }
            (value, ty) => scalar(value).as_ref() == Some(ty),
        }
    }
}

fn types(fields: &[Field]) -> Vec<Type> {
    fields.iter().map(|field| field.ty.clone()).collect()
}

/// Returns the type of a scalar constant.
pub(crate) fn scalar(value: &Value) -> Option<Type> {
    Some(match value {
        Value::Unit => Type::Unit,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Float(_) => Type::Float,
        Value::Time(_) => Type::Time,
        Value::Duration(_) => Type::Duration,
        Value::Size(_) => Type::Size,
        Value::Text(_) => Type::Text,
        Value::Bytes(_) => Type::Bytes,
        Value::Failure(_) => Type::Failure,
        _ => return None,
    })
}

/// Unifies the pattern, a type of a generic signature, with the actual type; returns whether that is possible.
pub(super) fn unify(pattern: &Type, actual: &Type, bindings: &mut Bindings) -> bool {
    match (pattern, actual) {
        (Type::Parameter(name), actual) => bindings.entry(name.clone()).or_insert_with(|| actual.clone()) == actual,
        (Type::List(a), Type::List(b)) | (Type::Option(a), Type::Option(b)) => unify(a, b, bindings),
        (Type::Map(a), Type::Map(b)) | (Type::Result(a), Type::Result(b)) => {
            unify(&a.0, &b.0, bindings) && unify(&a.1, &b.1, bindings)
        }
        (Type::Tuple(a), Type::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| unify(a, b, bindings))
        }
        (a, b) => a == b,
    }
}

/// Returns the pattern with its parameters substituted.
pub(super) fn substitute(pattern: &Type, bindings: &Bindings) -> Type {
    let inner = |ty: &Type| substitute(ty, bindings);
    match pattern {
        Type::Parameter(name) => bindings.get(name).unwrap_or(pattern).clone(),
        Type::List(element) => Type::list(inner(element)),
        Type::Option(some) => Type::option(inner(some)),
        Type::Map(pair) => Type::map(inner(&pair.0), inner(&pair.1)),
        Type::Result(pair) => Type::result(inner(&pair.0), inner(&pair.1)),
        Type::Tuple(parts) => Type::Tuple(parts.iter().map(inner).collect()),
        other => other.clone(),
    }
}
