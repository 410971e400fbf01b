//! Request validation: follows the bytes of an HTTP/1 connection to detect ambiguous framing.
//!
//! hyper parses requests liberally: it accepts a bare line feed as a line terminator, both `Content-Length` and
//! `Transfer-Encoding`, any number of `Host` fields, blanks after a chunk size, and request targets of any scheme. If a proxy in front interprets the same bytes differently, a
//! request can be smuggled past it. RFC 9112 (§§2.2, 3.2, 6.1) lets a server refuse all of these, and this one does.
//!
//! The bytes of a connection are a sequence of *heads*, each followed by a *body* whose length the head determines.
//! Heads, chunk sizes and trailers consist of *lines*; everything else is skipped by length. Only the fields `Host`,
//! `Content-Length` and `Transfer-Encoding` are parsed twice; everything that hyper refuses by itself is left to it.
//! Clients mostly repeat the same fields: the fields of earlier heads are compared as a whole (`known_fields`), and examined only if
//! they differ. hyper does not read them again either (`repeated_fields`).

use std::ops::Range;
use std::rc::Rc;

use memchr::memchr;

use self::known_fields::{FieldsUse, KnownBlock, KnownFields};
use self::lines::{chunk_extensions, concerns_hyper, is_control, request_target, value_of};
use super::repeated_fields::RepeatedFields;

mod known_fields;
mod lines;

/// Maximum length of a line, far above hyper's own limits for heads, chunk extensions and trailers.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The end of a head.
const EMPTY_LINE: &[u8] = b"\r\n";

