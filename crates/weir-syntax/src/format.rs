//! The formatter: two spaces of indentation, at most 100 columns. Comments and groups are preserved.
//!
//! A tree becomes a [`Doc`], which knows where it may be broken; the document is rendered into lines. The formatter
//! keeps the author's decisions: comments, one empty line between groups, parentheses, the spelling of numbers and
//! text, and whether a braced body is on one line, if it fits.
//!
//! A comment stays with the statement or element before or after it. A comment in the middle of a statement, where no
//! element begins, moves before the statement.

mod comments;
mod doc;
mod expressions;
mod items;
mod operands;
mod parentheses;
mod patterns;
mod statements;
mod tables;

use crate::Parsed;
use crate::ast::{Comment, Expr, Tree};
use doc::Doc;

/// Maximum width of a line, where the text can be broken.
pub const WIDTH: usize = 100;

/// Formats a file. Returns `None` if the file has errors, because then the tree does not contain the whole text.
///
/// `text` must be the source of `parsed`.
#[must_use]
pub fn format(text: &str, parsed: &Parsed) -> Option<String> {
    if parsed.diagnostics.iter().any(crate::Diagnostic::is_error) {
        return None;
    }
    let mut printer = SourcePrinter {
        text,
        comments: &parsed.comments,
        taken: vec![false; parsed.comments.len()],
        records_in_parentheses: false,
    };
    Some(printer.file(&parsed.tree).render(WIDTH))
}

/// Prints a tree that has no source text, such as a generated one. Spans are ignored.
#[must_use]
pub fn print(tree: &Tree) -> String {
    SourcePrinter::without_source().file(tree).render(WIDTH)
}

/// Prints an expression on one line, however the author broke it, without its comments. The file must have no errors.
#[must_use]
pub fn print_on_one_line(expr: &Expr) -> String {
    let mut line = SourcePrinter::without_source().expression(expr).flat().render(WIDTH);
    line.truncate(line.trim_end().len());
    line
}

/// State of printing: the source text, for looking up line ends, and the comments not yet placed.
struct SourcePrinter<'p> {
    text: &'p str,
    comments: &'p [Comment],
    taken: Vec<bool>,
    /// True where a brace would begin a body, so that a record expression needs parentheses.
    records_in_parentheses: bool,
}

impl SourcePrinter<'_> {
    fn without_source() -> Self {
        SourcePrinter { text: "", comments: &[], taken: Vec::new(), records_in_parentheses: false }
    }

    /// Returns the source between two offsets; empty for a tree without source.
    fn between(&self, from: u32, to: u32) -> &str {
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Returns true if a line ends between two offsets.
    fn line_ends_between(&self, from: u32, to: u32) -> bool {
        self.between(from, to).contains('\n')
    }

    /// Returns true if an empty line lies between two offsets.
    fn blank_between(&self, from: u32, to: u32) -> bool {
        self.between(from, to).bytes().filter(|byte| *byte == b'\n').count() > 1
    }

    /// Returns true if the author broke the line after the opening bracket at `open`.
    fn broke_after(&self, open: u32) -> bool {
        let rest = self.text.get(open as usize + 1..).unwrap_or_default();
        let inside = rest.trim_start_matches([' ', '\t', '\r']);
        inside.starts_with('\n') || inside.starts_with("//")
    }
}

/// Returns the pieces joined by `separator`.
fn joined(pieces: impl IntoIterator<Item = Doc>, separator: &Doc) -> Doc {
    let mut out = Vec::new();
    for piece in pieces {
        if !out.is_empty() {
            out.push(separator.clone());
        }
        out.push(piece);
    }
    Doc::concat(out)
}
