//! Unreachable code: warns of statements behind one that always leaves the block.

use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::typed_tree::{TypedTree, UnreachableCode};
use crate::whole_lines::{alone_on_lines, has_comment};

/// Warns of the first unreachable statement of each block.
pub(super) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    let text = context.text;
    context.report_all(typed.files.iter().flat_map(|file| &file.unreachable).map(|found| {
        let diagnostic = Diagnostic::new(Code::UnreachableCode, "this code is unreachable")
            .at(found.first, "never runs")
            .because(found.leaves, "always leaves the block");
        match found.end.and_then(|end| removed(text, found, end)) {
            Some(removed) => diagnostic.suggest("remove it, or move it up", removed, ""),
            None => diagnostic.hint("remove it, or move it up"),
        }
    }));
}

/// Returns the part of the text to remove; `None` if there are comments in it.
fn removed(text: &str, found: &UnreachableCode, end: u32) -> Option<Span> {
    let behind = Span { start: found.leaves.end, end, ..found.leaves };
    let removed = alone_on_lines(text, Span { end, ..found.first }).unwrap_or(behind);
    (!has_comment(text, removed)).then_some(removed)
}
