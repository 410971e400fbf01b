//! The root directory to which a program's file access is confined.

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

use super::appended_files::AppendedFiles;
use super::cache::{Candidate, FileCache, FileCacheOptions, FileStatus, FileTime, PathLookup, has_reliable_times};
use super::error::{FileError, explain};
use super::open_beneath::{BeneathPath, OpenMode, open};
#[cfg(target_os = "linux")]
use super::page_cache;
use super::private_files::{self, path_of};

/// Default maximum size of a file that is read as a whole: 64 MiB.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of names in a listing.
const ENTRIES_MAX: usize = 100_000;

/// An open directory; no path leads out of it.
#[derive(Clone, Debug)]
pub struct Root {
    directory: Arc<OwnedFd>,
    path: PathBuf,
    file_bytes_max: u64,
    /// `true` if the directory's own timestamps are reliable.
    has_times: bool,
    cache: Arc<FileCache>,
    appended: Arc<AppendedFiles>,
    /// `true` if programs, configurations and databases are not among the files.
    hides_private_files: bool,
    /// The paths, without links, of further files that are not among the files.
    private_paths: Arc<[PathBuf]>,
}

impl Root {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// Fails if the directory does not exist or cannot be read.
    pub fn open(path: &Path) -> io::Result<Root> {
        // Reading the directory reports missing permission at start-up instead of at the first request.
        std::fs::read_dir(path)?;
        let directory: OwnedFd = File::open(path)?.into();
        let has_times = has_reliable_times(&directory);
        let cache = Arc::new(FileCache::new(FileCacheOptions::default()));
        let (directory, path) = (Arc::new(directory), path.to_owned());
        let appended = Arc::default();
        let file_bytes_max = FILE_BYTES_MAX;
        let (hides_private_files, private_paths) = (false, Arc::default());
        Ok(Root { directory, path, file_bytes_max, has_times, cache, appended, hides_private_files, private_paths })
    }

    /// Returns the root with a different maximum size of a file that is read as a whole.
    #[must_use]
    pub fn with_file_bytes_max(self, file_bytes_max: u64) -> Root {
        Root { file_bytes_max, ..self }
    }

    /// Returns the root without what belongs to the program and not to its visitors: its private files
    /// cannot be read, written or listed, whatever link leads to them.
    #[must_use]
    pub fn without_private_files(self) -> Root {
        Root { hides_private_files: true, ..self }
    }

    /// Returns the root without the file that has this path now, such as the configuration of the program: it cannot be read,
    /// written or listed, whatever its name.
    #[must_use]
    pub fn without_file(self, path: &Path) -> Root {
        self.without_paths(path.canonicalize())
    }

    /// Returns the root without the SQLite database that has this path now, and the files that are beside it at times.
    #[must_use]
    pub fn without_database(self, path: &Path) -> Root {
        let beside = |path: PathBuf| {
            ["", "-wal", "-shm", "-journal"].map(|end| {
                let mut file = path.clone().into_os_string();
                file.push(end);
                PathBuf::from(file)
            })
        };
        self.without_paths(path.canonicalize().into_iter().flat_map(beside))
    }

    fn without_paths(self, paths: impl IntoIterator<Item = PathBuf>) -> Root {
        let private_paths = self.private_paths.iter().cloned().chain(paths).collect();
        Root { private_paths, ..self }
    }

    /// Returns `true` if the root does not contain what has this path.
    pub(super) fn hides(&self, path: &str) -> bool {
        self.hides_private_files && private_files::has_private_name(path)
    }

    /// Checks that what has been opened under this path, perhaps by a link, is no private file.
    fn check_not_private(&self, path: &str, opened: &OwnedFd) -> Result<(), FileError> {
        if !self.hides_private_files && self.private_paths.is_empty() {
            return Ok(());
        }
        let found = path_of(opened).map_err(|reason| FileError::Refused { path: path.into(), reason })?;
        let is_private = self.private_paths.contains(&found)
            || (self.hides_private_files && private_files::is_private(&found, &self.directory));
        if is_private { Err(FileError::NotFound(path.into())) } else { Ok(()) }
    }

