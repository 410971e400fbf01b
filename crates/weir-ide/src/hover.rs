//! Hover: the signature, documentation and effects of a name, or the type of an expression.

use weir_compile::{Symbol, SymbolInfo};
use weir_syntax::Span;

use crate::document::Document;
use crate::navigation::location_of;

/// The description of a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hover {
    /// The span that is described.
    pub span: Span,
    /// The description, as Markdown.
    pub markdown: String,
}

impl Document {
    /// Describes the place at `offset`.
    #[must_use]
    pub fn hover(&self, offset: u32) -> Option<Hover> {
        if let Some(found) = self.checked.reference_at(offset) {
            let described = self.checked.describe(&found.symbol, &self.library)?;
            let mut markdown = markdown(&described);
            if let Symbol::HostFunction(path) = &found.symbol
                && let Some(place) = self.library.function(path).and_then(location_of)
            {
                let name = place.file.file_name().unwrap_or_default().to_string_lossy();
                markdown.push_str(&format!("\n\n[{name}:{}]({})", place.position.line + 1, place.address()));
            }
            return Some(Hover { span: found.span, markdown });
        }
        if let Some((span, described)) = self.statement_at(offset) {
            return Some(Hover { span, markdown: markdown(&described) });
        }
        let (span, ty) = self.checked.type_at(offset)?;
        Some(Hover { span, markdown: code(&ty) })
    }
}

/// Formats the signature, documentation and effects, separated by empty lines.
pub(crate) fn markdown(described: &SymbolInfo) -> String {
    let mut parts = vec![code(&described.signature)];
    parts.extend((!described.doc.is_empty()).then(|| described.doc.clone()));
    parts.extend(described.effects.as_ref().map(|effects| format!("*{effects}*")));
    parts.join("\n\n")
}

fn code(text: &str) -> String {
    format!("```weir\n{text}\n```")
}
