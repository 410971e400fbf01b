//! Source location of a host function, so that people can read its code.

use std::path::{Path, PathBuf};

/// A location in a Rust file, as the compiler saw it when the command was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The folder of the crate (`CARGO_MANIFEST_DIR`); empty if it was not built by Cargo.
    pub crate_folder: &'static str,
    /// The file as reported by `file!()`: absolute, or relative to the folder in which the compiler ran.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl Location {
    /// Returns the file's path on this machine; `None` if it does not exist here, as on a machine that did not build
    /// the command.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        // Cargo runs the compiler in the workspace's folder, which is the crate's folder or an ancestor of it.
        let folders = Path::new(self.crate_folder).ancestors();
        folders.map(|folder| folder.join(self.file)).find(|path| path.is_absolute() && path.is_file())
    }
}