    /// Checks that `name` in this folder, which has this path, is none of the files that were left out.
    pub(super) fn check_not_left_out(&self, path: &str, folder: &OwnedFd, name: &str) -> Result<(), FileError> {
        if self.private_paths.is_empty() {
            return Ok(());
        }
        let folder = path_of(folder).map_err(|reason| FileError::not_written(path, reason))?;
        let is_left_out = self.private_paths.contains(&folder.join(name));
        if is_left_out { Err(FileError::of_program(path)) } else { Ok(()) }
    }

    /// Returns the root with an empty file cache of these limits.
    #[must_use]
    pub fn with_cache_options(self, options: FileCacheOptions) -> Root {
        Root { cache: Arc::new(FileCache::new(options)), ..self }
    }

    /// Returns the path under which the root was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file at `path`. Blocks the calling thread.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be opened or read.
    pub fn read(&self, path: &str) -> Result<Bytes, FileError> {
        let cached = self.cache.find(path).and_then(|found| self.validated(path, &found));
        cached.map_or_else(|| self.read_anew(path), Ok)
    }

    fn read_anew(&self, path: &str) -> Result<Bytes, FileError> {
        let opened = self.now();
        let (file, stat) = self.open_file(path, OpenMode::Read)?;
        let status = FileStatus::of(&stat);
        let too_large = || FileError::TooLarge { path: path.into(), limit: self.file_bytes_max };
        if status.size > self.file_bytes_max {
            return Err(too_large());
        }
        // One byte more than expected detects the end without another read; one byte more than the limit detects
        // growth.
        let mut bytes = Vec::with_capacity(status.size as usize + 1);
        let read = (&file).take(self.file_bytes_max.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|reason| FileError::Refused { path: path.into(), reason })?;
        if bytes.len() as u64 > self.file_bytes_max {
            return Err(too_large());
        }
        let bytes = bytes.into();
        if self.cache.admits(&status, opened) && has_reliable_times(&file) {
            self.cache.insert(path, &status, &bytes, self);
        }
        Ok(bytes)
    }

    /// Reads the whole file at `path` if the kernel can do so without blocking on a disk; `None` otherwise.
    #[cfg(target_os = "linux")]
    pub(super) fn read_from_memory(&self, path: &str) -> Option<Result<Bytes, FileError>> {
        if let Some(found) = self.cache.find(path) {
            // Validating a path may access the disk, and the kernel cannot be asked in advance. Opening the path with
            // `RESOLVE_CACHED` tells whether all names are in memory.
            let in_memory = found.is_in_memory() || page_cache::is_there(&self.directory, path);
            let cached = if in_memory { self.validated(path, &found) } else { None };
            if let Some(bytes) = cached {
                return Some(Ok(bytes));
            }
        }
        let opened = self.now();
        if self.hides(path) {
            return Some(Err(FileError::NotFound(path.into())));
        }
        match page_cache::read(&self.directory, path)? {
            Ok(ready) => {
                if let Err(error) = self.check_not_private(path, &ready.file) {
                    return Some(Err(error));
                }
                let status = FileStatus::of(&ready.stat);
                let allowed = status.size <= self.file_bytes_max;
                if allowed && self.cache.admits(&status, opened) && has_reliable_times(&ready.file) {
                    self.cache.insert(path, &status, &ready.bytes, self);
                }
                allowed.then_some(Ok(ready.bytes))
            }
            Err(errno) => Some(Err(explain(path, errno))),
        }
    }

