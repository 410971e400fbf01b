//! Follows the bytes of an HTTP/1 connection far enough to refuse what is framed in more than one way.
//!
//! hyper parses requests, and is generous: it takes a bare line feed for a line end, both `Content-Length` and
//! `Transfer-Encoding`, and any number of `Host` fields. Where a proxy in front reads the same bytes differently, a
//! request can be smuggled past it. RFC 9112 (§§2.2, 3.2, 6.1) lets a server refuse all of these, and we do.
//!
//! A connection's bytes are a sequence of *heads*, each followed by a *body* whose length the head says. Heads, chunk
//! sizes and trailers are *lines*; everything else is skipped by its length. Nothing is parsed twice but the fields
//! `Host`, `Content-Length` and `Transfer-Encoding`; everything that hyper refuses by itself is left to it. A client mostly
//! sends the same fields again: those that ended the last head are compared, and looked through only where they differ.

use memchr::memchr;

/// Bytes of one line, far above what hyper takes: it stops reading at the limits of heads, chunk extensions and trailers.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Fields longer than this in all are looked through each time.
const KNOWN_BYTES_MAX: usize = 1024;

/// For each byte, whether it may stand in a host.
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

/// What to do with the bytes that were followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingVerdict {
    /// They may be read.
    Pass,
    /// Those before `at` may; there, the request becomes wrong.
    Refuse { at: usize },
}

/// Where a connection is in its sequence of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    /// Before a head's first line, or among the empty lines that may come before it.
    Between,
    Fields,
    ChunkSize,
    Trailers,
    /// In bytes of a known number.
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

/// What a head has said so far about its request.
#[derive(Default)]
struct RequestHead {
    needs_host: bool,
    hosts: u32,
    length: Option<u64>,
    chunked: bool,
}

/// What makes a request wrong; it carries nothing because hyper's answer, 400, says no more.
struct FramingError;

/// Follows one connection.
pub(super) struct Framing {
    state: FramingState,
    head: RequestHead,
    heads_begun: u64,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The fields of a head that passed and had no body behind it, to the empty line. They mean the same in every version of
    /// HTTP, since a `Host` is among them.
    known: Vec<u8>,
}

impl Framing {
    pub(super) fn new() -> Self {
        let (head, line, known) = (RequestHead::default(), Vec::new(), Vec::new());
        Framing { state: FramingState::Between, head, heads_begun: 0, line, known }
    }

    /// Whether the connection is between requests: nothing of the next has come.
    pub(super) fn is_between(&self) -> bool {
        self.state == FramingState::Between && self.line.is_empty()
    }

    /// Whether a head has begun and is not complete.
    pub(super) fn is_in_head(&self) -> bool {
        self.state == FramingState::Fields || (self.state == FramingState::Between && !self.line.is_empty())
    }

    /// How many heads have begun.
    pub(super) fn heads_begun(&self) -> u64 {
        self.heads_begun
    }

