//! A document: one checked state of a file, and its positions as editors count them.

use std::sync::Arc;

use weir_compile::{CheckCache, Checked};
use weir_host::Library;
use weir_syntax::{Diagnostic, SourceFile, SourceId, Sources, Span};

/// The number of a document's only file.
pub(crate) const SOURCE: SourceId = SourceId(0);

/// One checked state of a file.
pub struct Document {
    pub(crate) sources: Sources,
    pub(crate) checked: Checked,
    pub(crate) library: Arc<Library>,
}

/// A position as editors count it, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in UTF-16 code units.
    pub character: u32,
}

impl Document {
    /// Checks a text. A text that is too long or not UTF-8 becomes an empty text with a diagnostic.
    #[must_use]
    pub fn new(name: &str, text: impl Into<Vec<u8>>, library: Arc<Library>) -> Self {
        Self::again(name, text, library, &mut CheckCache::default())
    }

    /// Like [`Self::new`], with the cache of the document's state before an edit.
    #[must_use]
    pub fn again(name: &str, text: impl Into<Vec<u8>>, library: Arc<Library>, cache: &mut CheckCache) -> Self {
        let mut sources = Sources::new();
        let (source, refusal) = sources.add_bytes(name, text.into());
        debug_assert_eq!(source, SOURCE, "a document has one file");
        let mut checked = weir_compile::check_again(source, sources.file(source), &library, cache);
        checked.diagnostics.extend(refusal);
        Self { sources, checked, library }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.file().text()
    }

    /// Returns the name of the document.
    #[must_use]
    pub fn name(&self) -> &str {
        self.file().name()
    }

    /// Returns the diagnostics, in source order.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.checked.diagnostics
    }

    /// Returns the file, to render diagnostics.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn file(&self) -> &SourceFile {
        self.sources.file(SOURCE)
    }

    /// Returns the span of the whole text.
    pub(crate) fn whole(&self) -> Span {
        Span::new(SOURCE, 0, self.text().len() as u32)
    }

    /// Converts a byte offset to a position.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let file = self.file();
        let offset = offset.min(file.text().len() as u32);
        let line = file.line_index(offset);
        let before = file.text().get(file.line_start(line) as usize..offset as usize).unwrap_or_default();
        Position { line, character: before.chars().map(|character| character.len_utf16() as u32).sum() }
    }

    /// Converts a position to a byte offset. A column after the end of its line is that end; a line after the last is
    /// the end of the text; a column inside a character is the start of that character.
    #[must_use]
    pub fn offset(&self, position: Position) -> u32 {
        let file = self.file();
        if position.line >= file.line_count() {
            return file.text().len() as u32;
        }
        let mut column = 0;
        let mut offset = file.line_start(position.line);
        for character in file.line_text(position.line).chars() {
            column += character.len_utf16() as u32;
            if column > position.character {
                break;
            }
            offset += character.len_utf8() as u32;
        }
        offset
    }

    /// Returns the start and the text of the word that ends at `offset`.
    pub(crate) fn word_before(&self, offset: u32) -> (u32, &str) {
        let before = self.text().get(..offset as usize).unwrap_or_default();
        let is_part = |character: char| character == '_' || character.is_alphanumeric();
        let word = &before[before.trim_end_matches(is_part).len()..];
        (offset - word.len() as u32, word)
    }
}
