//! Reading the body of a response within its limits, and decompressing it.

use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use weir::{Failure, FailureKind};

/// Maximum ratio of a body's length to that of its compressed form. Data that compresses further is made to exhaust its
/// reader; texts reach about 20.
const RATIO_MAX: usize = 200;
/// Length of a decompressed body from which on the ratio counts.
const RATIO_FREE_BYTES: usize = 64 * 1024;

/// Reads the whole body, decompressed if it is in gzip; then the header fields lose those that describe the compressed
/// form.
///
/// # Errors
/// Fails if the body has more than `bytes_max` bytes, if its connection ends early, and if it is not valid gzip.
pub(super) async fn read(mut body: Incoming, headers: &mut HeaderMap, bytes_max: usize) -> Result<Bytes, Failure> {
    let is_gzip =
        headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip"));
    let mut collected = if is_gzip { Collected::gzip(bytes_max) } else { Collected::plain(bytes_max) };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::function(format!("the response ended early: {error}")))?;
        if let Ok(data) = frame.into_data() {
            collected.add(&data)?;
        }
    }
    if is_gzip {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
    }
    collected.finish()
}

/// The part of a body that has arrived.
struct Collected {
    /// The decoder of a compressed body, which writes to a limited output; otherwise the output alone.
    output: Output,
    /// Number of bytes that have arrived.
    arrived: usize,
    bytes_max: usize,
}

enum Output {
    Plain(LimitedOutput),
    Gzip(MultiGzDecoder<LimitedOutput>),
}

/// Output that refuses to exceed its limit.
struct LimitedOutput {
    bytes: BytesMut,
    limit: usize,
}

impl Write for LimitedOutput {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Collected {
    fn plain(bytes_max: usize) -> Self {
        let output = LimitedOutput { bytes: BytesMut::new(), limit: bytes_max };
        Collected { output: Output::Plain(output), arrived: 0, bytes_max }
    }

    fn gzip(bytes_max: usize) -> Self {
        let output = LimitedOutput { bytes: BytesMut::new(), limit: 0 };
        Collected { output: Output::Gzip(MultiGzDecoder::new(output)), arrived: 0, bytes_max }
    }

    /// Adds bytes that have arrived.
    fn add(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.arrived = self.arrived.saturating_add(data.len());
        let ratio_limit = self.arrived.saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES);
        let written = match &mut self.output {
            Output::Plain(output) => output.write_all(data),
            Output::Gzip(decoder) => {
                decoder.get_mut().limit = self.bytes_max.min(ratio_limit);
                decoder.write_all(data)
            }
        };
        written.map_err(|error| self.refused(&error))
    }

    fn finish(mut self) -> Result<Bytes, Failure> {
        if let Output::Gzip(decoder) = &mut self.output
            // An answer to `HEAD` has no body, whatever its header says.
            && self.arrived > 0
            && let Err(error) = decoder.try_finish()
        {
            return Err(self.refused(&error));
        }
        let output = match self.output {
            Output::Plain(mut output) => std::mem::take(&mut output.bytes),
            Output::Gzip(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
        };
        Ok(output.freeze())
    }

    fn refused(&self, error: &io::Error) -> Failure {
        if error.kind() != io::ErrorKind::FileTooLarge {
            return Failure::function("the response is not valid gzip");
        }
        let exceeds_ratio = matches!(&self.output, Output::Gzip(decoder) if decoder.get_ref().limit < self.bytes_max);
        let message = if exceeds_ratio {
            format!("the response is compressed to less than 1/{RATIO_MAX} of its length")
        } else {
            format!("the response has more than {} bytes (`bytes_max`)", self.bytes_max)
        };
        Failure::new(FailureKind::Limit, message)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Decompresses data that arrives in pieces of this length.
    fn decompressed(data: &[u8], piece: usize, bytes_max: usize) -> Result<Bytes, Failure> {
        let mut collected = Collected::gzip(bytes_max);
        data.chunks(piece).try_for_each(|piece| collected.add(piece))?;
        collected.finish()
    }

    #[test]
    fn compressed_data_is_restored_however_it_arrives() {
        let text: Vec<u8> =
            (0..20_000).flat_map(|n: u32| n.wrapping_mul(2_654_435_761).to_string().into_bytes()).collect();
        for piece in [1, 7, 1_000, usize::MAX] {
            assert_eq!(decompressed(&gzip(&text), piece, text.len()).unwrap(), text);
        }
        let two = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(decompressed(&two, 5, 100).unwrap(), "one two");
        assert_eq!(decompressed(&[], 1, 0).unwrap(), "");
    }

    #[test]
    fn limits_hold_before_memory_is_used() {
        let text = gzip(&[b'x'; 5_000]);
        assert!(decompressed(&text, 100, 5_000).is_ok());
        let refused = decompressed(&text, 100, 4_999).unwrap_err();
        assert_eq!(refused.message.as_str(), "the response has more than 4999 bytes (`bytes_max`)");
        // 100 MB in 100 kB.
        let bomb = gzip(&vec![0; 100_000_000]);
        let refused = decompressed(&bomb, 1_000, usize::MAX).unwrap_err();
        assert_eq!((refused.kind, refused.message.contains("1/200")), (FailureKind::Limit, true));
    }

    #[test]
    fn damaged_data_is_refused() {
        let text = gzip(b"a text that is long enough to be damaged in many places");
        for length in 1..text.len() {
            assert!(decompressed(&text[..length], 3, 1_000).is_err(), "{length} bytes");
        }
        assert!(decompressed(b"not gzip", 3, 1_000).is_err());
    }
}
