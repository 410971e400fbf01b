//! Source ranges.

use std::fmt;

/// Id of a source file in [`Sources`](crate::Sources).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceId(pub u32);

/// A range of bytes in one source file, from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The file.
    pub source: SourceId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the range from `start` to `end` of `source`.
    #[must_use]
    pub fn new(source: SourceId, start: u32, end: u32) -> Self {
        debug_assert!(start <= end, "a span ends before it starts");
        Self { source, start, end }
    }

    /// Returns the smallest range that contains this one and `other`, which must be in the same file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the empty range at the start.
    #[must_use]
    pub fn at_start(self) -> Self {
        Self { end: self.start, ..self }
    }

    /// Returns the empty range at the end.
    #[must_use]
    pub fn at_end(self) -> Self {
        Self { start: self.end, ..self }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Returns true if the range is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns true if the byte at `offset` is in the range, or the range ends there (the position of a cursor).
    #[must_use]
    pub fn touches(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Returns true if `other`, of the same file, lies within this range.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// Returns the range as indices into a `str`.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}..{}", self.start, self.end)
    }
}
