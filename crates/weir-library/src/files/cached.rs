//! Reads a file that the system has in memory, without ever waiting for a disk.
//!
//! Handing a read to another thread costs more than reading a small file that is in memory, and most that a service
//! reads are. So an event loop first asks for the file as far as it is there: `openat2` with `RESOLVE_CACHED` walks the
//! path only where its names are in memory, `preadv2` with `RWF_NOWAIT` gives only what is. Where the kernel would have to
//! wait, or knows neither, the read goes to a thread that may.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};

use bytes::Bytes;
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::open::{Below, open_cached};

/// Larger files are read elsewhere: copying them would hold up the loop.
const CACHED_BYTES_MAX: usize = 64 * 1024;

/// The whole file, or that there is none; `None` where the answer is not in memory, or is anything else.
pub(super) fn read(directory: &OwnedFd, path: &str) -> Option<Result<Bytes, Errno>> {
    let below = Below::new(path).filter(|_| !path.contains('\0'))?;
    match open_cached(directory, &below) {
        Ok(file) => whole(&file).map(Ok),
        Err(Errno::NOENT) => Some(Err(Errno::NOENT)),
        Err(_) => None,
    }
}

fn whole(file: &impl AsFd) -> Option<Bytes> {
    let status = fstat(file).ok()?;
    let length = usize::try_from(status.st_size).ok()?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || !(1..=CACHED_BYTES_MAX).contains(&length) {
        return None;
    }
    // One more than is expected tells that it grew; beside the others, so that they are a whole allocation.
    let (mut bytes, mut more) = (vec![0; length], [0]);
    let mut places = [IoSliceMut::new(&mut bytes), IoSliceMut::new(&mut more)];
    let read = preadv2(file, &mut places, 0, ReadWriteFlags::NOWAIT).ok()?;
    (read == length).then(|| bytes.into())
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
        let read = ["small", "empty", "large", ".", "../small"].map(|path| read(&directory, path));
        std::fs::remove_dir_all(&folder).unwrap();
        // Whether a kernel has `RESOLVE_CACHED`, and what it keeps in memory, is not ours to say.
        assert!(read[0].is_none() || read[0] == Some(Ok(Bytes::from("text"))), "{:?}", read[0]);
        assert_eq!(read[1..], [None, None, None, None]);
    }
}
