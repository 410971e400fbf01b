//! Navigation: definitions and references.

use std::path::PathBuf;

use weir_compile::Symbol;
use weir_host::Function;
use weir_syntax::Span;

use crate::document::{Document, Position};

/// The place of a definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// The name in this document.
    Here(Span),
    /// A path in the library: `image.scale`, `image.Ppm` or `image`.
    Library(String),
    /// A function of the library whose Rust source is on this machine.
    Rust(FileLocation),
}

/// A position in a file of another language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLocation {
    /// The file.
    pub file: PathBuf,
    /// The position; columns count characters, as Rust does.
    pub position: Position,
}

impl FileLocation {
    /// Returns the URI of the file with the line after `#`, counted from 1.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}#L{}", self.uri(), self.position.line + 1)
    }

    /// Returns the URI of the file (RFC 8089), percent-encoded.
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
    /// Returns the definition of the name at `offset`.
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

    /// Returns all references to the symbol at `offset`, including its declaration, in source order.
    #[must_use]
    pub fn references(&self, offset: u32) -> Vec<Span> {
        let Some(found) = self.checked.reference_at(offset) else { return Vec::new() };
        let mut spans: Vec<Span> = self.checked.references_to(&found.symbol).map(|found| found.span).collect();
        spans.sort();
        spans.dedup();
        spans
    }
}

/// Returns the location of a function's Rust source, if the file is on this machine.
pub(crate) fn location_of(function: &Function) -> Option<FileLocation> {
    let location = function.location?;
    let position = Position { line: location.line.saturating_sub(1), character: location.column.saturating_sub(1) };
    Some(FileLocation { file: location.path()?, position })
}

/// Returns the path of a symbol that the library declares.
fn library_path(symbol: &Symbol) -> Option<String> {
    match symbol {
        Symbol::Type(name) => Some(name.to_string()),
        Symbol::Variant(of, name) | Symbol::Field(of, name) => Some(format!("{of}.{name}")),
        _ => None,
    }
}
