//! Laws of names: of types, and of the concepts of the field; and of the sentences that explain them.

use std::collections::BTreeMap;

use tidy::concepts::{CONCEPTS, missing};
use tidy::{File, comments, files, root, source, type_names};

/// Type names that several files declare, each with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("Argument", "syntax of an argument, and a call's argument at run time"),
    ("Arm", "syntax of an arm, and the same in the expression IR"),
    ("Block", "syntax of a block, and the same in the expression IR"),
];

/// The sources of all crates.
fn sources() -> Vec<File> {
    files(&root().join("crates"), ".rs").into_iter().filter(|file| file.path.contains("/src/")).collect()
}

#[test]
fn a_type_name_means_one_thing() {
    let declarations = type_names::declarations(&sources()).expect("sources are made of tokens");
    let reasons: BTreeMap<&str, &str> = SHARED_NAMES.iter().copied().collect();
    let several: Vec<_> = declarations.iter().filter(|(_, files)| files.len() > 1).collect();
    let unknown: Vec<_> = several.iter().filter(|(name, _)| !reasons.contains_key(name.as_str())).collect();
    assert!(unknown.is_empty(), "several files declare the same type name: {unknown:#?}");
    for name in reasons.keys() {
        assert!(several.iter().any(|(known, _)| known == name), "no two files declare `{name}`: take its row out");
    }
}

#[test]
fn concepts_of_the_field_have_their_standard_names() {
    let missing = missing(CONCEPTS, &sources()).expect("sources are made of tokens");
    assert!(missing.is_empty(), "no file name, type name or caption has {missing:?}");
}

#[test]
fn no_documentation_comment_opens_with_an_interrogative() {
    let mut found = Vec::new();
    for folder in ["crates", "benches", "examples", "tests"] {
        for file in files(&root().join(folder), ".rs") {
            let comments = source::scan(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path)).comments;
            let wrong = comments.into_iter().filter(|comment| comments::interrogative(&comment.text).is_some());
            found.extend(wrong.map(|comment| format!("{}:{}: {}", file.path, comment.line, comment.text)));
        }
    }
    assert!(found.is_empty(), "comments that open with an interrogative:\n{}", found.join("\n"));
}
