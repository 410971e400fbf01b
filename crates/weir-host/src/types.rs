//! The types of Weir.

use std::fmt;
use std::sync::Arc;

use crate::Text;

/// The type of a value.
///
/// Records, enums and host types are named; what a name stands for is a [`TypeDefinition`] of a module or a program.
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
    /// What went wrong, where nothing more precise is known: a kind and a message.
    Failure,
    /// The type of an expression that never yields, such as `return`.
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
    /// A type parameter of a generic library function, such as `T`.
    Parameter(Text),
}

impl Type {
    /// `List(element)`.
    #[must_use]
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `Map(key, value)`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `Option(some)`.
    #[must_use]
    pub fn option(some: Type) -> Type {
        Type::Option(Arc::new(some))
    }

    /// `Result(ok, err)`.
    #[must_use]
    pub fn result(ok: Type, err: Type) -> Type {
        Type::Result(Arc::new((ok, err)))
    }

    /// A tuple.
    #[must_use]
    pub fn tuple(elements: Vec<Type>) -> Type {
        Type::Tuple(elements.into())
    }

    /// The named type `name`.
    #[must_use]
    pub fn named(name: &str) -> Type {
        Type::Named(name.into())
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

/// What a named type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDefinition {
    /// The whole name: `Post`, `image.Ppm`.
    pub name: Text,
    /// What its author says of it.
    pub doc: Text,
    /// Its parts.
    pub shape: TypeShape,
}

/// The parts of a named type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeShape {
    /// A record of named fields, held in this order.
    Record(Vec<Field>),
    /// An enum; a variant's index here is its tag in a [`crate::Value::Variant`].
    Enum(Vec<Variant>),
    /// A Rust type that only host functions look into.
    Opaque {
        /// Whether one value may be used several times; where not, it is moved.
        shareable: bool,
    },
}

/// One field of a record, or of an enum's variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; positional payloads of a variant are named by their index, `0`, `1`, ….
    pub name: Text,
    /// Its type.
    pub ty: Type,
}

/// One variant of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: Text,
    /// Its payload.
    pub fields: Vec<Field>,
}
