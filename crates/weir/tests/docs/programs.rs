//! The programs in the guides.

use weir_syntax::{SourceFile, Sources, Style};

use crate::markdown::{Block, blocks, blocks_named};
use crate::requests::differences;

/// The info strings of programs of which the compiler says nothing.
const RIGHT: [&str; 4] = ["weir", "weir runs", "weir tests", "weir words"];

/// The standard library, and the module `words`.
fn library() -> weir::Library {
    let mut library = weir_library::library();
    library.add(crate::words::words()).expect("no other module is named so");
    library
}

/// What the compiler says of a program, drawn, and the codes of it.
fn said(block: &Block) -> (String, Vec<String>) {
    let mut sources = Sources::new();
    let file = SourceFile::new(block.place.clone(), block.text.clone());
    let source = sources.add(file.clone());
    let found = weir_compile::compile(source, &file, &library()).diagnostics;
    let mut codes: Vec<String> = found.iter().map(|one| one.code.to_string()).collect();
    codes.dedup();
    (weir_syntax::render_all(&sources, &found, Style::Plain), codes)
}

/// The program in the one style.
fn formatted(block: &Block) -> String {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new(block.place.clone(), block.text.clone()));
    let parsed = weir_syntax::parse(source, &block.text);
    weir_syntax::format(&block.text, &parsed).unwrap_or_else(|| block.text.clone())
}

/// Fails with everything that is wrong, so that one run shows it all.
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

#[test]
fn programs_that_run_do_what_the_guide_says() {
    let (mut pairs, mut faults) = (0, Vec::new());
    for file in blocks() {
        for (at, block) in file.iter().enumerate().filter(|(_, block)| block.info == "weir runs") {
            let behind = file.get(at + 1).filter(|behind| behind.info == "text");
            let wanted = behind.unwrap_or_else(|| panic!("{}: no `text` block behind it", block.place));
            faults.extend(differences(block, wanted));
            pairs += 1;
        }
    }
    assert!(pairs > 0, "the guides have programs that run");
    none_of(faults);
}

#[test]
fn every_info_string_is_one_that_means_something() {
    let known = ["text", "sh", "rust", "rust,no_run", "toml", "ebnf", "json"];
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
