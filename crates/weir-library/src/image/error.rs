//! What may be wrong with a picture.

use std::fmt;

/// Why a file is not a picture that we read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// It does not begin with `P3` or `P6`.
    WrongMagic,
    /// It ends before `what` is complete.
    Short {
        /// The part that is missing.
        what: &'static str,
    },
    /// Something else stands where a number should.
    NotANumber {
        /// The number that was expected.
        what: &'static str,
        /// Bytes from the start of the file.
        offset: usize,
    },
    /// A number beyond 32 bits.
    NumberTooLarge {
        /// The number's meaning.
        what: &'static str,
        /// Bytes from the start of the file.
        offset: usize,
    },
    /// A width or height of zero.
    NoPixels,
    /// The largest sample value is zero or above 65,535.
    WrongDepth {
        /// The value that the header gives.
        maxval: u32,
    },
    /// More pixels or bytes than the limits allow.
    TooLarge {
        /// Width by the header.
        width: u32,
        /// Height by the header.
        height: u32,
    },
    /// A sample above the largest value that the header allows.
    SampleTooLarge {
        /// The sample.
        value: u32,
        /// The largest allowed.
        maxval: u32,
    },
    /// Something follows the picture.
    TrailingData {
        /// How many bytes do.
        bytes: usize,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::WrongMagic => write!(f, "not a PPM picture: it begins with neither `P3` nor `P6`"),
            ImageError::Short { what } => write!(f, "the picture ends before its {what} is complete"),
            ImageError::NotANumber { what, offset } => write!(f, "no number for the {what} at byte {offset}"),
            ImageError::NumberTooLarge { what, offset } => write!(f, "the {what} at byte {offset} is too large"),
            ImageError::NoPixels => write!(f, "the picture has no pixels"),
            ImageError::WrongDepth { maxval } => {
                write!(f, "the largest sample value is {maxval}, it must be 1 to 65535")
            }
            ImageError::TooLarge { width, height } => write!(f, "the picture is too large: {width} by {height} pixels"),
            ImageError::SampleTooLarge { value, maxval } => {
                write!(f, "a sample of {value} is above the largest, {maxval}")
            }
            ImageError::TrailingData { bytes } => write!(f, "{bytes} bytes follow the picture"),
        }
    }
}

impl std::error::Error for ImageError {}
