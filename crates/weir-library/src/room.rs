//! Sizes of results, for the room that functions ask for before they allocate ([`weir::memory`]).

/// The bytes of a text in a list, beside its characters, while a function creates it: a `String` and a value.
const PIECE_BYTES: usize = 64;

/// A text below this length is not examined before it is divided: its pieces are few.
const EXAMINED_BYTES: usize = 16 * 1024;

/// Returns the bytes of the pieces into which a text is divided. They are counted only if the text is long.
pub(crate) fn of_pieces(text: &str, count: impl FnOnce(&str) -> usize) -> usize {
    let pieces = if text.len() < EXAMINED_BYTES { 0 } else { count(text) };
    pieces.saturating_mul(PIECE_BYTES).saturating_add(2 * text.len())
}

/// Returns the bytes of a list with this many tuples of two values.
pub(crate) fn of_pairs(length: usize) -> usize {
    length.saturating_mul(96)
}

/// Returns the bytes of a list with this many values.
pub(crate) fn of_values(length: usize) -> usize {
    length.saturating_mul(size_of::<weir::Value>())
}

/// Returns the bytes of a list with this many numbers, which has them without their tags.
pub(crate) fn of_numbers(length: usize) -> usize {
    length.saturating_mul(size_of::<i64>())
}
