//! The programs in the guides.

use weir_syntax::{SourceFile, Sources, Style};

use crate::markdown::{Block, blocks, blocks_named};
use crate::requests::differences;

/// What the compiler says of a program, drawn, and the codes of it.
fn said(block: &Block) -> (String, Vec<String>) {
    let mut sources = Sources::new();
    let file = SourceFile::new(block.place.clone(), block.text.clone());
    let source = sources.add(file.clone());
    let found = weir_compile::compile(source, &file, &weir_library::library()).diagnostics;
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
    let right = ["weir", "weir runs", "weir tests"].into_iter().flat_map(blocks_named);
    let faults = right.filter_map(|block| {
        let (drawn, codes) = said(&block);
        (!codes.is_empty()).then_some(drawn)
    });
    none_of(faults.collect());
}

#[test]
fn programs_are_in_the_one_style() {
    let right = ["weir", "weir runs", "weir tests"].into_iter().flat_map(blocks_named);
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
    let known = ["weir", "weir runs", "weir tests", "text", "sh", "rust", "toml", "ebnf", "json", "console"];
    let faults = blocks().into_iter().flatten().filter_map(|block| {
        let rust = block.info.starts_with("rust,");
        let fails = block.info.starts_with("weir fails ");
        (!known.contains(&block.info.as_str()) && !fails && !rust)
            .then(|| format!("{}: nothing is known of `{}`", block.place, block.info))
    });
    none_of(faults.collect());
}
