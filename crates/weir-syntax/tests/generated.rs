//! Laws on generated and on damaged programs.
//!
//! Law 1: parsing a printed tree returns the same tree.
//! Law 2: formatting preserves the tree and the comments, and formatting twice is the same as formatting once.
//! Law 3: no text makes the parser, the formatter or the rendering of diagnostics panic.
//!
//! `WEIR_FUZZ_CASES` sets the number of programs for each law, `WEIR_FUZZ_SEED` the first seed. A failure names its
//! seed, and the same seed generates the same program.

use test_support::generator::Generator;
use weir_syntax::ast::outline;
use weir_syntax::{Diagnostic, SourceFile, SourceId, Sources, Style, format, parse, print, render, render_json};

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn seeds() -> impl Iterator<Item = u64> {
    let first = number("WEIR_FUZZ_SEED", 1);
    first..first + number("WEIR_FUZZ_CASES", 400)
}

/// Fails with the first lines that differ.
#[track_caller]
fn assert_same(seed: u64, left: &str, right: &str, context: &str) {
    let mut lines = left.lines().zip(right.lines()).enumerate();
    if let Some((at, _)) = lines.find(|(_, (left, right))| left != right) {
        let around = |text: &str| text.lines().skip(at.saturating_sub(6)).take(12).collect::<Vec<_>>().join("\n");
        panic!("seed {seed}, line {}: {context}\n{}\n--- is not\n{}", at + 1, around(left), around(right));
    }
    assert_eq!(left.len(), right.len(), "seed {seed}: {context}");
}

/// Returns true if the text is valid, and then checks law 2 on it.
fn check_format(seed: u64, text: &str) -> bool {
    let before = parse(SourceId(0), text);
    let Some(once) = format(text, &before) else { return false };
    let after = parse(SourceId(0), &once);
    let context = || std::format!("seed {seed}\n{text}\n--- became\n{once}");
    assert!(!after.diagnostics.iter().any(Diagnostic::is_error), "{:?} {}", after.diagnostics, context());
    assert_same(seed, &outline(&before.tree), &outline(&after.tree), "formatting keeps the tree");
    assert_eq!(before.comments.len(), after.comments.len(), "{}", context());
    let twice = format(&once, &after).expect("it is right");
    assert_same(seed, &once, &twice, "formatting twice is formatting once");
    true
}

#[test]
fn a_printed_tree_is_parsed_back() {
    for seed in seeds() {
        let tree = Generator::new(seed).tree();
        let text = print(&tree);
        let parsed = parse(SourceId(0), &text);
        assert_eq!(parsed.diagnostics, [], "seed {seed}\n{text}");
        assert_same(seed, &outline(&tree), &outline(&parsed.tree), "what is printed is parsed back");
        let again = format(&text, &parsed).expect("it is right");
        assert_same(seed, &text, &again, "what is printed is formatted");
    }
}

#[test]
fn formatting_a_program_with_comments_and_odd_lines_keeps_its_meaning() {
    let mut right = 0;
    for seed in seeds() {
        let mut generator = Generator::new(seed);
        let text = generator.disarranged(&print(&generator.clone().tree()));
        right += u64::from(check_format(seed, &text));
    }
    assert!(right > 0, "no disarranged program was right");
}

#[test]
fn no_damage_makes_anything_fail() {
    for seed in seeds() {
        let mut generator = Generator::new(seed);
        let text = match generator.below(3) {
            0 => SEEDS[generator.below(SEEDS.len())].to_owned(),
            _ => print(&generator.clone().tree()),
        };
        let damaged = generator.damaged(&text);
        check_format(seed, &damaged);
        draw_all(&damaged);
    }
}

/// Texts with every construct, valid and invalid.
const SEEDS: &[&str] = &[
    include_str!("suite/control.weir"),
    include_str!("suite/comments.weir"),
    include_str!("suite/expressions.weir"),
    include_str!("suite/faults.weir"),
    include_str!("suite/items.weir"),
    include_str!("suite/patterns.weir"),
    include_str!("suite/services.weir"),
    include_str!("suite/texts.weir"),
    include_str!("format/comments.weir"),
    include_str!("format/spacing.weir"),
];

fn draw_all(text: &str) {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("damaged.weir", text));
    for diagnostic in parse(source, text).diagnostics {
        assert!(diagnostic.span().is_some(), "{diagnostic:?} has no place");
        assert!(!render(&sources, &diagnostic, Style::Plain).is_empty());
        assert!(!render_json(&sources, &diagnostic).contains('\n'));
    }
}
