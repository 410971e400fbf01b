//! Writing files below the root: appending lines, and replacing whole files.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use weir::Failure;

use super::{FileError, Root};
use crate::output::Outputs;

/// Appends lines to files. The state is private to its call site, so that lines keep the order of their source; the
/// open files are shared by all call sites.
#[derive(Default)]
pub struct Appender;

#[weir::function]
impl Appender {
    /// Appends a line to the file at `path`, which is created if it does not exist. Lines reach the operating system
    /// within 50 ms, and at the latest before the program ends; the next call reports a failure to write them.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
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

/// Replaces the contents of the file at `path` atomically by `bytes`: readers see the old contents or the new ones, and
/// nothing in between.
///
/// # Errors
/// Fails if the file cannot be written.
#[weir::function(blocking, idempotent)]
pub fn write(
    #[environment] root: &Root,
    #[environment] outputs: &Outputs,
    path: &str,
    bytes: &[u8],
) -> Result<(), Failure> {
    // Buffered lines belong to the file that is replaced; later ones go to the new file.
    outputs.forget(path)?;
    Ok(root.replace(path, bytes)?)
}

impl Root {
    /// Replaces the file at `path` atomically: writes a temporary file in the same directory and renames it.
    ///
    /// # Errors
    /// Fails with a [`FileError`] if the file cannot be written.
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
            // Cleaning up the temporary file is best effort; a failure to remove it changes nothing for the caller.
            let _ = unlinkat(&directory, &beside, AtFlags::empty());
            refused(error)
        })
    }
}
