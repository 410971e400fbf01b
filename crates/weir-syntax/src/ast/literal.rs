//! Literals: numbers, sizes, durations and texts.

use super::Expr;
use crate::Span;
use std::sync::Arc;

/// A literal that is not a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Literal {
    /// What it means.
    pub value: LiteralValue,
    /// As written, with a minus sign where there is one.
    pub raw: Arc<str>,
    /// Its place.
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

/// A text with its interpolations.
#[derive(Clone, PartialEq, Debug)]
pub struct TextLiteral {
    /// How it is written.
    pub style: TextStyle,
    /// Its pieces from left to right; no two literal pieces follow each other, none is empty.
    pub parts: Vec<TextPart>,
    /// Its place, with the quotes.
    pub span: Span,
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextStyle {
    /// `"…"` on one line.
    Line,
    /// `"""` and `"""` on lines of their own. What stands before the closing quotes is taken off each line.
    Block,
}

/// A piece of a text.
#[derive(Clone, PartialEq, Debug)]
pub enum TextPart {
    /// Characters.
    Literal {
        /// What they mean, escapes resolved.
        value: Arc<str>,
        /// As written; for a block without its indentation.
        raw: Arc<str>,
    },
    /// `{expression}`; always on one line.
    Expr(Expr),
}
