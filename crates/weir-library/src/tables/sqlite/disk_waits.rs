//! Reads that wait for the disk, by which all reads of a database leave the threads of their flows.
//!
//! The operating system keeps a part of a database in memory, and no statement tells which. So the time of every eighth read is
//! measured. A read was long if it took more than 50 µs and its thread has read from the disk: the time alone would count
//! threads that wait for the processor. While more than 1 in 100 reads are long, other threads execute them, and several
//! wait for the disk at a time.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::tables::read_work::LongShare;

/// Time above which a read is long.
const LONG: Duration = Duration::from_micros(50);
/// Of so many reads, the time of one is measured.
const MEASURED: u32 = 8;

/// The reads of a database that wait for the disk.
#[derive(Debug)]
pub(in crate::tables) struct DiskWaits {
    reads: AtomicU32,
    long: LongShare,
}

impl DiskWaits {
    /// No read has waited yet.
    pub(super) fn none() -> DiskWaits {
        DiskWaits { reads: AtomicU32::new(0), long: LongShare::none() }
    }

    /// Returns whether reads would hold up the threads of their flows too often.
    pub(super) fn are_long(&self) -> bool {
        self.long.is_large()
    }

    /// Executes a read.
    pub(super) fn during<T>(&self, read: impl FnOnce() -> T) -> T {
        // Several threads may count at once; of those some may be lost.
        let count = self.reads.load(Ordering::Relaxed).wrapping_add(1);
        self.reads.store(count, Ordering::Relaxed);
        if !count.is_multiple_of(MEASURED) {
            return read();
        }
        let begun = Instant::now();
        let value = read();
        self.note(begun.elapsed(), has_read_from_disk);
        value
    }

    /// Notes the time of a read.
    pub(in crate::tables) fn note(&self, took: Duration, has_read_from_disk: impl FnOnce() -> bool) {
        self.long.note(took > LONG && has_read_from_disk());
    }
}

/// Returns whether this thread has read from the disk since it was asked last; `false` if the system does not tell.
fn has_read_from_disk() -> bool {
    thread_local! {
        static LAST: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    let bytes = bytes_from_disk().unwrap_or(0);
    LAST.replace(bytes) < bytes
}

/// Returns the number of bytes that this thread has read from disks, which the operating system did not have in memory.
fn bytes_from_disk() -> Option<u64> {
    let counts = fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use rustix::fs::{Advice, fadvise};

    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    const SLOW: Duration = Duration::from_micros(200);

    #[test]
    fn reads_are_long_while_more_than_one_in_a_hundred_waits_for_the_disk() {
        let waits = DiskWaits::none();
        assert!(!waits.are_long());
        (0..1_000).for_each(|_| waits.note(SLOW, || false));
        assert!(!waits.are_long(), "the processor was busy, not the disk");
        (0..3).for_each(|_| waits.note(SLOW, || true));
        assert!(waits.are_long());
        (0..1_000).for_each(|_| waits.note(SHORT, || true));
        assert!(!waits.are_long(), "a fast disk holds nobody up");
    }

    #[test]
    fn a_read_of_what_the_operating_system_has_forgotten_is_one_from_the_disk() {
        let path = std::env::temp_dir().join(format!("weir-disk-waits-{}", std::process::id()));
        let mut file =
            fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).expect("a file");
        file.write_all(&vec![7; 1 << 20]).and_then(|()| file.sync_all()).expect("room on the disk");
        fs::remove_file(&path).expect("the file is there");
        let mut read = || {
            let mut bytes = vec![0; 4_096];
            file.seek(SeekFrom::Start(512 << 10)).expect("a place in the file");
            std::io::Read::read_exact(&mut file, &mut bytes).expect("bytes of the file");
        };
        read();
        _ = has_read_from_disk();
        read();
        assert!(!has_read_from_disk(), "it was in memory");
        if fadvise(&file, 0, None, Advice::DontNeed).is_err() || bytes_from_disk().is_none() {
            return eprintln!("skipped: the system forgets no file, or does not tell what was read from the disk");
        }
        let before = bytes_from_disk();
        let mut bytes = vec![0; 4_096];
        file.seek(SeekFrom::Start(512 << 10)).expect("a place in the file");
        std::io::Read::read_exact(&mut file, &mut bytes).expect("bytes of the file");
        if bytes_from_disk() == before {
            return eprintln!("skipped: the folder for temporary files is not on a disk");
        }
        assert!(has_read_from_disk());
        assert!(!has_read_from_disk(), "nothing was read since");
    }
}
