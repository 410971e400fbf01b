//! Blocks and statements.

use super::{Expr, FailureHandler, Name, Pattern, Type};
use crate::Span;

/// `{ statements }`. Its value is that of the last statement if this is an expression, and `()` otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Statements in source order.
    pub statements: Vec<Statement>,
    /// Source range, including the braces.
    pub span: Span,
}

impl Block {
    /// Returns the value of the block: its last statement, if that is an expression.
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
    /// Form of the statement.
    pub kind: StatementKind,
    /// Source range.
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
    /// `on failure of f { … }`. The parser accepts it only in the outermost block of a `fn`, a route, an entry point or
    /// a test, and it applies to that whole block.
    FailureHandler(FailureHandler),
}

/// `let pattern: Type = value else as failure { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Let {
    /// Pattern that binds the value.
    pub pattern: Pattern,
    /// Type of the value, if written.
    pub ty: Option<Type>,
    /// The value, without the `else` of the `let`.
    pub value: Expr,
    /// Handles a failure of the value, or a pattern that does not match.
    pub otherwise: Option<Otherwise>,
}

/// The `else` of a `let`.
#[derive(Clone, PartialEq, Debug)]
pub struct Otherwise {
    /// Name of the failure in the body.
    pub failure: Option<Name>,
    /// Body that runs instead.
    pub body: Expr,
    /// Source range from `else` to the end of the body.
    pub span: Span,
}
