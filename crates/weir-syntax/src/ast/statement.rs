//! Blocks and the statements in them.

use super::{Expr, FailureHandler, Name, Pattern, Type};
use crate::Span;

/// `{ statements }`; its value is its last statement's, if that is an expression, else `()`.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// The statements in order.
    pub statements: Vec<Statement>,
    /// Its place, with the braces.
    pub span: Span,
}

impl Block {
    /// The last statement, if it is an expression: the block's value.
    #[must_use]
    pub fn value(&self) -> Option<&Expr> {
        match &self.statements.last()?.kind {
            StatementKind::Expr(expr) => Some(expr),
            _ => None,
        }
    }
}

/// One statement of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Which statement.
    pub kind: StatementKind,
    /// Its place.
    pub span: Span,
}

/// The forms of a statement.
#[derive(Clone, PartialEq, Debug)]
pub enum StatementKind {
    /// `let pattern = value`.
    Let(Let),
    /// An expression.
    Expr(Expr),
    /// `expect condition`, in tests.
    Expect(Expr),
    /// `on failure of f { … }`. The parser admits it only in the outermost block of a `fn`, a route, an entry point or
    /// a test; it holds for that whole block.
    FailureHandler(FailureHandler),
}

/// `let pattern: Type = value else as failure { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Let {
    /// What the value is taken apart with.
    pub pattern: Pattern,
    /// The value's type, where written.
    pub ty: Option<Type>,
    /// The value, without the `else` that belongs to the `let`.
    pub value: Expr,
    /// What to do if the value is a failure, or the pattern does not match.
    pub otherwise: Option<Otherwise>,
}

/// The `else` of a `let`.
#[derive(Clone, PartialEq, Debug)]
pub struct Otherwise {
    /// What the failure is called in the body.
    pub failure: Option<Name>,
    /// What happens instead.
    pub body: Expr,
    /// From `else` to the end of the body.
    pub span: Span,
}
