//! Unreachable code: warns of statements behind one that always leaves the block.

use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::typed_tree::TypedTree;

/// Warns of the first unreachable statement of each block.
pub(super) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    context.report_all(typed.unreachable.iter().map(|found| {
        let diagnostic = Diagnostic::new(Code::UnreachableCode, "this code is unreachable")
            .at(found.first, "never runs")
            .because(found.leaves, "always leaves the block");
        match found.end {
            Some(end) => {
                let removed = Span { start: found.leaves.end, end, ..found.leaves };
                diagnostic.suggest("remove it, or move it up", removed, "")
            }
            None => diagnostic.hint("remove it, or move it up"),
        }
    }));
}
