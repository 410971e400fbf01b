//! The parts of the source text that the edits of lints remove: whole lines if possible, and no comments.

use weir_syntax::Span;

/// Returns the span of the whole lines that an item occupies.
pub(crate) fn whole_lines(text: &str, span: Span) -> Span {
    let begin = text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
    let end = text[span.end as usize..].find('\n').map_or(text.len(), |at| span.end as usize + at + 1);
    Span { start: begin as u32, end: end as u32, ..span }
}

/// Returns whether a part of the text has a comment, which an edit may not remove. A literal with `//` counts as one.
pub(crate) fn has_comment(text: &str, removed: Span) -> bool {
    text.get(removed.range()).is_none_or(|text| text.contains("//"))
}

/// Returns the whole lines of a statement; `None` if there is something else on them.
pub(crate) fn alone_on_lines(text: &str, statement: Span) -> Option<Span> {
    let lines = whole_lines(text, statement);
    let around = [lines.start..statement.start, statement.end..lines.end];
    let is_alone = around.iter().all(|part| text[part.start as usize..part.end as usize].trim().is_empty());
    is_alone.then_some(lines)
}
