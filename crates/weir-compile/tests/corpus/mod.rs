//! The texts of the tests and of the documentation, which are mutated.

use std::path::{Path, PathBuf};

use test_support::fixture;
use weir_host::Library;

/// The longest text that is mutated; longer ones would take most of the time.
const TEXT_BYTES_MAX: usize = 4000;

/// The folders of the tests, whose texts use the library of the fixture.
const TESTS: [&str; 4] =
    ["tests/diagnostics", "tests/programs", "../weir-syntax/tests/suite", "../weir-syntax/tests/format"];

/// The folders of pages and programs that use the standard library.
const DOCUMENTATION: [&str; 3] = ["../../docs", "../../examples", "../weir-syntax/src/codes"];

/// Texts, and the library that they use.
pub(crate) struct Corpus {
    pub(crate) texts: Vec<String>,
    pub(crate) library: Library,
}

impl Corpus {
    fn new(mut texts: Vec<String>, library: Library) -> Corpus {
        texts.retain(|text| !text.is_empty() && text.len() < TEXT_BYTES_MAX);
        Corpus { texts, library }
    }
}

/// Returns the texts of the tests.
pub(crate) fn of_tests() -> Corpus {
    let files = TESTS.iter().flat_map(|folder| files_in(folder, "weir"));
    // A suite contains many texts, each after a line with its name.
    let texts = files.flat_map(|text| {
        let parts = text.split("=== ");
        let of_part = |part: &str| match part.split_once('\n') {
            Some((_, case)) if text.contains("=== ") => case.to_owned(),
            _ => part.to_owned(),
        };
        parts.map(of_part).collect::<Vec<_>>()
    });
    Corpus::new(texts.collect(), fixture::library())
}

/// Returns the programs of the documentation and of the examples.
pub(crate) fn of_documentation() -> Corpus {
    let pages = DOCUMENTATION.iter().flat_map(|folder| files_in(folder, "md"));
    let mut texts: Vec<String> = pages.flat_map(|page| programs_of(&page)).collect();
    texts.extend(DOCUMENTATION.iter().flat_map(|folder| files_in(folder, "weir")));
    Corpus::new(texts, weir_library::library())
}

/// Returns the programs in the fences of a page.
fn programs_of(page: &str) -> Vec<String> {
    let fences = page.split("```weir").skip(1);
    let programs = fences.filter_map(|fence| Some(fence.split_once('\n')?.1.split("```").next()?.to_owned()));
    programs.collect()
}

/// Returns the texts of the files of a folder and its folders, by their names.
fn files_in(folder: &str, extension: &str) -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut texts = Vec::new();
    for path in paths_in(&root) {
        if path.is_dir() {
            let files = paths_in(&path).into_iter().filter(|path| path.is_file());
            texts.extend(files.filter(|path| has(path, extension)).map(read));
        } else if has(&path, extension) {
            texts.push(read(path));
        }
    }
    texts
}

fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn has(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|end| end == extension)
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}
