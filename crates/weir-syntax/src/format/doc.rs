//! Pretty-printer documents, and their rendering into lines.
//!
//! A *group* is put on one line if it fits; otherwise all its own lines are broken, and inner groups decide for
//! themselves. A document that *breaks* (a comment, two statements) breaks every group around it, except in a *flat*
//! document, which is always on one line.
//!
//! After Wadler, "A prettier printer". The rendering is iterative, so deep documents do not need a deep stack.

/// A document.
#[derive(Clone, Debug)]
pub(super) struct Doc {
    kind: DocKind,
    breaks: bool,
}

#[derive(Clone, Debug)]
enum DocKind {
    Text(String),
    /// A line end, or this text if the group is flat.
    Line(&'static str),
    /// An empty line; nothing if the group is flat.
    Blank,
    /// This text if the group is broken.
    IfBroken(&'static str),
    /// One of two documents: the first if the group is flat.
    Choice(Box<(Doc, Doc)>),
    Nest(Box<Doc>),
    Group(Box<Doc>),
    Flat(Box<Doc>),
    Concat(Vec<Doc>),
}

impl Doc {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { kind: DocKind::Text(text.into()), breaks: false }
    }

    pub(super) fn nothing() -> Self {
        Self::concat([])
    }

    /// Creates a line end, or `flat` if the group is on one line.
    pub(super) fn line(flat: &'static str) -> Self {
        Self { kind: DocKind::Line(flat), breaks: false }
    }

    /// Creates a line end that breaks its groups.
    pub(super) fn hard_line() -> Self {
        Self { kind: DocKind::Line(" "), breaks: true }
    }

    /// Creates an empty line, if the group is broken.
    pub(super) fn blank() -> Self {
        Self { kind: DocKind::Blank, breaks: false }
    }

    pub(super) fn if_broken(text: &'static str) -> Self {
        Self { kind: DocKind::IfBroken(text), breaks: false }
    }

    pub(super) fn choice(flat: Self, broken: Self) -> Self {
        let breaks = broken.breaks;
        Self { kind: DocKind::Choice(Box::new((flat, broken))), breaks }
    }

    /// Indents `self` by one level.
    pub(super) fn nest(self) -> Self {
        let breaks = self.breaks;
        Self { kind: DocKind::Nest(Box::new(self)), breaks }
    }

    pub(super) fn group(self) -> Self {
        let breaks = self.breaks;
        Self { kind: DocKind::Group(Box::new(self)), breaks }
    }

    /// Puts `self` on one line, whatever it contains.
    pub(super) fn flat(self) -> Self {
        Self { kind: DocKind::Flat(Box::new(self)), breaks: false }
    }

    /// Breaks all groups around `self`.
    pub(super) fn broken(self) -> Self {
        Self { breaks: true, ..self }
    }

    pub(super) fn broken_if(self, condition: bool) -> Self {
        if condition { self.broken() } else { self }
    }

    pub(super) fn concat(docs: impl IntoIterator<Item = Self>) -> Self {
        let docs: Vec<Self> = docs.into_iter().collect();
        let breaks = docs.iter().any(|doc| doc.breaks);
        Self { kind: DocKind::Concat(docs), breaks }
    }

    /// Appends `next`.
    pub(super) fn then(self, next: Self) -> Self {
        Self::concat([self, next])
    }

    /// Appends a text.
    pub(super) fn then_text(self, next: impl Into<String>) -> Self {
        self.then(Self::text(next))
    }

    /// Renders the document into lines. No group wider than `width` is put on one line.
    pub(super) fn render(&self, width: usize) -> String {
        let mut out = DocWriter { text: String::new(), column: 0, indentation: 0 };
        let mut stack = vec![PrintStep { level: 0, flat: false, doc: self }];
        while let Some(step) = stack.pop() {
            step.take(&mut stack, &mut out, width);
        }
        let end = out.text.trim_end().len();
        out.text.truncate(end);
        if !out.text.is_empty() {
            out.text.push('\n');
        }
        out.text
    }
}

/// Columns of one indentation level.
const INDENTATION: usize = 2;

/// A document that is still to be written, with its indentation and mode.
#[derive(Clone, Copy)]
struct PrintStep<'d> {
    level: usize,
    flat: bool,
    doc: &'d Doc,
}

