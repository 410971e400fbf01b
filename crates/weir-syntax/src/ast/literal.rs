//! Literals: numbers, sizes, durations and text.

use super::Expr;
use crate::Span;
use std::sync::Arc;

/// A literal other than text.
#[derive(Clone, PartialEq, Debug)]
pub struct Literal {
    /// Value of the literal.
    pub value: LiteralValue,
    /// Source text, including a minus sign.
    pub raw: Arc<str>,
    /// Source range.
    pub span: Span,
}

/// The value of a literal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LiteralValue {
    /// `1_000`, `0xff`, `-1`.
    Int(i64),
    /// `1.5e3`; always finite.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// `64mb`, in bytes: `kb`, `mb` and `gb` are powers of 1024.
    Size(u64),
    /// `200ms`, in nanoseconds.
    Duration(u64),
}

/// A text literal with its interpolations.
#[derive(Clone, PartialEq, Debug)]
pub struct TextLiteral {
    /// Style of the literal.
    pub style: TextStyle,
    /// Parts from left to right. Literal parts are not empty and never adjacent.
    pub parts: Vec<TextPart>,
    /// Source range, including the quotes.
    pub span: Span,
}

/// The styles of a text literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextStyle {
    /// `"…"` on one line.
    Line,
    /// A block between `"""` lines. The indentation of the closing quotes is removed from each line.
    Block,
}

/// A part of a text literal.
#[derive(Clone, PartialEq, Debug)]
pub enum TextPart {
    /// Literal characters.
    Literal {
        /// Value with escapes resolved.
        value: Arc<str>,
        /// Source text; without the indentation of a block.
        raw: Arc<str>,
    },
    /// `{expression}`; always on one line.
    Expr(Expr),
}
