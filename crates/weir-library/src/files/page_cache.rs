//! Reads a file that the system has in memory, without ever waiting for a disk.
//!
//! Handing a read to another thread costs more than reading a small file that is in memory, and most that a service
//! reads are. So an event loop first asks for the file as far as it is there: `openat2` with `RESOLVE_CACHED` walks the
//! path only where its names are in memory, `preadv2` with `RWF_NOWAIT` gives only what is. Where the kernel would have to
//! wait, or knows neither, the read goes to a thread that may.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::open_beneath::{BeneathPath, open_cached};

/// Larger files are read elsewhere: copying them would hold up the loop.
const CACHED_BYTES_MAX: usize = 64 * 1024;

/// A file that was read, and what was said of it before.
pub(super) struct CachedRead {
    pub(super) file: OwnedFd,
    pub(super) stat: Stat,
    pub(super) bytes: Bytes,
}

/// The whole file, or that there is none; `None` where the answer is not in memory, or is anything else.
pub(super) fn read(directory: &OwnedFd, path: &str) -> Option<Result<CachedRead, Errno>> {
    match open_cached(directory, &below(path)?) {
        Ok(file) => whole(file).map(Ok),
        Err(Errno::NOENT) => Some(Err(Errno::NOENT)),
        Err(_) => None,
    }
}

/// Whether the names of the path are in memory, and lead to something that may be read.
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
    // One more than is expected tells that it grew; beside the others, so that they are a whole allocation.
    let (mut bytes, mut more) = (vec![0; length], [0]);
    let mut places = [IoSliceMut::new(&mut bytes), IoSliceMut::new(&mut more)];
    let read = preadv2(&file, &mut places, 0, ReadWriteFlags::NOWAIT).ok()?;
    (read == length).then(|| CachedRead { file, stat, bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_is_read_and_what_is_not_there_is_not_found() {
        let folder = std::env::temp_dir().join(format!("weir-cached-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("small"), "text").unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        std::fs::write(folder.join("large"), vec![0; CACHED_BYTES_MAX + 1]).unwrap();
        let directory: OwnedFd = std::fs::File::open(&folder).unwrap().into();
        let read = ["small", "empty", "large", ".", "../small"];
        let read = read.map(|path| super::read(&directory, path).map(|read| read.map(|ready| ready.bytes)));
        std::fs::remove_dir_all(&folder).unwrap();
        // Whether a kernel has `RESOLVE_CACHED`, and what it keeps in memory, is not ours to say.
        assert!(read[0].is_none() || read[0] == Some(Ok(Bytes::from("text"))), "{:?}", read[0]);
        assert_eq!(read[1..], [None, None, None, None]);
    }
}