    /// Returns `None`: this operating system has no non-blocking reads of files.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn read_from_memory(&self, _path: &str) -> Option<Result<Bytes, FileError>> {
        None
    }

    /// Returns the cached contents if they are still those of the file.
    fn validated(&self, path: &str, found: &Candidate) -> Option<Bytes> {
        // Clones of this root share the cache and may have a higher limit.
        let allowed = found.length() <= self.file_bytes_max;
        if allowed { self.cache.validated(path, found, self) } else { None }
    }

    /// Returns `true` if `path` names something below the root. A path that leads out of the root names nothing.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        match self.open_below(path) {
            Ok(_) => true,
            // A socket, or a file that must not be read, exists as well.
            Err(FileError::Refused { reason, .. }) => reason.kind() == io::ErrorKind::PermissionDenied,
            Err(error) => matches!(error, FileError::NotAFile(_)),
        }
    }

    /// Returns the names in the directory at `path`, sorted; `.` is the root itself. Names that are not UTF-8 cannot be
    /// expressed in a program and are left out.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the directory cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let directory = self.open_directory(path)?;
        let folder = match self.private_paths.is_empty() {
            true => None,
            false => Some(path_of(&directory).map_err(|reason| FileError::Refused { path: path.into(), reason })?),
        };
        let is_left_out =
            |name: &str| folder.as_ref().is_some_and(|folder| self.private_paths.contains(&folder.join(name)));
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(|errno| explain(path, errno))? {
            let entry = entry.map_err(|errno| explain(path, errno))?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) if self.hides(name) || is_left_out(name) => {}
                Ok(_) if names.len() == ENTRIES_MAX => {
                    return Err(FileError::TooLarge { path: path.into(), limit: ENTRIES_MAX as u64 });
                }
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be opened.
    pub fn open_to_read(&self, path: &str) -> Result<File, FileError> {
        self.open_file(path, OpenMode::Read).map(|(file, _)| file)
    }

    /// Opens the file at `path` for writing at its end, and creates it if it does not exist.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be opened or created.
    pub fn open_to_append(&self, path: &str) -> Result<File, FileError> {
        match self.open_file(path, OpenMode::Append) {
            Ok((file, _)) => Ok(file),
            Err(FileError::Refused { path, reason }) => Err(FileError::NotWritten { path, reason }),
            Err(error) => Err(error),
        }
    }

    /// Returns the files to which the program appends.
    pub(super) fn appended(&self) -> &AppendedFiles {
        &self.appended
    }

    /// Returns the device and inode number of the file that has this path.
    pub(super) fn identity(&self, path: &str) -> Option<(u64, u64)> {
        statat(&self.directory, path, AtFlags::empty()).ok().map(|status| (status.st_dev, status.st_ino))
    }

    fn open_file(&self, path: &str, access: OpenMode) -> Result<(File, Stat), FileError> {
        let file = self.open_for(path, access)?;
        let status = fstat(&file).map_err(|errno| explain(path, errno))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Ok((file.into(), status)),
            _ => Err(FileError::NotAFile(path.into())),
        }
    }

    /// Opens whatever is at `path`; `.` is the root itself.
    pub(super) fn open_directory(&self, path: &str) -> Result<OwnedFd, FileError> {
        let root = if is_root(path) { self.directory.try_clone().ok() } else { None };
        root.map_or_else(|| self.open_below(path), Ok)
    }

    fn open_below(&self, path: &str) -> Result<OwnedFd, FileError> {
        self.open_for(path, OpenMode::Read)
    }

    fn open_for(&self, path: &str, access: OpenMode) -> Result<OwnedFd, FileError> {
        if path.is_empty() || path.contains('\0') {
            return Err(FileError::NotAPath(path.into()));
        }
        let below = BeneathPath::new(path).ok_or_else(|| match is_root(path) {
            true => FileError::NotAFile(path.into()),
            false => FileError::Outside(path.into()),
        })?;
        if self.hides(path) {
            return Err(match access {
                OpenMode::Append => FileError::of_program(path),
                OpenMode::Read => FileError::NotFound(path.into()),
            });
        }
        let opened = open(&self.directory, &below, access).map_err(|errno| explain(path, errno))?;
        self.check_not_private(path, &opened).map(|()| opened)
    }
}

/// Returns true if a path leads to the root itself: `.`, `./`.
fn is_root(path: &str) -> bool {
    path.starts_with('.') && path.split('/').all(|part| matches!(part, "" | "."))
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
        // `readlink` on something that is not a link fails early, which makes it the cheapest test.
        let mut target = [MaybeUninit::uninit()];
        readlinkat_raw(&self.directory, path, &mut target).is_err_and(|errno| errno == Errno::INVAL)
    }

    fn status(&self, path: &str) -> Option<FileStatus> {
        statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileStatus::of(&stat))
    }
}
