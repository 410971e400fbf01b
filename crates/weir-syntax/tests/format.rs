//! Formatting: snapshots of its output, and its laws: it preserves meaning, and formatting twice changes nothing.

use std::path::{Path, PathBuf};
use weir_syntax::ast::outline;
use weir_syntax::{Diagnostic, Parsed, SourceId, format, parse};

fn read(text: &str) -> Parsed {
    parse(SourceId(0), text)
}

fn is_right(parsed: &Parsed) -> bool {
    !parsed.diagnostics.iter().any(Diagnostic::is_error)
}

/// Formats a valid text, and checks the laws of formatting.
fn formatted(text: &str) -> String {
    let before = read(text);
    let once = format(text, &before).expect("the text is right");
    let after = read(&once);
    assert!(is_right(&after), "formatting broke it: {:?}\n{text}\n--- became\n{once}", after.diagnostics);
    assert_eq!(
        outline(&before.tree),
        outline(&after.tree),
        "formatting changed the tree of\n{text}\n--- became\n{once}"
    );
    assert_eq!(before.comments.len(), after.comments.len(), "formatting lost a comment of\n{text}\n--- became\n{once}");
    let twice = format(&once, &after).expect("the formatted text is right");
    assert_eq!(once, twice, "formatting twice changed it");
    once
}

/// All cases of the suites, valid and invalid.
fn suite_cases() -> Vec<&'static str> {
    let suites = [
        include_str!("suite/comments.weir"),
        include_str!("suite/control.weir"),
        include_str!("suite/expressions.weir"),
        include_str!("suite/faults.weir"),
        include_str!("suite/items.weir"),
        include_str!("suite/lines.weir"),
        include_str!("suite/patterns.weir"),
        include_str!("suite/recovery.weir"),
        include_str!("suite/services.weir"),
        include_str!("suite/texts.weir"),
        include_str!("suite/types.weir"),
    ];
    suites
        .iter()
        .flat_map(|suite| suite.split("=== ").skip(1))
        .filter_map(|case| Some(case.split_once('\n')?.1))
        .collect()
}

#[test]
fn every_right_case_of_the_suite_keeps_its_meaning() {
    let right: Vec<&str> = suite_cases().into_iter().filter(|case| is_right(&read(case))).collect();
    assert!(right.len() > 40, "only {} cases are right", right.len());
    for case in right {
        formatted(case);
    }
}

#[test]
fn a_text_with_errors_is_left_alone() {
    let text = "fn f( {";
    assert_eq!(format(text, &read(text)), None);
}

/// The formatted cases of `tests/format`.
fn snapshot(suite: &str) -> String {
    let cases = suite.split("=== ").skip(1).filter_map(|case| case.split_once('\n'));
    cases.map(|(name, text)| std::format!("=== {name}\n{}", formatted(text)) + "\n").collect()
}

macro_rules! looks {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(snapshot(include_str!(concat!("format/", stringify!($name), ".weir"))));
        }
    )*};
}

looks! { programs comments long_lines spacing }

/// All programs below a folder.
fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("it is read").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "weir"));
    here.chain(folders.iter().flat_map(|folder| programs_in(folder))).collect()
}

#[test]
fn every_example_is_formatted() {
    let examples = programs_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"));
    assert!(!examples.is_empty());
    for example in examples {
        let text = std::fs::read_to_string(&example).expect("it is read");
        assert_eq!(formatted(&text), text, "{} is not formatted", example.display());
    }
}
