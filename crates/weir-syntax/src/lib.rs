//! Source text, spans, diagnostics, the parser and the formatter of Weir.
//!
//! ```text
//! bytes ─▶ Sources ─▶ parse ─▶ Tree + comments + diagnostics ─▶ format (a text)
//!                                        render, render_json ◀── diagnostics of any pass
//! ```
//!
//! The crate contains no type checking, no IR and no I/O: it takes names and texts, and returns values.

pub mod ast;
mod balance;
pub mod codes;
mod diagnostic;
mod dialect;
mod format;
mod lexer;
mod parser;
mod render;
mod source;
mod span;
mod token;

pub use codes::{Code, Severity};
pub use diagnostic::{Certainty, Diagnostic, Edit, Hint, Label};
pub use format::{WIDTH, format, print, print_on_one_line};
pub use parser::{FilePlace, HEIGHT_MAX, NESTING_MAX, parse, parse_file};
pub use render::{Style, location, render, render_all, render_json};
pub use source::{FilePart, LineColumn, SOURCE_BYTES_MAX, SourceFile, Sources};
pub use span::{SourceId, Span};

/// Result of the parser.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed {
    /// The tree; always complete, with `Error` nodes for unreadable source.
    pub tree: ast::Tree,
    /// Diagnostics in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// Comments that are not documentation, in source order.
    pub comments: Vec<ast::Comment>,
}
