//! Line splitting of input that arrives in pieces: from a file, a connection or the standard input.
//!
//! A *line* is UTF-8 and ends with `\n` or `\r\n`, which is not part of it; a non-empty rest after the last terminator
//! is a line as well. Lines are borrowed from one buffer, so that only callers that keep a line copy it.

use std::fmt;
use std::io;

use bytes::{Buf, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};
use weir::{Failure, FailureKind, Value};

use crate::bad_elements::{BadElements, StreamElement};

/// Maximum length of a line: 1 MiB. Longer input is not a text of lines.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Number of bytes requested by one read.
const PIECE_BYTES: usize = 64 * 1024;

/// Reason why a line cannot be read. Further lines can be read, unless reading failed.
#[derive(Debug)]
pub enum LineError {
    /// The line with this number, counted from 1, is not UTF-8.
    NotText(u64),
    /// The line with this number, counted from 1, is longer than [`LINE_BYTES_MAX`].
    TooLong(u64),
    /// Reading failed.
    Read(io::Error),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NotText(number) => write!(f, "line {number} is not UTF-8"),
            LineError::TooLong(number) => write!(f, "line {number} is longer than {LINE_BYTES_MAX} bytes"),
            LineError::Read(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl std::error::Error for LineError {}

impl LineError {
    /// Converts the error into the outcome of reading one element.
    ///
    /// # Errors
    /// Fails if the input cannot be read any further.
    pub(crate) fn into_element(self, origin: &str, bad: BadElements) -> Result<StreamElement, Failure> {
        match self {
            LineError::Read(_) => Err(self.of(origin)),
            LineError::NotText(_) | LineError::TooLong(_) => bad.element(Err(self.of(origin))),
        }
    }

    /// Converts the error into a failure of reading `origin`.
    pub(crate) fn of(self, origin: &str) -> Failure {
        let kind = match self {
            LineError::TooLong(_) => FailureKind::Limit,
            LineError::NotText(_) | LineError::Read(_) => FailureKind::Function,
        };
        Failure::new(kind, format!("{origin}: {self}"))
    }
}

/// Splitter of a byte stream into lines.
pub(crate) struct LineSplitter {
    buffer: BytesMut,
    /// Length of the line at the start of the buffer that was returned last.
    line_length: usize,
    /// Length of the buffer's prefix that is known to contain no line terminator.
    scanned: usize,
    /// Number of lines found.
    number: u64,
    /// Number of bytes of these lines, including terminators.
    bytes: u64,
    /// `true` in the middle of a line that is too long: its rest is discarded.
    discarding: bool,
}

impl LineSplitter {
    /// Creates a reader without input.
    pub(crate) fn new() -> Self {
        LineSplitter { buffer: BytesMut::new(), line_length: 0, scanned: 0, number: 0, bytes: 0, discarding: false }
    }

    /// Returns the number of the most recent line, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of bytes of all lines returned so far, including terminators.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the next line, including an unterminated last one; `None` at the end of the input.
    pub(crate) async fn next(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<&str>, LineError> {
        match self.find(reader).await? {
            Some(length) => self.take_line(length).map(Some),
            None => self.rest(),
        }
    }

    /// Returns the next terminated line; `None` if the input has no more at present.
    pub(crate) async fn next_ended(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
    ) -> Result<Option<&str>, LineError> {
        match self.find(reader).await? {
            Some(length) => self.take_line(length).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the unterminated rest of the input, unless it is empty.
    pub(crate) fn rest(&mut self) -> Result<Option<&str>, LineError> {
        self.consume_line();
        self.discarding = false;
        match self.buffer.len() {
            0 => Ok(None),
            length => self.take_line(length).map(Some),
        }
    }

    /// Discards input that has been read but not returned.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        (self.line_length, self.scanned, self.discarding) = (0, 0, false);
    }

    /// Returns the length of the next line, including its terminator.
    async fn find(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<usize>, LineError> {
        self.consume_line();
        loop {
            let end = memchr(b'\n', &self.buffer[self.scanned..]).map(|end| self.scanned + end + 1);
            match end {
                Some(end) if self.discarding => {
                    self.discard(end);
                    self.discarding = false;
                    continue;
                }
                Some(end) => return Ok(Some(end)),
                None if self.discarding => self.discard(self.buffer.len()),
                None => self.scanned = self.buffer.len(),
            }
            if self.scanned > LINE_BYTES_MAX {
                self.number += 1;
                self.discarding = true;
                self.discard(self.scanned);
                return Err(LineError::TooLong(self.number));
            }
            self.buffer.reserve(PIECE_BYTES);
            if reader.read_buf(&mut self.buffer).await.map_err(LineError::Read)? == 0 {
                return Ok(None);
            }
        }
    }

    /// Discards the first bytes of the buffer, which belong to a line that is too long.
    fn discard(&mut self, length: usize) {
        self.buffer.advance(length);
        self.bytes += length as u64;
        self.scanned = 0;
    }

    fn consume_line(&mut self) {
        self.buffer.advance(self.line_length);
        self.scanned = self.scanned.saturating_sub(self.line_length);
        self.line_length = 0;
    }

    fn take_line(&mut self, length: usize) -> Result<&str, LineError> {
        self.number += 1;
        self.bytes += length as u64;
        (self.line_length, self.scanned) = (length, length);
        let line = without_end(&self.buffer[..length]);
        if line.len() > LINE_BYTES_MAX {
            return Err(LineError::TooLong(self.number));
        }
        std::str::from_utf8(line).map_err(|_| LineError::NotText(self.number))
    }
}

/// Converts the outcome of reading one line into an element of a stream of texts.
///
/// # Errors
/// Fails if the line ends the stream.
pub(crate) fn line_element(
    line: Result<&str, LineError>,
    origin: &str,
    bad: BadElements,
) -> Result<StreamElement, Failure> {
    match line {
        Ok(line) => bad.element(Ok(Value::text(line))),
        Err(error) => error.into_element(origin, bad),
    }
}

/// Strips `\n` or `\r\n` from the line.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads lines from pieces that arrive in one read each.
    async fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let mut builder = tokio::io::empty().chain(pieces[0]);
        let mut lines = LineSplitter::new();
        let mut found = Vec::new();
        let mut rest = pieces[1..].iter();
        loop {
            match lines.next_ended(&mut builder).await {
                Ok(Some(line)) => found.push(line.to_owned()),
                Ok(None) => match rest.next() {
                    Some(piece) => builder = tokio::io::empty().chain(piece),
                    None => break,
                },
                Err(error) => return vec![error.to_string()],
            }
        }
        match lines.rest() {
            Ok(rest) => found.extend(rest.map(str::to_owned)),
            Err(error) => found.push(error.to_string()),
        }
        found
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_arrive() {
        let text = "first\r\n\nthird \u{fc}\r\r\n\r\nlast".as_bytes();
        let expected = ["first", "", "third \u{fc}\r", "", "last"];
        for cut in 0..=text.len() {
            assert_eq!(lines_of(&[&text[..cut], &text[cut..]]).await, expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines_of(&bytes).await, expected);
        assert!(lines_of(&[b""]).await.is_empty());
        assert_eq!(lines_of(&[b"\n"]).await, [""]);
    }

    #[tokio::test]
    async fn invalid_lines_are_reported_by_number() {
        assert_eq!(lines_of(&[b"a\nb\n\xff\nd"]).await, ["line 3 is not UTF-8"]);
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(lines_of(&[b"a\n", &long]).await, ["line 2 is longer than 1048576 bytes"]);
        let longest = [&long[1..], b"\r\n"].concat();
        assert_eq!(lines_of(&[&longest]).await[0].len(), LINE_BYTES_MAX);
    }
}
