//! How large marks are, by the words in them.

use crate::diagram::{Look, Mark};
use crate::layout::Size;

/// The width of a letter of code at 13 pixels, the widest of the usual monospaced faces.
const CODE: f64 = 7.85;
/// The width of a letter of code at the smaller sizes.
const CODE_SMALL: f64 = 6.9;
/// The mean width of a letter in small words.
const WORDS_SMALL: f64 = 6.1;

/// The size of a mark; of a frame, what its title needs.
pub(super) fn size(mark: &Mark) -> Size {
    let title = mark.title.chars().count() as f64;
    let over = mark.over.chars().count() as f64 * WORDS_SMALL;
    let (width, height) = match mark.look {
        Look::Entry if mark.parent.is_some() => (title * CODE_SMALL + 26.0, 24.0),
        Look::Entry => ((title * CODE).max(over) + 44.0, if mark.over.is_empty() { 36.0 } else { 48.0 }),
        Look::Call => ((title * CODE).max(over) + 34.0, if mark.over.is_empty() { 36.0 } else { 46.0 }),
        Look::Prim => (title * CODE_SMALL + 20.0, 24.0),
        Look::Fork if mark.title.is_empty() => (26.0, 26.0),
        Look::Fork => (title * CODE_SMALL + 40.0, 32.0),
        Look::Answer if mark.title.is_empty() => (12.0, 12.0),
        Look::Answer | Look::Failure => (title * 7.2 + 26.0, 26.0),
        Look::Repeat | Look::Step => (title * CODE_SMALL + 36.0, 40.0),
    };
    Size { width: width.ceil(), height }
}