struct DocWriter {
    text: String,
    column: usize,
    /// Spaces before the next text on this line; written only if there is a text.
    indentation: usize,
}

impl DocWriter {
    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.column == 0 {
            self.text.extend(std::iter::repeat_n(' ', self.indentation));
            self.column = self.indentation;
        }
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn end_line(&mut self, level: usize) {
        self.text.push('\n');
        self.column = 0;
        self.indentation = level * INDENTATION;
    }
}

impl<'d> PrintStep<'d> {
    fn of(self, doc: &'d Doc) -> Self {
        Self { doc, ..self }
    }

    fn take(self, stack: &mut Vec<Self>, out: &mut DocWriter, width: usize) {
        match &self.doc.kind {
            DocKind::Text(text) => out.write(text),
            DocKind::Line(flat) if self.flat => out.write(flat),
            DocKind::Line(_) => out.end_line(self.level),
            DocKind::Blank if !self.flat => out.end_line(self.level),
            DocKind::IfBroken(text) if !self.flat => out.write(text),
            DocKind::Blank | DocKind::IfBroken(_) => {}
            DocKind::Choice(choice) => stack.push(self.of(if self.flat { &choice.0 } else { &choice.1 })),
            DocKind::Nest(doc) => stack.push(Self { level: self.level + 1, ..self.of(doc) }),
            DocKind::Flat(doc) => stack.push(Self { flat: true, ..self.of(doc) }),
            DocKind::Group(doc) => {
                let column = out.column.max(if out.column == 0 { out.indentation } else { 0 });
                let flat = Self { flat: true, ..self.of(doc) };
                let fits = self.flat || (!doc.breaks && fits(flat, stack, width.saturating_sub(column)));
                stack.push(Self { flat: fits, ..flat });
            }
            DocKind::Concat(docs) => stack.extend(docs.iter().rev().map(|doc| self.of(doc))),
        }
    }
}

/// Returns true if `first`, and the documents after it up to the next line end, fit into `room` columns.
fn fits(first: PrintStep<'_>, rest: &[PrintStep<'_>], room: usize) -> bool {
    let mut room = room;
    let mut rest = rest.iter().rev();
    let mut stack = vec![first];
    loop {
        let Some(step) = stack.pop().or_else(|| rest.next().copied()) else { return true };
        let text = match &step.doc.kind {
            DocKind::Text(text) => text.as_str(),
            DocKind::Line(flat) if step.flat => flat,
            DocKind::Line(_) => return true,
            DocKind::Blank => "",
            DocKind::IfBroken(text) => {
                if step.flat {
                    ""
                } else {
                    text
                }
            }
            DocKind::Choice(choice) => {
                stack.push(step.of(if step.flat { &choice.0 } else { &choice.1 }));
                continue;
            }
            DocKind::Flat(doc) => {
                stack.push(PrintStep { flat: true, ..step.of(doc) });
                continue;
            }
            DocKind::Nest(doc) | DocKind::Group(doc) => {
                stack.push(step.of(doc));
                continue;
            }
            DocKind::Concat(docs) => {
                stack.extend(docs.iter().rev().map(|doc| step.of(doc)));
                continue;
            }
        };
        let Some(left) = room.checked_sub(text.chars().count()) else { return false };
        room = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Doc {
        let words = words.iter().map(|word| Doc::text(*word));
        let inner = Doc::line("").then(super::super::joined(words, &Doc::text(",").then(Doc::line(" "))));
        let close = Doc::concat([Doc::if_broken(","), Doc::line(""), Doc::text("]")]);
        Doc::concat([Doc::text("["), inner.nest(), close]).group()
    }

    #[test]
    fn a_group_is_broken_only_if_it_does_not_fit() {
        assert_eq!(list(&["a", "b"]).render(6), "[a, b]\n");
        assert_eq!(list(&["a", "b"]).render(5), "[\n  a,\n  b,\n]\n");
    }

    #[test]
    fn what_follows_a_group_counts() {
        assert_eq!(list(&["a", "b"]).then_text("?").render(6), "[\n  a,\n  b,\n]?\n");
    }

    #[test]
    fn a_flat_document_is_on_one_line_whatever_is_in_it() {
        assert_eq!(list(&["a", "b"]).broken().flat().render(3), "[a, b]\n");
    }
}
