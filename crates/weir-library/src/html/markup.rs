//! `Html`: markup whose interpolations have been escaped.

use weir::Text;

use crate::units;

/// HTML that templates have made, or that `html.unescaped` declares to be safe.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(opaque, name = "Html")]
pub struct Html(Text);

impl Html {
    /// Returns the markup.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Declares a text to be HTML, without escaping anything in it. Whoever writes a part of the text can run scripts in the
/// page: use it only for what the program itself, or a sanitizer, has written. In a template, a text needs no such call.
#[weir::function(pure, total)]
pub fn unescaped(markup: Text) -> Html {
    Html(markup)
}

/// Returns the markup as a text, for tests and files.
#[weir::function(pure, total)]
pub fn to_text(html: &Html) -> Text {
    html.0.clone()
}

/// Joins parts of a page. A template joins a list by itself: `html"<ul>{items}</ul>"`.
#[weir::function(pure, units = units::to_read(parts))]
pub fn join(parts: Vec<Html>) -> Html {
    let mut joined = Text::with_capacity(parts.iter().map(|part| part.0.len()).sum());
    for part in &parts {
        joined.push(&part.0);
    }
    Html(joined)
}
