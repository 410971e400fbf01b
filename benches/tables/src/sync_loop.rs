//! A bare loop of syncs: what the disk allows one writer, without a database.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use bench_harness::BenchResult;
use hdrhistogram::Histogram;

/// The bytes that are written before each sync: one page of a log.
const PAGE: [u8; 4096] = [b'x'; 4096];

/// The latencies of the syncs.
pub(crate) struct SyncSample {
    pub(crate) per_second: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

/// Appends pages to a file, and syncs it after each of them.
pub(crate) fn run(folder: &Path, seconds: f64) -> BenchResult<SyncSample> {
    let path = folder.join("sync-loop");
    let mut file = File::create(&path)?;
    let mut latencies = Histogram::<u64>::new_with_bounds(1, 10_000_000_000, 3)?;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        let before = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        latencies.saturating_record(before.elapsed().as_nanos() as u64);
    }
    let per_second = latencies.len() as f64 / begin.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    let [p50_ns, p99_ns] = [0.5, 0.99].map(|part| latencies.value_at_quantile(part));
    Ok(SyncSample { per_second, p50_ns, p99_ns })
}
