//! Tokenizer of PPM headers, and of rasters that are written as text.
//!
//! A *word* is a run of digits. Words are separated by white space; a `#` and everything up to the end of its line
//! counts as white space, as in Netpbm's own reader.

use super::error::ImageError;

/// A position in the file that moves forward.
pub(super) struct Words<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// Begins after the two bytes of the magic number.
    pub(super) fn after_magic(file: &'a [u8]) -> Self {
        Words { file, at: 2 }
    }

    /// Reads the next word as a number of at most ten digits; `what` names it in the error.
    pub(super) fn number(&mut self, what: &'static str) -> Result<u32, ImageError> {
        self.skip_space();
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = &self.file[start..self.at];
        match (digits.is_empty(), self.peek()) {
            (true, None) => Err(ImageError::Short { what }),
            (true, Some(_)) => Err(ImageError::NotANumber { what, offset: start }),
            (false, Some(byte)) if !is_space(byte) && byte != b'#' => {
                Err(ImageError::NotANumber { what, offset: self.at })
            }
            (false, _) => parse_u32(digits).ok_or(ImageError::NumberTooLarge { what, offset: start }),
        }
    }

    /// Skips the single byte of white space (or the comment with its line end) before a binary raster, and returns the
    /// offset of the raster.
    pub(super) fn raster_separator(&mut self) -> Result<usize, ImageError> {
        match self.peek() {
            None => return Err(ImageError::Short { what: "raster" }),
            Some(b'#') => self.skip_comment(),
            Some(_) => {}
        }
        Ok((self.at + 1).min(self.file.len()))
    }

    /// Skips white space and comments; returns `true` at the end of the file.
    pub(super) fn at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.file.len()
    }

    /// Returns the number of bytes not yet read.
    pub(super) fn rest_len(&self) -> usize {
        self.file.len() - self.at
    }

    fn peek(&self) -> Option<u8> {
        self.file.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => self.skip_comment(),
                _ if is_space(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    /// Stops at the line end, which is the white space that the comment stands for.
    fn skip_comment(&mut self) {
        let rest = &self.file[self.at..];
        self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    }
}

/// Returns `true` for Netpbm's white space: space, tab, line feed, vertical tab, form feed, carriage return.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn parse_u32(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |value, digit| value.checked_mul(10)?.checked_add(u32::from(digit - b'0')))
}
