//! Random histories of the cache protocol over a simulated disk, whose clock ticks by the second and whose writes take
//! time. Every hit is compared with the disk's contents. Each mutant, a history that leaves out one part of the
//! protocol, must produce a wrong hit.

use std::collections::BTreeMap;

use rustix::fs::FileType;

use super::validator::FileId;
use super::*;

const TICK: Duration = Duration::from_secs(1);
/// Maximum duration of a write; shorter than `unchanged_min`, so that the writes of a settled file are complete.
const WRITE_MAX_MS: u64 = 2_000;
const OPTIONS: FileCacheOptions =
    FileCacheOptions { bytes_max: 1 << 20, file_bytes_max: 64, unchanged_min: modification_time::UNCHANGED_MIN };
const PATHS: [&str; 4] = ["a/x", "a/y", "b/x", "top"];

/// The part of the protocol that a history leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Without {
    Nothing,
    /// The timestamps of the last status change.
    Changed,
    /// The minimum age of a file.
    Age,
    /// The check of directories for symbolic links.
    Directories,
    /// The timestamp of the root directory.
    Root,
}

#[derive(Clone)]
struct File {
    content: u64,
    status: FileStatus,
}

/// A simulated disk with its clock.
struct Disk {
    random: u64,
    now: FileTime,
    made: u64,
    files: BTreeMap<&'static str, File>,
    /// Directories that have been replaced by a symbolic link out of the root.
    outside: Vec<&'static str>,
    /// Time at which a directory last became a link, or a directory again.
    root_changed: FileTime,
    /// Writes that have stamped their file already, with the time at which their bytes arrive.
    writes: Vec<(FileTime, FileId, u64)>,
}

impl Disk {
    fn new(seed: u64) -> Disk {
        let now = Duration::from_secs(1_000_000);
        let mut disk = Disk {
            random: seed,
            now,
            made: 0,
            files: BTreeMap::new(),
            outside: vec![],
            root_changed: now,
            writes: vec![],
        };
        PATHS.iter().for_each(|path| disk.replace(path));
        disk
    }

    /// Returns a random number less than `below` (SplitMix64).
    fn below(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// Returns the timestamp that the disk gives to a file that changes at this moment.
    fn stamp(&self) -> FileTime {
        Duration::from_secs(self.now.as_secs() / TICK.as_secs() * TICK.as_secs())
    }

    fn made(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Replaces the file at `path` by a new one.
    fn replace(&mut self, path: &'static str) {
        let (number, content, stamp) = (self.made(), self.made(), self.stamp());
        let file_id = FileId { device: 1, number };
        let status = FileStatus { kind: FileType::RegularFile, file_id, size: 8, modified: stamp, changed: stamp };
        self.files.insert(path, File { content, status });
    }

    /// Writes different contents of the same length, which arrive later. Unless `says_so`, the modification time is
    /// left as it was.
    fn write(&mut self, path: &'static str, says_so: bool) {
        let (content, stamp, takes) = (self.made(), self.stamp(), self.below(WRITE_MAX_MS));
        let Some(file) = self.files.get_mut(path) else { return };
        file.status.changed = stamp;
        if says_so {
            file.status.modified = stamp;
        }
        self.writes.push((self.now + Duration::from_millis(takes), file.status.file_id, content));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let (done, writes) = self.writes.iter().partition(|(at, ..)| *at <= self.now);
        self.writes = writes;
        let done: Vec<(FileTime, FileId, u64)> = done;
        for (_, file_id, content) in done {
            let written = self.files.values_mut().filter(|file| file.status.file_id == file_id);
            written.for_each(|file| file.content = content);
        }
    }

    /// Performs a random action of another process.
    fn act(&mut self) {
        let path = PATHS[self.below(4) as usize];
        match self.below(8) {
            0 => self.replace(path),
            1 => self.write(path, true),
            2 => self.write(path, false),
            3 => drop(self.files.remove(path)),
            4 => {
                self.outside = [vec![], vec!["a"], vec!["b"]][self.below(3) as usize].clone();
                self.root_changed = self.stamp();
            }
            5 => self.swap("a/x", "b/x"),
            6 => {
                let time = Duration::from_millis(self.below(3_000));
                self.pass(time);
            }
            _ => self.pass(Duration::from_secs(8)),
        }
    }

    /// Exchanges the names of two files.
    fn swap(&mut self, one: &'static str, other: &'static str) {
        let stamp = self.stamp();
        let (first, second) = (self.files.remove(one), self.files.remove(other));
        for (path, file) in [(other, first), (one, second)] {
            if let Some(mut file) = file {
                file.status.changed = stamp;
                self.files.insert(path, file);
            }
        }
    }

    /// Returns the file that opening the path below the root yields.
    fn open(&self, path: &str) -> Option<&File> {
        let is_outside = path.split_once('/').is_some_and(|(directory, _)| self.outside.contains(&directory));
        self.files.get(path).filter(|_| !is_outside)
    }
}

/// The disk as a history with a missing part sees it.
struct MutatedLookup<'a>(&'a Disk, Without);

impl PathLookup for MutatedLookup<'_> {
    fn now(&self) -> FileTime {
        self.0.now
    }

    fn root_changed(&self) -> Option<FileTime> {
        Some(if self.1 == Without::Root { FileTime::ZERO } else { self.0.root_changed })
    }

    fn is_no_link(&self, path: &str) -> bool {
        !self.0.outside.contains(&path) || self.1 == Without::Directories
    }

