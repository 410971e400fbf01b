//! Where the Rust of a host function stands, for people who want to read it.

use std::path::{Path, PathBuf};

/// A place in a Rust file, as the compiler saw it when the command was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The folder of the crate (`CARGO_MANIFEST_DIR`); empty where it was not built by Cargo.
    pub crate_folder: &'static str,
    /// The file, as `file!()` says it: whole, or from the folder in which the compiler ran.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl Location {
    /// The file on this machine; `None` where there is none, as on a machine that did not build the command.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        // Cargo runs the compiler in the workspace's folder, which is the crate's or one further out.
        let folders = Path::new(self.crate_folder).ancestors();
        folders.map(|folder| folder.join(self.file)).find(|path| path.is_absolute() && path.is_file())
    }
}
