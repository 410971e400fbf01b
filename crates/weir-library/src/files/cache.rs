//! The bytes of files that were read, for as long as the files are as they were.
//!
//! To open, to ask for the length, to read and to close are four calls of the system; to ask whether a file is still the
//! one that was read is one for each part of its path. What is given is exact: it is what a read would give that begins
//! when the question is asked.
//!
//! 1. A file is opened below the root, asked for its status, and read; so whatever is changed while it is read, or later,
//!    leaves it with another status. The path is looked at afterwards, part by part (`validator`), and must lead to a file of the
//!    status that was taken.
//! 2. It is kept if it had not been changed for a while when it was opened, on a file system whose times are believed
//!    (`modification_time`), and within the limits. Where the limit is reached, what has been asked for seldom makes room; files that
//!    were read once do not push out what is popular (S3-FIFO).
//! 3. When it is asked for again, the path is looked at. Where it leads without a link to a file of the same device, number,
//!    length and times, the bytes are the same, too; otherwise they are forgotten.
//!
//! The parts of a path are looked at one after the other. Somebody who, in the microsecond between, exchanges a directory
//! that is no longer the file's for a link to the one that is, gets the bytes of an unchanged file that once was below the
//! root, where opening it anew would be refused.
//!
//! What watches or forbids the opening of files by other means than their modes sees the first time only.

mod modification_time;
#[cfg(test)]
mod tests;
mod validator;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use rustix::time::{ClockId, clock_gettime};

pub(super) use modification_time::has_reliable_times;
use validator::Validator;
pub(super) use validator::{FileStatus, FileTime, PathLookup};

/// What an entry is charged beyond its path and bytes: its place in the table and in the order, and what was seen.
const ENTRY_BYTES: usize = 256;
/// A file is taken to have so many bytes, where the number of files must be guessed.
const FILE_BYTES_TYPICAL: u64 = 8 * 1024;
/// Parts of the cache for each core, each with a lock of its own.
const SHARDS_PER_CORE: usize = 4;
/// A part has room for so many of the largest files.
const FILES_PER_SHARD_MIN: u64 = 4;
/// What has been asked for within this time has its names in the system's memory: whatever drives them out as fast drives
/// this program's own pages out, too.
#[cfg(target_os = "linux")]
const IN_MEMORY_S: u32 = 10;

/// What a [`Root`](super::Root) keeps of files that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCacheOptions {
    /// Bytes of all files together, with their paths and 256 bytes for each; none are kept where it is 0. 64 MiB.
    pub bytes_max: u64,
    /// Bytes of one file. Larger ones are read each time. 1 MiB.
    pub file_bytes_max: u64,
    /// How long a file has been unchanged before it is kept. 5 seconds; less than the file system's times are exact to is
    /// not safe.
    pub unchanged_min: Duration,
}

impl Default for FileCacheOptions {
    fn default() -> Self {
        FileCacheOptions {
            bytes_max: 64 * 1024 * 1024,
            file_bytes_max: 1024 * 1024,
            unchanged_min: modification_time::UNCHANGED_MIN,
        }
    }
}

/// The files that are kept, by the paths that they were read by.
pub(super) struct FileCache {
    /// None where nothing is kept.
    entries: Option<Cache<Box<str>, Arc<CachedFile>, EntryWeight>>,
    options: FileCacheOptions,
}

struct CachedFile {
    validator: Validator,
    bytes: Bytes,
    /// When it was last found unchanged, in seconds.
    asked_s: AtomicU32,
}

/// What an entry is charged.
#[derive(Clone)]
struct EntryWeight;

impl Weighter<Box<str>, Arc<CachedFile>> for EntryWeight {
    fn weight(&self, path: &Box<str>, entry: &Arc<CachedFile>) -> u64 {
        (ENTRY_BYTES + path.len() + entry.bytes.len()) as u64
    }
}

