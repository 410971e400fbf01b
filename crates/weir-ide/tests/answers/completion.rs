//! Completions at a cursor.

use std::fmt::Write as _;
use std::sync::Arc;

use test_support::fixture;
use weir_ide::{CheckCache, Document, apply};

use super::{OneModule, open};

/// Returns the completions at the cursor, one per line.
fn completed(text: &str) -> String {
    let (document, offset) = open(text);
    let mut out = String::new();
    for found in document.completions(offset) {
        let also: Vec<&str> = found.also.iter().map(|edit| edit.replacement.trim()).collect();
        let also = if also.is_empty() { String::new() } else { format!(" (adds `{}`)", also.join("")) };
        writeln!(out, "{:?} {}: {}{also}", found.kind, found.label, found.detail).unwrap();
    }
    out
}

#[test]
fn completions_fit_the_place() {
    let cases = [
        "use http, <|>",
        "<|>",
        "use http\nfn f() { http.<|> }",
        "use http\nfn f() { http.no<|>\n}",
        "use http\nfn f() { image.<|> }",
        "use image\nshared cache = image.cache(capacity: 1mb)\nfn f() { cache.<|> }",
        "shared hits: List(Int) = [] per session\nfn f() { hits.<|> }",
        "record Post { id: Int, /// Its title.\n title: Text }\nfn f(post: Post) -> Text { post.ti<|> }",
        "record Post { id: Int }\nfn f(posts: List(Post)) { for post in posts { post.<|> } }",
        "enum Shape { Circle(radius: Float), Empty }\nfn f() -> Shape { Shape.<|> }",
        "fn f(name: Text) -> Int { \"{name.<|>}\".length() }",
        "use image\nrecord Post { id: <|> }",
        "fn f() -> <|>",
        "fn f(a: <|>) { }",
        "use image\n/// Twice.\nfn twice(n: Int) -> Int { n + n }\nfn f(count: Int) -> Int {\n  let half = count / 2\n  <|>\n}",
        "fn f() { \"a <|> b\" }",
        "fn f() { 1 } // a <|>",
        "use files\nconstraint disk o<|>\nfn f() { 1 }",
        "use files\nconstraint disk on files.read, <|>",
        "use files\nconstraint disk on read files.<|>",
        "use files\nconstraint disk on files\nfn f() { atomic di<|> }",
        "record User { name: Text, age: Int }\ntable users: User key name\nfn f() { users.<|> }",
        "record User { name: Text, age: Int }\ntable users: <|>",
        "record User { name: Text, age: Int }\ntable users: User <|>",
        "record User { name: Text, age: Int }\ntable users: User key <|>",
        "record User { name: Text, age: Int }\ntable users: User key id a<|>",
        "record User { name: Text, age: Int }\ntable users: User\n  key name\n  index (name, <|>)",
        "record User { name: Text, age: Int }\ntable users: User key name soft(<|>)",
        "record User { name: Text, age: Int }\ntable users: User key name unique <|>",
        "record User { name: Text, age: Int }\ntable users: User key name default(<|>)",
        "record User { name: Text, age: Int }\ntable users: User key name default(age: <|>)",
        "record User { name: Text, age: Int }\ntable users: User key name existing(<|>)",
        "config crm: Text\nconfig size: Int\nconst file = \"crm.db\"\nsecret token: Text\nrecord User { name: Text }\n\
         table users: User key name existing(database: <|>)",
        "config crm: Text\nrecord User { name: Text }\n\
         table users: User key name existing(database: crm, w<|>)",
        "config crm: Text\nrecord User { name: Text }\n\
         table users: User key name existing(database: crm, writable: <|>)",
        "record User { name: Text }\ntable users: User key name\ntable posts: User key name references name: <|>",
        "record User { name: Text }\ntable users: User key name migrate User: <|>\nfn f(old: User) -> User { old }",
        "record User { name: Text }\ntable users: User key name migrate User: f b<|>\nfn f(old: User) -> User { old }",
        "record User { name: Text }\ntable users: User key name\n<|>",
        "record User { name: Text }\ntable users: User key name\nfn f() { for u in users or<|> { u } }",
        "record User { name: Text }\ntable users: User key name\nfn f() { for u in users order by u.name de<|> { u } }",
        "use http\nservice s on http(port: 1) {\n  get \"/\" { http.text(\"\") }\n  <|>\n}",
    ];
    let mut out = String::new();
    for case in cases {
        writeln!(out, "== {case}\n{}", completed(case)).unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn a_completion_replaces_the_word_that_is_there() {
    let (document, offset) = open("use http\nfn f() { http.not<|> }");
    let found = document.completions(offset);
    let not_found = found.iter().find(|found| found.label == "not_found").unwrap();
    assert_eq!(&document.text()[not_found.span.range()], "not");
}

#[test]
fn a_module_that_is_not_used_yet_is_added() {
    for text in ["//! About.\nfn f() { im<|> }", "fn f() { im<|> }", "use http\nfn f() { im<|> }"] {
        let (document, offset) = open(text);
        let found = document.completions(offset);
        let image = found.iter().find(|found| found.label == "image").unwrap();
        let after = apply(document.text(), &image.also);
        assert!(document_uses(&after, "image"), "{after}");
    }
}

#[test]
fn behind_pub_are_the_items_that_can_be_public() {
    let (document, offset) = open("use http\n\npub con<|>\n");
    let found: Vec<String> = document.completions(offset).into_iter().map(|found| found.label).collect();
    assert_eq!(found, ["const", "constraint"]);
}

#[test]
fn public_constants_constraints_and_types_of_a_module_are_completed() {
    let module = "pub const limit = 3\npub constraint disk\npub type Name = Text\nconstraint hidden\n";
    let main = "use store\nfn f() { atomic store.d { } }\n";
    let offset = main.find(".d").unwrap() as u32 + 1;
    let mut files = OneModule(module);
    let (library, cache) = (Arc::new(fixture::library()), &mut CheckCache::default());
    let document = Document::of_program(("main.weir", main.into()), &mut files, |_| true, library, cache).unwrap();
    let mut found: Vec<String> = document.completions(offset).into_iter().map(|found| found.label).collect();
    found.sort();
    assert_eq!(found, ["Name", "disk", "limit"]);
}

fn document_uses(text: &str, module: &str) -> bool {
    let first = text.lines().find(|line| line.starts_with("use "));
    first.is_some_and(|line| line.contains(module))
}
