//! The symbol index: the symbol at a place, its definition, its references and its type.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::fmt::Write as _;

use test_support::fixture;
use weir_compile::{Checked, Symbol};
use weir_syntax::{SourceFile, SourceId};

const TEXT: &str = r#"use http, image, files

/// A picture's name and size.
record Picture { name: Text, size: Int }

enum Choice { Whole, Part(eighths: Int) }

/// Compressed images.
shared thumbnails = image.cache(capacity: 64mb)

/// Loads a picture and makes it smaller.
fn small(picture: Picture, choice: Choice) -> Bytes {
  let eighths = match choice {
    Whole => 8
    Part(eighths: n) => n
  }
  let data = files.read(picture.name)?
  let scaled = image.decode(data)? |> image.scale(eighths)?
  thumbnails.put(picture.name, data)
  image.to_jpeg(scaled)?
}

service images on http(port: 8080) {
  get "/{name}" (name: Text) {
    http.ok(small(Picture { name, size: 1 }, Part(4)))
  }
}
"#;

fn checked() -> Checked {
    let checked = weir_compile::check(SourceId(0), &SourceFile::new("case.weir", TEXT), &fixture::library());
    assert_eq!(checked.diagnostics, []);
    checked
}

/// Returns the offset inside the `count`-th occurrence of `word`, counted from 0.
fn place(word: &str, count: usize) -> u32 {
    TEXT.match_indices(word).nth(count).unwrap().0 as u32 + 1
}

#[test]
fn every_name_of_a_program_is_known_and_described() {
    let checked = checked();
    let library = fixture::library();
    let mut references: Vec<_> = checked.references().cloned().collect();
    references.sort_by_key(|found| (found.span.start, found.span.end));
    let mut shown = String::new();
    for found in references {
        let described = checked.describe(&found.symbol, &library);
        let said = described.map_or("?".to_owned(), |said| {
            let effects = said.effects.map_or_else(String::new, |effects| format!(" — {effects}"));
            format!("{}{effects}", said.signature)
        });
        let defines = if found.defines { "declares " } else { "" };
        _ = writeln!(shown, "{}: {defines}{said}", &TEXT[found.span.range()]);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_name_is_found_from_any_of_its_places() {
    let checked = checked();
    let of_use = checked.reference_at(place("picture.name", 0)).unwrap();
    assert_eq!(checked.definition_of(&of_use.symbol).unwrap().start, TEXT.find("picture: Picture").unwrap() as u32);
    assert_eq!(checked.references_to(&of_use.symbol).count(), 3);
    let field = checked.reference_at(place(".name", 0)).unwrap();
    assert_eq!(field.symbol, Symbol::Field("Picture".into(), "name".into()));
    let function = checked.reference_at(place("small", 1)).unwrap();
    assert_eq!(function.symbol, Symbol::Function("small".into()));
}

#[test]
fn the_type_of_a_place_is_that_of_its_narrowest_expression() {
    let checked = checked();
    let (span, ty) = checked.type_at(place("files.read(", 0) + 6).unwrap();
    assert_eq!((&TEXT[span.range()], ty.as_str()), ("files.read(picture.name)", "Result(Bytes, Failure)"));
}

#[test]
fn the_locals_of_a_place_are_those_before_it() {
    let checked = checked();
    let names = checked.locals_at(place("image.decode", 0));
    let names: Vec<_> = names.iter().map(|local| format!("{}: {}", local.name, local.ty)).collect();
    assert_eq!(names, ["data: Bytes", "eighths: Int", "n: Int", "choice: Choice", "picture: Picture"]);
}
