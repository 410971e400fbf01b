//! Source files in memory: text and line starts.
//!
//! Nothing here reads the disk: the caller supplies name and bytes. A file that is too long or not UTF-8 becomes an
//! empty file and a diagnostic, so that later passes can continue.

use crate::{Code, Diagnostic, SourceId, Span};

/// Maximum length of a source text in bytes. A program of this length has about half a million lines; spans hold 32
/// bits.
pub const SOURCE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A position as people count: both numbers begin at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineColumn {
    /// The line.
    pub line: u32,
    /// The column, in Unicode scalar values.
    pub column: u32,
}

/// The text of a program: its files one behind the other, with line ends between them, so that one offset says the file too.
///
/// A program of one file has one part. Lines are counted through the whole text; [`SourceFile::line_column`] and
/// [`SourceFile::line_number`] count them in their file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    parts: Vec<FilePart>,
    text: String,
    line_starts: Vec<u32>,
}

/// One file in the text of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePart {
    /// The name that diagnostics show: a path as the caller wrote it.
    pub name: String,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
    /// Index of its first line.
    first_line: u32,
}

impl SourceFile {
    /// Creates a file. A text longer than [`SOURCE_BYTES_MAX`] must be added with [`Sources::add_bytes`].
    ///
    /// # Panics
    /// Panics if the text is longer than a span can address.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        assert!(u32::try_from(text.len()).is_ok(), "a source file is longer than a span can address");
        let line_starts = std::iter::once(0).chain(line_ends(&text, 0)).collect();
        let part = FilePart { name: name.into(), start: 0, end: text.len() as u32, first_line: 0 };
        Self { parts: vec![part], text, line_starts }
    }

    /// Adds a file of the same program at an offset behind the others, and returns its part. Returns `None` if the whole text
    /// would be longer than a span can address.
    ///
    /// # Panics
    /// Panics if the offset is not behind the text so far.
    pub fn append_at(&mut self, start: usize, name: impl Into<String>, text: &str) -> Option<&FilePart> {
        assert!(start > self.text.len(), "a file begins behind those before it");
        let end = u32::try_from(start + text.len()).ok()?;
        self.text.reserve(start + text.len() - self.text.len());
        self.text.extend(std::iter::repeat_n('\n', start - self.text.len()));
        self.text.push_str(text);
        let start = start as u32;
        let first_line = self.line_starts.len() as u32;
        self.line_starts.push(start);
        self.line_starts.extend(line_ends(text, start));
        self.parts.push(FilePart { name: name.into(), start, end, first_line });
        self.parts.last()
    }

    /// Returns the files of the program, the main one first.
    #[must_use]
    pub fn parts(&self) -> &[FilePart] {
        &self.parts
    }

    /// Returns the index of the file that has the byte at `offset`.
    #[must_use]
    pub fn part_index(&self, offset: u32) -> usize {
        self.parts.partition_point(|part| part.start <= offset).saturating_sub(1)
    }

    /// Returns the file that has the byte at `offset`.
    #[must_use]
    pub fn part_at(&self, offset: u32) -> &FilePart {
        &self.parts[self.part_index(offset)]
    }

    /// Returns the name of the main file that diagnostics show: a path as the caller wrote it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts[0].name
    }

    /// Returns the number, counted from 1, that the line with this index has in its file.
    #[must_use]
    pub fn line_number(&self, index: u32) -> u32 {
        let at = self.parts.partition_point(|part| part.first_line <= index).saturating_sub(1);
        index - self.parts[at].first_line + 1
    }

    /// Source range of the whole file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text in `span`, or an empty text if the span exceeds the file.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// Returns the number of lines; an empty text has one.
    #[must_use]
    pub fn line_count(&self) -> u32 {
        self.line_starts.len() as u32
    }

    /// Returns the line, counted from 0, of the byte at `offset`.
    #[must_use]
    pub fn line_index(&self, offset: u32) -> u32 {
        self.line_starts.partition_point(|start| *start <= offset) as u32 - 1
    }

    /// Returns the offset of the first byte of line `index`, counted from 0, or the end of the text after the last
    /// line.
    #[must_use]
    pub fn line_start(&self, index: u32) -> u32 {
        self.line_starts.get(index as usize).copied().unwrap_or(self.text.len() as u32)
    }

    /// Returns the text of line `index`, counted from 0, without its line end.
    #[must_use]
    pub fn line_text(&self, index: u32) -> &str {
        let line = &self.text[self.line_start(index) as usize..self.line_start(index + 1) as usize];
        line.trim_end_matches(['\n', '\r'])
    }

    /// Returns the line and column of the byte at `offset`.
    #[must_use]
    pub fn line_column(&self, offset: u32) -> LineColumn {
        let offset = offset.min(self.text.len() as u32);
        let index = self.line_index(offset);
        let before = self.text.get(self.line_start(index) as usize..offset as usize).unwrap_or_default();
        LineColumn { line: self.line_number(index), column: before.chars().count() as u32 + 1 }
    }
}

