//! Computes the sizes of marks from their texts.

use crate::diagram::DiagramMark;
use crate::layout::Extent;
use crate::looks::MarkKind;

/// The width of a letter of code at 13 pixels, in the widest of the usual monospaced fonts.
const CODE: f64 = 7.85;
/// The width of a letter of code at the smaller sizes.
const CODE_SMALL: f64 = 6.9;
/// The average width of a letter in small text.
const WORDS_SMALL: f64 = 6.1;

/// Returns the size of a mark; of a frame, the size that its title needs.
pub(super) fn size(mark: &DiagramMark) -> Extent {
    let title = mark.title.chars().count() as f64;
    let over = mark.over.chars().count() as f64 * WORDS_SMALL;
    let (width, height) = match mark.kind {
        MarkKind::Entry if mark.parent.is_some() => (title * CODE_SMALL + 26.0, 24.0),
        MarkKind::Entry => ((title * CODE).max(over) + 44.0, if mark.over.is_empty() { 36.0 } else { 48.0 }),
        MarkKind::Call => ((title * CODE).max(over) + 34.0, if mark.over.is_empty() { 36.0 } else { 46.0 }),
        MarkKind::Prim => (title * CODE_SMALL + 20.0, 24.0),
        MarkKind::Fork if mark.title.is_empty() => (26.0, 26.0),
        MarkKind::Fork => (title * CODE_SMALL + 40.0, 32.0),
        MarkKind::Answer if mark.title.is_empty() => (12.0, 12.0),
        MarkKind::Answer | MarkKind::Failure => (title * 7.2 + 26.0, 26.0),
        MarkKind::Repeat | MarkKind::Step | MarkKind::Fn => (title * CODE_SMALL + 36.0, 40.0),
    };
    Extent { width: width.ceil(), height }
}
