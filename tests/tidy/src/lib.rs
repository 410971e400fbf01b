//! Reads the source of the workspace as text, for the laws in `tests/`.

pub mod comments;
pub mod concepts;
pub mod documents;
pub mod imports;
pub mod source;
pub mod type_names;

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of a crate.
pub struct File {
    /// Its path from the root of the workspace.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The root of the workspace that the tests run in: the nearest folder above the current one with this crate in it. It is not
/// fixed when the tests are compiled, so that a copy of their binary checks the tree where it is started.
#[must_use]
pub fn root() -> PathBuf {
    let current = std::env::current_dir().expect("the tests run in a folder");
    let root = current.ancestors().find(|folder| folder.join("tests/tidy/Cargo.toml").is_file());
    root.expect("the tests run in a folder of the workspace").to_path_buf()
}

/// The files with this ending below a folder, in the order of their paths.
#[must_use]
pub fn files(folder: &Path, ending: &str) -> Vec<File> {
    let mut found = Vec::new();
    collect(folder, ending, &mut found);
    found.sort_by(|a: &File, b: &File| a.path.cmp(&b.path));
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<File>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && !["target", ".git", "node_modules", ".device"].contains(&name.as_str()) {
            collect(&path, ending, found);
        } else if name.ends_with(ending) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let path = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
            found.push(File { path, text });
        }
    }
}

/// The names of the crates in `crates/`.
#[must_use]
pub fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
