//! Writing files below the root: lines at their ends, and whole files at once.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use weir::Failure;

use super::{FileError, Root};
use crate::output::Outputs;

/// Adds lines to files. It is private to its call site so that lines come in the order of their source; the files are
/// shared by all.
#[derive(Default)]
pub struct Appender;

#[weir::function]
impl Appender {
    /// Adds a line to the file at `path`, which is made where there is none. Lines are handed to the system within
    /// 50 ms, and all of them before the program ends; a failure to write them is told to the next call.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn append(
        &mut self,
        #[environment] root: &Root,
        #[environment] outputs: &Outputs,
        path: &str,
        line: &str,
    ) -> Result<(), Failure> {
        let output = outputs.open(path, || root.open_to_append(path))?;
        outputs.write(&output, &[line.as_bytes(), b"\n"])
    }
}

/// Makes `bytes` the whole file at `path`. Who reads it sees the old file or the new one, and nothing between.
///
/// # Errors
/// Fails where the file cannot be written.
#[weir::function(blocking, idempotent)]
pub fn write(
    #[environment] root: &Root,
    #[environment] outputs: &Outputs,
    path: &str,
    bytes: &[u8],
) -> Result<(), Failure> {
    // Lines that wait belong to the file that is replaced, and later ones to the new one.
    outputs.forget(path)?;
    Ok(root.replace(path, bytes)?)
}

impl Root {
    /// Makes `bytes` the whole file at `path`: written beside it first, then given its name.
    ///
    /// # Errors
    /// A [`FileError`].
    pub fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        if matches!(name, "" | "." | "..") {
            return Err(FileError::NotAFile(path.into()));
        }
        let directory = self.open_directory(above)?;
        let beside = format!(".weir-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let refused = |reason: io::Error| FileError::Refused { path: path.into(), reason };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file =
            openat(&directory, &beside, flags, Mode::from_raw_mode(0o666)).map_err(|error| refused(error.into()))?;
        let written = File::from(file).write_all(bytes);
        let named = written.and_then(|()| Ok(renameat(&directory, &beside, &directory, name)?));
        named.map_err(|error| {
            // What is left beside it is nobody's; that it cannot be removed changes nothing for the caller.
            let _ = unlinkat(&directory, &beside, AtFlags::empty());
            refused(error)
        })
    }
}
