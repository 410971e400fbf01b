//! Putting comments back between the elements of a sequence.

use super::SourcePrinter;
use super::doc::Doc;
use crate::Span;
use std::ops::Range;

/// An element of a sequence with the comments that go with it.
pub(super) struct CommentedElement {
    /// Comments on lines of their own before it.
    pub(super) before: Vec<OwnLineComment>,
    /// The element.
    pub(super) doc: Doc,
    /// A comment behind it on its line.
    pub(super) behind: Option<String>,
    /// Whether an empty line stands before the element itself (behind the comments before it).
    pub(super) blank_before: bool,
}

/// A comment on a line of its own.
pub(super) struct OwnLineComment {
    pub(super) text: String,
    pub(super) blank_before: bool,
}

/// A sequence with all comments that stand in it.
pub(super) struct CommentedElements {
    pub(super) elements: Vec<CommentedElement>,
    /// Comments behind the last element.
    pub(super) tail: Vec<OwnLineComment>,
}

impl CommentedElements {
    /// Whether a comment stands anywhere between the elements.
    pub(super) fn has_comments(&self) -> bool {
        let commented = |element: &CommentedElement| !element.before.is_empty() || element.behind.is_some();
        !self.tail.is_empty() || self.elements.iter().any(commented)
    }
}

/// Where an element stands that has no documentation.
pub(super) fn range(span: Span) -> Range<u32> {
    span.start..span.end
}

impl SourcePrinter<'_> {
    /// Prints `items`, which stand in the `region` of the source, with the comments of the region.
    /// `place` says where an item begins (with its documentation) and ends.
    pub(super) fn attach_comments<T>(
        &mut self,
        items: &[T],
        region: Range<u32>,
        place: impl Fn(&T) -> Range<u32>,
        mut print: impl FnMut(&mut Self, &T) -> Doc,
    ) -> CommentedElements {
        let mut cursor = region.start;
        let mut elements = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = place(item);
            let limit = items.get(index + 1).map_or(region.end, |next| place(next).start);
            let first = index == 0;
            let mut before = self.take_lines(&mut cursor, at.start, first);
            let blank_before = !(first && before.is_empty()) && self.blank_between(cursor, at.start);
            let doc = print(self, item);
            before.extend(self.take_inner(&at, blank_before));
            cursor = at.end;
            let behind = self.take_behind(&mut cursor, limit);
            elements.push(CommentedElement { before, doc, behind, blank_before });
        }
        let tail = self.take_lines(&mut cursor, region.end, items.is_empty());
        CommentedElements { elements, tail }
    }

    /// The comments from `cursor` up to `end`, which moves `cursor` behind the last one.
    fn take_lines(&mut self, cursor: &mut u32, end: u32, first: bool) -> Vec<OwnLineComment> {
        let mut lines: Vec<OwnLineComment> = Vec::new();
        for index in self.untaken(*cursor..end) {
            let span = self.comments[index].span;
            let blank_before = !(first && lines.is_empty()) && self.blank_between(*cursor, span.start);
            lines.push(OwnLineComment { text: self.take(index), blank_before });
            *cursor = span.end;
        }
        lines
    }

    /// The comments inside of an element that none of its own sequences has taken.
    fn take_inner(&mut self, at: &Range<u32>, blank_before: bool) -> Vec<OwnLineComment> {
        let indices = self.untaken(at.clone());
        let lines = indices.into_iter().enumerate();
        lines
            .map(|(count, index)| OwnLineComment { text: self.take(index), blank_before: blank_before && count == 0 })
            .collect()
    }

    /// The comment that stands behind an element on its line.
    fn take_behind(&mut self, cursor: &mut u32, limit: u32) -> Option<String> {
        let index = *self.untaken(*cursor..limit).first()?;
        let span = self.comments[index].span;
        if self.line_ends_between(*cursor, span.start) {
            return None;
        }
        *cursor = span.end;
        Some(self.take(index))
    }

    fn untaken(&self, region: Range<u32>) -> Vec<usize> {
        let first = self.comments.partition_point(|comment| comment.span.start < region.start);
        let inside = self.comments[first..].iter().take_while(|comment| comment.span.start < region.end);
        let indices = inside.enumerate().map(|(index, _)| first + index);
        indices.filter(|index| !self.taken[*index]).collect()
    }

    /// Documentation that documents nothing is written as an ordinary comment, lest it documents what it now precedes.
    fn take(&mut self, index: usize) -> String {
        self.taken[index] = true;
        let text = &*self.comments[index].text;
        let is_documentation = (text.starts_with("///") && !text.starts_with("////")) || text.starts_with("//!");
        if !is_documentation {
            return text.to_owned();
        }
        let words = &text[3..];
        let gap = if words.starts_with(['/', '!']) { " " } else { "" };
        format!("//{gap}{words}")
    }
}

/// The sequence with `separator` between elements; comments are on lines of their own, or behind their element.
pub(super) fn lines(sequence: CommentedElements, separator: &Doc) -> Doc {
    let mut out = Vec::new();
    for element in sequence.elements {
        push_comments(&mut out, element.before, separator);
        push_line(&mut out, element.blank_before, separator);
        out.push(element.doc);
        if let Some(comment) = element.behind {
            out.push(Doc::text(format!(" {comment}")).broken());
        }
    }
    push_comments(&mut out, sequence.tail, separator);
    Doc::concat(out)
}

fn push_comments(out: &mut Vec<Doc>, lines: Vec<OwnLineComment>, separator: &Doc) {
    for line in lines {
        push_line(out, line.blank_before, separator);
        out.push(Doc::text(line.text).broken());
    }
}

fn push_line(out: &mut Vec<Doc>, blank: bool, separator: &Doc) {
    if !out.is_empty() {
        out.push(if blank { Doc::blank() } else { Doc::nothing() });
        out.push(separator.clone());
    }
}

/// The sequence with commas behind its elements, the last one only if the group is broken.
pub(super) fn comma_lines(sequence: CommentedElements) -> Doc {
    let mut out = Vec::new();
    let count = sequence.elements.len();
    for (index, element) in sequence.elements.into_iter().enumerate() {
        push_comments(&mut out, element.before, &Doc::line(" "));
        push_line(&mut out, element.blank_before, &Doc::line(" "));
        out.push(element.doc);
        out.push(if index + 1 == count { Doc::if_broken(",") } else { Doc::text(",") });
        if let Some(comment) = element.behind {
            out.push(Doc::text(format!(" {comment}")).broken());
        }
    }
    push_comments(&mut out, sequence.tail, &Doc::line(" "));
    Doc::concat(out)
}
