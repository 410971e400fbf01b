//! Every diagnostic of the checker.
//!
//! Each file in `tests/diagnostics` is a program with an error, named after its code,
//! and has a snapshot of its diagnostics.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::path::PathBuf;

use test_support::fixture;
use weir_compile::ProgramFiles;
use weir_host::Library;
use weir_syntax::{Code, SourceFile, SourceId, Sources, Style, codes, render};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

/// Returns the texts by their file names, in order.
fn cases() -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "weir")).collect();
    files.sort();
    let named = files
        .into_iter()
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap()));
    named.collect()
}

/// The first or second line of a program that is checked with the standard library. The one of these tests has no tables.
const STANDARD_LIBRARY: &str = "// With the standard library.";

fn library_of(text: &str) -> Library {
    let has_standard = text.lines().take(2).any(|line| line == STANDARD_LIBRARY);
    if has_standard { weir_library::library() } else { fixture::library() }
}

/// Returns the diagnostics of a text with the chosen codes, as a terminal without colours shows them.
fn said_of(name: &str, text: &str, chosen: impl Fn(Code) -> bool) -> String {
    let (mut sources, library) = (Sources::new(), library_of(text));
    let program = ProgramFiles::in_text(&format!("{name}.weir"), text, &library, &mut sources);
    let file = sources.file(program.source());
    let compiled = weir_compile::compile_program(program, file, &library);
    let found = compiled.diagnostics.iter().filter(|diagnostic| chosen(diagnostic.code));
    let drawn = found.map(|diagnostic| render(&sources, diagnostic, Style::Plain));
    drawn.collect::<Vec<_>>().join("\n\n")
}

/// Returns the diagnostics of an example of `code`. A short example need not use all that it declares, unless that is its
/// subject.
fn without_unnecessary(name: &str, text: &str, code: Code) -> String {
    said_of(name, text, |found| code.is_unnecessary() || !found.is_unnecessary())
}

#[test]
fn every_fault_is_said_as_its_snapshot_shows() {
    insta::with_settings!({ snapshot_path => folder().join("snapshots"), prepend_module_to_snapshot => false }, {
        for (name, text) in cases() {
            let code = name.split('_').next().unwrap().to_uppercase();
            let said = without_unnecessary(&name, &text, Code::from_id(&code).unwrap());
            assert!(said.contains(&format!("[{code}]")), "{name} does not show its code:\n{said}");
            insta::assert_snapshot!(name.clone(), said);
        }
    });
}

#[test]
fn every_code_of_the_checker_has_a_case() {
    let cases = cases();
    let checked = codes::ALL.iter().map(|code| code.id()).filter(|id| !id.starts_with("E01"));
    let without: Vec<_> =
        checked.filter(|id| !cases.iter().any(|(name, _)| name.starts_with(&id.to_lowercase()))).collect();
    assert_eq!(without, Vec::<&str>::new(), "codes without a case in tests/diagnostics");
}

#[test]
fn no_page_of_a_code_is_only_a_title() {
    for code in codes::ALL {
        assert!(code.page().lines().count() > 2, "the page of {code} says nothing");
        assert!(code.page().contains("Wrong:") || code.id().starts_with("E01"), "the page of {code} has no example");
    }
}

/// The codes of the warnings that everybody expects: unused modules, names, declarations and values, unreachable code,
/// constant conditions, and names that hide others.
const EXPECTED_BY_EVERYBODY: [Code; 7] = [
    Code::UnusedModule,
    Code::UnusedName,
    Code::UnusedDeclaration,
    Code::UnusedValue,
    Code::UnreachableCode,
    Code::ConstantCondition,
    Code::ShadowingPattern,
];

#[test]
fn warnings_that_everybody_expects_have_an_edit_that_takes_them_away() {
    let check = |text: &str| {
        weir_compile::check(SourceId(0), &SourceFile::new("case.weir", text), &library_of(text)).diagnostics
    };
    for (name, text) in cases().into_iter().filter(|(name, _)| name.starts_with("w07")) {
        let found = check(&text);
        let warnings = found.iter().filter(|warning| EXPECTED_BY_EVERYBODY.contains(&warning.code));
        for warning in warnings {
            let Some(edit) = warning.help.iter().find_map(|hint| hint.edit.as_ref()) else {
                panic!("{name} has a warning without an edit: {warning:?}");
            };
            let mut edited = text.clone();
            edited.replace_range(edit.span.range(), &edit.replacement);
            let same =
                |other: &&weir_syntax::Diagnostic| (other.code, &other.message) == (warning.code, &warning.message);
            let (before, after) = (found.iter().filter(same).count(), check(&edited).iter().filter(same).count());
            assert!(after < before, "{name}: the edit of this warning does not take it away: {warning:?}\n{edited}");
        }
    }
}
