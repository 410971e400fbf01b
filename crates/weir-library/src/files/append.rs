//! The function `files.append`.

use weir::Failure;

use super::{FileError, Root};

/// Appends lines to files. The state is private to its call site, so that lines keep the order of their source; the
/// open files are shared by all call sites.
#[derive(Default)]
pub struct Appender;

#[weir::function]
impl Appender {
    /// Appends a line to the file at `path`, which is created if it does not exist. If the call succeeds, the operating
    /// system has the line. If it fails, the file has nothing of the line. After log rotation, lines go to the new file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn append(&mut self, #[environment] root: &Root, path: &str, line: &str) -> Result<(), Failure> {
        let file = root.appended().of_path(path)?;
        let appended = file.lock().append(line, root.identity(path), || root.open_to_append(path));
        Ok(appended.map_err(|reason| FileError::not_written(path, reason))?)
    }
}
