//! Decoding of valid and malformed PPM files.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use bytes::Bytes;
use weir_library::image::{DecodeLimits, ImageError, Ppm, decode, decode_within};

fn read(file: &[u8]) -> Result<Ppm, ImageError> {
    decode(Bytes::copy_from_slice(file))
}

fn samples(file: &[u8]) -> Vec<u8> {
    read(file).unwrap().samples().to_vec()
}

#[test]
fn binary_of_depth_255() {
    let picture = read(b"P6\n2 1\n255\n\x01\x02\x03\xfd\xfe\xff").unwrap();
    assert_eq!((picture.width(), picture.height()), (2, 1));
    assert_eq!(picture.samples(), [1, 2, 3, 253, 254, 255]);
}

#[test]
fn text_of_depth_255() {
    assert_eq!(samples(b"P3 1 2 255  1 2 3\n253 254 255"), [1, 2, 3, 253, 254, 255]);
}

#[test]
fn the_raster_may_begin_with_a_byte_that_is_white_space() {
    assert_eq!(samples(b"P6 1 1 255 \n #"), *b"\n #");
}

#[test]
fn small_maximum_values_are_scaled_to_eight_bits() {
    assert_eq!(samples(b"P3 1 1 1 0 1 1\n"), [0, 255, 255]);
    assert_eq!(samples(b"P6 1 1 2\n\x00\x01\x02"), [0, 128, 255]);
    assert_eq!(samples(b"P3 1 1 15 0 7 15\n"), [0, 119, 255]);
}

#[test]
fn deep_binary_samples_are_big_endian() {
    assert_eq!(samples(b"P6 1 1 65535\n\x00\x00\x80\x00\xff\xff"), [0, 128, 255]);
    assert_eq!(samples(b"P6 1 1 256\n\x00\x00\x00\x80\x01\x00"), [0, 128, 255]);
    assert_eq!(samples(b"P3 1 1 65535 0 32768 65535"), [0, 128, 255]);
}

#[test]
fn every_depth_maps_its_extremes_to_0_and_255() {
    for maxval in [1, 2, 3, 7, 100, 254, 255, 256, 257, 1023, 4095, 65_534, 65_535] {
        assert_eq!(samples(format!("P3 1 1 {maxval} 0 {maxval} 0").as_bytes()), [0, 255, 0], "depth {maxval}");
    }
}

#[test]
fn comments_stand_anywhere_in_the_header() {
    let file = b"P6# a\n#b\n2#width\n 1 # height\r\n255# separator\n\x01\x02\x03\x04\x05\x06";
    assert_eq!(samples(file), [1, 2, 3, 4, 5, 6]);
    assert_eq!(samples(b"P3\n# by hand\n1 1\n255\n1 # red\n2 3 # blue"), [1, 2, 3]);
}

