//! Texts that would break a naive parser: parsing stays fast, keeps its stack, and reports the errors.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_syntax::{Code, Parsed, SourceFile, SourceId, Sources, Style, parse, render};

/// Limit of processor time, far above the need of these texts in a debug build. A busy machine does not affect it.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it begins at zero")
}

fn parse_in_time(text: &str) -> Parsed {
    let before = processor_time();
    let parsed = parse(SourceId(0), text);
    let took = processor_time() - before;
    assert!(took < TIME_MAX, "parsing took {took:?}");
    parsed
}

fn assert_too_deep(text: &str) {
    let parsed = parse_in_time(text);
    let deep = parsed.diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::NestingTooDeep);
    assert_eq!(deep.count(), 1, "{:?}", &parsed.diagnostics[..parsed.diagnostics.len().min(3)]);
}

fn nested(open: &str, core: &str, close: &str) -> String {
    let depth = 100_000;
    format!("fn f() {{ {}{core}{} }}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn anything_may_be_nested_too_deep() {
    let cases = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{", "1", "}"),
        ("-", "x", ""),
        ("!", "x", ""),
        ("f(", "1", ")"),
        ("1 + ", "1", ""),
        ("1 + (", "1", ")"),
        ("", "x", ".y"),
        ("", "x", "?"),
        ("", "x", "()"),
        ("", "x", "[0]"),
        ("", "x", " |> f"),
        ("", "x", " else y"),
        ("", "x", " within 1s"),
        ("|x| ", "1", ""),
        ("return ", "1", ""),
        ("if a { ", "1", " }"),
        ("if a { } else ", "{ }", ""),
        ("match x { _ => ", "1", " }"),
        ("for x in y { ", "1", " }"),
        ("atomic a { ", "1", " }"),
        ("race { ", "1", " }"),
        ("with a = ", "1", " { }"),
        ("P { a: ", "1", " }"),
        ("let x = y else { ", "1", " }"),
        ("fn g() { ", "1", " }"),
        ("on failure of f { ", "1", " }"),
    ];
    for (open, core, close) in cases {
        assert_too_deep(&nested(open, core, close));
    }
}

#[test]
fn types_and_patterns_may_be_nested_too_deep() {
    let deep = |open: &str, core: &str, close: &str| format!("{}{core}{}", open.repeat(100_000), close.repeat(100_000));
    for ty in [deep("List(", "Int", ")"), deep("(", "Int", ", Int)"), deep("fn() -> ", "Int", "")] {
        assert_too_deep(&format!("fn f(x: {ty}) {{ x }}"));
    }
    for pattern in [deep("Some(", "x", ")"), deep("[", "x", "]"), deep("(", "x", ", y)"), deep("P { a: ", "x", " }")] {
        assert_too_deep(&format!("fn f() {{ match x {{ {pattern} => 1 }} }}"));
    }
}

#[test]
fn interpolations_may_be_nested_too_deep() {
    assert_too_deep(&nested("\"{", "1", "}\""));
}

#[test]
fn brackets_that_are_never_closed_are_bounded() {
    for text in ["(", "[", "{", "\"{", "(}", "[)", "{)", ")", "f(\n", "\"\n"] {
        let parsed = parse_in_time(&format!("fn f() {{ {}", text.repeat(100_000)));
        assert!(!parsed.diagnostics.is_empty());
    }
}

#[test]
fn a_line_of_ten_megabytes_is_read_and_its_drawing_is_short() {
    let long = format!("fn f() {{ let x = {}1 € }}", "1 + ".repeat(2_500_000));
    let text = parse_in_time(&long);
    assert!(!text.diagnostics.is_empty());
    let mut sources = Sources::new();
    sources.add(SourceFile::new("long.weir", long));
    for diagnostic in &text.diagnostics {
        assert!(render(&sources, diagnostic, Style::Plain).len() < 3_000);
    }
}

#[test]
fn a_text_of_ten_megabytes_is_one_token() {
    let parsed = parse_in_time(&format!("fn f() {{ \"{}\" }}", "a".repeat(10_000_000)));
    assert_eq!(parsed.diagnostics, []);
}

#[test]
fn files_of_nothing_sensible_have_few_diagnostics() {
    for noise in ["€ ", "\\ ", "0x ", "let ", "} ", ", ", "fn ", "\"\\q\" ", "|> ", "1..2 "] {
        let parsed = parse_in_time(&noise.repeat(100_000));
        assert!(parsed.diagnostics.len() <= 1_500, "{noise}: {}", parsed.diagnostics.len());
    }
}

#[test]
fn a_long_chain_of_else_if_is_advised_to_be_a_match() {
    let chain: String = (0..200).map(|n| format!("if n == {n} {{ {n} }} else ")).collect();
    let text = format!("fn f(n: Int) -> Int {{ {chain}{{ 0 }} }}");
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("chain.weir", text.as_str()));
    let parsed = parse(source, &text);
    let deep =
        parsed.diagnostics.iter().find(|diagnostic| diagnostic.code == Code::NestingTooDeep).expect("it is too long");
    let shown = render(&sources, deep, Style::Plain);
    assert!(shown.contains("write a `match`"), "{shown}");
    assert_eq!(parsed.diagnostics.len(), 1, "{:?}", parsed.diagnostics);
}
