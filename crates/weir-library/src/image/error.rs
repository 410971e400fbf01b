//! Errors of decoding an image.

use std::fmt;

/// Reason why a file cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The file does not begin with `P3` or `P6`.
    WrongMagic,
    /// The file ends before `what` is complete.
    Short {
        /// The part that is missing.
        what: &'static str,
    },
    /// A number was expected.
    NotANumber {
        /// The number that was expected.
        what: &'static str,
        /// Offset in the file, in bytes.
        offset: usize,
    },
    /// A number does not fit into 32 bits.
    NumberTooLarge {
        /// The number's meaning.
        what: &'static str,
        /// Offset in the file, in bytes.
        offset: usize,
    },
    /// The width or the height is zero.
    NoPixels,
    /// The maximum sample value is zero or above 65,535.
    WrongDepth {
        /// The maximum sample value of the header.
        maxval: u32,
    },
    /// The image has more pixels or bytes than the limits allow.
    TooLarge {
        /// Width from the header.
        width: u32,
        /// Height from the header.
        height: u32,
    },
    /// A sample exceeds the maximum sample value.
    SampleTooLarge {
        /// The sample.
        value: u32,
        /// The maximum sample value.
        maxval: u32,
    },
    /// The file continues after the image.
    TrailingData {
        /// Number of bytes after the image.
        bytes: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::WrongMagic => write!(f, "not a PPM picture: it begins with neither `P3` nor `P6`"),
            ImageError::Short { what } => write!(f, "the picture ends before its {what} is complete"),
            ImageError::NotANumber { what, offset } => write!(f, "expected a number for the {what} at byte {offset}"),
            ImageError::NumberTooLarge { what, offset } => write!(f, "the {what} at byte {offset} is too large"),
            ImageError::NoPixels => write!(f, "the picture has no pixels"),
            ImageError::WrongDepth { maxval } => {
                write!(f, "the maximum sample value must be 1 to 65535, not {maxval}")
            }
            ImageError::TooLarge { width, height } => write!(f, "the picture is too large: {width} by {height} pixels"),
            ImageError::SampleTooLarge { value, maxval } => {
                write!(f, "sample {value} exceeds the maximum, {maxval}")
            }
            ImageError::TrailingData { bytes } => write!(f, "{bytes} bytes follow the picture"),
        }
    }
}

impl std::error::Error for ImageError {}
