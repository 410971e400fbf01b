//! Laws of shape: short functions, module roots, and no file that belongs to two crates.

use std::path::Path;

use tidy::{files, root, source};

/// No function has more lines.
const LINES_MAX: usize = 60;
/// The maximum number of lines of nine functions in ten.
const LINES_P90: usize = 20;

const FOLDERS: [&str; 4] = ["crates", "benches", "examples", "tests"];

#[test]
fn functions_are_short() {
    let mut lines = Vec::new();
    for file in FOLDERS.iter().flat_map(|folder| files(&root().join(folder), ".rs")) {
        for found in source::scan(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path)).functions {
            let (path, line, name) = (&file.path, found.line, &found.name);
            assert!(found.lines <= LINES_MAX, "{path}:{line}: `{name}` has {} lines: split it", found.lines);
            lines.push(found.lines);
        }
    }
    lines.sort_unstable();
    let p90 = lines[lines.len() * 9 / 10];
    assert!(p90 <= LINES_P90, "one function in ten has more than {p90} lines");
}

#[test]
fn the_root_of_a_module_is_beside_its_folder() {
    for file in files(&root().join("crates"), ".rs").into_iter().filter(|file| file.path.contains("/src/")) {
        assert!(!file.path.ends_with("/mod.rs"), "{}: name it after its folder, beside it", file.path);
    }
}

#[test]
fn no_file_belongs_to_two_crates() {
    for file in FOLDERS.iter().flat_map(|folder| files(&root().join(folder), ".rs")) {
        for line in file.text.lines().filter_map(|line| line.trim().strip_prefix("#[path = \"")) {
            let target = line.split('"').next().unwrap_or_default();
            let package = package(&file.path);
            let reached = resolved(Path::new(&file.path).parent().expect("a file is in a folder"), target);
            assert!(reached.starts_with(&package), "{} includes {target} of another package", file.path);
        }
    }
}

/// The folder of the package that a file belongs to: `crates/NAME`.
fn package(path: &str) -> String {
    path.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// A path from a folder on, without `..`.
fn resolved(folder: &Path, path: &str) -> String {
    let mut parts: Vec<String> = folder.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    for part in path.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." => {}
            part => parts.push(part.to_owned()),
        }
    }
    parts.join("/")
}
