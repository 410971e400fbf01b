//! Laws of names and sentences: a type name means one thing, concepts of the field have their standard names, and a
//! documentation comment opens with the thing that it describes.

use std::collections::BTreeMap;

use tidy::concepts::{CONCEPTS, missing};
use tidy::{File, comments, files, root, source, type_names};

/// Type names that several files declare, each with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[
    // The syntax of something, and the thing itself one layer below, as in `ast::Type` and `weir_host::Type`.
    ("Argument", "syntax of an argument; the argument of a call of a host function"),
    ("Arm", "syntax of an arm; the arm in the expression IR"),
    ("Block", "syntax of a block; the block in the expression IR"),
    ("Constraint", "syntax of a declared constraint; the constraint in the IR"),
    ("Entry", "syntax of an entry point; the entry point in the IR"),
    ("Function", "syntax of a `fn`; a host function"),
    ("Let", "syntax of a `let`; the binding in the expression IR"),
    ("Parameter", "syntax of a parameter; that of a host function, and its syntax in Rust that the macro reads"),
    ("Route", "syntax of a route; the route that a source gets"),
    ("RouteParameter", "syntax of a route's parameter; that in the IR, and that which a source gets"),
    ("Shared", "syntax of a shared value; the shared value of the host contract"),
    ("Type", "syntax of a type; the type of the host contract"),
    ("Variant", "syntax of a variant; the variant of a type of the host contract"),
    // The same thing in two crates that must not know each other, or in two representations.
    ("Call", "a call of a host function; the operation of the expression IR that makes it"),
    (
        "Passing",
        "the passing mode of a parameter; the macro reads it from Rust, and may not depend on the host contract",
    ),
    ("Program", "a program, generic over the body; its two instances, `expr::Program` and `graph::Program`"),
];

/// The sources of all crates.
fn sources() -> Vec<File> {
    files(&root().join("crates"), ".rs").into_iter().filter(|file| file.path.contains("/src/")).collect()
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