fn line_ends(text: &str, base: u32) -> impl Iterator<Item = u32> {
    text.match_indices('\n').map(move |(at, _)| base + at as u32 + 1)
}

/// The texts of several programs; maps a [`Span`] to its text.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Creates an empty set of files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, and returns its id.
    pub fn add(&mut self, file: SourceFile) -> SourceId {
        self.files.push(file);
        SourceId(self.files.len() as u32 - 1)
    }

    /// Adds a file from its bytes on disk.
    ///
    /// # Errors
    /// If the text is longer than [`SOURCE_BYTES_MAX`] or not UTF-8, returns a diagnostic together with the id of an
    /// empty file of this name.
    pub fn add_bytes(&mut self, name: impl Into<String>, bytes: Vec<u8>) -> (SourceId, Option<Diagnostic>) {
        let name = name.into();
        match text_from_bytes(bytes) {
            Ok(text) => (self.add(SourceFile::new(name, text)), None),
            Err(refusal) => {
                let id = self.add(SourceFile::new(name, ""));
                (id, Some(refusal.diagnostic(id)))
            }
        }
    }

    /// Returns the file with this id.
    ///
    /// # Panics
    /// Panics if the id does not come from [`Sources::add`].
    #[must_use]
    pub fn file(&self, id: SourceId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Returns the file with this id, if there is one.
    #[must_use]
    pub fn get(&self, id: SourceId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// Returns the file with this id, to append files to it.
    ///
    /// # Panics
    /// Panics if the id does not come from [`Sources::add`].
    pub fn file_mut(&mut self, id: SourceId) -> &mut SourceFile {
        &mut self.files[id.0 as usize]
    }

    /// Returns all files with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &SourceFile)> {
        self.files.iter().enumerate().map(|(at, file)| (SourceId(at as u32), file))
    }
}

/// Reasons why bytes are not a source text.
enum Refusal {
    TooLong { length: usize },
    NotUtf8 { offset: usize, byte: u8, line: usize },
}

fn text_from_bytes(bytes: Vec<u8>) -> Result<String, Refusal> {
    if bytes.len() > SOURCE_BYTES_MAX {
        return Err(Refusal::TooLong { length: bytes.len() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = bytes[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        Refusal::NotUtf8 { offset, byte: bytes[offset], line }
    })
}

impl Refusal {
    fn diagnostic(&self, source: SourceId) -> Diagnostic {
        let place = Span::new(source, 0, 0);
        match self {
            Self::TooLong { length } => Diagnostic::new(Code::SourceTooLong, "source file is too long")
                .at(place, format!("it has {length} bytes"))
                .note(format!("a source file has at most {SOURCE_BYTES_MAX} bytes"))
                .hint("split it into several programs, or move data into files that it reads"),
            Self::NotUtf8 { offset: 0, byte: 0xff | 0xfe, .. } => {
                Diagnostic::new(Code::NotUtf8, "source file is not valid UTF-8")
                    .at(place, "begins with a UTF-16 byte order mark")
                    .hint("save the file as UTF-8; in PowerShell, `Out-File -Encoding utf8` writes it")
            }
            Self::NotUtf8 { offset, byte, line } => Diagnostic::new(Code::NotUtf8, "source file is not valid UTF-8")
                .at(place, format!("byte {offset} (0x{byte:02x}, line {line}) is not the start of a character"))
                .hint("save the file as UTF-8"),
        }
    }
}
