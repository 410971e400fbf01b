//! Baseline JPEG encoding with the `jpeg-encoder` crate.

use std::fmt;

use bytes::Bytes;
use jpeg_encoder::{ColorType, Encoder};

use super::{Ppm, units_of};

/// Reason why an image could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The quality was not 1 to 100.
    Quality(i64),
    /// The width or the height exceeds 65,535, the maximum of JPEG.
    TooLarge {
        /// Pixels in a row.
        width: u32,
        /// Number of rows.
        height: u32,
    },
    /// The encoder refused the image.
    Refused(String),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::Quality(quality) => write!(f, "the JPEG quality must be 1 to 100, not {quality}"),
            EncodeError::TooLarge { width, height } => {
                write!(f, "{width} by {height} pixels are too many for JPEG, which allows at most 65535 per side")
            }
            EncodeError::Refused(reason) => write!(f, "the picture could not be compressed: {reason}"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Encodes an image as JPEG with a `quality` of 1 (smallest) to 100 (best).
///
/// # Errors
/// Fails if the quality is out of range, or if the width or the height exceeds 65,535 pixels.
#[weir::function(pure, units = 4 * units_of(image))]
pub fn to_jpeg(image: &Ppm, #[default(85)] quality: i64) -> Result<Bytes, EncodeError> {
    let quality = u8::try_from(quality).ok().filter(|q| (1..=100).contains(q)).ok_or(EncodeError::Quality(quality))?;
    let (Ok(width), Ok(height)) = (u16::try_from(image.width), u16::try_from(image.height)) else {
        return Err(EncodeError::TooLarge { width: image.width, height: image.height });
    };
    // An estimate of two bits for each sample avoids most reallocations.
    let mut jpeg = Vec::with_capacity(image.samples.len() / 4 + 1024);
    Encoder::new(&mut jpeg, quality)
        .encode(&image.samples, width, height, ColorType::Rgb)
        .map_err(|error| EncodeError::Refused(error.to_string()))?;
    Ok(jpeg.into())
}
