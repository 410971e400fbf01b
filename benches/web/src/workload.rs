//! Workloads of the papers, and their files. All files are in one folder, because `{name}` is one segment of a path.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bench_harness::{BenchResult, Workload, random};

/// A workload, and a function that makes its files.
pub(crate) struct WebCase {
    /// Its name in the report.
    pub name: &'static str,
    /// Writes the files into a folder.
    pub write: fn(&Path) -> BenchResult<()>,
    /// Returns the requests.
    pub workload: fn() -> Workload,
}

/// Thesis on Ohua, §2.5: small files, uniformly at random, on keep-alive connections.
pub(crate) const SMALL: WebCase =
    WebCase { name: "small", write: write_small, workload: || Workload::kept(Arc::new(ask_small)) };
/// The small files with one connection per request, as in the thesis.
pub(crate) const ALONE: WebCase = WebCase {
    name: "alone",
    write: write_small,
    workload: || Workload { requests_per_connection: 1, ..Workload::kept(Arc::new(ask_small)) },
};
/// Flux §4.2: static files in the manner of SPECweb99, five requests per connection.
pub(crate) const SPECWEB: WebCase = WebCase { name: "specweb", write: write_specweb, workload: specweb };

/// The number of small files.
const SMALL_FILES: u64 = 10_000;
/// The size of a small file in bytes.
const SMALL_BYTES: usize = 512;

fn write_small(folder: &Path) -> BenchResult<()> {
    fs::create_dir_all(folder)?;
    (0..SMALL_FILES).try_for_each(|number| write_file(folder, &format!("{number}.html"), SMALL_BYTES))
}

fn write_file(folder: &Path, name: &str, bytes: usize) -> BenchResult<()> {
    let line = format!("{name:<31}\n");
    let text: String = line.chars().cycle().take(bytes).collect();
    Ok(fs::write(folder.join(name), text)?)
}

fn ask_small(random: u64, path: &mut String) {
    write!(path, "/{}.html", random % SMALL_FILES).expect("a `String` takes everything");
}

/// The number of directories: 36 MB, the least number that exceeds the paper's working set of 32 MB.
const DIRECTORIES: usize = 7;
/// The percentage of requests for each class. File `k` of class `c` has (k + 1) · 102.4 · 10^c bytes.
const CLASSES: [u64; 4] = [35, 50, 14, 1];
/// The files of a class, the most popular first.
const POPULAR: [usize; 9] = [4, 3, 5, 2, 6, 1, 7, 8, 0];

fn write_specweb(folder: &Path) -> BenchResult<()> {
    fs::create_dir_all(folder)?;
    for directory in 0..DIRECTORIES {
        for (class, scale) in [102.4, 1_024.0, 10_240.0, 102_400.0].into_iter().enumerate() {
            for file in 0..POPULAR.len() {
                write_file(folder, &name_of(directory, class, file), ((file + 1) as f64 * scale) as usize)?;
            }
        }
    }
    Ok(())
}

fn name_of(directory: usize, class: usize, file: usize) -> String {
    format!("dir{directory}-class{class}-{file}.html")
}

fn specweb() -> Workload {
    let (directories, files) = (zipf(DIRECTORIES), zipf(POPULAR.len()));
    let request = move |mut seed: u64, path: &mut String| {
        let directory = place(&directories, random(&mut seed));
        let class = class_of(random(&mut seed) % 100);
        let file = POPULAR[place(&files, random(&mut seed))];
        path.push('/');
        path.push_str(&name_of(directory, class, file));
    };
    Workload { requests_per_connection: 5, ..Workload::kept(Arc::new(request)) }
}

fn class_of(percent: u64) -> usize {
    let mut left = percent;
    CLASSES
        .iter()
        .position(|share| {
            let here = left < *share;
            left = left.saturating_sub(*share);
            here
        })
        .unwrap_or_default()
}

/// Returns the cumulative distribution of Zipf(1) over `places` places.
fn zipf(places: usize) -> Vec<f64> {
    let weight = |place: usize| 1.0 / (place + 1) as f64;
    let sum: f64 = (0..places).map(weight).sum();
    let running = (0..places).scan(0.0, |before, place| {
        *before += weight(place) / sum;
        Some(*before)
    });
    running.collect()
}

fn place(running: &[f64], random: u64) -> usize {
    let at = random as f64 / u64::MAX as f64;
    running.partition_point(|until| *until < at).min(running.len() - 1)
}
