//! The types of Weir.

use std::fmt;
use std::sync::Arc;

use crate::{Text, Value};

/// The type of a value.
///
/// Records, enums and host types are referred to by name; the definition of a name is a [`TypeDefinition`] of a module
/// or a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// The type of `()`.
    Unit,
    /// `true` or `false`.
    Bool,
    /// A signed integer of 64 bits; arithmetic that overflows is a failure.
    Int,
    /// An IEEE 754 double.
    Float,
    /// A UTF-8 string.
    Text,
    /// A sequence of bytes.
    Bytes,
    /// A point in time, in nanoseconds since 1970-01-01T00:00:00Z.
    Time,
    /// A span of time, in nanoseconds.
    Duration,
    /// A number of bytes.
    Size,
    /// A failure: a kind and a message.
    Failure,
    /// The type of an expression that never has a value, such as `return`.
    Never,
    /// A list.
    List(Arc<Type>),
    /// A map, in order of insertion, from keys to values.
    Map(Arc<(Type, Type)>),
    /// `Some(value)` or `None`.
    Option(Arc<Type>),
    /// `Ok(value)` or `Err(failure)`.
    Result(Arc<(Type, Type)>),
    /// A tuple of two or more.
    Tuple(Arc<[Type]>),
    /// A record, enum or host type: `Post` of the program, `image.Ppm` of the module `image`.
    Named(Text),
    /// A closure: its parameters and its result.
    Function(Arc<(Vec<Type>, Type)>),
    /// A type parameter of a generic library function, such as `a`.
    Parameter(Text),
}

impl Type {
    /// Returns `List(element)`.
    #[must_use]
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// Returns `Map(key, value)`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// Returns `Option(some)`.
    #[must_use]
    pub fn option(some: Type) -> Type {
        Type::Option(Arc::new(some))
    }

    /// Returns `Result(ok, err)`.
    #[must_use]
    pub fn result(ok: Type, err: Type) -> Type {
        Type::Result(Arc::new((ok, err)))
    }

    /// Returns a tuple type.
    #[must_use]
    pub fn tuple(elements: Vec<Type>) -> Type {
        Type::Tuple(elements.into())
    }

    /// Returns the named type `name`.
    #[must_use]
    pub fn named(name: &str) -> Type {
        Type::Named(name.into())
    }

    /// Returns true if values of the type are stored entirely in a [`crate::Value`], so that they own no other memory.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        matches!(self, Type::Unit | Type::Bool | Type::Int | Type::Float | Type::Time | Type::Duration | Type::Size)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Unit => f.write_str("()"),
            Type::Bool => f.write_str("Bool"),
            Type::Int => f.write_str("Int"),
            Type::Float => f.write_str("Float"),
            Type::Text => f.write_str("Text"),
            Type::Bytes => f.write_str("Bytes"),
            Type::Time => f.write_str("Time"),
            Type::Duration => f.write_str("Duration"),
            Type::Size => f.write_str("Size"),
            Type::Failure => f.write_str("Failure"),
            Type::Never => f.write_str("Never"),
            Type::List(element) => write!(f, "List({element})"),
            Type::Map(pair) => write!(f, "Map({}, {})", pair.0, pair.1),
            Type::Option(some) => write!(f, "Option({some})"),
            Type::Result(pair) => write!(f, "Result({}, {})", pair.0, pair.1),
            Type::Tuple(elements) => {
                f.write_str("(")?;
                comma_separated(f, elements)?;
                f.write_str(")")
            }
            Type::Named(name) | Type::Parameter(name) => f.write_str(name),
            Type::Function(signature) => {
                f.write_str("fn(")?;
                comma_separated(f, &signature.0)?;
                write!(f, ") -> {}", signature.1)
            }
        }
    }
}

fn comma_separated(f: &mut fmt::Formatter<'_>, types: &[Type]) -> fmt::Result {
    for (index, ty) in types.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{ty}")?;
    }
    Ok(())
}

/// The definition of a named type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDefinition {
    /// The qualified name: `Post`, `image.Ppm`.
    pub name: Text,
    /// The documentation.
    pub doc: Text,
    /// The shape of the type.
    pub shape: TypeShape,
}

/// The shape of a named type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeShape {
    /// A record of named fields, stored in this order.
    Record(Vec<Field>),
    /// An enum; the index of a variant here is its tag in a [`crate::Value::Variant`].
    Enum(Vec<Variant>),
    /// A Rust type that only host functions look into.
    Opaque {
        /// `true` if a value may be used several times; otherwise it is moved.
        shareable: bool,
    },
}

/// A field of a record, or of an enum's variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name; positional payloads of a variant are named by their index, `0`, `1`, ….
    pub name: Text,
    /// The type.
    pub ty: Type,
    /// The name in JSON and the like, if it is another one.
    pub external: Option<Text>,
    /// The value of a field that is left out.
    pub default: Option<Value>,
}

impl Field {
    /// Returns a field without a default, and with one name.
    #[must_use]
    pub fn new(name: &str, ty: Type) -> Field {
        Field { name: name.into(), ty, external: None, default: None }
    }

    /// Returns the name in JSON and the like.
    #[must_use]
    pub fn external_name(&self) -> &Text {
        self.external.as_ref().unwrap_or(&self.name)
    }
}

/// A variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name.
    pub name: Text,
    /// The payload.
    pub fields: Vec<Field>,
    /// The name in JSON and the like, if it is another one.
    pub external: Option<Text>,
}

impl Variant {
    /// Returns a variant with one name.
    #[must_use]
    pub fn new(name: &str, fields: Vec<Field>) -> Variant {
        Variant { name: name.into(), fields, external: None }
    }

    /// Returns the name in JSON and the like.
    #[must_use]
    pub fn external_name(&self) -> &Text {
        self.external.as_ref().unwrap_or(&self.name)
    }
}
