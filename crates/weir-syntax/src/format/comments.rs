//! Comment placement: puts comments back between the elements of a sequence.

use super::SourcePrinter;
use super::doc::Doc;
use crate::Span;
use std::ops::Range;

/// An element with its comments.
pub(super) struct CommentedElement {
    /// Comments on lines of their own before the element.
    pub(super) before: Vec<OwnLineComment>,
    /// The element.
    pub(super) doc: Doc,
    /// Comment after the element on its line.
    pub(super) behind: Option<String>,
    /// True if an empty line separates the element from what precedes it, after the comments before it.
    pub(super) blank_before: bool,
}

/// A comment on a line of its own.
pub(super) struct OwnLineComment {
    pub(super) text: String,
    pub(super) blank_before: bool,
}

/// The elements of a sequence with all comments among them.
pub(super) struct CommentedElements {
    pub(super) elements: Vec<CommentedElement>,
    /// Comments after the last element.
    pub(super) tail: Vec<OwnLineComment>,
}

impl CommentedElements {
    /// Returns true if there is any comment.
    pub(super) fn has_comments(&self) -> bool {
        let commented = |element: &CommentedElement| !element.before.is_empty() || element.behind.is_some();
        !self.tail.is_empty() || self.elements.iter().any(commented)
    }
}

/// Returns the range of an element that has no documentation.
pub(super) fn range(span: Span) -> Range<u32> {
    span.start..span.end
}

impl SourcePrinter<'_> {
    /// Prints `items`, which lie in the `region` of the source, with the comments of the region. `place` returns the
    /// range of an item, including its documentation.
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

    /// Takes the comments from `cursor` up to `end`, and moves `cursor` after the last one.
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

    /// Takes the comments inside an element that its own sequences have not taken.
    fn take_inner(&mut self, at: &Range<u32>, blank_before: bool) -> Vec<OwnLineComment> {
        let indices = self.untaken(at.clone());
        let lines = indices.into_iter().enumerate();
        lines
            .map(|(count, index)| OwnLineComment { text: self.take(index), blank_before: blank_before && count == 0 })
            .collect()
    }

    /// Takes the comment after an element on its line.
    pub(super) fn take_behind(&mut self, cursor: &mut u32, limit: u32) -> Option<String> {
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

    /// Takes a comment. Misplaced documentation becomes an ordinary comment, so that it does not document the element
    /// after it.
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

/// Joins elements by `separator`, with comments on lines of their own or after their element.
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

/// Joins elements by commas; the last one gets a comma only if the group is broken.
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