    fn status(&self, path: &str) -> Option<FileStatus> {
        let mut status = self.0.files.get(path)?.status;
        if self.1 == Without::Changed {
            status.changed = FileTime::ZERO;
        }
        Some(status)
    }
}

/// Reads as [`Root`](crate::files::Root) does, interleaved with random actions; returns the contents, and `true` if
/// they came from the cache.
fn read(cache: &FileCache, disk: &mut Disk, path: &'static str, without: Without) -> (Option<u64>, bool) {
    let number = |bytes: Bytes| u64::from_le_bytes(bytes[..].try_into().unwrap());
    if let Some(found) = cache.find(path)
        && let Some(bytes) = cache.validated(path, &found, &MutatedLookup(disk, without))
    {
        return (Some(number(bytes)), true);
    }
    let opened = disk.now;
    let Some(File { status, .. }) = disk.open(path).cloned() else { return (None, false) };
    if disk.below(4) == 0 {
        disk.act();
    }
    // A read returns the opened file's contents, whatever has happened to its name.
    let Some(content) = disk.files.values().find(|file| file.status.file_id == status.file_id).map(|file| file.content)
    else {
        return (None, false);
    };
    if disk.below(4) == 0 {
        disk.act();
    }
    let mut seen = status;
    if without == Without::Changed {
        seen.changed = FileTime::ZERO;
    }
    if cache.admits(&status, opened) {
        let bytes = Bytes::copy_from_slice(&content.to_le_bytes());
        cache.insert(path, &seen, &bytes, &MutatedLookup(disk, without));
    }
    (Some(content), false)
}

/// Returns the number of hits, and the number of hits that differed from the disk.
fn history(seed: u64, without: Without) -> (u64, u64) {
    let unchanged_min = if without == Without::Age { Duration::ZERO } else { OPTIONS.unchanged_min };
    let (cache, mut disk) = (FileCache::new(FileCacheOptions { unchanged_min, ..OPTIONS }), Disk::new(seed));
    let (mut given, mut wrong) = (0, 0);
    for _ in 0..100 {
        if disk.below(3) == 0 {
            disk.act();
        }
        let path = PATHS[disk.below(4) as usize];
        let (content, was_kept) = read(&cache, &mut disk, path, without);
        let is_right = content == disk.open(path).map(|file| file.content);
        given += u64::from(was_kept);
        wrong += u64::from(was_kept && !is_right);
    }
    (given, wrong)
}

fn histories(without: Without) -> (u64, u64) {
    let each = (0..500).map(|seed| history(seed, without));
    each.fold((0, 0), |(given, wrong), (more, worse)| (given + more, wrong + worse))
}

#[test]
fn cached_contents_equal_the_disk() {
    let (given, wrong) = histories(Without::Nothing);
    assert!(given > 5_000, "only {given} came from the cache");
    assert_eq!(wrong, 0);
}

#[test]
fn every_part_of_the_protocol_is_needed() {
    for without in [Without::Changed, Without::Age, Without::Directories, Without::Root] {
        let (given, wrong) = histories(without);
        assert!(wrong > 0, "{given} were given without {without:?}, and all were right");
    }
}

/// A lookup in which every path leads to this file.
struct SingleFile(FileStatus);

impl PathLookup for SingleFile {
    fn now(&self) -> FileTime {
        Duration::from_secs(100)
    }

    fn root_changed(&self) -> Option<FileTime> {
        None
    }

    fn is_no_link(&self, _path: &str) -> bool {
        true
    }

    fn status(&self, _path: &str) -> Option<FileStatus> {
        Some(self.0)
    }
}

fn kept_file(cache: &FileCache, path: &str, bytes: usize) {
    let (file_id, time) = (FileId { device: 1, number: 1 }, Duration::from_secs(1));
    let size = bytes as u64;
    let status = FileStatus { kind: FileType::RegularFile, file_id, size, modified: time, changed: time };
    assert!(cache.admits(&status, Duration::from_secs(100)) || size > cache.options.file_bytes_max);
    cache.insert(path, &status, &vec![0; bytes].into(), &SingleFile(status));
}

#[test]
fn the_cache_is_bounded_and_scan_resistant() {
    let cache =
        FileCache::new(FileCacheOptions { bytes_max: 1 << 20, file_bytes_max: 8_192, ..FileCacheOptions::default() });
    let popular: Vec<String> = (0..100).map(|number| format!("popular-{number}")).collect();
    popular.iter().for_each(|path| kept_file(&cache, path, 4_096));
    for number in 0..10_000 {
        kept_file(&cache, &format!("once-{number}"), 4_096);
        assert!(cache.find(&popular[number % 100]).is_some() || number > 0);
        assert!(cache.entries.as_ref().unwrap().weight() <= 1 << 20);
    }
    let left = popular.iter().filter(|path| cache.find(path).is_some()).count();
    assert!(left >= 90, "{left} of 100 are left");
}

#[test]
fn large_files_and_disabled_caches_are_not_admitted() {
    let time = Duration::from_secs(1);
    let file_id = FileId { device: 1, number: 1 };
    let status = FileStatus { kind: FileType::RegularFile, file_id, size: 65, modified: time, changed: time };
    let admits = |options| FileCache::new(options).admits(&status, Duration::from_secs(100));
    assert!(!admits(OPTIONS));
    assert!(admits(FileCacheOptions { file_bytes_max: 65, ..OPTIONS }));
    assert!(!admits(FileCacheOptions { file_bytes_max: 65, bytes_max: 0, ..OPTIONS }));
}
