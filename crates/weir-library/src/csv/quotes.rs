//! Quotation marks of CSV: tells whether an input ends inside of them, which the parser takes for the end of the field.

/// The place of the next byte in its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuotePlace {
    /// Before the field: a quotation mark opens it.
    FieldBegin,
    /// In the field, outside of quotation marks.
    Plain,
    /// Inside quotation marks.
    Quoted,
    /// Behind a quotation mark inside of them: another one stands for one.
    BehindMark,
}

/// Follows the quotation marks of an input.
pub(super) struct Quotes {
    separator: u8,
    place: QuotePlace,
}

impl Quotes {
    pub(super) fn new(separator: u8) -> Quotes {
        Quotes { separator, place: QuotePlace::FieldBegin }
    }

    /// Goes on behind this byte.
    pub(super) fn pass(&mut self, byte: u8) {
        self.place = self.behind(self.place, byte);
    }

    /// Returns true if the next byte stands inside quotation marks.
    pub(super) fn are_open(&self) -> bool {
        self.place == QuotePlace::Quoted
    }

    fn behind(&self, place: QuotePlace, byte: u8) -> QuotePlace {
        let ends = byte == self.separator || matches!(byte, b'\n' | b'\r');
        match (place, byte) {
            (QuotePlace::Quoted, b'"') => QuotePlace::BehindMark,
            (QuotePlace::Quoted, _) | (QuotePlace::FieldBegin | QuotePlace::BehindMark, b'"') => QuotePlace::Quoted,
            _ if ends => QuotePlace::FieldBegin,
            _ => QuotePlace::Plain,
        }
    }
}
