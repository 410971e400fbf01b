//! Patterns, which `match`, `let`, `for` and closures use to destructure values.

use super::{Literal, Name, Path, PatternId};
use crate::Span;
use std::sync::Arc;

/// A pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern {
    /// Id within the file.
    pub id: PatternId,
    /// Form of the pattern.
    pub kind: PatternKind,
    /// Source range.
    pub span: Span,
}

impl Pattern {
    /// Returns true if the pattern, by its syntax, may not match every value of its type.
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

/// The forms of a pattern. A name in lower case binds a value, a name in upper case matches a variant.
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
        /// The text to compare with.
        value: Arc<str>,
        /// Source text, including the quotes.
        raw: Arc<str>,
    },
    /// `1..=8`, `0..10`, `..=0`, `100..`.
    Range {
        /// Lower bound, inclusive.
        low: Option<Literal>,
        /// Upper bound.
        high: Option<Literal>,
        /// True if the range includes `high`.
        inclusive: bool,
    },
    /// `None`, `Some(x)`, `Shape.Circle(radius: r)`.
    Variant {
        /// Name of the variant, with its type or module if written.
        path: Path,
        /// Patterns in parentheses.
        arguments: Vec<PatternArgument>,
    },
    /// `Post { id, title: t, .. }`.
    Record {
        /// Name of the record.
        path: Path,
        /// The named fields.
        fields: Vec<FieldPattern>,
        /// Source range of `..`, which ignores the other fields.
        rest: Option<Span>,
    },
    /// `(a, b)`; `()` matches only the unit value.
    Tuple(Vec<Pattern>),
    /// `[a, b, ..rest]`, `[first, .., last]`.
    List {
        /// Elements before `..`, or all elements.
        before: Vec<Pattern>,
        /// `..` or `..name`: any number of elements.
        rest: Option<RestPattern>,
        /// Elements after `..`.
        after: Vec<Pattern>,
    },
    /// `a | b`: matches if one of the alternatives does. At least two.
    Or(Vec<Pattern>),
    /// Placeholder for a missing pattern, which the parser has reported.
    Error,
}

/// A pattern for one value of a variant's payload.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternArgument {
    /// Name of the value, if written.
    pub name: Option<Name>,
    /// Pattern of the value.
    pub pattern: Pattern,
    /// Source range of name and pattern.
    pub span: Span,
}

/// A pattern for one field of a record. `title` alone means `title: title`.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldPattern {
    /// Name of the field.
    pub name: Name,
    /// Pattern of the field; in the short form a [`PatternKind::Bind`] with the field's name.
    pub pattern: Pattern,
    /// True for the short form.
    pub shorthand: bool,
    /// Source range of name and pattern.
    pub span: Span,
}

/// `..` or `..name` in a list pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct RestPattern {
    /// A [`PatternKind::Bind`] that binds the elements as a list, if a name is written.
    pub binding: Option<Box<Pattern>>,
    /// Source range.
    pub span: Span,
}
