//! Images: PPM decoding, scaling by eighths, JPEG encoding, and a least-frequently-used cache.
//!
//! These are the functions of Flux's image server (USENIX ATC 2006, Figure 2): `ReadInFromDisk` is [`decode()`],
//! `Compress` is [`scale()`] and [`to_jpeg`], and the cache of §2.5 is [`Cache`].

mod cache;
mod decode;
mod error;
mod header;
mod jpeg;
mod lfu;
mod scale;

pub use cache::{Cache, cache, get, put};
pub use decode::{DecodeLimits, decode, decode_within};
pub use error::ImageError;
pub use jpeg::{EncodeError, to_jpeg};
pub use scale::{ScaleError, scale};

use bytes::Bytes;
use weir::{Borrowable, Value};

weir::library! {
    /// Images: PPM decoding, scaling by eighths, JPEG encoding, and a least-frequently-used cache.
    pub(crate) image: decode::decode, scale::scale, jpeg::to_jpeg, cache::cache, cache::get, cache::put
}

/// Samples of one pixel: red, green, blue.
pub(crate) const CHANNELS: usize = 3;

/// A decoded image: rows from the top, three samples of eight bits for each pixel. Cloning it does not copy the
/// samples.
///
/// Images with more bits per sample are reduced to eight bits when they are decoded, because JPEG, the only output
/// format, has eight.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(opaque, name = "image.Ppm")]
pub struct Ppm {
    width: u32,
    height: u32,
    samples: Bytes,
}

impl Ppm {
    /// Creates an image of `samples`: red, green and blue in turn. `None` unless there are exactly `width × height × 3`
    /// samples and at least one pixel.
    pub fn new(width: u32, height: u32, samples: Bytes) -> Option<Ppm> {
        let expected = u64::from(width).checked_mul(u64::from(height))?.checked_mul(CHANNELS as u64)?;
        (expected > 0 && samples.len() as u64 == expected).then_some(Ppm { width, height, samples })
    }

    /// Returns the number of pixels in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number of rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the samples: red, green and blue in turn, row by row from the top.
    pub fn samples(&self) -> &[u8] {
        &self.samples
    }
}

/// Returns the units of looking at each sample of an image.
fn units_of(image: &Value) -> u64 {
    <Ppm as Borrowable>::borrow_from(image).map_or(0, |image| image.samples.len() as u64 / 8)
}
