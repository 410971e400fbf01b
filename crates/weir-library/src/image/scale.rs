//! Downscaling of images by eighths with area averaging.
//!
//! A side of `n` pixels becomes `⌈n · eighths / 8⌉`, as in libjpeg's scaling. Where the ratio is not integral, a new
//! pixel covers parts of old ones, and each counts in proportion. All weights are integers: pixel `x` of `m` covers the
//! units from `x·n` to `(x+1)·n` of a row whose old pixels are `m` units wide. The result is the same on every machine.

use std::fmt;

use super::{CHANNELS, Ppm, units_of};

/// Error for a scale that is not 1 to 8 eighths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleError {
    /// The requested scale.
    pub eighths: i64,
}

impl fmt::Display for ScaleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the scale must be 1 to 8 eighths, not {}", self.eighths)
    }
}

impl std::error::Error for ScaleError {}

/// Scales an image to `eighths` of its width and height. With eight eighths the image is returned uncopied.
///
/// # Errors
/// Fails unless `eighths` is 1 to 8.
#[weir::function(pure, units = units_of(image))]
pub fn scale(image: &Ppm, eighths: i64) -> Result<Ppm, ScaleError> {
    match eighths {
        8 => Ok(image.clone()),
        1..=7 => Ok(shrink(image, eighths as u64)),
        _ => Err(ScaleError { eighths }),
    }
}

fn shrink(image: &Ppm, eighths: u64) -> Ppm {
    let to_eighths = |side: u32| (u64::from(side) * eighths).div_ceil(8) as usize;
    let (width, height) = (to_eighths(image.width), to_eighths(image.height));
    let columns = ScaledAxis { old: image.width as usize, new: width };
    let rows = ScaledAxis { old: image.height as usize, new: height };
    let row_length = columns.old * CHANNELS;

    let mut samples = Vec::with_capacity(width * height * CHANNELS);
    let mut sums = vec![0u64; row_length];
    for y in 0..height {
        sums.fill(0);
        rows.for_each_covered(y, |old_y, weight| {
            add_weighted(&mut sums, &image.samples[old_y * row_length..][..row_length], weight);
        });
        average_row(&sums, columns, rows.old as u64, &mut samples);
    }
    Ppm { width: width as u32, height: height as u32, samples: samples.into() }
}

/// One dimension of an image: its number of pixels before and after scaling.
#[derive(Clone, Copy)]
struct ScaledAxis {
    old: usize,
    new: usize,
}

impl ScaledAxis {
    /// Calls `visit` with each old pixel that the new pixel `at` covers, and the number of units covered. The units of
    /// one new pixel add up to `old`.
    fn for_each_covered(self, at: usize, mut visit: impl FnMut(usize, u64)) {
        let (start, end) = (at * self.old, (at + 1) * self.old);
        let mut unit = start;
        while unit < end {
            let old = unit / self.new;
            let next = ((old + 1) * self.new).min(end);
            visit(old, (next - unit) as u64);
            unit = next;
        }
    }
}

fn add_weighted(sums: &mut [u64], row: &[u8], weight: u64) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum += u64::from(*sample) * weight;
    }
}

fn average_row(sums: &[u64], columns: ScaledAxis, rows_weight: u64, samples: &mut Vec<u8>) {
    let total = rows_weight * columns.old as u64;
    for x in 0..columns.new {
        let mut pixel = [0u64; CHANNELS];
        columns.for_each_covered(x, |old_x, weight| {
            for (sum, column) in pixel.iter_mut().zip(&sums[old_x * CHANNELS..][..CHANNELS]) {
                *sum += column * weight;
            }
        });
        samples.extend(pixel.map(|sum| ((sum + total / 2) / total) as u8));
    }
}
