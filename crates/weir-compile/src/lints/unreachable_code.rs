//! Unreachable code: warns of statements behind one that always leaves the block.

use weir_syntax::{Code, Diagnostic};

use crate::context::CheckContext;
use crate::typed_tree::TypedTree;

/// Warns of the first unreachable statement of each block.
pub(super) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    context.report_all(typed.unreachable.iter().map(|(leaves, never)| {
        Diagnostic::new(Code::UnreachableCode, "this code is unreachable")
            .at(*never, "never runs")
            .because(*leaves, "always leaves the block")
            .hint("remove it, or move it up")
    }));
}
