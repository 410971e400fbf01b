//! The function `files.append`.

use std::io::{self, Read, Seek, SeekFrom};

use weir::Failure;

use super::{FileError, Root};

/// Appends lines to files. The state is private to its call site, so that lines keep the order of their source; the
/// open files are shared by all call sites.
#[derive(Default)]
pub struct Appender;

#[weir::function]
impl Appender {
    /// Appends a line to the file at `path`, which is created if it does not exist. If the call succeeds, the operating
    /// system has the line. If it fails, the file has nothing of the line. After log rotation, lines go to the new file. A
    /// file whose last line has no end gets one first.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn append(&mut self, #[environment] root: &Root, path: &str, line: &str) -> Result<(), Failure> {
        let file = root.appended().of_path(path)?;
        let appended =
            file.lock().append(line, root.identity(path), || Ok((root.open_to_append(path)?, is_torn(root, path))));
        Ok(appended.map_err(|reason| FileError::not_written(path, reason))?)
    }
}

/// Returns true if the last line of the file has no end; false if the file is empty or cannot be read.
fn is_torn(root: &Root, path: &str) -> bool {
    let last = || -> io::Result<u8> {
        let mut file = root.open_to_read(path).map_err(io::Error::other)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| last != b'\n')
}
