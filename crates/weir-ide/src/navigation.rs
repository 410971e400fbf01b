//! Where a name comes from, and where else it is.

use std::path::PathBuf;

use weir_compile::Symbol;
use weir_host::Function;
use weir_syntax::Span;

use crate::document::{Document, Position};

/// Where something is declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// At this place of the document: its name.
    Here(Span),
    /// In the library, by its path: `image.scale`, `image.Ppm` or `image`.
    Library(String),
    /// In Rust: a function of the library whose file is on this machine.
    Rust(FileLocation),
}

/// A place in a file of another language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLocation {
    /// The file.
    pub file: PathBuf,
    /// The place in it; columns are counted as Rust does, in characters.
    pub position: Position,
}

impl FileLocation {
    /// The file as editors name it: `file:///…`, and behind `#` the line, counted from 1.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}#L{}", self.uri(), self.position.line + 1)
    }

    /// The file's URI (RFC 8089), with what is no plain character written as `%` and its number.
    #[must_use]
    pub fn uri(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        let path = self.file.to_string_lossy().replace('\\', "/");
        let written = path.bytes().map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        });
        let written: String = written.collect();
        let slash = if written.starts_with('/') { "" } else { "/" };
        format!("file://{slash}{written}")
    }
}

impl Document {
    /// Where the name at `offset` is declared.
    #[must_use]
    pub fn definition(&self, offset: u32) -> Option<Definition> {
        let symbol = &self.checked.reference_at(offset)?.symbol;
        match symbol {
            Symbol::HostFunction(path) => {
                let place = self.library.function(path).and_then(location_of);
                Some(place.map_or_else(|| Definition::Library(path.to_string()), Definition::Rust))
            }
            Symbol::Source(path) | Symbol::Module(path) => Some(Definition::Library(path.to_string())),
            _ => match self.checked.definition_of(symbol) {
                Some(span) => Some(Definition::Here(span)),
                None => library_path(symbol).map(Definition::Library),
            },
        }
    }

    /// All places that name what the place at `offset` names, its declaration among them, in the order of the text.
    #[must_use]
    pub fn references(&self, offset: u32) -> Vec<Span> {
        let Some(found) = self.checked.reference_at(offset) else { return Vec::new() };
        let mut spans: Vec<Span> = self.checked.references_to(&found.symbol).map(|found| found.span).collect();
        spans.sort();
        spans.dedup();
        spans
    }
}

/// Where the Rust of a function stands, if its file is on this machine.
pub(crate) fn location_of(function: &Function) -> Option<FileLocation> {
    let location = function.location?;
    let position = Position { line: location.line.saturating_sub(1), character: location.column.saturating_sub(1) };
    Some(FileLocation { file: location.path()?, position })
}

/// The path of something that no text declares.
fn library_path(symbol: &Symbol) -> Option<String> {
    match symbol {
        Symbol::Type(name) => Some(name.to_string()),
        Symbol::Variant(of, name) | Symbol::Field(of, name) => Some(format!("{of}.{name}")),
        _ => None,
    }
}
