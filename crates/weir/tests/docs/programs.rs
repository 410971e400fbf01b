//! The programs in the guides.

use weir_compile::ProgramFiles;
use weir_syntax::{SourceFile, Sources, Style};

use crate::markdown::{Block, blocks, blocks_named};
use crate::requests::differences;
use crate::scratch::Scratch;
use crate::support::say;

/// Info strings of programs without diagnostics.
const RIGHT: [&str; 5] = ["weir", "weir runs", "weir prints", "weir tests", "weir words"];

/// Info string of a fragment that shows one construct.
const FRAGMENT: &str = "weir";

/// Returns the standard library with the module `words`.
fn library() -> weir::Library {
    let mut library = weir_library::library();
    library.add(crate::words::words()).expect("no other module is named so");
    library
}

/// Returns the rendered diagnostics of a program, and their codes.
fn said(block: &Block) -> (String, Vec<String>) {
    let (mut sources, library) = (Sources::new(), library());
    let program = ProgramFiles::in_text(&block.place, &block.text, &library, &mut sources);
    let file = sources.file(program.source());
    let mut found = weir_compile::compile_program(program, file, &library).diagnostics;
    // A fragment need not use all that it declares.
    found.retain(|one| block.info != FRAGMENT || !one.code.is_unnecessary());
    let mut codes: Vec<String> = found.iter().map(|one| one.code.to_string()).collect();
    codes.dedup();
    (weir_syntax::render_all(&sources, &found, Style::Plain), codes)
}

/// Returns the formatted program.
fn formatted(block: &Block) -> String {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new(block.place.clone(), block.text.clone()));
    let parsed = weir_syntax::parse(source, &block.text);
    weir_syntax::format(&block.text, &parsed).unwrap_or_else(|| block.text.clone())
}

/// Fails with all errors, so that one run shows them all.
fn none_of(faults: Vec<String>) {
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn the_compiler_says_nothing_of_programs_that_are_right() {
    let right = RIGHT.into_iter().flat_map(blocks_named);
    let faults = right.filter_map(|block| {
        let (drawn, codes) = said(&block);
        (!codes.is_empty()).then_some(drawn)
    });
    none_of(faults.collect());
}

#[test]
fn programs_are_in_the_one_style() {
    let right = RIGHT.into_iter().flat_map(blocks_named);
    let faults = right.filter_map(|block| {
        let formatted = formatted(&block);
        (formatted != block.text).then(|| format!("{}: `weir fmt` writes\n{formatted}", block.place))
    });
    none_of(faults.collect());
}

#[test]
fn programs_that_fail_do_so_with_the_code_that_the_guide_says() {
    let failing = blocks().into_iter().flatten().filter_map(|block| {
        let wanted: Vec<String> =
            block.info.strip_prefix("weir fails")?.split_whitespace().map(str::to_owned).collect();
        Some((block, wanted))
    });
    let faults = failing.filter_map(|(block, wanted)| {
        let (drawn, codes) = said(&block);
        (codes != wanted).then(|| format!("{}: {codes:?} instead of {wanted:?}\n{drawn}", block.place))
    });
    none_of(faults.collect());
}

/// Returns the blocks of a kind, each with the `text` block after it.
fn shown_with(info: &str) -> Vec<(Block, Block)> {
    let mut pairs = Vec::new();
    for file in blocks() {
        for (at, block) in file.iter().enumerate().filter(|(_, block)| block.info == info) {
            pairs.push((block.clone(), text_behind(&file, at).clone()));
        }
    }
    assert!(!pairs.is_empty(), "the guides have blocks of the kind `{info}`");
    pairs
}

/// Returns the `text` block after the block at this place of its file.
fn text_behind(file: &[Block], at: usize) -> &Block {
    let behind = file.get(at + 1).filter(|behind| behind.info == "text");
    behind.unwrap_or_else(|| panic!("{}: no `text` block behind it", file[at].place))
}

#[test]
fn programs_that_serve_answer_what_the_guide_says() {
    let pairs = shown_with("weir runs");
    none_of(pairs.iter().flat_map(|(program, wanted)| differences(program, wanted)).collect());
}

#[test]
fn programs_that_print_print_what_the_guide_says() {
    for (program, wanted) in shown_with("weir prints") {
        let file = Scratch::new(&program);
        for engine in weir_runtime::ENGINES {
            let said = say(&["run", file.path(), "--engine", engine.name]);
            assert_eq!(said.code, 0, "{} under {}: {}", program.place, engine.name, said.messages);
            assert_eq!(said.output, wanted.text, "{} under {}", program.place, engine.name);
        }
    }
}

#[test]
fn plans_mean_for_the_program_before_them_what_the_guide_says() {
    let mut seen = 0;
    for file in blocks() {
        for (at, plan) in file.iter().enumerate().filter(|(_, block)| block.info == "toml plan") {
            let program = file[..at].iter().rfind(|block| block.info.starts_with("weir")).expect("a program before it");
            let (program, written) = (Scratch::new(program), Scratch::new(plan));
            let said = say(&["plan", program.path(), "--plan", written.path()]);
            let (_path, shown) = said.output.split_once('\n').unwrap_or_default();
            assert_eq!(shown, text_behind(&file, at).text, "{}: {}", plan.place, said.messages);
            seen += 1;
        }
    }
    assert!(seen > 0, "the guides have plans");
}

#[test]
fn the_tests_in_the_guides_pass() {
    for program in blocks_named("weir tests") {
        let said = say(&["test", Scratch::new(&program).path()]);
        assert_eq!(said.code, 0, "{}: {}{}", program.place, said.output, said.messages);
        assert!(!said.output.contains("0 passed"), "{}: {}", program.place, said.output);
    }
}

#[test]
fn every_info_string_is_one_that_means_something() {
    let known = ["text", "sh", "rust", "rust,no_run", "toml", "toml plan", "ebnf"];
    let faults = blocks().into_iter().flatten().filter_map(|block| {
        let fails = block.info.starts_with("weir fails ");
        let means = known.contains(&block.info.as_str()) || RIGHT.contains(&block.info.as_str());
        (!means && !fails).then(|| format!("{}: nothing is known of `{}`", block.place, block.info))
    });
    none_of(faults.collect());
}

#[test]
fn the_guide_shows_the_functions_that_its_programs_call() {
    let (_caption, functions) = include_str!("words.rs").split_once("\n\n").expect("a caption");
    let shown = blocks_named("rust,no_run").into_iter().any(|block| block.text.starts_with(functions));
    assert!(shown, "docs/host-functions.md does not show `words.rs`");
}
