//! Non-blocking reads of files that the kernel has in its page cache.
//!
//! Handing a read to a blocking thread costs more than reading a small cached file, and most files that a service reads
//! are cached. An event loop therefore tries first without blocking: `openat2` with `RESOLVE_CACHED` succeeds only if
//! all names of the path are in memory, and `preadv2` with `RWF_NOWAIT` returns only bytes that are. If the kernel
//! would block, or does not support these calls, the read goes to a blocking thread.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::open_beneath::{BeneathPath, open_cached};

/// Maximum size of a file that an event loop reads itself; copying a larger one would delay other connections.
const CACHED_BYTES_MAX: usize = 64 * 1024;

/// A file that was read, with the status that it had before.
pub(super) struct CachedRead {
    pub(super) file: OwnedFd,
    pub(super) stat: Stat,
    pub(super) bytes: Bytes,
}

/// Reads the whole file, or reports that it does not exist; `None` if the kernel would block, or in any other case.
pub(super) fn read(directory: &OwnedFd, path: &str) -> Option<Result<CachedRead, Errno>> {
    match open_cached(directory, &below(path)?) {
        Ok(file) => whole(file).map(Ok),
        Err(Errno::NOENT) => Some(Err(Errno::NOENT)),
        Err(_) => None,
    }
}

/// Returns `true` if the path leads to a readable file and all its names are in memory.
pub(super) fn is_there(directory: &OwnedFd, path: &str) -> bool {
    below(path).is_some_and(|below| open_cached(directory, &below).is_ok())
}

fn below(path: &str) -> Option<BeneathPath<'_>> {
    BeneathPath::new(path).filter(|_| !path.contains('\0'))
}

fn whole(file: OwnedFd) -> Option<CachedRead> {
    let stat = fstat(&file).ok()?;
    let length = usize::try_from(stat.st_size).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !(1..=CACHED_BYTES_MAX).contains(&length) {
        return None;
    }
    // Reading one extra byte detects that the file has grown; it goes to a separate buffer, so that `bytes` fills its
    // allocation exactly.
    let (mut bytes, mut more) = (vec![0; length], [0]);
    let mut places = [IoSliceMut::new(&mut bytes), IoSliceMut::new(&mut more)];
    let read = preadv2(&file, &mut places, 0, ReadWriteFlags::NOWAIT).ok()?;
    (read == length).then(|| CachedRead { file, stat, bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_files_are_read_and_missing_ones_are_not_found() {
        let folder = std::env::temp_dir().join(format!("weir-cached-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("small"), "text").unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        std::fs::write(folder.join("large"), vec![0; CACHED_BYTES_MAX + 1]).unwrap();
        let directory: OwnedFd = std::fs::File::open(&folder).unwrap().into();
        let read = ["small", "empty", "large", ".", "../small"];
        let read = read.map(|path| super::read(&directory, path).map(|read| read.map(|ready| ready.bytes)));
        std::fs::remove_dir_all(&folder).unwrap();
        // Support for `RESOLVE_CACHED`, and the contents of the page cache, depend on the machine.
        assert!(read[0].is_none() || read[0] == Some(Ok(Bytes::from("text"))), "{:?}", read[0]);
        assert_eq!(read[1..], [None, None, None, None]);
    }
}
