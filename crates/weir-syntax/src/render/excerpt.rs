//! Source excerpts for rendered diagnostics, with the labels moved to their positions in the excerpt.
//!
//! Labels that are close together in one file share an excerpt. A line longer than [`LINE_BYTES_MAX`] is cut around its
//! first label, so that the output stays small for every file.

use crate::{Label, SourceFile, SourceId, Sources, Span};
use std::ops::Range;

/// Maximum number of bytes shown of one line.
const LINE_BYTES_MAX: u32 = 200;

/// Number of bytes that a cut line shows before its first label.
const LINE_BYTES_BEFORE: u32 = 60;

/// Maximum distance in lines between labels of one excerpt.
const LINES_APART_MAX: u32 = 60;

/// Maximum number of lines of a label; of a longer one, only the beginning is marked.
const LABEL_LINES_MAX: u32 = 12;

/// Some lines of one file.
pub(super) struct Excerpt {
    pub(super) name: String,
    pub(super) text: String,
    /// Number of the first line, counted from 1.
    pub(super) first_line: u32,
    pub(super) annotations: Vec<Annotation>,
    /// The place of the first primary label in a line that is cut before it: as it is in the excerpt, and in the file.
    pub(super) moved: Option<(String, String)>,
}

/// A label at its position in an excerpt.
pub(super) struct Annotation {
    pub(super) range: Range<usize>,
    pub(super) text: String,
    pub(super) primary: bool,
}

/// A label with the lines that it covers, counted from 0.
struct Covered<'l> {
    label: &'l Label,
    span: Span,
    lines: Range<u32>,
}

/// Returns the excerpts for all labels, the one with the first primary label first.
pub(super) fn excerpts(sources: &Sources, labels: &[Label]) -> Vec<Excerpt> {
    let mut groups: Vec<(SourceId, Vec<Covered<'_>>)> = Vec::new();
    for label in labels {
        let Some(file) = sources.get(label.span.source) else { continue };
        let covered = cover(file, label);
        let part = file.part_index(covered.span.start);
        let is_same_part = |group: &[Covered<'_>]| group.iter().all(|other| file.part_index(other.span.start) == part);
        let near = groups
            .iter_mut()
            .find(|(id, group)| *id == label.span.source && is_same_part(group) && is_near(group, &covered));
        match near {
            Some((_, group)) => group.push(covered),
            None => groups.push((label.span.source, vec![covered])),
        }
    }
    groups.sort_by_key(|(_, group)| !group.iter().any(|covered| covered.label.primary));
    groups.iter().map(|(id, group)| excerpt(sources.file(*id), group)).collect()
}

fn cover<'l>(file: &SourceFile, label: &'l Label) -> Covered<'l> {
    let length = file.text().len() as u32;
    let (start, end) = (label.span.start.min(length), label.span.end.min(length));
    let first = file.line_index(start);
    let last = file.line_index(end.saturating_sub(1).max(start));
    let line_end = file.line_start(first) + file.line_text(first).len() as u32;
    let end = if last - first >= LABEL_LINES_MAX { line_end.max(start) } else { end };
    let last = if last - first >= LABEL_LINES_MAX { first } else { last };
    Covered { label, span: Span { source: label.span.source, start, end }, lines: first..last + 1 }
}

fn is_near(group: &[Covered<'_>], covered: &Covered<'_>) -> bool {
    group.iter().any(|other| {
        let apart = covered.lines.start.saturating_sub(other.lines.end);
        let apart_before = other.lines.start.saturating_sub(covered.lines.end);
        apart.max(apart_before) <= LINES_APART_MAX
    })
}

fn excerpt(file: &SourceFile, group: &[Covered<'_>]) -> Excerpt {
    let first = group.iter().map(|covered| covered.lines.start).min().unwrap_or(0);
    let end = group.iter().map(|covered| covered.lines.end).max().unwrap_or(1);
    let mut text = String::new();
    let mut lines = Vec::new();
    for index in first..end {
        lines.push(shown_line(file, index, group, &mut text));
        text.push('\n');
    }
    let mark = |covered: &Covered<'_>| {
        let start = place_in(&lines, covered.span.start, file.line_index(covered.span.start) - first);
        let end_line = covered.lines.end - 1 - first;
        let end = place_in(&lines, covered.span.end, end_line).max(start);
        Annotation { range: start..end, text: covered.label.text.clone(), primary: covered.label.primary }
    };
    let annotations: Vec<Annotation> = group.iter().map(mark).collect();
    let name = file.part_at(file.line_start(first)).name.clone();
    let place = |column: usize, line: u32| format!("{name}:{line}:{column}");
    let primary = group.iter().zip(&annotations).find(|(covered, _)| covered.label.primary);
    let moved = primary.and_then(|(covered, mark)| {
        let at = file.line_column(covered.span.start);
        let line_start = text[..mark.range.start].rfind('\n').map_or(0, |end| end + 1);
        let shown = text[line_start..mark.range.start].chars().count() + 1;
        (shown != at.column as usize).then(|| (place(shown, at.line), place(at.column as usize, at.line)))
    });
    Excerpt { name, text, first_line: file.line_number(first), annotations, moved }
}

/// The bytes of the file that a shown line holds, and its position in the excerpt.
struct ShownLine {
    kept: Range<u32>,
    at: usize,
}

/// Appends line `index` to `text`, cut if it is too long.
fn shown_line(file: &SourceFile, index: u32, group: &[Covered<'_>], text: &mut String) -> ShownLine {
    let line = file.line_text(index);
    let start = file.line_start(index);
    let length = line.len() as u32;
    if length <= LINE_BYTES_MAX {
        let at = text.len();
        text.push_str(line);
        return ShownLine { kept: start..start + length, at };
    }
    let in_line = |covered: &&Covered<'_>| covered.lines.start == index;
    let label = group.iter().find(in_line).map_or(0, |covered| covered.span.start - start);
    let from = boundary(line, label.saturating_sub(LINE_BYTES_BEFORE).min(length));
    let to = boundary(line, (from + LINE_BYTES_MAX).min(length));
    if from > 0 {
        text.push('…');
    }
    let at = text.len();
    text.push_str(&line[from as usize..to as usize]);
    if to < length {
        text.push('…');
    }
    ShownLine { kept: start + from..start + to, at }
}

/// Returns the last character boundary at or before `at`.
fn boundary(line: &str, at: u32) -> u32 {
    (0..=at).rev().find(|at| line.is_char_boundary(*at as usize)).unwrap_or(0)
}

/// Returns the position in the excerpt of the byte at `offset`, which is in the excerpt's line `line`.
fn place_in(lines: &[ShownLine], offset: u32, line: u32) -> usize {
    let Some(line) = lines.get(line as usize) else { return 0 };
    let offset = offset.clamp(line.kept.start, line.kept.end);
    line.at + (offset - line.kept.start) as usize
}
