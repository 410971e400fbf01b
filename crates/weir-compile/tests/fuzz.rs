//! Fuzzing of the front end: generated, damaged and mutated texts go through all of it.
//!
//! 1. No text makes the parser, the formatter, the checker, the lowering or the rendering of a diagnostic panic, and
//!    lowered programs pass the verifier (in debug builds).
//! 2. A generated tree that is printed and parsed is the same tree.
//! 3. Formatting keeps the meaning: the tree and the diagnostics are the same, and the lowered program is the same
//!    except for its source locations. Formatting twice changes nothing more.
//!
//! `WEIR_FUZZ_INPUTS` sets the number of texts, `WEIR_FUZZ_SEED` the first seed, and `WEIR_FUZZ_THREADS` the number of
//! threads. A failure names its seed and prints its text.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at what it did not expect, and says what it did"
)]

mod corpus;
mod mutator;

use std::panic::{AssertUnwindSafe, catch_unwind};

use corpus::Corpus;
use mutator::Numbers;
use test_support::generator::Generator;
use weir_compile::Compiled;
use weir_host::Library;
use weir_syntax::ast::outline;
use weir_syntax::{Code, Diagnostic, Parsed, SourceFile, SourceId, Sources, Style};
use weir_syntax::{format, parse, print, render, render_json};

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Texts of every kind, each from its seed.
struct Inputs<'c> {
    corpora: [&'c Corpus; 2],
    pieces: [Vec<Vec<&'c str>>; 2],
}

impl<'c> Inputs<'c> {
    fn new(corpora: [&'c Corpus; 2]) -> Self {
        let pieces = corpora.map(|corpus| corpus.texts.iter().map(|text| mutator::pieces(text)).collect());
        Inputs { corpora, pieces }
    }

    /// Returns the text of a seed, and the library that it uses.
    fn input(&self, seed: u64) -> (String, &'c Library) {
        let mut generator = Generator::new(seed);
        let of_documentation = usize::from(seed / 16 % 2 == 1);
        let corpus = self.corpora[of_documentation];
        let text = match seed % 16 {
            0 => printed(seed, &mut generator),
            1 => {
                let text = print(&generator.clone().tree());
                generator.disarranged(&text)
            }
            2 => {
                let text = print(&generator.clone().tree());
                generator.damaged(&text)
            }
            3..=5 => {
                let text = corpus.texts[generator.below(corpus.texts.len())].clone();
                generator.damaged(&text)
            }
            _ => mutator::mutated(&self.pieces[of_documentation], &mut Numbers::new(seed)),
        };
        (text, &corpus.library)
    }
}

/// Prints a generated tree; checks law 2.
fn printed(seed: u64, generator: &mut Generator) -> String {
    let tree = generator.tree();
    let text = print(&tree);
    let parsed = parse(SourceId(0), &text);
    assert_eq!(parsed.diagnostics, [], "seed {seed}: what is printed is right\n{text}");
    assert!(outline(&tree) == outline(&parsed.tree), "seed {seed}: what is printed is parsed back\n{text}");
    text
}

fn compile(text: &str, library: &Library) -> Compiled {
    weir_compile::compile(SourceId(0), &SourceFile::new("case.weir", text), library)
}

/// The number of inputs by the phase that they reached, and the seeds that failed.
#[derive(Default)]
struct Reached {
    formatted: u64,
    lowered: u64,
    failed: Vec<u64>,
}

fn try_text(text: &str, library: &Library, reached: &mut Reached) {
    let parsed = parse(SourceId(0), text);
    let compiled = compile(text, library);
    draw(text, &compiled.diagnostics);
    reached.lowered += u64::from(compiled.expr.is_some());
    let Some(once) = format(text, &parsed) else { return };
    reached.formatted += 1;
    same_tree(&parsed, &once);
    let again = compile(&once, library);
    assert_eq!(said(&compiled), said(&again), "the same is said of what is formatted\n{once}");
    assert_eq!(lowered(&compiled), lowered(&again), "what is formatted is lowered to the same\n{once}");
}

/// The most diagnostics of one text that are rendered: damaged brackets may cause hundreds.
const DRAWN_MAX: usize = 4;

fn draw(text: &str, diagnostics: &[Diagnostic]) {
    let mut sources = Sources::new();
    sources.add(SourceFile::new("case.weir", text));
    for diagnostic in diagnostics.iter().take(DRAWN_MAX) {
        assert!(diagnostic.span().is_some(), "{diagnostic:?} has no place");
        assert!(!render(&sources, diagnostic, Style::Plain).is_empty());
        assert!(!render_json(&sources, diagnostic).contains('\n'));
    }
}

fn same_tree(parsed: &Parsed, once: &str) {
    let after = parse(SourceId(0), once);
    assert!(!after.diagnostics.iter().any(Diagnostic::is_error), "what is formatted is right\n{once}");
    assert!(outline(&parsed.tree) == outline(&after.tree), "formatting keeps the tree\n{once}");
    assert_eq!(parsed.comments.len(), after.comments.len(), "formatting keeps the comments\n{once}");
    assert!(format(once, &after).as_deref() == Some(once), "formatting twice is formatting once\n{once}");
}

/// Returns the diagnostics of a program without their places, and hence in no order. Skips those about comments: the
/// formatter moves comments inside an expression to its end, where they may follow another operand.
fn said(compiled: &Compiled) -> Vec<(Code, &str)> {
    let of_code = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.code != Code::HiddenDivision);
    let said = of_code.map(|diagnostic| (diagnostic.code, diagnostic.message.as_str()));
    let mut said: Vec<_> = said.collect();
    said.sort();
    said
}

/// Returns the lowered program without source locations.
fn lowered(compiled: &Compiled) -> [Option<String>; 3] {
    let places_out = |text: &str| siteless(&backtraceless(&placeless(&placeless(text, " @"), "(@")));
    let expr = compiled.expr.as_ref().map(|program| places_out(&weir_ir::print::expr(program)));
    let graph = compiled.graph.as_ref().map(|program| places_out(&weir_ir::print::graph(program)));
    let tests = compiled.tests.as_ref().map(|program| quoteless(&places_out(&weir_ir::print::expr(program))));
    [expr, graph, tests]
}

/// Removes source locations such as ` @12..20`, which begin with a sign, from the text of an IR.
fn placeless(text: &str, sign: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split(sign).enumerate() {
        let rest = part.trim_start_matches(|each: char| each.is_ascii_digit() || each == '.');
        let is_place = at > 0 && rest.len() < part.len();
        out.push_str(if is_place || at == 0 { "" } else { sign });
        out.push_str(if is_place { rest } else { part });
    }
    out
}

/// Removes the positions of the failures of placed changes, such as that of `#1(([], 365))`, from the text of an IR.
fn siteless(text: &str) -> String {
    let mut parts = text.split("], ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let rest = part.trim_start_matches(|each: char| each.is_ascii_digit());
        out + "], " + if rest.starts_with("))") { rest } else { part }
    })
}