    /// Follows the next bytes of the connection. After anything but [`FramingVerdict::Pass`] there are no next.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> FramingVerdict {
        let mut at = 0;
        while at < bytes.len() {
            if let FramingState::Counted { left, then } = self.state {
                at += self.skip(left, then, bytes.len() - at);
                continue;
            }
            match self.follow_lines(&bytes[at..]) {
                Ok(followed) => at += followed,
                Err((FramingError, wrong)) => return FramingVerdict::Refuse { at: at + wrong },
            }
        }
        FramingVerdict::Pass
    }

    /// Follows lines until there are no more or they lead to counted bytes, and says how many bytes they were; or where it
    /// is wrong.
    fn follow_lines(&mut self, bytes: &[u8]) -> Result<usize, (FramingError, usize)> {
        let mut at = 0;
        let mut fields = None;
        while let Some(length) = memchr(b'\n', &bytes[at..]) {
            let (before, end) = (self.state, at + length);
            self.note_beginning(bytes[at]);
            self.complete_line(&bytes[at..=end]).map_err(|wrong| (wrong, end))?;
            at = end + 1;
            match (before, self.state) {
                (FramingState::Between, FramingState::Fields) if self.is_known(&bytes[at..]) => {
                    at += self.known.len();
                    self.state = FramingState::Between;
                }
                (FramingState::Between, FramingState::Fields) => fields = Some(at),
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

    /// Whether the fields that come next are those that passed before.
    fn is_known(&self, bytes: &[u8]) -> bool {
        !self.known.is_empty() && bytes.starts_with(&self.known)
    }

    /// Keeps the fields of a head without a body.
    fn know(&mut self, fields: &[u8]) {
        if self.head.hosts == 1 && (1..=KNOWN_BYTES_MAX).contains(&fields.len()) {
            self.known.clear();
            self.known.extend_from_slice(fields);
        }
    }

    /// A line begins, or goes on, with this byte.
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

    /// Keeps a line's beginning until its end comes.
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
        // RFC 9112 §2.2: a bare line feed may be taken for a line end; we do not.
        let Some(line) = line.strip_suffix(b"\r\n") else { return Err(FramingError) };
        match self.state {
            FramingState::Between if line.is_empty() => {}
            FramingState::Between => self.first_line(line),
            FramingState::Fields if line.is_empty() => self.end_head()?,
            FramingState::Fields => self.head.field(line)?,
            FramingState::ChunkSize => self.chunk_size(line)?,
            FramingState::Trailers if line.is_empty() => self.state = FramingState::Between,
            FramingState::Trailers | FramingState::Counted { .. } => {}
        }
        Ok(())
    }

    fn first_line(&mut self, line: &[u8]) {
        self.head = RequestHead { needs_host: line.ends_with(b" HTTP/1.1"), ..RequestHead::default() };
        self.state = FramingState::Fields;
    }

    fn end_head(&mut self) -> Result<(), FramingError> {
        self.state = self.head.body()?;
        Ok(())
    }

    /// `chunk-size [ chunk-ext ]`; the data's own line end is counted to it.
    fn chunk_size(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
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
    /// Notes a field of the three that say how a request is framed and for whom.
    fn field(&mut self, line: &[u8]) -> Result<(), FramingError> {
        match line[0] | 0x20 {
            b'h' => self.host(line),
            b'c' => self.content_length(line),
            b't' => self.transfer_encoding(line),
            _ => Ok(()),
        }
    }

    /// RFC 9112 §3.2: more than one `Host`, or one that is no host, is refused.
    fn host(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let Some(value) = value_of(line, b"host:") else { return Ok(()) };
        self.hosts += 1;
        let is_host = value.iter().all(|byte| IN_HOST[usize::from(*byte)]);
        if self.hosts == 1 && is_host { Ok(()) } else { Err(FramingError) }
    }

    /// One number of digits, once: RFC 9112 §6.3 lets a server take equal ones, and we do not.
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

    /// `chunked`, once: no other coding of a request is understood.
    fn transfer_encoding(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let Some(value) = value_of(line, b"transfer-encoding:") else { return Ok(()) };
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(FramingError);
        }
        self.chunked = true;
        Ok(())
    }

    /// Where the connection is behind this head.
    fn body(&self) -> Result<FramingState, FramingError> {
        if self.needs_host && self.hosts == 0 {
            return Err(FramingError);
        }
        match (self.length, self.chunked) {
            // RFC 9112 §6.1: the sign of a smuggled request.
            (Some(_), true) => Err(FramingError),
            // HTTP/1.0 has no chunks.
            (None, true) if !self.needs_host => Err(FramingError),
            (None, true) => Ok(FramingState::ChunkSize),
            (None | Some(0), false) => Ok(FramingState::Between),
            (Some(left), false) => Ok(FramingState::Counted { left, then: AfterCounted::Between }),
        }
    }
}

/// The value of the field `name`, which is in lower case and ends with its colon.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests;
