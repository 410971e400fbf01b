//! Reading the body of a response within its limits, and decompressing it.

use std::fmt::Display;
use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Body;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use weir::{Failure, FailureKind};

/// Maximum ratio of a body's length to that of its compressed form. Data that compresses further is made to exhaust its
/// reader; texts reach about 20.
const RATIO_MAX: usize = 200;
/// Length of a decompressed body from which on the ratio counts.
const RATIO_FREE_BYTES: usize = 64 * 1024;

/// Maximum number of times that a body is compressed. More than one is a mistake of a server.
const GZIPS_MAX: usize = 3;

/// Reads the whole body, decompressed as often as it is in gzip; then the header fields lose those that describe the
/// compressed form.
///
/// # Errors
/// Fails if the body has more than `bytes_max` bytes, if its connection ends early, and if it is not valid gzip.
pub(super) async fn read(
    mut body: impl Body<Data = Bytes, Error: Display> + Unpin,
    headers: &mut HeaderMap,
    bytes_max: usize,
) -> Result<Bytes, Failure> {
    let gzips = take_gzips(headers)?;
    let mut collected = if gzips > 0 { Collected::gzip(bytes_max) } else { Collected::plain(bytes_max) };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::function(format!("the response ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if gzips == 0 && body.is_end_stream() && collected.arrived == 0 && data.len() <= bytes_max {
            // The whole body has arrived at once, and is not copied.
            return Ok(data);
        }
        collected.add(&data)?;
    }
    let arrived = collected.arrived;
    let once = collected.finish()?;
    (1..gzips).try_fold(once, |body, _| decompressed_again(&body, arrived, bytes_max))
}

/// Removes the codings of gzip at the end of the list of `Content-Encoding`, which were applied last, and returns their number.
/// Other codings stay, and so does what they encode.
fn take_gzips(headers: &mut HeaderMap) -> Result<usize, Failure> {
    if !headers.contains_key(CONTENT_ENCODING) {
        return Ok(0);
    }
    let is_gzip = |coding: &str| coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip");
    let lines = headers.get_all(CONTENT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let codings: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|c| !c.is_empty()).collect();
    let gzips = codings.iter().rev().take_while(|coding| is_gzip(coding)).count();
    if gzips == 0 {
        return Ok(0);
    }
    if gzips > GZIPS_MAX {
        let message = format!("the response is compressed {gzips} times; at most {GZIPS_MAX} times are accepted");
        return Err(Failure::new(FailureKind::Limit, message));
    }
    let others = HeaderValue::try_from(codings[..codings.len() - gzips].join(", "));
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    if let Some(others) = others.ok().filter(|others| !others.is_empty()) {
        headers.insert(CONTENT_ENCODING, others);
    }
    Ok(gzips)
}

/// Decompresses a body that was compressed more than once, of which so many bytes had arrived.
fn decompressed_again(body: &Bytes, arrived: usize, bytes_max: usize) -> Result<Bytes, Failure> {
    if body.is_empty() {
        return Ok(Bytes::new());
    }
    let mut collected = Collected::gzip(bytes_max);
    collected.add(body)?;
    let decompressed = collected.finish()?;
    if decompressed.len() > ratio_limit(arrived) {
        return Err(exceeds_ratio());
    }
    Ok(decompressed)
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
        let ratio_limit = ratio_limit(self.arrived);
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
        if matches!(&self.output, Output::Gzip(decoder) if decoder.get_ref().limit < self.bytes_max) {
            return exceeds_ratio();
        }
        let message = format!("the response has more than {} bytes (`bytes_max`)", self.bytes_max);
        Failure::new(FailureKind::Limit, message)
    }
}

/// Returns the maximum length of a body whose compressed form has so many bytes.
fn ratio_limit(arrived: usize) -> usize {
    arrived.saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES)
}

fn exceeds_ratio() -> Failure {
    let message = format!("the response is compressed to less than 1/{RATIO_MAX} of its length");
    Failure::new(FailureKind::Limit, message)
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
    fn codings_are_taken_from_the_end_of_their_list() {
        for (lines, taken, left) in [
            (&["gzip"][..], Some(1), ""),
            (&["GZIP, x-gzip"], Some(2), ""),
            (&["gzip", " gzip ,"], Some(2), ""),
            (&["br, gzip"], Some(1), "br"),
            (&["gzip, br"], Some(0), "gzip, br"),
            (&["gzip, gzip, gzip, gzip"], None, ""),
            (&[], Some(0), ""),
        ] {
            let mut headers = HeaderMap::new();
            lines.iter().for_each(|line| _ = headers.append(CONTENT_ENCODING, HeaderValue::from_static(line)));
            assert_eq!(take_gzips(&mut headers).ok(), taken, "{lines:?}");
            let coding = headers.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap());
            assert!(taken.is_none() || coding == left, "{lines:?} leaves {coding:?}");
        }
    }

    #[test]
    fn data_that_is_compressed_twice_is_restored_within_the_limits() {
        let arrived = gzip(&gzip(b"one"));
        let once = decompressed(&arrived, 7, 1_000).unwrap();
        assert_eq!(decompressed_again(&once, arrived.len(), 1_000).unwrap(), "one");
        assert_eq!(decompressed_again(&once, arrived.len(), 2).unwrap_err().kind, FailureKind::Limit);
        // 10 MB in 40 bytes.
        let bomb = gzip(&gzip(&vec![0; 10_000_000]));
        let once = decompressed(&bomb, 1_000, usize::MAX).unwrap();
        assert!(decompressed_again(&once, bomb.len(), usize::MAX).unwrap_err().message.contains("1/200"));
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
