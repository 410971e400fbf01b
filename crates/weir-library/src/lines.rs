//! Lines of what arrives piece by piece: from a file, a connection, the standard input.
//!
//! A *line* is UTF-8 and ends at `\n` or `\r\n`, which is not part of it; what stands behind the last end is a line too,
//! unless it is nothing. Lines are lent out of one buffer, so that only who keeps one copies it.

use std::fmt;
use std::io;

use bytes::{Buf, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};
use weir::{Failure, FailureKind};

/// The most bytes of a line: 1 MiB. Something longer is no text of lines.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that are asked for at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Why there is no further line.
#[derive(Debug)]
pub enum LineError {
    /// The line of this number, counted from 1, is not UTF-8.
    NotText(u64),
    /// The line of this number, counted from 1, is longer than [`LINE_BYTES_MAX`].
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
    /// The failure of what is read from `origin`.
    pub(crate) fn of(self, origin: &str) -> Failure {
        let kind = match self {
            LineError::TooLong(_) => FailureKind::Limit,
            LineError::NotText(_) | LineError::Read(_) => FailureKind::Function,
        };
        Failure::new(kind, format!("{origin}: {self}"))
    }
}

/// The lines of a reader.
pub(crate) struct LineReader {
    buffer: BytesMut,
    /// How much of the buffer's start is the line that was lent last.
    lent: usize,
    /// How much of the buffer is known to hold no end of a line.
    scanned: usize,
    /// Lines found.
    number: u64,
    /// Their bytes, with their ends.
    bytes: u64,
}

impl LineReader {
    /// No lines yet.
    pub(crate) fn new() -> Self {
        LineReader { buffer: BytesMut::new(), lent: 0, scanned: 0, number: 0, bytes: 0 }
    }

    /// The number of the line that was given last, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of all lines that were given, with their ends.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next line, the last one included; `None` at the end of the input.
    pub(crate) async fn next(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<&str>, LineError> {
        match self.find(reader).await? {
            Some(length) => self.lend(length).map(Some),
            None => self.rest(),
        }
    }

    /// The next line that has an end; `None` where the input has nothing more at present.
    pub(crate) async fn next_ended(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
    ) -> Result<Option<&str>, LineError> {
        match self.find(reader).await? {
            Some(length) => self.lend(length).map(Some),
            None => Ok(None),
        }
    }

    /// What stands behind the last end of a line, where that is something.
    pub(crate) fn rest(&mut self) -> Result<Option<&str>, LineError> {
        self.give_back();
        match self.buffer.len() {
            0 => Ok(None),
            length => self.lend(length).map(Some),
        }
    }

    /// Forgets what is read and not given.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        (self.lent, self.scanned) = (0, 0);
    }

    /// The length of the next line with its end.
    async fn find(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<usize>, LineError> {
        self.give_back();
        loop {
            if let Some(end) = memchr(b'\n', &self.buffer[self.scanned..]) {
                return Ok(Some(self.scanned + end + 1));
            }
            self.scanned = self.buffer.len();
            if self.scanned > LINE_BYTES_MAX {
                return Err(LineError::TooLong(self.number + 1));
            }
            self.buffer.reserve(PIECE_BYTES);
            if reader.read_buf(&mut self.buffer).await.map_err(LineError::Read)? == 0 {
                return Ok(None);
            }
        }
    }

    fn give_back(&mut self) {
        self.buffer.advance(self.lent);
        self.scanned = self.scanned.saturating_sub(self.lent);
        self.lent = 0;
    }

    fn lend(&mut self, length: usize) -> Result<&str, LineError> {
        self.number += 1;
        self.bytes += length as u64;
        (self.lent, self.scanned) = (length, length);
        let line = without_end(&self.buffer[..length]);
        if line.len() > LINE_BYTES_MAX {
            return Err(LineError::TooLong(self.number));
        }
        std::str::from_utf8(line).map_err(|_| LineError::NotText(self.number))
    }
}

/// The line without `\n` or `\r\n`.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the pieces one read at a time.
    async fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let mut builder = tokio::io::empty().chain(pieces[0]);
        let mut lines = LineReader::new();
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
    async fn what_is_no_line_is_named_by_its_number() {
        assert_eq!(lines_of(&[b"a\nb\n\xff\nd"]).await, ["line 3 is not UTF-8"]);
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(lines_of(&[b"a\n", &long]).await, ["line 2 is longer than 1048576 bytes"]);
        let longest = [&long[1..], b"\r\n"].concat();
        assert_eq!(lines_of(&[&longest]).await[0].len(), LINE_BYTES_MAX);
    }
}
