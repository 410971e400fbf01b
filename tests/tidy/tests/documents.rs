//! Laws of documents: they name no file, package or identifier that does not exist.

use std::collections::BTreeSet;
use std::path::Path;

use tidy::documents::{exists, links, packages};
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
fn documents_and_comments_name_packages_that_exist() {
    let manifests = files(&root(), "Cargo.toml");
    let name = |file: &File| Some(file.text.split("name = \"").nth(1)?.split('"').next()?.to_owned());
    let known: BTreeSet<String> = manifests.iter().filter_map(name).collect();
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