/// Bytes that were kept, of which nobody knows yet whether they are still the file's.
pub(super) struct Candidate {
    entry: Arc<CachedFile>,
    now_s: u32,
}

impl Candidate {
    /// Whether looking at the path surely needs no disk.
    #[cfg(target_os = "linux")]
    pub(super) fn is_in_memory(&self) -> bool {
        self.now_s.saturating_sub(self.entry.asked_s.load(Ordering::Relaxed)) <= IN_MEMORY_S
    }

    /// How many bytes there are.
    pub(super) fn length(&self) -> u64 {
        self.entry.bytes.len() as u64
    }
}

impl FileCache {
    /// Nothing as yet.
    pub(super) fn new(options: FileCacheOptions) -> FileCache {
        FileCache { entries: (options.bytes_max > 0).then(|| cache(options)), options }
    }

    /// What is kept of this path.
    pub(super) fn find(&self, path: &str) -> Option<Candidate> {
        let entry = self.entries.as_ref()?.get(path)?;
        Some(Candidate { entry, now_s: now_s() })
    }

    /// The bytes, where the path leads to the same file that they were read from.
    pub(super) fn validated(&self, path: &str, found: &Candidate, lookup: &impl PathLookup) -> Option<Bytes> {
        let Candidate { entry, now_s } = found;
        if !entry.validator.is_current(path, lookup, self.options.unchanged_min) {
            self.forget(path);
            return None;
        }
        // Written seldom, so that the loops that read it need not fetch it from each other.
        if entry.asked_s.load(Ordering::Relaxed) != *now_s {
            entry.asked_s.store(*now_s, Ordering::Relaxed);
        }
        Some(entry.bytes.clone())
    }

    fn forget(&self, path: &str) {
        if let Some(entries) = &self.entries {
            entries.remove(path);
        }
    }

    /// Whether what was opened at `opened` with this status is to be kept when it has been read.
    pub(super) fn wants(&self, status: &FileStatus, opened: FileTime) -> bool {
        self.entries.is_some()
            && status.size <= self.options.file_bytes_max
            && modification_time::is_settled(status.changed, opened, self.options.unchanged_min)
    }

    /// Keeps what was read of a file that had this status before, if that is what the path still leads to.
    pub(super) fn keep(&self, path: &str, status: &FileStatus, bytes: &Bytes, lookup: &impl PathLookup) {
        let Some(entries) = &self.entries else { return };
        let validator = Validator::of(path, lookup, self.options.unchanged_min);
        let validator = validator.filter(|validator| validator.file == *status && status.size == bytes.len() as u64);
        if let Some(validator) = validator {
            let asked_s = AtomicU32::new(now_s());
            entries.insert(path.into(), Arc::new(CachedFile { validator, bytes: bytes.clone(), asked_s }));
        }
    }
}

/// Seconds on a clock that never goes back, by its cheapest reading.
fn now_s() -> u32 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::MonotonicCoarse;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    u32::try_from(clock_gettime(CLOCK).tv_sec).unwrap_or(u32::MAX)
}

fn cache(options: FileCacheOptions) -> Cache<Box<str>, Arc<CachedFile>, EntryWeight> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shards = options.bytes_max / options.file_bytes_max.saturating_mul(FILES_PER_SHARD_MIN).max(1);
    let shards = usize::try_from(shards).unwrap_or(usize::MAX).clamp(1, cores * SHARDS_PER_CORE);
    let files = usize::try_from(options.bytes_max / FILE_BYTES_TYPICAL).unwrap_or(usize::MAX);
    let mut builder = OptionsBuilder::new();
    builder.shards(shards).weight_capacity(options.bytes_max).estimated_items_capacity(files.max(1));
    let options = builder.build().expect("both capacities are set");
    Cache::with_options(options, EntryWeight, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

impl fmt::Debug for FileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.entries.as_ref().map_or(0, Cache::weight);
        write!(f, "Kept({bytes} of {} bytes)", self.options.bytes_max)
    }
}
