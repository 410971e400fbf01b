//! Patterns: what `match`, `let`, `for` and closures take values apart with.

use super::{Literal, Name, Path, PatternId};
use crate::Span;
use std::sync::Arc;

/// A pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern {
    /// Its number in the file.
    pub id: PatternId,
    /// Which pattern.
    pub kind: PatternKind,
    /// Its place.
    pub span: Span,
}

impl Pattern {
    /// Whether the pattern, as written, may not match a value of its type.
    #[must_use]
    pub fn is_refutable(&self) -> bool {
        match &self.kind {
            PatternKind::Wildcard | PatternKind::Bind(_) | PatternKind::Error => false,
            PatternKind::Tuple(parts) => parts.iter().any(Pattern::is_refutable),
            PatternKind::Record { fields, .. } => fields.iter().any(|field| field.pattern.is_refutable()),
            PatternKind::List { before, rest, after } => rest.is_none() || !before.is_empty() || !after.is_empty(),
            PatternKind::Or(alternatives) => alternatives.iter().all(Pattern::is_refutable),
            PatternKind::Literal(_)
            | PatternKind::Text { .. }
            | PatternKind::Range { .. }
            | PatternKind::Variant { .. } => true,
        }
    }
}

/// The forms of a pattern. A word that begins in lower case binds; one that begins in upper case names a variant.
#[derive(Clone, PartialEq, Debug)]
pub enum PatternKind {
    /// `_` matches everything.
    Wildcard,
    /// `name` matches everything and binds it.
    Bind(Name),
    /// `1`, `-2.5`, `true`, `64kb`, `200ms`.
    Literal(Literal),
    /// `"text"`, without interpolation.
    Text {
        /// The text that must be equal.
        value: Arc<str>,
        /// As written, with its quotes.
        raw: Arc<str>,
    },
    /// `1..=8`, `0..10`, `..=0`, `100..`.
    Range {
        /// The least value, which belongs to the range.
        low: Option<Literal>,
        /// The greatest value.
        high: Option<Literal>,
        /// Whether `high` belongs to the range.
        inclusive: bool,
    },
    /// `None`, `Some(x)`, `Shape.Circle(radius: r)`.
    Variant {
        /// The variant's name, with its type or module where written.
        path: Path,
        /// What stands in parentheses.
        arguments: Vec<PatternArgument>,
    },
    /// `Post { id, title: t, .. }`.
    Record {
        /// The record's name.
        path: Path,
        /// The fields that are named.
        fields: Vec<FieldPattern>,
        /// The place of `..`, which leaves other fields alone.
        rest: Option<Span>,
    },
    /// `(a, b)`; `()` matches nothing but the unit value.
    Tuple(Vec<Pattern>),
    /// `[a, b, ..rest]`, `[first, .., last]`.
    List {
        /// The elements before `..`, or all.
        before: Vec<Pattern>,
        /// `..` or `..name`: any number of elements.
        rest: Option<RestPattern>,
        /// The elements behind `..`.
        after: Vec<Pattern>,
    },
    /// `a | b`: matches if one of at least two does.
    Or(Vec<Pattern>),
    /// The text lacks a pattern here, and the parser has said so.
    Error,
}

/// A pattern for one value that a variant carries.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternArgument {
    /// The value's name, where written.
    pub name: Option<Name>,
    /// Its pattern.
    pub pattern: Pattern,
    /// Name and pattern.
    pub span: Span,
}

/// A pattern for one field of a record. `title` alone stands for `title: title`.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldPattern {
    /// The field.
    pub name: Name,
    /// Its pattern; for the short form a [`PatternKind::Bind`] of the field's name.
    pub pattern: Pattern,
    /// Whether the short form is written.
    pub shorthand: bool,
    /// Name and pattern.
    pub span: Span,
}

/// `..` or `..name` in a list pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct RestPattern {
    /// A [`PatternKind::Bind`] that takes the elements as a list, where a name is written.
    pub binding: Option<Box<Pattern>>,
    /// Its place.
    pub span: Span,
}
