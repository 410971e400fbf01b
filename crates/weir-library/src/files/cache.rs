//! File cache: the contents of files, validated against the file system on every hit.
//!
//! Reading a file takes four system calls (open, stat, read, close); validating a cached one takes a system call for
//! each component of its path. A hit is exact: it returns what a read would return that begins when the lookup begins.
//!
//! 1. *Fill.* A file is opened below the root, its status is taken, and then it is read. Any change during the read or
//!    later therefore leaves the file with a different status. Afterwards the path is checked component by component
//!    (`validator`), and must lead to a file with the status that was taken.
//! 2. *Admission.* The contents are cached if the file had not been modified for a while when it was opened, if it lies
//!    on a file system with reliable timestamps (`modification_time`), and if it is within the limits. Eviction is
//!    S3-FIFO: files that were read once do not evict popular ones.
//! 3. *Validation.* On a lookup the path is checked again. If it leads, without a symbolic link, to a file with the
//!    same device, inode, size and timestamps, the contents are unchanged; otherwise the entry is dropped.
//!
//! The components of a path are checked one after the other. If, in the microsecond between two checks, another process
//! replaces a directory that no longer holds the file by a symbolic link to the one that does, the lookup returns the
//! contents of an unchanged file that used to be below the root, although opening it now would be refused.
//!
//! Access control or auditing beyond file modes (such as fanotify) sees only the first read of a cached file.

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
use weir::memory::{hand_to_program, of_program};

pub(super) use modification_time::has_reliable_times;
use validator::Validator;
pub(super) use validator::{FileStatus, FileTime, PathLookup};

/// Accounted overhead of an entry in bytes, beyond its path and contents: table slot, eviction queue, validator.
const ENTRY_BYTES: usize = 256;
/// Assumed size of a file, to estimate the number of entries.
const FILE_BYTES_TYPICAL: u64 = 8 * 1024;
/// Number of independently locked shards for each core.
const SHARDS_PER_CORE: usize = 4;
/// Each shard has room for at least this many files of the maximum size.
const FILES_PER_SHARD_MIN: u64 = 4;
/// After a hit, the path's names are assumed to stay in the kernel's name cache for this long: memory pressure that
/// evicts them sooner would page out this process as well.
#[cfg(target_os = "linux")]
const IN_MEMORY_S: u32 = 10;

/// Limits of the file cache of a [`Root`](super::Root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCacheOptions {
    /// Maximum size of the cache, including paths and 256 bytes for each entry; 0 disables the cache. Default: 64 MiB.
    pub bytes_max: u64,
    /// Maximum size of a cached file; larger ones are read each time. Default: 1 MiB.
    pub file_bytes_max: u64,
    /// Minimum time since a file's last modification before it is cached. Default: 5 seconds. A value below the
    /// granularity of the file system's timestamps is unsafe.
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

/// Cached file contents, by the path under which they were read.
pub(super) struct FileCache {
    /// The entries; `None` if the cache is disabled.
    entries: Option<Cache<Box<str>, Arc<CachedFile>, EntryWeight>>,
    options: FileCacheOptions,
}

struct CachedFile {
    validator: Validator,
    bytes: Bytes,
    /// Time of the last successful validation, in seconds of [`now_s`].
    validated_s: AtomicU32,
}

/// Weight of an entry, in bytes.
#[derive(Clone)]
struct EntryWeight;

impl Weighter<Box<str>, Arc<CachedFile>> for EntryWeight {
    fn weight(&self, path: &Box<str>, entry: &Arc<CachedFile>) -> u64 {
        (ENTRY_BYTES + path.len() + entry.bytes.len()) as u64
    }
}

/// A cache hit that has not been validated yet.
pub(super) struct Candidate {
    entry: Arc<CachedFile>,
    now_s: u32,
}

impl Candidate {
    /// Returns `true` if the path was validated so recently that validating it again needs no disk access.
    #[cfg(target_os = "linux")]
    pub(super) fn is_in_memory(&self) -> bool {
        self.now_s.saturating_sub(self.entry.validated_s.load(Ordering::Relaxed)) <= IN_MEMORY_S
    }

    /// Returns the length of the contents in bytes.
    pub(super) fn length(&self) -> u64 {
        self.entry.bytes.len() as u64
    }
}

impl FileCache {
    /// Creates an empty cache.
    pub(super) fn new(options: FileCacheOptions) -> FileCache {
        FileCache { entries: (options.bytes_max > 0).then(|| cache(options)), options }
    }

    /// Looks up the path, without validating the entry.
    pub(super) fn find(&self, path: &str) -> Option<Candidate> {
        let entry = self.entries.as_ref()?.get(path)?;
        Some(Candidate { entry, now_s: now_s() })
    }

    /// Validates a hit: returns the contents if the path still leads to the same unchanged file, and drops the entry
    /// otherwise.
    pub(super) fn validated(&self, path: &str, found: &Candidate, lookup: &impl PathLookup) -> Option<Bytes> {
        let Candidate { entry, now_s } = found;
        if !entry.validator.is_current(path, lookup, self.options.unchanged_min) {
            self.forget(path);
            return None;
        }
        // Write only on change, so that event loops that share an entry do not contend for its cache line.
        if entry.validated_s.load(Ordering::Relaxed) != *now_s {
            entry.validated_s.store(*now_s, Ordering::Relaxed);
        }
        Some(entry.bytes.clone())
    }

    fn forget(&self, path: &str) {
        if let Some(entries) = &self.entries {
            of_program(|| entries.remove(path));
        }
    }

    /// Returns `true` if a file that was opened at `opened` with this status may be cached once it has been read.
    pub(super) fn admits(&self, status: &FileStatus, opened: FileTime) -> bool {
        self.entries.is_some()
            && status.size <= self.options.file_bytes_max
            && modification_time::is_settled(status.changed, opened, self.options.unchanged_min)
    }

    /// Inserts the contents of a file that had this status before it was read, if the path still leads to that file.
    pub(super) fn insert(&self, path: &str, status: &FileStatus, bytes: &Bytes, lookup: &impl PathLookup) {
        let Some(entries) = &self.entries else { return };
        let validator = Validator::of(path, lookup, self.options.unchanged_min);
        let validator = validator.filter(|validator| validator.file == *status && status.size == bytes.len() as u64);
        if let Some(validator) = validator {
            let validated_s = AtomicU32::new(now_s());
            // The contents outlive the flow that has read them.
            hand_to_program(bytes.len());
            of_program(|| {
                entries.insert(path.into(), Arc::new(CachedFile { validator, bytes: bytes.clone(), validated_s }));
            });
        }
    }
}

/// Returns the time of a coarse monotonic clock, in seconds.
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
