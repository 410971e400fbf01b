//! Unused modules: warns of modules that the file imports and does not use.

use std::sync::Arc;

use weir_syntax::ast::{Item, ItemKind, UsedModule};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::typed_tree::TypedTree;
use crate::whole_lines::whole_lines;

/// Warns of every module in a `use` that nothing names.
pub(super) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    let modules = typed.declarations.files.iter().flat_map(|file| &file.modules);
    let unused = modules.filter(|(_, module)| !module.used);
    let found = unused.filter_map(|(name, module)| {
        let removed = removed_span(&context.tree().items, module.span, context.text)?;
        let diagnostic = Diagnostic::new(Code::UnusedModule, format!("the module `{name}` is never used"))
            .at(module.span, "unused in this file")
            .fix("remove it from the `use`", removed, "");
        Some(diagnostic)
    });
    let found: Vec<_> = found.collect();
    context.report_all(found);
}

/// Returns what to remove for a module: the `use` if it is the only one there, otherwise the module and one comma.
fn removed_span(items: &[Arc<Item>], module: Span, text: &str) -> Option<Span> {
    let item = items.iter().find(|item| item.span.contains(module))?;
    let ItemKind::Use(used) = &item.kind else { return None };
    let at = used.modules.iter().position(|other| other.span == module)?;
    let span_of = |at: usize| used.modules.get(at).map(|module: &UsedModule| module.span);
    Some(match (at.checked_sub(1).and_then(span_of), span_of(at + 1)) {
        (None, None) => whole_lines(text, item.span),
        (Some(before), _) => Span { start: before.end, ..module },
        (None, Some(after)) => Span { end: after.start, ..module },
    })
}