/// Removes the positions of backtraces, such as that of `("text.parse_int", "amount", 66)`, from the text of an IR.
fn backtraceless(text: &str) -> String {
    let mut parts = text.split("\", ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let rest = part.trim_start_matches(|each: char| each.is_ascii_digit());
        out + "\", " + if rest.starts_with(')') { rest } else { part }
    })
}

/// Removes the expectations that tests quote from their program from the text of an IR.
fn quoteless(text: &str) -> String {
    let mut parts = text.split("\"expected `");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + "\"expected `" + part.split_once("`\"").map_or(part, |(_, rest)| rest))
}

/// A thread stops after this many failures.
const FAILURES_MAX: usize = 10;

/// Tries the texts of the seeds.
fn try_seeds(seeds: impl Iterator<Item = u64>, inputs: &Inputs<'_>) -> Reached {
    let mut reached = Reached::default();
    for seed in seeds {
        let mut text = String::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (input, library) = inputs.input(seed);
            text = input;
            try_text(&text, library, &mut reached);
        }));
        if outcome.is_err() {
            // A text whose generation fails has been printed already.
            println!("seed {seed} fails on:\n{text}");
            reached.failed.push(seed);
        }
        if reached.failed.len() >= FAILURES_MAX {
            break;
        }
    }
    reached
}

#[test]
fn no_text_makes_anything_fail_and_formatted_code_means_the_same() {
    let (of_tests, of_documentation) = (corpus::of_tests(), corpus::of_documentation());
    let inputs = Inputs::new([&of_tests, &of_documentation]);
    let (count, first) = (setting("WEIR_FUZZ_INPUTS", 3000), setting("WEIR_FUZZ_SEED", 1));
    let threads = setting("WEIR_FUZZ_THREADS", 1).clamp(1, 256);
    let seeds = (0..threads).map(|thread| (first + thread..first + count).step_by(threads as usize));
    let all: Vec<Reached> = std::thread::scope(|scope| {
        let running: Vec<_> = seeds.map(|seeds| scope.spawn(|| try_seeds(seeds, &inputs))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let failed: Vec<u64> = all.iter().flat_map(|each| each.failed.iter().copied()).collect();
    let sum = |of: fn(&Reached) -> u64| all.iter().map(of).sum::<u64>();
    let (formatted, lowered) = (sum(|each| each.formatted), sum(|each| each.lowered));
    assert_eq!(failed, [0; 0], "these seeds fail");
    println!("{count} inputs from seed {first}: {formatted} formatted, {lowered} lowered");
    assert!(formatted * 10 > count && lowered * 100 > count, "too few inputs are programs");
}

/// Returns the words and symbols of the grammar, which stand in quotes.
fn words_of_the_grammar() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
    let page = std::fs::read_to_string(page).unwrap();
    let grammar = page.split_once("```ebnf").unwrap().1.split_once("```").unwrap().0;
    let mut words: Vec<String> = grammar.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    words.sort();
    words.dedup();
    words
}

/// Returns the words that none of the texts contains as a word of its own.
fn words_without_a_text(texts: &[String]) -> Vec<String> {
    let missing = |word: &String| {
        let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let stands = |text: &String| {
            text.match_indices(word.as_str()).any(|(at, _)| {
                let (before, behind) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
                !is_letter(word.chars().next()) || !is_letter(before) && !is_letter(behind)
            })
        };
        !texts.iter().any(stands)
    };
    words_of_the_grammar().into_iter().filter(missing).collect()
}

#[test]
fn every_word_of_the_grammar_is_in_the_texts_that_are_mutated_and_in_generated_trees() {
    assert!(words_of_the_grammar().len() > 100, "the grammar has its words in quotes");
    let mutated = [corpus::of_tests().texts, corpus::of_documentation().texts].concat();
    assert_eq!(words_without_a_text(&mutated), [""; 0]);
    let generated: Vec<String> = (0..2000).map(|seed| print(&Generator::new(seed).tree())).collect();
    assert_eq!(words_without_a_text(&generated), [""; 0]);
}
