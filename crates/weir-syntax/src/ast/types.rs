//! Types as they are written.

use super::Path;
use crate::Span;

/// A written type.
#[derive(Clone, PartialEq, Debug)]
pub struct Type {
    /// Which type.
    pub kind: TypeKind,
    /// Its place.
    pub span: Span,
}

/// The forms of a written type.
#[derive(Clone, PartialEq, Debug)]
pub enum TypeKind {
    /// `Int`, `List(Int)`, `image.Ppm`.
    Named {
        /// The type's name, with its module where one is written.
        path: Path,
        /// What stands in parentheses behind it.
        arguments: Vec<Type>,
    },
    /// `(A, B)`; `()` is the type of nothing.
    Tuple(Vec<Type>),
    /// `fn(A, B) -> C`.
    Function {
        /// The types of what it takes.
        parameters: Vec<Type>,
        /// The type of what it gives; `()` where none is written.
        returns: Option<Box<Type>>,
    },
    /// The text lacks a type here, and the parser has said so.
    Error,
}
