//! Scaling and compressing images.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use bytes::Bytes;
use weir_library::image::{EncodeError, Ppm, ScaleError, decode, scale, to_jpeg};

fn picture(width: u32, height: u32, sample: impl Fn(u32, u32, u32) -> u8) -> Ppm {
    let mut samples = Vec::new();
    for y in 0..height {
        for x in 0..width {
            samples.extend((0..3).map(|channel| sample(x, y, channel)));
        }
    }
    Ppm::new(width, height, Bytes::from(samples)).unwrap()
}

/// Computes the area average in floating point, for each new pixel over all old pixels: slow and obvious.
fn naive(image: &Ppm, width: u32, height: u32) -> Vec<f64> {
    let overlap = |new: u32, old: u32, ratio: f64| {
        let (start, end) = (f64::from(new) * ratio, f64::from(new + 1) * ratio);
        (end.min(f64::from(old + 1)) - start.max(f64::from(old))).max(0.0)
    };
    let (rx, ry) = (f64::from(image.width()) / f64::from(width), f64::from(image.height()) / f64::from(height));
    let mut samples = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let mut sum = 0.0;
                for old_y in 0..image.height() {
                    for old_x in 0..image.width() {
                        let at = ((old_y * image.width() + old_x) * 3 + channel) as usize;
                        sum += f64::from(image.samples()[at]) * overlap(x, old_x, rx) * overlap(y, old_y, ry);
                    }
                }
                samples.push(sum / (rx * ry));
            }
        }
    }
    samples
}

#[test]
fn sides_are_rounded_up_and_never_vanish() {
    for (side, eighths, expected) in [(8, 1, 1), (9, 1, 2), (1, 1, 1), (96, 3, 36), (97, 3, 37), (5, 7, 5)] {
        let scaled = scale(&picture(side, side, |_, _, _| 7), eighths).unwrap();
        assert_eq!((scaled.width(), scaled.height()), (expected, expected), "{side} by {eighths}/8");
    }
}

#[test]
fn half_scale_averages_four_pixels() {
    let image = picture(2, 2, |x, y, channel| (100 * channel + 10 * (2 * y + x)) as u8);
    assert_eq!(scale(&image, 4).unwrap().samples(), [15, 115, 215]);
}

#[test]
fn eight_eighths_returns_the_image_uncopied() {
    let image = picture(5, 4, |x, y, channel| (x * y * channel) as u8);
    let same = scale(&image, 8).unwrap();
    assert_eq!(same, image);
    assert_eq!(same.samples().as_ptr(), image.samples().as_ptr());
}

#[test]
fn one_colour_stays_that_colour() {
    let image = picture(37, 23, |_, _, channel| [3, 130, 255][channel as usize]);
    for eighths in 1..=8 {
        let scaled = scale(&image, eighths).unwrap();
        assert!(scaled.samples().chunks(3).all(|pixel| pixel == [3, 130, 255]), "{eighths}/8");
    }
}

#[test]
fn every_scale_is_the_area_average() {
    let image = picture(13, 11, |x, y, channel| (x * 53 + y * 91 + channel * 37 + x * y * 5) as u8);
    for eighths in 1..=7 {
        let scaled = scale(&image, eighths).unwrap();
        let expected = naive(&image, scaled.width(), scaled.height());
        for (found, expected) in scaled.samples().iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() <= 0.5 + 1e-6, "{eighths}/8: {found} for {expected}");
        }
    }
}

#[test]
fn other_scales_are_refused() {
    for eighths in [i64::MIN, -1, 0, 9, i64::MAX] {
        assert_eq!(scale(&picture(1, 1, |_, _, _| 0), eighths), Err(ScaleError { eighths }));
    }
}

#[test]
fn a_jpeg_has_its_marks_and_its_size() {
    let jpeg = to_jpeg(&picture(20, 10, |x, y, _| (x * y) as u8), 85).unwrap();
    assert_eq!(jpeg[..2], [0xff, 0xd8]);
    assert_eq!(jpeg[jpeg.len() - 2..], [0xff, 0xd9]);
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    assert_eq!(jpeg[frame + 5..frame + 9], [0, 10, 0, 20]);
}

#[test]
fn better_quality_takes_more_bytes() {
    let image = picture(64, 64, |x, y, channel| ((x * 31) ^ (y * 17) ^ (channel * 99)) as u8);
    assert!(to_jpeg(&image, 90).unwrap().len() > to_jpeg(&image, 20).unwrap().len());
}

#[test]
fn sizes_and_qualities_outside_jpeg_are_refused() {
    let image = picture(1, 1, |_, _, _| 0);
    for quality in [i64::MIN, -1, 0, 101, i64::MAX] {
        assert_eq!(to_jpeg(&image, quality), Err(EncodeError::Quality(quality)));
    }
    let wide = picture(65_536, 1, |_, _, _| 0);
    assert_eq!(to_jpeg(&wide, 85), Err(EncodeError::TooLarge { width: 65_536, height: 1 }));
}

#[test]
fn the_images_of_the_example_are_processed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/image_server/images");
    let mut shown = Vec::new();
    for name in ["hills", "meadow", "moon", "pond", "weir"] {
        let file = std::fs::read(folder.join(name).with_extension("ppm")).unwrap();
        let picture = decode(file.into()).unwrap();
        for eighths in 1..=8 {
            assert!(to_jpeg(&scale(&picture, eighths).unwrap(), 85).unwrap().len() > 500, "{name} {eighths}/8");
        }
        shown.push(format!("{name} {}x{}", picture.width(), picture.height()));
    }
    assert_eq!(shown, ["hills 160x120", "meadow 112x112", "moon 144x108", "pond 128x128", "weir 96x72"]);
}
