//! The texts of the tests, which are mutated.

use std::path::PathBuf;

/// The longest text that is mutated; longer ones would take most of the time.
const TEXT_BYTES_MAX: usize = 4000;

/// The folders of the texts that are mutated.
const FOLDERS: [&str; 4] =
    ["tests/diagnostics", "tests/programs", "../weir-syntax/tests/suite", "../weir-syntax/tests/format"];

/// Returns the texts that are mutated.
pub(crate) fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in FOLDERS {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "weir")).collect();
        files.sort();
        for text in files.iter().map(|path| std::fs::read_to_string(path).unwrap()) {
            // A suite contains many texts, each after a line with its name.
            texts.extend(text.split("=== ").map(|part| {
                part.split_once('\n').filter(|_| text.contains("=== ")).map_or(part, |(_, case)| case).to_owned()
            }));
        }
    }
    texts.retain(|text| !text.is_empty() && text.len() < TEXT_BYTES_MAX);
    texts
}
