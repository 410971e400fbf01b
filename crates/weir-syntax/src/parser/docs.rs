//! Documentation: attaches comments to the declaration after them.

use super::Parser;
use crate::Span;
use crate::ast::{DocLine, Docs};
use std::sync::Arc;

impl Parser<'_> {
    /// Takes the `///` lines between the previous and the next token.
    pub(super) fn docs(&mut self) -> Docs {
        let from = if self.at == 0 { 0 } else { self.previous_span().end };
        let first = self.comments.partition_point(|comment| comment.start < from);
        let next = self.token().start;
        let count = self.comments[first..].iter().take_while(|comment| comment.start < next).count();
        self.take_docs(first..first + count, "///")
    }

    fn take_docs(&mut self, range: std::ops::Range<usize>, marker: &str) -> Docs {
        let mut lines = Vec::new();
        for index in range {
            let place = self.comments[index];
            let text = self.text[place.start as usize..place.end as usize].trim_end();
            let Some(words) = text.strip_prefix(marker).filter(|words| !words.starts_with('/')) else { continue };
            if !place.first_on_line {
                continue;
            }
            self.comment_taken[index] = true;
            let words = words.strip_prefix(' ').unwrap_or(words);
            lines.push(DocLine { text: Arc::from(words), span: Span::new(self.source, place.start, place.end) });
        }
        Docs { lines }
    }

    /// Takes the `//!` lines before the first token.
    pub(super) fn file_docs(&mut self) -> Docs {
        let first = self.token().start;
        let count = self.comments.iter().take_while(|comment| comment.start < first).count();
        self.take_docs(0..count, "//!")
    }

    /// Returns documentation without a declaration to the ordinary comments.
    pub(super) fn release_docs(&mut self, docs: &Docs) {
        for line in &docs.lines {
            let at = self.comments.partition_point(|comment| comment.start < line.span.start);
            self.comment_taken[at] = false;
        }
    }
}
