//! The directory that a program's files lie below.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, readlinkat_raw, statat};
use rustix::io::Errno;

use super::cache::{Candidate, FileCache, FileCacheOptions, FileStatus, FileTime, PathLookup, has_reliable_times};
use super::open_beneath::{Access, BeneathPath, open};
#[cfg(target_os = "linux")]
use super::page_cache;

/// The most bytes of a file that is read at once, unless the embedder says otherwise: 64 MiB.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most names that a listing may have.
const ENTRIES_MAX: usize = 100_000;

/// An open directory that nothing leads out of.
#[derive(Clone, Debug)]
pub struct Root {
    directory: Arc<OwnedFd>,
    path: PathBuf,
    file_bytes_max: u64,
    /// Whether the directory's own times are believed.
    has_times: bool,
    cache: Arc<FileCache>,
}

/// Why a file is not given. The path in it is the program's, relative to the root.
#[derive(Debug)]
pub enum FileError {
    /// There is nothing of this name.
    NotFound(String),
    /// The path leads out of the root: it is absolute, has a `..`, or follows a link that does.
    Outside(String),
    /// It is empty, too long, or holds a zero byte.
    NotAPath(String),
    /// It names a directory, a pipe, a socket or a device.
    NotAFile(String),
    /// It names no directory.
    NotADirectory(String),
    /// It has more bytes, or names, than the limit.
    TooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// The system refused: no permission, or the disk failed.
    Refused {
        /// The path.
        path: String,
        /// What the system says.
        reason: io::Error,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotFound(path) => write!(f, "there is no `{path}`"),
            FileError::Outside(path) => write!(f, "`{path}` leads out of the root"),
            FileError::NotAPath(path) => write!(f, "{path:?} is not a path"),
            FileError::NotAFile(path) => write!(f, "`{path}` is not a file"),
            FileError::NotADirectory(path) => write!(f, "`{path}` is not a directory"),
            FileError::TooLarge { path, limit } => write!(f, "`{path}` is above the limit of {limit}"),
            FileError::Refused { path, reason } => write!(f, "`{path}` cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for FileError {}

impl Root {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// Fails where there is none or it may not be read.
    pub fn open(path: &Path) -> io::Result<Root> {
        // Reading its names now tells at start, and not at the first request, that it may not be read.
        std::fs::read_dir(path)?;
        let directory: OwnedFd = File::open(path)?.into();
        let has_times = has_reliable_times(&directory);
        let cache = Arc::new(FileCache::new(FileCacheOptions::default()));
        let (directory, path) = (Arc::new(directory), path.to_owned());
        Ok(Root { directory, path, file_bytes_max: FILE_BYTES_MAX, has_times, cache })
    }

    /// The same directory, with another limit for the bytes of a file that is read at once.
    #[must_use]
    pub fn with_file_bytes_max(self, file_bytes_max: u64) -> Root {
        Root { file_bytes_max, ..self }
    }

    /// The same directory, keeping other amounts of what is read.
    #[must_use]
    pub fn with_cache_options(self, options: FileCacheOptions) -> Root {
        Root { cache: Arc::new(FileCache::new(options)), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file at `path`. Holds its thread while the disk works.
    ///
    /// # Errors
    /// A [`FileError`].
    pub fn read(&self, path: &str) -> Result<Bytes, FileError> {
        let cached = self.cache.find(path).and_then(|found| self.validated(path, &found));
        cached.map_or_else(|| self.read_anew(path), Ok)
    }

    fn read_anew(&self, path: &str) -> Result<Bytes, FileError> {
        let opened = self.now();
        let (file, stat) = self.open_file(path, Access::Read)?;
        let status = FileStatus::of(&stat);
        let too_large = || FileError::TooLarge { path: path.into(), limit: self.file_bytes_max };
        if status.size > self.file_bytes_max {
            return Err(too_large());
        }
        // One more than is expected tells the end without asking again; one more than the limit tells that it grew.
        let mut bytes = Vec::with_capacity(status.size as usize + 1);
        let read = (&file).take(self.file_bytes_max.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|reason| FileError::Refused { path: path.into(), reason })?;
        if bytes.len() as u64 > self.file_bytes_max {
            return Err(too_large());
        }
        let bytes = bytes.into();
        if self.cache.wants(&status, opened) && has_reliable_times(&file) {
            self.cache.keep(path, &status, &bytes, self);
        }
        Ok(bytes)
    }

    /// The whole file at `path`, where the system can say so without waiting for a disk; else `None`.
    #[cfg(target_os = "linux")]
    pub(super) fn read_from_memory(&self, path: &str) -> Option<Result<Bytes, FileError>> {
        if let Some(found) = self.cache.find(path) {
            // Looking at a path may need the disk, and nothing says so beforehand; opening it as far as it is in memory
            // puts it there, or tells.
            let in_memory = found.is_in_memory() || page_cache::is_there(&self.directory, path);
            let cached = if in_memory { self.validated(path, &found) } else { None };
            if let Some(bytes) = cached {
                return Some(Ok(bytes));
            }
        }
        let opened = self.now();
        match page_cache::read(&self.directory, path)? {
            Ok(ready) => {
                let status = FileStatus::of(&ready.stat);
                let allowed = status.size <= self.file_bytes_max;
                if allowed && self.cache.wants(&status, opened) && has_reliable_times(&ready.file) {
                    self.cache.keep(path, &status, &ready.bytes, self);
                }
                allowed.then_some(Ok(ready.bytes))
            }
            Err(errno) => Some(Err(explain(path, errno))),
        }
    }

    /// Nobody can tell here.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn read_from_memory(&self, _path: &str) -> Option<Result<Bytes, FileError>> {
        None
    }

    /// The bytes that are kept, where they are still the file's.
    fn validated(&self, path: &str, found: &Candidate) -> Option<Bytes> {
        // Another root over the same directory may have allowed more.
        let allowed = found.length() <= self.file_bytes_max;
        if allowed { self.cache.validated(path, found, self) } else { None }
    }

    /// Whether `path` names something below the root. A path that leads out names nothing.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        match self.open_below(path) {
            Ok(_) => true,
            // A file that may not be read, or a socket, is there all the same.
            Err(FileError::Refused { reason, .. }) => reason.kind() == io::ErrorKind::PermissionDenied,
            Err(error) => matches!(error, FileError::NotAFile(_)),
        }
    }

    /// The names in the directory at `path`, sorted; `.` is the root itself. Names that are not UTF-8 cannot be said in
    /// a program and are left out.
    ///
    /// # Errors
    /// A [`FileError`].
    pub fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let directory = self.open_directory(path)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(|errno| explain(path, errno))? {
            let entry = entry.map_err(|errno| explain(path, errno))?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(_) if names.len() == ENTRIES_MAX => {
                    return Err(FileError::TooLarge { path: path.into(), limit: ENTRIES_MAX as u64 });
                }
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The file at `path`, to be read piece by piece.
    ///
    /// # Errors
    /// A [`FileError`].
    pub fn open_to_read(&self, path: &str) -> Result<File, FileError> {
        self.open_file(path, Access::Read).map(|(file, _)| file)
    }

    /// The file at `path`, to be written at its end; made where there is none.
    ///
    /// # Errors
    /// A [`FileError`].
    pub fn open_to_append(&self, path: &str) -> Result<File, FileError> {
        self.open_file(path, Access::Append).map(|(file, _)| file)
    }

    fn open_file(&self, path: &str, access: Access) -> Result<(File, Stat), FileError> {
        let file = self.open_for(path, access)?;
        let status = fstat(&file).map_err(|errno| explain(path, errno))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Ok((file.into(), status)),
            _ => Err(FileError::NotAFile(path.into())),
        }
    }

    /// The directory at `path`, or whatever else is there; `.` is the root itself.
    pub(super) fn open_directory(&self, path: &str) -> Result<OwnedFd, FileError> {
        let root = if path == "." { self.directory.try_clone().ok() } else { None };
        root.map_or_else(|| self.open_below(path), Ok)
    }

    fn open_below(&self, path: &str) -> Result<OwnedFd, FileError> {
        self.open_for(path, Access::Read)
    }

    fn open_for(&self, path: &str, access: Access) -> Result<OwnedFd, FileError> {
        if path.is_empty() || path.contains('\0') {
            return Err(FileError::NotAPath(path.into()));
        }
        let below = BeneathPath::new(path).ok_or_else(|| FileError::Outside(path.into()))?;
        open(&self.directory, &below, access).map_err(|errno| explain(path, errno))
    }
}

impl PathLookup for Root {
    fn now(&self) -> FileTime {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn root_changed(&self) -> Option<FileTime> {
        let stat = if self.has_times { fstat(&self.directory).ok() } else { None };
        stat.map(|stat| FileStatus::of(&stat).changed)
    }

    fn is_no_link(&self, path: &str) -> bool {
        // Asking where something leads that leads nowhere is the cheapest question that there is.
        let mut target = [MaybeUninit::uninit()];
        readlinkat_raw(&self.directory, path, &mut target).is_err_and(|errno| errno == Errno::INVAL)
    }

    fn status(&self, path: &str) -> Option<FileStatus> {
        statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileStatus::of(&stat))
    }
}

fn explain(path: &str, errno: Errno) -> FileError {
    let path = path.to_owned();
    match errno {
        Errno::NOENT => FileError::NotFound(path),
        // What a part of the path names is no directory, so there is nothing below it.
        Errno::NOTDIR => FileError::NotADirectory(path),
        // A link out of the root, and one that is not followed or leads back to itself.
        Errno::XDEV | Errno::LOOP => FileError::Outside(path),
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => FileError::NotAPath(path),
        // A pipe that nobody reads, a device that is not there, a directory to be written.
        Errno::NXIO | Errno::NODEV | Errno::ISDIR => FileError::NotAFile(path),
        errno => FileError::Refused { path, reason: errno.into() },
    }
}