#[test]
fn every_broken_file_has_its_error() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "not a PPM picture: it begins with neither `P3` nor `P6`"),
        (b"P", "not a PPM picture: it begins with neither `P3` nor `P6`"),
        (b"P5 1 1 255 x", "not a PPM picture: it begins with neither `P3` nor `P6`"),
        (b"\x89PNG\r\n\x1a\n", "not a PPM picture: it begins with neither `P3` nor `P6`"),
        (b"P6", "the picture ends before its width is complete"),
        (b"P6 12", "the picture ends before its height is complete"),
        (b"P6 1 1 # only a comment", "the picture ends before its maximum sample value is complete"),
        (b"P6 1 1 255", "the picture ends before its raster is complete"),
        (b"P6 1 1 255\n\x00\x00", "the picture ends before its raster is complete"),
        (b"P6 1 1 256\n\x00\x00\x00\x00\x00", "the picture ends before its raster is complete"),
        (b"P3 1 1 255 1 2", "the picture ends before its raster is complete"),
        (b"P3 1 1 255 100 200", "the picture ends before its raster is complete"),
        (b"P6 x 1 255\n", "expected a number for the width at byte 3"),
        (b"P6 -1 1 255\n", "expected a number for the width at byte 3"),
        (b"P6 1x1 255\n", "expected a number for the width at byte 4"),
        (b"P6 1 1 255x\x01\x02\x03", "expected a number for the maximum sample value at byte 10"),
        (b"P3 1 1 255 1 2 x", "expected a number for the raster at byte 15"),
        (b"P6 4294967296 1 255\n", "the width at byte 3 is too large"),
        (b"P6 0 1 255\n", "the picture has no pixels"),
        (b"P6 1 0 255\n", "the picture has no pixels"),
        (b"P6 1 1 0\n\x00\x00\x00", "the maximum sample value must be 1 to 65535, not 0"),
        (b"P6 1 1 65536\n", "the maximum sample value must be 1 to 65535, not 65536"),
        (b"P6 4294967295 4294967295 255\n", "the picture is too large: 4294967295 by 4294967295 pixels"),
        (b"P3 1 1 9 1 2 10", "sample 10 exceeds the maximum, 9"),
        (b"P6 1 1 9\n\x01\x02\x0a", "sample 10 exceeds the maximum, 9"),
        (b"P6 1 1 256\n\x01\x01\x00\x00\x00\x00", "sample 257 exceeds the maximum, 256"),
        (b"P6 1 1 255\n\x01\x02\x03\x04", "1 bytes follow the picture"),
        (b"P3 1 1 255 1 2 3 4", "1 bytes follow the picture"),
    ];
    for (file, expected) in cases {
        let error = read(file).expect_err(&String::from_utf8_lossy(file)).to_string();
        assert_eq!(error, *expected, "{}", String::from_utf8_lossy(file));
    }
}

#[test]
fn limits_hold_before_the_data_is_looked_at() {
    let limits = DecodeLimits { pixels_max: 4, bytes_max: 12 };
    let within = |file: &'static [u8]| decode_within(Bytes::from_static(file), limits).map(|_| ());
    assert_eq!(within(b"P6 2 2 255\n123456789012"), Ok(()));
    assert_eq!(within(b"P6 5 1 255\n"), Err(ImageError::TooLarge { width: 5, height: 1 }));
    let narrow = DecodeLimits { pixels_max: 4, bytes_max: 11 };
    let refused = decode_within(Bytes::from_static(b"P6 2 2 255\n123456789012"), narrow);
    assert_eq!(refused, Err(ImageError::TooLarge { width: 2, height: 2 }));
}

#[test]
fn a_large_text_header_with_little_data_takes_no_memory_for_it() {
    assert_eq!(read(b"P3 7000 7000 255 1 2 3"), Err(ImageError::Short { what: "raster" }));
}

proptest::proptest! {
    #[test]
    fn no_input_panics(tail in proptest::collection::vec(proptest::num::u8::ANY, 0..64), plain: bool) {
        let mut file = if plain { b"P3 ".to_vec() } else { b"P6 ".to_vec() };
        file.extend(tail);
        let _ = read(&file);
    }

    #[test]
    fn text_and_binary_decode_equally(
        width in 1usize..6, height in 1usize..6, maxval in 1u32..=65_535, seed: u64,
    ) {
        let values: Vec<u32> = (0..width * height * 3)
            .map(|i| (seed.wrapping_mul(i as u64 * 2 + 1).wrapping_add(seed >> 7) % u64::from(maxval + 1)) as u32)
            .collect();
        let header = format!("{width} {height} {maxval}\n");
        let words: Vec<String> = values.iter().map(u32::to_string).collect();
        let text = format!("P3 {header}{}\n", words.join(" "));
        let mut binary = format!("P6 {header}").into_bytes();
        for value in values {
            match maxval {
                256.. => binary.extend((value as u16).to_be_bytes()),
                _ => binary.push(value as u8),
            }
        }
        assert_eq!(samples(text.as_bytes()), samples(&binary));
    }
}
