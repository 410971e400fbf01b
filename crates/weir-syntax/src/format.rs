//! The one style of writing a program: two spaces a level, at most 100 columns, comments and groups kept.
//!
//! A tree becomes a [`Doc`], a text that knows where it may be broken; the document becomes lines. What the
//! writer decides stays: comments, one empty line between groups, parentheses, how numbers and texts are written, and
//! whether something in braces is on one line, as far as it fits.
//!
//! A comment goes with the statement or element that it stands before or behind. One in the middle of a statement,
//! where no element begins, is put before the statement.

mod comments;
mod doc;
mod expressions;
mod items;
mod operands;
mod parentheses;
mod patterns;
mod statements;

use crate::Parsed;
use crate::ast::{Comment, Tree};
use doc::Doc;

/// The most columns of a line, where the text can be broken at all.
pub const WIDTH: usize = 100;

/// Formats a file. Gives nothing if the file has errors, because then the tree does not hold all of the text.
///
/// `text` must be what `parsed` was made from.
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

/// Writes a tree that was not read from a text, such as one that a program made. Its spans are not looked at.
#[must_use]
pub fn print(tree: &Tree) -> String {
    let mut printer = SourcePrinter { text: "", comments: &[], taken: Vec::new(), records_in_parentheses: false };
    printer.file(tree).render(WIDTH)
}

/// What the rules of printing share: the text for looking up line ends, and the comments that are still to be placed.
struct SourcePrinter<'p> {
    text: &'p str,
    comments: &'p [Comment],
    taken: Vec<bool>,
    /// Whether a brace would begin a body here, so that a record needs parentheses.
    records_in_parentheses: bool,
}

impl SourcePrinter<'_> {
    /// The source between two offsets; empty for a tree without a text.
    fn between(&self, from: u32, to: u32) -> &str {
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Whether a line ends between two offsets.
    fn line_ends_between(&self, from: u32, to: u32) -> bool {
        self.between(from, to).contains('\n')
    }

    /// Whether an empty line stands between two offsets.
    fn blank_between(&self, from: u32, to: u32) -> bool {
        self.between(from, to).bytes().filter(|byte| *byte == b'\n').count() > 1
    }

    /// Whether the writer broke the line behind the opening bracket at `open`.
    fn broke_after(&self, open: u32) -> bool {
        let rest = self.text.get(open as usize + 1..).unwrap_or_default();
        let inside = rest.trim_start_matches([' ', '\t', '\r']);
        inside.starts_with('\n') || inside.starts_with("//")
    }
}

/// The pieces joined by `separator`.
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
