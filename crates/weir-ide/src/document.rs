//! A document: a file in one checked state of its program, and its positions as editors count them.

use std::sync::Arc;

use weir_compile::{CheckCache, Checked, ModuleFiles, NoModules, ProgramFiles};
use weir_host::Library;
use weir_syntax::ast::Item;
use weir_syntax::{Code, Diagnostic, Edit, SourceFile, SourceId, Sources, Span};

use crate::edits::apply;

/// The number of the text of a document's program.
pub(crate) const SOURCE: SourceId = SourceId(0);

/// A file in one checked state of its program.
pub struct Document {
    /// The index of the file in the text of the program.
    part: usize,
    /// The number of errors in the whole program.
    pub(crate) errors: usize,
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
        Self::of_program((name, text.into()), &mut NoModules, |_| true, library, cache).expect("the main file is shown")
    }

    /// Checks a program, given its main file, and shows the first of its files whose name is `shown`. Returns `None` if the
    /// program has no such file.
    #[must_use]
    pub fn of_program(
        (name, text): (&str, Vec<u8>),
        files: &mut dyn ModuleFiles,
        shown: impl Fn(&str) -> bool,
        library: Arc<Library>,
        cache: &mut CheckCache,
    ) -> Option<Self> {
        let mut sources = Sources::new();
        let (source, refusal) = sources.add_bytes(name, text);
        debug_assert_eq!(source, SOURCE, "a document has one text");
        let program = ProgramFiles::load_again(source, sources.file_mut(source), &library, files, &mut cache.trees);
        let part = sources.file(source).parts().iter().position(|part| shown(&part.name))?;
        let mut checked = weir_compile::check_program(program, sources.file(source), &library, cache);
        checked.diagnostics.extend(refusal);
        Some(Self::showing(part, sources, checked, library))
    }

    fn showing(part: usize, sources: Sources, mut checked: Checked, library: Arc<Library>) -> Self {
        let errors = checked.diagnostics.iter().filter(|found| found.is_error()).count();
        let file = sources.file(SOURCE);
        checked.diagnostics.retain(|found| file.part_index(found.span().unwrap_or_default().start) == part);
        Self { part, errors, sources, checked, library }
    }

    /// Returns the document after edits of the files of its program.
    pub(crate) fn edited(&self, edits: &[Edit]) -> Self {
        let texts = self.file().parts().iter().map(|part| {
            let of_part = edits.iter().filter(|edit| part.start <= edit.span.start && edit.span.end <= part.end);
            let moved = of_part.map(|edit| Edit {
                span: Span { start: edit.span.start - part.start, end: edit.span.end - part.start, ..edit.span },
                replacement: edit.replacement.clone(),
            });
            let text = &self.file().text()[part.start as usize..part.end as usize];
            (part.name.clone(), apply(text, &moved.collect::<Vec<_>>()))
        });
        let texts: Vec<(String, String)> = texts.collect();
        let mut sources = Sources::new();
        sources.add(SourceFile::new(texts[0].0.as_str(), texts[0].1.as_str()));
        let program = self.checked.with_texts(SOURCE, sources.file_mut(SOURCE), &texts[1..]);
        let checked =
            weir_compile::check_program(program, sources.file(SOURCE), &self.library, &mut CheckCache::default());
        Self::showing(self.part, sources, checked, self.library.clone())
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.file().slice(self.whole())
    }

    /// Returns the name of the document.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file().parts()[self.part].name
    }

    /// Returns the name of the file that has the byte at `offset`; `None` if it is the document.
    #[must_use]
    pub fn other_file(&self, offset: u32) -> Option<&str> {
        let part = self.file().part_index(offset);
        (part != self.part).then(|| self.file().parts()[part].name.as_str())
    }

    /// Returns true if the program of the document has other files, or names some that are not there.
    #[must_use]
    pub fn has_other_files(&self) -> bool {
        let missing = self.checked.diagnostics.iter().any(|found| found.code == Code::UnknownModule);
        missing || self.file().parts().len() > 1
    }

    /// Returns the items of the document.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        let whole = self.whole();
        self.checked.parsed.tree.items.iter().map(|item| &**item).filter(move |item| whole.contains(item.span))
    }

    /// Returns the text of the document before an offset.
    pub(crate) fn before(&self, offset: u32) -> &str {
        let start = self.whole().start;
        self.file().text().get(start as usize..offset as usize).unwrap_or_default()
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
        let part = &self.file().parts()[self.part];
        Span::new(SOURCE, part.start, part.end)
    }

    /// Converts a byte offset to a position in its file.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let file = self.file();
        let offset = offset.min(file.text().len() as u32);
        let line = file.line_index(offset);
        let before = file.text().get(file.line_start(line) as usize..offset as usize).unwrap_or_default();
        let line = file.line_number(line) - 1;
        Position { line, character: before.chars().map(|character| character.len_utf16() as u32).sum() }
    }

    /// Converts a position to a byte offset. A column after the end of its line is that end; a line after the last is
    /// the end of the text; a column inside a character is the start of that character.
    #[must_use]
    pub fn offset(&self, position: Position) -> u32 {
        let (file, whole) = (self.file(), self.whole());
        let line = file.line_index(whole.start).saturating_add(position.line);
        if line >= file.line_count() || file.line_start(line) > whole.end {
            return whole.end;
        }
        let mut column = 0;
        let mut offset = file.line_start(line);
        for character in file.line_text(line).chars() {
            column += character.len_utf16() as u32;
            if column > position.character {
                break;
            }
            offset += character.len_utf8() as u32;
        }
        offset
    }

    /// Returns the span of the word that `offset` touches.
    pub(crate) fn word_at(&self, offset: u32) -> Option<Span> {
        let (start, _) = self.word_before(offset);
        let behind = self.file().text().get(offset as usize..self.whole().end as usize)?;
        let end = offset + (behind.len() - behind.trim_start_matches(is_word_part).len()) as u32;
        (start < end).then(|| Span::new(SOURCE, start, end))
    }

    /// Returns the start and the text of the word that ends at `offset`.
    pub(crate) fn word_before(&self, offset: u32) -> (u32, &str) {
        let before = self.before(offset);
        let word = &before[before.trim_end_matches(is_word_part).len()..];
        (offset - word.len() as u32, word)
    }
}

fn is_word_part(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
