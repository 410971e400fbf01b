//! Five test pictures, smooth enough to give a JPEG encoder its usual work.

use std::fs;
use std::io;
use std::path::Path;

/// The names of the pictures, without `.ppm`.
pub(crate) const NAMES: [&str; 5] = ["one", "two", "three", "four", "five"];

/// Returns the path of a picture at this many eighths of its size.
pub(crate) fn path(image: &str, scale: u64) -> String {
    format!("/{image}?scale={scale}")
}

const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;

/// Writes the pictures into `folder/images`.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("images"))?;
    for (name, seed) in NAMES.iter().zip(1u32..) {
        fs::write(folder.join("images").join(format!("{name}.ppm")), picture(seed))?;
    }
    Ok(())
}

fn picture(seed: u32) -> Vec<u8> {
    let mut file = format!("P6\n{WIDTH} {HEIGHT}\n255\n").into_bytes();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            file.extend(pixel(seed, x, y));
        }
    }
    file
}

/// Returns a pixel of waves with a grain that does not repeat.
fn pixel(seed: u32, x: u32, y: u32) -> [u8; 3] {
    let wave = |by: f64, of: u32| ((f64::from(of) / by).sin() * 100.0 + 128.0) as i32;
    let grain = (x.wrapping_mul(73) ^ y.wrapping_mul(151) ^ seed.wrapping_mul(7919)) % 17;
    let level = |value: i32| (value + grain as i32).clamp(0, 255) as u8;
    let by = f64::from(20 + 5 * seed);
    [level(wave(by, x + y)), level(wave(by, x)), level(wave(by * 1.7, y))]
}
