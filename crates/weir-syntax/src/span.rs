//! Places in source text: which file, and which bytes of it.

use std::fmt;

/// Which source file, as its number in [`Sources`](crate::Sources).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceId(pub u32);

/// A range of bytes in one source file: from `start` up to, and without, `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The file that the range is in.
    pub source: SourceId,
    /// The offset of the first byte.
    pub start: u32,
    /// The offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The range from `start` up to `end` of `source`.
    #[must_use]
    pub fn new(source: SourceId, start: u32, end: u32) -> Self {
        debug_assert!(start <= end, "a span ends before it starts");
        Self { source, start, end }
    }

    /// The smallest range that holds this one and `other`, both of one file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The empty range at this one's start.
    #[must_use]
    pub fn at_start(self) -> Self {
        Self { end: self.start, ..self }
    }

    /// The empty range at this one's end.
    #[must_use]
    pub fn at_end(self) -> Self {
        Self { start: self.end, ..self }
    }

    /// The number of bytes in the range.
    #[must_use]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Whether the range holds no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether the byte at `offset` is in the range, or the range ends there (where a cursor would stand).
    #[must_use]
    pub fn touches(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Whether `other`, of the same file, lies wholly in this range.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// The range for indexing a `str`.
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
