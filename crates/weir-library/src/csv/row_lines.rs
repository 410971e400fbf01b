//! The lines in which the rows of a CSV input begin and end.
//!
//! The parser says only where it goes on after a row, which may be in the middle of a line break and before empty lines. Here
//! the input is followed byte by byte before the parser reads it, so that the places of a few more rows are known.

use std::collections::VecDeque;

use super::quotes::Quotes;

/// The bytes that may stand before the first row to tell that the text is UTF-8. They belong to no field.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The place of a row in its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowPlace {
    /// Offset of its first byte.
    pub(super) byte: u64,
    pub(super) first_line: u64,
    /// The line of its last field: another one only if a line break stands inside quotation marks.
    pub(super) last_line: u64,
    /// True if the row has not ended because a quotation mark is open.
    is_quoted: bool,
}

impl RowPlace {
    pub(super) fn has_several_lines(&self) -> bool {
        self.last_line > self.first_line
    }

    /// Returns true if a missing quotation mark would explain what is wrong with the row.
    pub(super) fn may_be_unclosed(&self) -> bool {
        self.is_quoted || self.has_several_lines()
    }
}

/// Follows the lines and rows of an input.
pub(super) struct RowLines {
    quotes: Quotes,
    /// Offset of the next byte.
    byte: u64,
    /// The line of the next byte.
    line: u64,
    /// The byte before the next one. `\r\n` is one line break.
    previous: u8,
    /// The row that has begun and not ended.
    open: Option<RowPlace>,
    /// The rows that have ended and that the parser has not returned.
    ended: VecDeque<RowPlace>,
}

impl RowLines {
    pub(super) fn new(separator: u8) -> RowLines {
        let quotes = Quotes::new(separator);
        RowLines { quotes, byte: 0, line: 1, previous: 0, open: None, ended: VecDeque::new() }
    }

    /// Goes on behind these bytes.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.pass_byte(*byte);
        }
    }

    fn pass_byte(&mut self, byte: u8) {
        let at = self.byte;
        self.byte += 1;
        if usize::try_from(at).is_ok_and(|at| BYTE_ORDER_MARK.get(at) == Some(&byte)) {
            return;
        }
        let is_break = matches!(byte, b'\r' | b'\n');
        if !is_break && self.open.is_none() {
            self.open = Some(self.begin(at));
        }
        self.quotes.pass(byte);
        if let Some(row) = &mut self.open {
            row.is_quoted = self.quotes.are_open();
            row.last_line = if is_break { row.last_line } else { self.line };
        }
        if is_break && !self.quotes.are_open() {
            self.ended.extend(self.open.take());
        }
        if is_break && (byte, self.previous) != (b'\n', b'\r') {
            self.line += 1;
        }
        self.previous = byte;
    }

    /// Returns a row that begins at an offset in this line.
    fn begin(&self, byte: u64) -> RowPlace {
        RowPlace { byte, first_line: self.line, last_line: self.line, is_quoted: false }
    }

    /// Returns the place of the first row that begins at an offset or behind it.
    pub(super) fn row_from(&mut self, byte: u64) -> RowPlace {
        while self.ended.front().is_some_and(|row| row.byte < byte) {
            self.ended.pop_front();
        }
        self.ended.front().copied().or(self.open).unwrap_or_else(|| self.begin(self.byte))
    }

    /// Returns true if the next byte stands inside quotation marks.
    pub(super) fn is_quoted(&self) -> bool {
        self.quotes.are_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first and last lines of all rows.
    fn lines_of(text: &str) -> Vec<(u64, u64)> {
        let mut lines = RowLines::new(b',');
        lines.pass(text.as_bytes());
        let (mut rows, mut from) = (Vec::new(), 0);
        loop {
            let row = lines.row_from(from);
            if row.byte == lines.byte {
                return rows;
            }
            rows.push((row.first_line, row.last_line));
            if lines.ended.is_empty() {
                return rows;
            }
            from = row.byte + 1;
        }
    }

    #[test]
    fn empty_lines_belong_to_no_row() {
        assert_eq!(lines_of("a\n\n\nb\n\n"), [(1, 1), (4, 4)]);
        assert_eq!(lines_of("\n\na\r\n\r\nb"), [(3, 3), (5, 5)]);
    }

    #[test]
    fn every_kind_of_line_break_counts_once() {
        assert_eq!(lines_of("a\nb\r\nc\rd\r\n"), [(1, 1), (2, 2), (3, 3), (4, 4)]);
    }

    #[test]
    fn quoted_line_breaks_belong_to_their_row() {
        assert_eq!(lines_of("a,\"1\r\n2\r\n\",c\r\nb"), [(1, 3), (4, 4)]);
        assert_eq!(lines_of("\u{feff}\"1\n2\"\nb\n"), [(1, 2), (3, 3)]);
    }

    #[test]
    fn a_row_that_is_not_closed_reaches_to_the_end() {
        assert_eq!(lines_of("a\n\n\"b\n\nc"), [(1, 1), (3, 5)]);
    }
}
