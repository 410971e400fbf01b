//! Where a name comes from, and where else it is.

use weir_compile::Entity;
use weir_syntax::Span;

use crate::document::Document;

/// Where something is declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// At this place of the document: its name.
    Here(Span),
    /// In the library, by its path: `image.scale`, `image.Ppm` or `image`.
    Library(String),
}

impl Document {
    /// Where the name at `offset` is declared.
    #[must_use]
    pub fn definition(&self, offset: u32) -> Option<Definition> {
        let entity = &self.checked.reference_at(offset)?.entity;
        match entity {
            Entity::HostFunction(path) | Entity::Source(path) | Entity::Module(path) => {
                Some(Definition::Library(path.to_string()))
            }
            _ => match self.checked.definition_of(entity) {
                Some(span) => Some(Definition::Here(span)),
                None => library_path(entity).map(Definition::Library),
            },
        }
    }

    /// All places that name what the place at `offset` names, its declaration among them, in the order of the text.
    #[must_use]
    pub fn references(&self, offset: u32) -> Vec<Span> {
        let Some(found) = self.checked.reference_at(offset) else { return Vec::new() };
        let mut spans: Vec<Span> = self.checked.references_to(&found.entity).map(|found| found.span).collect();
        spans.sort();
        spans.dedup();
        spans
    }
}

/// The path of something that no text declares.
fn library_path(entity: &Entity) -> Option<String> {
    match entity {
        Entity::Type(name) => Some(name.to_string()),
        Entity::Variant(of, name) | Entity::Field(of, name) => Some(format!("{of}.{name}")),
        _ => None,
    }
}
