//! Source text, spans, diagnostics, the parser and the formatter of Weir.
//!
//! ```text
//! bytes ─▶ Sources ─▶ parse ─▶ Tree + comments + diagnostics ─▶ format (a text)
//!                                        render, render_json ◀── diagnostics of any pass
//! ```
//!
//! The crate knows no types, no IR and no I/O: a caller brings name and text, and takes values.

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
pub use diagnostic::{Diagnostic, Edit, Hint, Label};
pub use format::{WIDTH, format, print};
pub use parser::{HEIGHT_MAX, NESTING_MAX, parse};
pub use render::{Style, location, render, render_all, render_json};
pub use source::{LineColumn, SOURCE_BYTES_MAX, SourceFile, Sources};
pub use span::{SourceId, Span};

/// What the parser makes of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed {
    /// The tree: always whole, with `Error` nodes where the text is wrong.
    pub tree: ast::Tree,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The comments that document nothing, in the order of the text.
    pub comments: Vec<ast::Comment>,
}
