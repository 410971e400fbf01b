//! Laws of documents: they name no file, package or identifier that does not exist.

use std::collections::BTreeSet;
use std::path::Path;

use tidy::documents::{anchors, code_spans, exists, is_identifier, is_path, links, packages, section_links};
use tidy::{File, files, root};

/// Documents of the repository, without the pages of diagnostics, whose examples name files of users.
fn documents() -> Vec<File> {
    let pages = |file: &File| file.path.contains("/codes/") || file.path.contains("/tests/");
    files(&root(), ".md").into_iter().filter(|file| !pages(file)).collect()
}

#[test]
fn documents_link_to_files_that_exist() {
    for document in documents() {
        let folder = root().join(&document.path).parent().map(Path::to_path_buf).unwrap_or_default();
        for (line, target) in links(&document.text) {
            assert!(exists(target, &[&folder]), "{}:{line} links to {target}, which does not exist", document.path);
        }
    }
}

#[test]
fn documents_link_to_sections_that_exist() {
    let mut seen = 0;
    for document in documents() {
        let folder = root().join(&document.path).parent().map(Path::to_path_buf).unwrap_or_default();
        for (line, file, anchor) in section_links(&document.text) {
            let path = if file.is_empty() { root().join(&document.path) } else { folder.join(file) };
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let known = anchors(&text).iter().any(|known| known == anchor);
            assert!(known, "{}:{line} links to the section #{anchor} of `{file}`, which does not exist", document.path);
            seen += 1;
        }
    }
    assert!(seen > 0, "documents link to sections");
}

#[test]
fn documents_name_files_that_exist() {
    for document in documents() {
        let folder = root().join(&document.path).parent().map(Path::to_path_buf).unwrap_or_default();
        let mut folders = vec![root(), root().join("crates"), root().join("examples"), folder];
        folders.extend(tidy::crates().iter().flat_map(|name| {
            let own = root().join("crates").join(name);
            [own.join("src"), own]
        }));
        let folders: Vec<&Path> = folders.iter().map(std::path::PathBuf::as_path).collect();
        let paths = code_spans(&document.text).into_iter().filter(|(_, span)| is_path(span));
        let unknown: Vec<_> = paths.filter(|(_, path)| !exists(path, &folders)).collect();
        assert!(unknown.is_empty(), "{} names files that do not exist, by line: {unknown:?}", document.path);
    }
}

#[test]
fn documents_and_comments_name_packages_that_exist() {
    let manifests = files(&root(), "Cargo.toml");
    // Its own, and those of its binaries.
    let names = |file: &File| file.text.split("\nname = \"").skip(1).map(first_word).collect::<Vec<_>>();
    let known: BTreeSet<String> = manifests.iter().flat_map(names).collect();
    for document in documents() {
        for package in packages(&document.text).filter(|package| !package.ends_with('-')) {
            assert!(known.contains(package), "{} names the package {package}, which does not exist", document.path);
        }
    }
    for source in files(&root().join("crates"), ".rs").into_iter().filter(|file| file.path.contains("/src/")) {
        for line in source.text.lines().filter(|line| line.trim_start().starts_with("//")) {
            for span in line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("weir-")) {
                let written = span.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
                assert!(!written || known.contains(span), "{} names the package {span}", source.path);
            }
        }
    }
}

fn first_word(text: &str) -> String {
    text.split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn architecture_names_identifiers_that_exist() {
    let mut known = BTreeSet::new();
    for source in files(&root().join("crates"), ".rs") {
        known.extend(source.path.split(['/', '.']).map(str::to_owned));
        let words = source.text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        known.extend(words.map(str::to_owned));
    }
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is in the root");
    // The chapter on frames specifies names that are not built yet.
    let built = text.split("\n## The frame: one design").next().unwrap_or_default();
    let spans = code_spans(built).into_iter().filter(|(_, span)| is_identifier(span));
    let unknown: Vec<_> = spans.filter(|(_, span)| span.split("::").any(|part| !known.contains(part))).collect();
    assert!(unknown.is_empty(), "ARCHITECTURE.md names identifiers that do not exist, by line: {unknown:?}");
}
