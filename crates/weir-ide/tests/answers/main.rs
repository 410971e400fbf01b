//! Tests of the language services. Each case is a small program in which `<|>` marks the cursor.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::fmt::Write as _;
use std::sync::Arc;

use test_support::fixture;
use weir_compile::{ModuleFile, ModuleFiles, ModulePlace};
use weir_ide::{CheckCache, Definition, Document, FileLocation, Position, RenameRefusal, apply};
use weir_syntax::Span;

mod actions;
mod completion;

const CURSOR: &str = "<|>";

/// Opens the text without the mark; returns the offset of the mark.
fn open(text: &str) -> (Document, u32) {
    let offset = text.find(CURSOR).expect("the case has a cursor") as u32;
    (document(&text.replace(CURSOR, "")), offset)
}

fn document(text: &str) -> Document {
    Document::new("case.weir", text, Arc::new(fixture::library()))
}

/// Returns the text of the span with its line and column.
fn shown(document: &Document, span: Span) -> String {
    let at = document.position(span.start);
    format!("{}:{} `{}`", at.line + 1, at.character + 1, &document.text()[span.range()])
}

/// Returns the Rust source from a location to the end of the name there.
fn rust_at(place: &FileLocation) -> String {
    let text = std::fs::read_to_string(&place.file).unwrap();
    let line = text.lines().nth(place.position.line as usize).unwrap();
    let rest = &line[place.position.character as usize..];
    rest[..rest.find('(').unwrap()].to_owned()
}

/// Removes the locations of Rust files, which differ between machines.
fn without_places(markdown: &str) -> String {
    match markdown.rsplit_once("\n\n[") {
        Some((text, place)) if place.contains(".rs:") => format!("{text}\n\n[a place in Rust]"),
        _ => markdown.to_owned(),
    }
}

const SHOP: &str = r#"use http, image

/// A thing that is sold.
record Article { name: Text, price: Int }

enum Kind { Small, Large(factor: Int) }

/// Pictures made before.
shared thumbnails = image.cache(capacity: 64mb)

/// The price of `article` as that kind.
fn price(article: Article, kind: Kind) -> Int {
  let factor = match kind {
    Small => 1
    Large(factor: n) => n
  }
  article.price * factor
}

service shop on http(port: 8080) {
  /// One article.
  get "/{name}/{large}" (name: Text, large: Bool = false) {
    let article = Article { name, price: 3 }
    let kind = if large { Large(2) } else { Small }
    let key = "{article.name}/{price(article, kind)}"
    match thumbnails.get(key) {
      Some(hit) => http.ok(hit)
      None => http.not_found()
    }
  }
}
"#;

/// Opens the shop with the cursor in the `count`-th `word`, counted from 0.
fn in_shop(word: &str, count: usize) -> (Document, u32) {
    let offset = SHOP.match_indices(word).nth(count).unwrap().0 as u32 + 1;
    (document(SHOP), offset)
}

#[test]
fn the_shop_is_right() {
    assert_eq!(document(SHOP).diagnostics(), []);
}

