//! The tree of a program: what the text says, before any name is resolved or any type is known.
//!
//! The parser always makes a whole tree. Where the text is wrong it puts an `Error` node, which later passes skip
//! silently: the diagnostic is already there.
//!
//! Every node has its [`Span`]. Expressions and patterns also have a number that is unique in their file and counts from
//! 0, so that a later pass can keep what it finds out in a plain vector ([`Tree::expr_count`], [`Tree::pattern_count`]).

mod expr;
mod item;
mod literal;
mod operator;
mod outline;
mod pattern;
mod statement;
mod types;
mod visit;

pub use expr::*;
pub use item::*;
pub use literal::*;
pub use operator::*;
pub use outline::{outline, outline_expr};
pub use pattern::*;
pub use statement::*;
pub use types::*;
pub use visit::*;

use crate::Span;
use std::fmt;
use std::sync::Arc;

/// A whole file.
#[derive(Clone, PartialEq, Debug)]
pub struct Tree {
    /// The `//!` lines at the top: what the file is about.
    pub docs: Docs,
    /// The items in the order of the text.
    pub items: Vec<Item>,
    /// The whole text.
    pub span: Span,
    /// How many [`ExprId`]s were given out.
    pub expr_count: u32,
    /// How many [`PatternId`]s were given out.
    pub pattern_count: u32,
}

/// The number of an expression in its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExprId(pub u32);

/// The number of a pattern in its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PatternId(pub u32);

/// A word that names something, where it is declared or used.
#[derive(Clone, PartialEq)]
pub struct Name {
    /// The word. Empty where the text lacks one: nothing is called so, and the parser has said it.
    pub text: Arc<str>,
    /// Its place.
    pub span: Span,
}

impl Name {
    /// The word as a plain `str`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the parser had to invent it.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether it begins as types and variants do.
    #[must_use]
    pub fn is_upper(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}@{:?}", self.text, self.span)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Names with dots between them: `files.read`, `image.Format`, `Post`. Never empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// The names from left to right; at least one.
    pub names: Vec<Name>,
    /// From the first to the last name.
    pub span: Span,
}

impl Path {
    /// The rightmost name.
    #[must_use]
    pub fn last(&self) -> &Name {
        self.names.last().expect("the parser puts at least one name into a path")
    }

    /// The names before the last one.
    #[must_use]
    pub fn qualifier(&self) -> &[Name] {
        &self.names[..self.names.len() - 1]
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            write!(out, "{dot}{name}")?;
        }
        Ok(())
    }
}

/// The `///` lines above a declaration (or the `//!` lines of a file).
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Docs {
    /// The lines, without the marker and one space behind it.
    pub lines: Vec<DocLine>,
}

/// One line of documentation.
#[derive(Clone, PartialEq, Debug)]
pub struct DocLine {
    /// What it says.
    pub text: Arc<str>,
    /// Its place, with the marker.
    pub span: Span,
}

impl Docs {
    /// Whether there is no documentation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines as one Markdown text.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| &*line.text).collect();
        lines.join("\n")
    }
}

/// An ordinary comment (`// …`), or a documentation line that stands where nothing can be documented.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comment {
    /// Its place, from the marker to the end of the line.
    pub span: Span,
    /// Its text, with the marker and without trailing space.
    pub text: Arc<str>,
}
