//! Type expressions.

use super::Path;
use crate::Span;

/// A type expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Type {
    /// Form of the type expression.
    pub kind: TypeKind,
    /// Source range.
    pub span: Span,
}

/// The forms of a type expression.
#[derive(Clone, PartialEq, Debug)]
pub enum TypeKind {
    /// `Int`, `List(Int)`, `image.Ppm`.
    Named {
        /// Name of the type, with its module if written.
        path: Path,
        /// Type arguments.
        arguments: Vec<Type>,
    },
    /// `(A, B)`; `()` is the unit type.
    Tuple(Vec<Type>),
    /// `fn(A, B) -> C`.
    Function {
        /// Types of the parameters.
        parameters: Vec<Type>,
        /// Return type; `()` if none is written.
        returns: Option<Box<Type>>,
    },
    /// Placeholder for a missing type, which the parser has reported.
    Error,
}
