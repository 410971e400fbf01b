//! Laws of names: the concepts of the field have their standard names.

use tidy::concepts::{CONCEPTS, missing};
use tidy::{File, files, root};

/// The sources of all crates.
fn sources() -> Vec<File> {
    files(&root().join("crates"), ".rs").into_iter().filter(|file| file.path.contains("/src/")).collect()
}

#[test]
fn concepts_of_the_field_have_their_standard_names() {
    let missing = missing(CONCEPTS, &sources()).expect("sources are made of tokens");
    assert!(missing.is_empty(), "no file name, type name or caption has {missing:?}");
}