/// Table of the bytes that are allowed in a host.
const IN_HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        table[byte as usize] = !matches!(
            byte,
            b'/' | b'?' | b'#' | b'@' | b',' | b'\\' | b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`'
        );
        byte += 1;
    }
    table
};

/// Verdict on the bytes that were followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingVerdict {
    /// All bytes may be read.
    Pass,
    /// The bytes before `at` may be read; at `at` the request becomes invalid.
    Refuse { at: usize },
}

/// State of the connection within its sequence of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    /// Before a head's first line, or among the empty lines that may precede it.
    Between,
    Fields,
    ChunkSize,
    Trailers,
    /// Within a known number of bytes.
    Counted {
        left: u64,
        then: AfterCounted,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterCounted {
    Between,
    ChunkSize,
}

/// Framing information of the current request head.
#[derive(Default)]
struct RequestHead {
    needs_host: bool,
    hosts: u32,
    length: Option<u64>,
    chunked: bool,
    /// True if hyper has to read the fields.
    concerns_hyper: bool,
}

/// A framing error; carries no detail because hyper's answer, 400, has none.
struct FramingError;

/// Follows the framing of one connection.
pub(super) struct Framing {
    state: FramingState,
    head: RequestHead,
    heads_begun: u64,
    /// The beginning of a line that is not complete yet.
    line: Vec<u8>,
    /// The fields of earlier valid heads without a body. They mean the same in every version of HTTP, because a `Host` is among
    /// them.
    known: KnownFields,
    /// Maximum size of a head whose fields hyper does not read; hyper checks the others.
    head_bytes_max: usize,
    /// The bytes that hyper need not read, in order, of those that were followed last.
    left_out: Vec<Range<usize>>,
}

impl Framing {
    /// Follows a connection whose heads may have this size, and whose service knows what is `repeated`.
    pub(super) fn new(head_bytes_max: usize, repeated: Rc<RepeatedFields>) -> Self {
        Framing {
            state: FramingState::Between,
            head: RequestHead::default(),
            heads_begun: 0,
            line: Vec::new(),
            known: KnownFields::new(repeated),
            head_bytes_max,
            left_out: Vec::new(),
        }
    }

    /// Returns the ranges of the bytes that hyper need not read, in order, of those that were followed last.
    pub(super) fn left_out(&self) -> &[Range<usize>] {
        &self.left_out
    }

    /// Returns `true` if the connection is between requests and nothing of the next has arrived.
    pub(super) fn is_between(&self) -> bool {
        self.state == FramingState::Between && self.line.is_empty()
    }

    /// Returns `true` if a head has begun and is not complete.
    pub(super) fn is_in_head(&self) -> bool {
        self.state == FramingState::Fields || (self.state == FramingState::Between && !self.line.is_empty())
    }

    /// Returns the number of heads begun.
    pub(super) fn heads_begun(&self) -> u64 {
        self.heads_begun
    }

    /// Follows the next bytes of the connection. Must not be called again after [`FramingVerdict::Refuse`].
    pub(super) fn follow(&mut self, bytes: &[u8]) -> FramingVerdict {
        let mut at = 0;
        self.left_out.clear();
        while at < bytes.len() {
            if let FramingState::Counted { left, then } = self.state {
                at += self.skip(left, then, bytes.len() - at);
                continue;
            }
            match self.follow_lines(bytes, at) {
                Ok(end) => at = end,
                Err((FramingError, at)) => return FramingVerdict::Refuse { at },
            }
        }
        FramingVerdict::Pass
    }

    /// Follows lines from an offset up to the end of `bytes` or to counted bytes, and returns the offset of the end.
    ///
    /// # Errors
    /// Fails with the offset at which the framing is invalid.
    fn follow_lines(&mut self, bytes: &[u8], mut at: usize) -> Result<usize, (FramingError, usize)> {
        let mut fields = None;
        while at < bytes.len()
            && let Some(length) = memchr(b'\n', &bytes[at..])
        {
            let (before, end) = (self.state, at + length);
            let line_bytes = self.line.len() + length + 1;
            self.note_beginning(bytes[at]);
            self.complete_line(&bytes[at..=end]).map_err(|wrong| (wrong, end))?;
            at = end + 1;
            match (before, self.state) {
                (FramingState::Between, FramingState::Fields) => match self.known.at(&bytes[at..]) {
                    Some(known) => {
                        self.repeat(line_bytes, at, known);
                        at += known.length;
                        self.state = FramingState::Between;
                    }
                    None => fields = Some(at),
                },
                (FramingState::Fields, FramingState::Between) => {
                    self.know(fields.take().map_or(&[], |begin| &bytes[begin..at]))
                }
                (_, FramingState::Counted { .. }) => return Ok(at),
                _ => {}
            }
        }
        if let Some(byte) = bytes.get(at) {
            self.note_beginning(*byte);
            self.keep(&bytes[at..]).map_err(|wrong| (wrong, at))?;
        }
        Ok(bytes.len())
    }

    /// Leaves the known fields, which begin at this offset, out of a head if the service remembers them.
    fn repeat(&mut self, line_bytes: usize, at: usize, known: KnownBlock) {
        let is_short = self.head.needs_host && line_bytes + known.length <= self.head_bytes_max;
        if is_short
            && let FieldsUse::Repeated(number) = known.used
            && self.known.leaves_out(number, self.heads_begun)
        {
            self.left_out.push(at..at + known.length - EMPTY_LINE.len());
        }
    }

    /// Remembers the fields of a valid head without a body.
    fn know(&mut self, fields: &[u8]) {
        if self.head.hosts == 1 {
            self.known.replace(fields, self.head.fields_use());
        }
    }

    /// Counts a head if this byte begins one.
    fn note_beginning(&mut self, byte: u8) {
        if self.is_between() && byte != b'\r' {
            self.heads_begun += 1;
        }
    }

    fn skip(&mut self, left: u64, then: AfterCounted, available: usize) -> usize {
        let skipped = left.min(available as u64);
        self.state = match (left - skipped, then) {
            (0, AfterCounted::Between) => FramingState::Between,
            (0, AfterCounted::ChunkSize) => FramingState::ChunkSize,
            (left, then) => FramingState::Counted { left, then },
        };
        skipped as usize
    }

    /// Buffers the beginning of an incomplete line.
    fn keep(&mut self, beginning: &[u8]) -> Result<(), FramingError> {
        if self.line.len() + beginning.len() > LINE_BYTES_MAX {
            return Err(FramingError);
        }
        self.line.extend_from_slice(beginning);
        Ok(())
    }

    fn complete_line(&mut self, end: &[u8]) -> Result<(), FramingError> {
        if self.line.is_empty() {
            return self.follow_line(end);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(end);
        let followed = self.follow_line(&line);
        line.clear();
        self.line = line;
        followed
    }

    fn follow_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        // RFC 9112 §2.2 allows a server to accept a bare line feed as a line terminator; this one does not.
        let Some(line) = line.strip_suffix(b"\r\n") else { return Err(FramingError) };
        match self.state {
            FramingState::Between if line.is_empty() => {}
            FramingState::Between => self.first_line(line)?,
            FramingState::Fields if line.is_empty() => self.end_head()?,
            FramingState::Fields => self.head.field(line)?,
            FramingState::ChunkSize => self.chunk_size(line)?,
            FramingState::Trailers if line.is_empty() => self.state = FramingState::Between,
            FramingState::Trailers if line.iter().any(|byte| is_control(*byte)) => return Err(FramingError),
            FramingState::Trailers | FramingState::Counted { .. } => {}
        }
        Ok(())
    }

    fn first_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        self.head = RequestHead { needs_host: line.ends_with(b" HTTP/1.1"), ..RequestHead::default() };
        self.state = FramingState::Fields;
        // hyper refuses a line without a blank.
        // Methods are short.
        let Some(blank) = line.iter().position(|byte| *byte == b' ') else { return Ok(()) };
        let (method, rest) = (&line[..blank], &line[blank + 1..]);
        if rest.first() == Some(&b'/') {
            return Ok(());
        }
        request_target(method, rest.split(|byte| *byte == b' ').next().unwrap_or_default())
    }

    fn end_head(&mut self) -> Result<(), FramingError> {
        self.state = self.head.body()?;
        Ok(())
    }

    /// Parses `chunk-size [ chunk-ext ]`. The line terminator after the data counts as part of it.
    fn chunk_size(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        chunk_extensions(&line[digits..])?;
        let size = std::str::from_utf8(&line[..digits]).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        self.state = match size.ok_or(FramingError)? {
            0 => FramingState::Trailers,
            size => {
                FramingState::Counted { left: size.checked_add(2).ok_or(FramingError)?, then: AfterCounted::ChunkSize }
            }
        };
        Ok(())
    }
}

impl RequestHead {
    /// Records a field if it is one of the three that determine the framing or the host.
    fn field(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let first = line[0] | 0x20;
        self.concerns_hyper |= concerns_hyper(first, line);
        match first {
            b'h' => self.host(line),
            b'c' => self.content_length(line),
            b't' => self.transfer_encoding(line),
            _ => Ok(()),
        }
    }

    /// Refuses more than one `Host`, and an invalid one (RFC 9112 §3.2).
    fn host(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let Some(value) = value_of(line, b"host:") else { return Ok(()) };
        self.hosts += 1;
        let is_host = value.iter().all(|byte| IN_HOST[usize::from(*byte)]);
        if self.hosts == 1 && is_host { Ok(()) } else { Err(FramingError) }
    }

    /// Accepts one decimal number, once. RFC 9112 §6.3 allows a server to accept repeated equal values; this one does
    /// not.
    fn content_length(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let Some(value) = value_of(line, b"content-length:") else { return Ok(()) };
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| digits).and_then(|text| text.parse().ok());
        match (self.length, length) {
            (None, Some(_)) => self.length = length,
            _ => return Err(FramingError),
        }
        Ok(())
    }

    /// Accepts `chunked`, once; no other transfer coding is supported.
    fn transfer_encoding(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let Some(value) = value_of(line, b"transfer-encoding:") else { return Ok(()) };
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(FramingError);
        }
        self.chunked = true;
        Ok(())
    }

    /// Returns the use of the fields of a head without a body.
    fn fields_use(&self) -> FieldsUse {
        match (self.concerns_hyper, self.length) {
            (true, _) => FieldsUse::ForHyper,
            (false, length) => FieldsUse::Repeated(usize::from(length.is_some())),
        }
    }

    /// Returns the state after this head.
    fn body(&self) -> Result<FramingState, FramingError> {
        if self.needs_host && self.hosts == 0 {
            return Err(FramingError);
        }
        match (self.length, self.chunked) {
            // RFC 9112 §6.1: the mark of request smuggling.
            (Some(_), true) => Err(FramingError),
            // HTTP/1.0 has no chunks.
            (None, true) if !self.needs_host => Err(FramingError),
            (None, true) => Ok(FramingState::ChunkSize),
            (None | Some(0), false) => Ok(FramingState::Between),
            (Some(left), false) => Ok(FramingState::Counted { left, then: AfterCounted::Between }),
        }
    }
}

#[cfg(test)]
mod tests;
