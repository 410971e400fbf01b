//! Abstract syntax tree: the structure of a program before names are resolved and types are inferred.
//!
//! The parser always returns a complete tree. An `Error` node marks a place that it could not read; later passes skip
//! such nodes silently, because the parser has reported the error.
//!
//! Every node has a [`Span`]. Expressions and patterns also have an id: their file, and a number that counts from 0 in it,
//! so that a later pass can keep its results in a vector for each file ([`Tree::node_counts`]). An edit of one file leaves
//! the ids of all others as they are.

mod expr;
mod item;
mod literal;
mod operator;
mod outline;
mod pattern;
mod service;
mod statement;
mod table;
mod text_format;
mod types;
mod visit;

pub use expr::*;
pub use item::*;
pub use literal::*;
pub use operator::*;
pub use outline::{outline, outline_expr};
pub use pattern::*;
pub use service::*;
pub use statement::*;
pub use table::*;
pub use text_format::{Alignment, TextFormat};
pub use types::*;
pub use visit::*;

use crate::Span;
use std::fmt;
use std::sync::Arc;

/// The syntax tree of a file, or of all files of a program.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Tree {
    /// Documentation of the file: the `//!` lines at its top.
    pub docs: Docs,
    /// Items in source order, each shared with the trees of later states of the program in which its file is the same.
    pub items: Vec<Arc<Item>>,
    /// Source range of the whole file.
    pub span: Span,
    /// Number of expressions and patterns of each file.
    pub node_counts: Vec<NodeCounts>,
}

/// Number of expressions and patterns of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NodeCounts {
    /// Number of [`ExprId`]s.
    pub exprs: u32,
    /// Number of [`PatternId`]s.
    pub patterns: u32,
}

/// Index of a file in its program: 0 is the main file.
pub type FileIndex = u16;

/// Id of an expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExprId {
    /// The file.
    pub file: FileIndex,
    /// The number in the file.
    pub index: u32,
}

/// Id of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PatternId {
    /// The file.
    pub file: FileIndex,
    /// The number in the file.
    pub index: u32,
}

/// An identifier, at its declaration or at a use.
#[derive(Clone, PartialEq)]
pub struct Name {
    /// The identifier; empty if the source lacks one and the parser has reported it.
    pub text: Arc<str>,
    /// Source range.
    pub span: Span,
}

impl Name {
    /// Returns the identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the source lacks this name and the parser filled in an empty one.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns true if the first letter is in upper case, as in types and variants.
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

/// Names joined by dots: `files.read`, `image.Format`, `Post`. Never empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// Names from left to right; at least one.
    pub names: Vec<Name>,
    /// Source range from the first to the last name.
    pub span: Span,
}

impl Path {
    /// Returns the rightmost name.
    #[must_use]
    pub fn last(&self) -> &Name {
        self.names.last().expect("the parser puts at least one name into a path")
    }

    /// Returns all names but the last.
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

/// Documentation: the `///` lines above a declaration, or the `//!` lines of a file.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Docs {
    /// Lines without the marker and the space after it.
    pub lines: Vec<DocLine>,
}

/// One line of documentation.
#[derive(Clone, PartialEq, Debug)]
pub struct DocLine {
    /// Text of the line.
    pub text: Arc<str>,
    /// Source range, including the marker.
    pub span: Span,
}

impl Docs {
    /// Returns true if there is no documentation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the lines as one Markdown text.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| &*line.text).collect();
        lines.join("\n")
    }
}

/// An ordinary comment (`// …`), or a documentation line that has nothing to document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comment {
    /// Source range from the marker to the end of the line.
    pub span: Span,
    /// Text with the marker, without trailing spaces.
    pub text: Arc<str>,
}
