//! The suite: small programs with their trees, and errors with their messages.
//!
//! Each file in `tests/suite` holds cases, which begin with a line `=== name`. A snapshot holds the text of each case,
//! followed by the outline of its tree or by its diagnostics.

use std::fmt::Write as _;
use weir_syntax::ast::outline;
use weir_syntax::{SourceFile, Sources, Style, codes, parse, render};

fn cases(suite: &str) -> Vec<(&str, &str)> {
    let parts = suite.split("=== ").skip(1);
    parts.map(|part| part.split_once('\n').expect("a case has a name and a text")).collect()
}

/// Returns the outline of the tree if the text is valid, otherwise its diagnostics.
fn outcome(text: &str) -> String {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("case.weir", text));
    let parsed = parse(source, text);
    if parsed.diagnostics.is_empty() {
        return outline(&parsed.tree);
    }
    let drawings = parsed.diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, Style::Plain));
    drawings.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn snapshot(suite: &str) -> String {
    let mut out = String::new();
    for (name, text) in cases(suite) {
        let text = text.trim_end();
        _ = writeln!(out, "=== {name}\n{text}\n---\n{}", outcome(text));
    }
    out
}

macro_rules! suite {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let suite = include_str!(concat!("suite/", stringify!($name), ".weir"));
            insta::assert_snapshot!(snapshot(suite));
        }
    )*};
}

suite! { items services expressions control patterns types texts comments lines faults recovery }

/// Returns the two programs of a code's page: the wrong one and the fixed one.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```weir\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn every_syntax_code_has_a_page_whose_wrong_example_is_wrong_and_whose_mended_one_is_right() {
    let mut drawings = String::new();
    for code in codes::ALL.iter().filter(|code| code.id().starts_with("E01")) {
        assert!(code.page().starts_with("# "), "{code} has no title");
        let [wrong, mended] = examples(code.page())[..] else { panic!("{code} has not two examples") };
        let parsed = parse(weir_syntax::SourceId(0), mended);
        assert_eq!(parsed.diagnostics, [], "the mended example of {code}");
        if cannot_be_shown(*code) {
            continue;
        }
        assert!(outcome(wrong).contains(&format!("error[{code}]")), "the wrong example of {code}: {}", outcome(wrong));
        _ = writeln!(drawings, "=== {code} {}\n{}", code.title(), outcome(wrong));
    }
    insta::assert_snapshot!("every_code", drawings);
}

/// Sources that a page cannot contain: too long, not text, or invisible.
fn cannot_be_shown(code: weir_syntax::Code) -> bool {
    matches!(code, weir_syntax::Code::SourceTooLong | weir_syntax::Code::NotUtf8 | weir_syntax::Code::TextDirection)
}

#[test]
fn characters_that_turn_the_text_are_reported_in_texts_and_comments_and_code() {
    let text = "use text // a\u{2066}b\nfn f(a: Int) -> Text {\n  let b = \"x\u{202e}{a}\u{2069}\"\n  b \u{202d}\n}\n\
                fn g() -> Text { \"\"\"\n  \u{202b}{f(1)} \u{200f}\n  \"\"\" }\n";
    insta::assert_snapshot!(outcome(text));
}

#[test]
fn bytes_that_are_no_text_are_reported_with_their_place() {
    let mut sources = Sources::new();
    let (_, latin) = sources.add_bytes("latin.weir", b"use http\n// caf\xe9\n".to_vec());
    let (_, long) = sources.add_bytes("long.weir", vec![b' '; weir_syntax::SOURCE_BYTES_MAX + 1]);
    let drawings = [latin, long].map(|found| render(&sources, &found.expect("it is refused"), Style::Plain));
    insta::assert_snapshot!(drawings.join("\n\n"));
}

#[test]
fn codes_are_found_by_their_id_and_have_their_severity() {
    for code in codes::ALL {
        assert_eq!(weir_syntax::Code::from_id(&code.id().to_lowercase()), Some(*code));
        assert_eq!(weir_syntax::Code::from_id(&code.id()[1..]), Some(*code));
        assert_eq!(code.severity() == weir_syntax::Severity::Warning, code.id().starts_with('W'));
    }
    let mut ids: Vec<_> = codes::ALL.iter().map(|code| code.id()).collect();
    ids.sort_by_key(|id| id[1..].to_owned());
    assert_eq!(ids, codes::ALL.iter().map(|code| code.id()).collect::<Vec<_>>(), "the list is in order");
}

#[test]
fn a_diagnostic_is_one_line_of_json() {
    let text = "fn f() {\n  let a = \"x\n}";
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("case.weir", text));
    let lines: Vec<String> = parse(source, text)
        .diagnostics
        .iter()
        .map(|diagnostic| weir_syntax::render_json(&sources, diagnostic))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_coloured_drawing_has_the_same_words() {
    let text = "fn f() { 1 < 2 < 3 }";
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("case.weir", text));
    let found = &parse(source, text).diagnostics[0];
    let coloured = render(&sources, found, Style::Colour);
    assert!(coloured.contains('\x1b'));
    let mut words = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        words.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    words.push_str(rest);
    assert_eq!(words, render(&sources, found, Style::Plain));
}
