//! Cascade suppression: drops diagnostics of the checker that follow from an error the parser has already reported.

use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;

/// Removes every diagnostic that lies in a span that the parser reports, or on a line that the parser could not make
/// sense of. Keeps one diagnostic for each module that lacks a `use`.
pub(crate) fn suppress(context: &mut CheckContext<'_>) {
    let (parsed, text) = (&context.parsed.diagnostics, context.text);
    let checked = context.diagnostics_mut();
    if !parsed.is_empty() {
        let reported: Vec<Span> = parsed.iter().filter_map(Diagnostic::span).collect();
        let unclear = parsed.iter().filter(|found| found.code != Code::DialectSyntax).filter_map(Diagnostic::span);
        let mut lines: Vec<(u32, u32)> = unclear.map(|span| line_bounds(text, span.start)).collect();
        lines.sort_unstable();
        // A span around an unmatched bracket is not what the author meant, and what the parser dropped seems to be
        // missing there.
        let dropped = parsed.iter().filter(|found| {
            found.code == Code::UnclosedDelimiter || (found.code == Code::DialectSyntax && !has_edit(found))
        });
        let dropped: Vec<Span> = dropped.filter_map(Diagnostic::span).collect();
        let types: Vec<&str> = parsed.iter().filter_map(|found| foreign_type(found, text)).collect();
        checked.retain(|found| !(found.code == Code::UnknownType && names(found, text, &types)));
        checked.retain(|found| {
            found.span().is_none_or(|span| {
                !is_within_any(&reported, span) && !is_on_line(&lines, span) && !contains_any(span, &dropped)
            })
        });
    }
    let mut named = std::collections::BTreeSet::new();
    checked.retain(|found| found.code != Code::ModuleNotUsed || named.insert(found.message.clone()));
}

fn is_within_any(reported: &[Span], span: Span) -> bool {
    reported.iter().any(|mark| mark.start <= span.start && span.end <= mark.end && mark.start < mark.end)
}

/// Returns whether the span contains something that the parser dropped from the tree.
fn contains_any(span: Span, dropped: &[Span]) -> bool {
    dropped.iter().any(|part| span.start <= part.start && part.end <= span.end)
}

fn has_edit(found: &Diagnostic) -> bool {
    found.help.iter().any(|hint| hint.edit.is_some())
}

/// Returns the name that `typedef Name = …`, as other languages write it, would declare.
fn foreign_type<'t>(found: &Diagnostic, text: &'t str) -> Option<&'t str> {
    let span = found.span().filter(|_| found.code == Code::DialectSyntax)?;
    if text.get(span.range())? != "typedef" {
        return None;
    }
    let line = text[span.end as usize..].lines().next()?;
    let mut words = line.split(|sign: char| !sign.is_alphanumeric() && sign != '_').filter(|word| !word.is_empty());
    words.find(|word| *word != "alias")
}

fn names(found: &Diagnostic, text: &str, types: &[&str]) -> bool {
    found.span().and_then(|span| text.get(span.range())).is_some_and(|name| types.contains(&name))
}

fn is_on_line(lines: &[(u32, u32)], span: Span) -> bool {
    let next = lines.partition_point(|(start, _)| *start <= span.start);
    next.checked_sub(1).is_some_and(|at| span.start <= lines[at].1)
}

/// Returns the start and the end of the line at an offset.
fn line_bounds(text: &str, at: u32) -> (u32, u32) {
    let at = (at as usize).min(text.len());
    let start = text.as_bytes()[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    let end = text.as_bytes()[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |behind| at + behind);
    (start as u32, end as u32)
}
