//! PPM decoding: P3 (text) and P6 (binary), with maximum sample values from 1 to 65,535.
//!
//! Source: the PPM format specification of Netpbm (<https://netpbm.sourceforge.net/doc/ppm.html>). A file holds one
//! image: anything after it, other than white space after a text raster, is an error.
//!
//! Files are not trusted: the announced size is checked against the limits, and against the length of the file, before
//! memory is allocated.

use bytes::Bytes;

use super::error::ImageError;
use super::header::Words;
use super::{CHANNELS, Ppm};
use crate::units;

/// Limits of a decoder, checked before memory is allocated.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// Maximum number of pixels.
    pub pixels_max: u64,
    /// Maximum size of the decoded samples in bytes.
    pub bytes_max: u64,
}

impl Default for DecodeLimits {
    /// Returns limits of 50 million pixels (a large camera) and 150 MB.
    fn default() -> Self {
        DecodeLimits { pixels_max: 50_000_000, bytes_max: 150_000_000 }
    }
}

/// Decodes a PPM image within the default limits.
///
/// # Errors
/// Fails with a message that says what is wrong with the file.
#[weir::function(pure, units = units::to_transform(file))]
pub fn decode(file: Bytes) -> Result<Ppm, ImageError> {
    decode_within(file, DecodeLimits::default())
}

/// Decodes a PPM image within `limits`. The samples of a binary image with maximum value 255 are not copied.
///
/// # Errors
/// Fails with a message that says what is wrong with the file.
pub fn decode_within(file: Bytes, limits: DecodeLimits) -> Result<Ppm, ImageError> {
    let plain = match file.get(..2) {
        Some(b"P3") => true,
        Some(b"P6") => false,
        _ => return Err(ImageError::WrongMagic),
    };
    let mut words = Words::after_magic(&file);
    let head = PpmHeader::read(&mut words, limits)?;
    let samples = if plain {
        plain_samples(words, &head)?
    } else {
        let start = words.raster_separator()?;
        binary_samples(&file, start, &head)?
    };
    Ok(Ppm { width: head.width, height: head.height, samples })
}

/// A header whose sizes are within the limits.
struct PpmHeader {
    width: u32,
    height: u32,
    maxval: u32,
    samples: usize,
}

impl PpmHeader {
    fn read(words: &mut Words<'_>, limits: DecodeLimits) -> Result<PpmHeader, ImageError> {
        let width = words.number("width")?;
        let height = words.number("height")?;
        let maxval = words.number("maximum sample value")?;
        let pixels = u64::from(width) * u64::from(height);
        if pixels == 0 {
            return Err(ImageError::NoPixels);
        }
        if !(1..=65_535).contains(&maxval) {
            return Err(ImageError::WrongDepth { maxval });
        }
        let samples = pixels.checked_mul(CHANNELS as u64).filter(|bytes| *bytes <= limits.bytes_max);
        match samples.and_then(|samples| usize::try_from(samples).ok()) {
            Some(samples) if pixels <= limits.pixels_max => Ok(PpmHeader { width, height, maxval, samples }),
            _ => Err(ImageError::TooLarge { width, height }),
        }
    }

    /// Scales `value` from `0..=maxval` to `0..=255`, rounded to the nearest.
    fn to_eight_bits(&self, value: u32) -> Result<u8, ImageError> {
        if value > self.maxval {
            return Err(ImageError::SampleTooLarge { value, maxval: self.maxval });
        }
        Ok(((value * 255 + self.maxval / 2) / self.maxval) as u8)
    }
}

fn plain_samples(mut words: Words<'_>, head: &PpmHeader) -> Result<Bytes, ImageError> {
    // A sample takes at least a digit and a separator; the last separator may be missing.
    if words.rest_len() < 2 * head.samples {
        return Err(ImageError::Short { what: "raster" });
    }
    let mut samples = Vec::with_capacity(head.samples);
    for _ in 0..head.samples {
        samples.push(head.to_eight_bits(words.number("raster")?)?);
    }
    if !words.at_end() {
        return Err(ImageError::TrailingData { bytes: words.rest_len() });
    }
    Ok(samples.into())
}

fn binary_samples(file: &Bytes, start: usize, head: &PpmHeader) -> Result<Bytes, ImageError> {
    let sample_bytes = if head.maxval > 255 { 2 } else { 1 };
    let raster = &file[start..];
    let expected = head.samples * sample_bytes;
    if raster.len() < expected {
        return Err(ImageError::Short { what: "raster" });
    }
    if raster.len() > expected {
        return Err(ImageError::TrailingData { bytes: raster.len() - expected });
    }
    let samples: Result<Vec<u8>, _> = match head.maxval {
        255 => return Ok(file.slice(start..)),
        0..=254 => raster.iter().map(|value| head.to_eight_bits(u32::from(*value))).collect(),
        _ => raster
            .chunks_exact(2)
            .map(|pair| head.to_eight_bits(u32::from(u16::from_be_bytes([pair[0], pair[1]]))))
            .collect(),
    };
    samples.map(Bytes::from)
}