#[test]
fn hovers_show_signature_documentation_and_effects() {
    let mut out = String::new();
    let places = [
        ("Article", 0),
        ("price(article", 0),
        ("price(article", 1),
        ("kind", 3),
        ("thumbnails", 1),
        ("get(key", 0),
        ("cache", 0),
        ("http", 0),
        ("Large", 1),
        (".price", 0),
        ("name, price", 0),
        ("* factor", 0),
        ("64mb", 0),
        ("large {", 0),
    ];
    for (word, count) in places {
        let (document, offset) = in_shop(word, count);
        match document.hover(offset) {
            Some(hover) => {
                writeln!(out, "== {}\n{}\n", shown(&document, hover.span), without_places(&hover.markdown)).unwrap()
            }
            None => writeln!(out, "== {word}: nothing\n").unwrap(),
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn definitions_and_references_are_found() {
    let mut out = String::new();
    for (word, count) in
        [("factor", 3), ("article", 4), ("Small", 2), ("thumbnails", 1), ("Article", 2), ("cache", 0), ("name", 3)]
    {
        let (document, offset) = in_shop(word, count);
        let definition = match document.definition(offset) {
            Some(Definition::Here(span)) => shown(&document, span),
            Some(Definition::Library(path)) => format!("the library's {path}"),
            Some(Definition::Rust(place)) => format!("the Rust of `{}`", rust_at(&place)),
            None => "nothing".to_owned(),
        };
        let at = document.position(offset);
        writeln!(out, "{word} at {}:{} is declared at {definition}", at.line + 1, at.character).unwrap();
        for span in document.references(offset) {
            writeln!(out, "  {}", shown(&document, span)).unwrap();
        }
    }
    insta::assert_snapshot!(out);
}

/// Returns the lines of the shop that a rename changes.
fn renamed(word: &str, count: usize, new: &str) -> String {
    let (document, offset) = in_shop(word, count);
    let mut out = format!("== {word} to {new}\n");
    match document.rename(offset, new) {
        Err(refusal) => writeln!(out, "{refusal}").unwrap(),
        Ok(edits) => {
            let after = apply(SHOP, &edits);
            let changed = SHOP.lines().zip(after.lines()).filter(|(before, after)| before != after);
            changed.for_each(|(_, after)| writeln!(out, "{after}").unwrap());
        }
    }
    out
}

#[test]
fn renaming_changes_every_place_or_says_why_not() {
    let cases = [
        ("factor = match", 0, "times"),
        ("article: Article", 0, "thing"),
        ("name: Text, price", 0, "title"),
        ("name: Text, large", 0, "title"),
        ("Small", 0, "Tiny"),
        ("Kind", 0, "Sort"),
        ("price(article", 0, "cost"),
        ("thumbnails", 0, "cache"),
        ("shop", 0, "store"),
        ("key", 0, "kind"),
        ("key", 0, "match"),
        ("key", 0, "Key"),
        ("key", 0, "a b"),
        ("image", 1, "picture"),
        ("64mb", 0, "size"),
    ];
    insta::assert_snapshot!(cases.map(|(word, count, new)| renamed(word, count, new)).concat());
}

#[test]
fn what_cannot_be_renamed_says_so_at_once() {
    let (document, offset) = in_shop("http", 0);
    assert_eq!(document.prepare_rename(offset), Err(RenameRefusal::OfLibrary));
    let (document, offset) = in_shop("64mb", 0);
    assert_eq!(document.prepare_rename(offset), Err(RenameRefusal::NoName));
    let (document, offset) = in_shop("hit", 0);
    assert_eq!(document.prepare_rename(offset).map(|span| span.len()), Ok(3));
}

#[test]
fn a_hover_shows_a_statement_with_the_types_of_its_table() {
    let (document, offset) = open(
        "record User { name: Text, age: Int }\ntable users: User key name\nfn f() -> Bool { users.exi<|>sts(|u| u.age > 1) }",
    );
    let hover = document.hover(offset).unwrap();
    assert_eq!(shown(&document, hover.span), "3:24 `exists`");
    assert!(hover.markdown.contains("fn exists(condition: fn(User) -> Bool) -> Bool"), "{}", hover.markdown);
}

#[test]
fn public_tables_of_a_module_are_completed_found_and_described() {
    let module = "pub record User { name: Text }\npub table users: User key name\ntable hidden: User key name\n";
    let cases = [
        ("use store\nfn f() -> Int { store.<|> }\n", vec!["User", "users"]),
        ("use store\nfn f() -> Int { store.users.co<|>unt() }\n", vec!["count"]),
        (
            "use store\nrecord A { id: Int, of: Text }\ntable likes: A\n  key id\n  references of: <|>",
            vec!["likes", "store.users"],
        ),
    ];
    for (case, wanted) in cases {
        let (main, offset) = (case.replace("<|>", ""), case.find("<|>").unwrap() as u32);
        let mut files = OneModule(module);
        let (library, cache) = (Arc::new(fixture::library()), &mut CheckCache::default());
        let document = Document::of_program(("main.weir", main.into()), &mut files, |_| true, library, cache).unwrap();
        let mut found: Vec<String> = document.completions(offset).into_iter().map(|found| found.label).collect();
        found.sort();
        assert!(wanted.iter().all(|label| found.iter().any(|known| known == label)), "{case}: {found:?}");
        assert!(!found.iter().any(|label| label.contains("hidden")), "{case}: {found:?}");
    }
    let main = "use store\nrecord A { of: Text }\nfn f() -> Int { atomic store.users { store.users.count() } }\n\
                table likes: A key of references of: store.users\n";
    let mut files = OneModule(module);
    let (library, cache) = (Arc::new(fixture::library()), &mut CheckCache::default());
    let document = Document::of_program(("main.weir", main.into()), &mut files, |_| true, library, cache).unwrap();
    let hover = document.hover(main.find("users").unwrap() as u32).unwrap();
    assert_eq!(shown(&document, hover.span), "3:30 `users`");
    assert!(hover.markdown.contains("table store.users: store.User key name"), "{}", hover.markdown);
    let hover = document.hover(main.find("count").unwrap() as u32).unwrap();
    assert!(hover.markdown.contains("fn count("), "{}", hover.markdown);
    // The declaration, the step, the call and the reference.
    assert_eq!(document.references(main.find("users").unwrap() as u32).len(), 4);
    let edits = document.rename(main.rfind("users").unwrap() as u32, "people").unwrap();
    let replaced: Vec<&str> = edits.iter().map(|edit| edit.replacement.as_str()).collect();
    assert_eq!(replaced, ["people"; 4]);
}

/// The files of a program with the module `store`.
struct OneModule(&'static str);

impl ModuleFiles for OneModule {
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
        match place.names == ["store"] {
            true => ModuleFile::Found { name: "store.weir".to_owned(), text: self.0.to_owned() },
            false => ModuleFile::Missing,
        }
    }
}

#[test]
fn help_in_a_call_names_the_parameter() {
    let cases = [
        "use image\nfn f(p: image.Ppm) { image.scale(<|>) }",
        "use image\nfn f(p: image.Ppm) { image.scale(p, <|>) }",
        "use image\nfn f(p: image.Ppm) { p |> image.scale(<|>) }",
        "use image\nfn f(p: image.Ppm) { image.to_jpeg(p, quality: 8<|>5) }",
        "fn g(a: Int, b: List(Int)) -> Int { a }\nfn f() { g(1, g(2, <|>)) }",
        "fn f() { (1, <|>) }",
        "fn f(a: Int, parts: List(Text) = [\"a, \\\") b\", \"c\"], limit: Int = 2 * 3) {}\nfn g() { f(1, limit: <|>) }",
    ];
    let mut out = String::new();
    for case in cases {
        let (document, offset) = open(case);
        match document.call_help(offset) {
            Some(help) => {
                let active = help.active.and_then(|active| help.parameters.get(active));
                writeln!(out, "{case}\n  {}\n  at {active:?}", help.signature).unwrap();
            }
            None => writeln!(out, "{case}\n  nothing").unwrap(),
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn names_without_a_written_type_have_inlay_hints() {
    let text = "use image, http\n\nrecord Post { id: Int, title: Text }\n\n\
                fn all(posts: List(Post)) -> List(Int) {\n  let first = posts[0]\n  let known: Int = 1\n  let plain = 2\n  \
                let (a, _b) = (first.id, 1)\n  let Post { id, title: name } = first\n  let both = [(a, [name])]\n  \
                let many = (both, both, both, both)\n  for post in posts {\n    let double = post.id * 2\n    double + a + id\n  }\n}\n";
    let document = document(text);
    let all = Span::new(weir_syntax::SourceId(0), 0, text.len() as u32);
    let hints = document.inlay_hints(all);
    let mut shown = text.to_owned();
    for hint in hints.iter().rev() {
        let edit = if hint.edit.is_some() { "" } else { " (no edit)" };
        shown.insert_str(hint.offset as usize, &format!("«{}{edit}»", hint.label));
    }
    insta::assert_snapshot!(shown);
    let double = text.find("double").unwrap() as u32;
    assert_eq!(document.inlay_hints(Span::new(weir_syntax::SourceId(0), double, double + 8)).len(), 1);
}

#[test]
fn tests_are_code_lenses() {
    let document = document(
        "fn f() -> Int { 1 }\n\ntest \"one \\\"f\\\"\" { expect f() == 1 }\n\ntest \"two\" { expect f() == 1 }\n",
    );
    let lenses = document.test_lenses();
    let shown: Vec<String> =
        lenses.iter().map(|lens| format!("{} {}", lens.name, shown(&document, lens.span))).collect();
    assert_eq!(shown, ["one \"f\" 3:6 `\"one \\\"f\\\"\"`", "two 5:6 `\"two\"`"]);
}

#[test]
fn the_outline_names_items_and_what_stands_in_them() {
    let text = format!("{SHOP}\non failure of image.scale {{ return }}\ntest \"prices\" {{ expect true }}\n");
    let document = document(&text);
    let mut out = String::new();
    for symbol in document.outline() {
        writeln!(out, "{:?} {}", symbol.kind, symbol.name).unwrap();
        symbol.children.iter().for_each(|child| writeln!(out, "  {:?} {}", child.kind, child.name).unwrap());
        assert!(symbol.span.contains(symbol.name_span));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn formatting_is_one_small_edit() {
    let text = "fn f() {  1 }\n\nfn g() { 2 }\n";
    let document = document(text);
    let edits = document.formatting();
    assert_eq!(apply(text, &edits), "fn f() { 1 }\n\nfn g() { 2 }\n");
    assert_eq!(edits[0].span.len(), 1);
    assert_eq!(document_formatting("fn f() { 1 }\n"), 0);
    assert_eq!(document_formatting("fn f( { 1 }\n"), 0);
}

fn document_formatting(text: &str) -> usize {
    document(text).formatting().len()
}

#[test]
fn places_are_counted_as_editors_count() {
    let document = document("// é😀x\nfn f() { }\n");
    let at = |line, character| Position { line, character };
    for (offset, position) in
        [(0, at(0, 0)), (5, at(0, 4)), (9, at(0, 6)), (10, at(0, 7)), (11, at(1, 0)), (22, at(2, 0))]
    {
        assert_eq!(document.position(offset), position, "{offset}");
        assert_eq!(document.offset(position), offset, "{position:?}");
    }
    assert_eq!(document.offset(at(0, 5)), 5, "within a character");
    assert_eq!(document.offset(at(0, 99)), 10, "behind the line");
    assert_eq!(document.offset(at(99, 0)), 22, "behind the text");
}

#[test]
fn a_text_that_is_no_text_is_an_empty_document_with_a_diagnostic() {
    let document = Document::new("latin.weir", b"// caf\xe9".to_vec(), Arc::new(fixture::library()));
    assert_eq!(document.text(), "");
    assert_eq!(document.diagnostics().len(), 1);
}

#[test]
fn no_place_in_any_broken_text_makes_an_answer_fail() {
    let texts = [
        SHOP,
        "fn f(",
        "use ",
        "\"{",
        "fn f() { a. }",
        "record P { a: ",
        "match",
        "é.é(é",
        "fn f() { x |> }",
        "shared s = ",
    ];
    for text in texts {
        for (cut, _) in text.char_indices().step_by(7) {
            let document = document(&text[..cut]);
            for offset in (0..=cut as u32).filter(|offset| text.is_char_boundary(*offset as usize)).step_by(5) {
                let _ = (document.hover(offset), document.definition(offset), document.references(offset));
                let _ = (document.completions(offset), document.call_help(offset), document.prepare_rename(offset));
            }
            let _ = (document.outline(), document.formatting());
        }
    }
}
