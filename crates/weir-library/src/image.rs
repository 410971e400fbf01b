//! Pictures: PPM in, scaled by eighths, JPEG out, and a cache that evicts what is used least.
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

weir::library! {
    /// Pictures: PPM in, scaled by eighths, JPEG out, and a cache that evicts what is used least.
    pub(crate) image: decode::decode, scale::scale, jpeg::to_jpeg, cache::cache, cache::get, cache::put
}

/// Samples of one pixel: red, green, blue.
pub(crate) const CHANNELS: usize = 3;

/// A decoded picture: rows from the top, three samples of eight bits a pixel. Cloning it copies no samples.
///
/// Deeper pictures are brought to eight bits when they are decoded, because everything that leaves this module (JPEG)
/// has eight.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(opaque, name = "image.Ppm")]
pub struct Ppm {
    width: u32,
    height: u32,
    samples: Bytes,
}

impl Ppm {
    /// A picture of `samples`, red, green and blue in turn; `None` unless there are exactly `width × height × 3`
    /// and at least one pixel.
    pub fn new(width: u32, height: u32, samples: Bytes) -> Option<Ppm> {
        let expected = u64::from(width).checked_mul(u64::from(height))?.checked_mul(CHANNELS as u64)?;
        (expected > 0 && samples.len() as u64 == expected).then_some(Ppm { width, height, samples })
    }

    /// Pixels in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The samples, red, green and blue in turn, row by row from the top.
    pub fn samples(&self) -> &[u8] {
        &self.samples
    }
}
