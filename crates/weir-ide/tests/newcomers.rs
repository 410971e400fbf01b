//! Code as users of other languages write it.
//!
//! The first message names the problem and its solution in Weir, and no diagnostic is a consequence of another.
//!
//! Each file in `tests/newcomers` contains cases, which begin with a line `=== name`. For each case a snapshot contains
//! its text, its diagnostics and, if hints have edits, the text after applying them.

use std::fmt::Write as _;
use std::sync::Arc;

use weir_host::Library;
use weir_ide::{Document, apply};
use weir_syntax::{Diagnostic, Edit, SourceFile, SourceId, Sources, Style, render};

/// The most diagnostics of a case; more would be a cascade.
const DIAGNOSTICS_MAX: usize = 3;

/// The most rounds of applying hints: one may lead to the next.
const ROUNDS_MAX: usize = 4;

fn cases(suite: &str) -> Vec<(&str, &str)> {
    let parts = suite.trim_start_matches("=== ").split("\n=== ");
    parts.map(|part| part.split_once('\n').expect("a case has a name and a text")).collect()
}

fn open(text: &str, library: &Arc<Library>) -> Document {
    Document::new("case.weir", text, library.clone())
}

fn drawn(document: &Document) -> String {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("case.weir", document.text()));
    assert_eq!(source, SourceId(0));
    let drawn = document.diagnostics().iter().map(|diagnostic| render(&sources, diagnostic, Style::Plain));
    drawn.collect::<Vec<_>>().join("\n\n")
}

/// Returns the edits of the first hint of each diagnostic, unless they overlap.
fn advised(diagnostics: &[Diagnostic]) -> Vec<Edit> {
    let found = diagnostics.iter().filter(|diagnostic| !diagnostic.code.is_unnecessary());
    let hints = found.filter_map(|diagnostic| diagnostic.help.iter().find_map(|hint| hint.edit.clone()));
    let mut edits: Vec<Edit> = hints.collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits.dedup_by(|next, before| next.span.start < before.span.end || next.span == before.span);
    edits
}

/// Returns the text after applying every hint with an edit, and its remaining diagnostics.
fn mended(text: &str, library: &Arc<Library>) -> Option<String> {
    let mut document = open(text, library);
    for _ in 0..ROUNDS_MAX {
        let edits = advised(document.diagnostics());
        if edits.is_empty() {
            break;
        }
        document = open(&apply(document.text(), &edits), library);
    }
    let left = document.diagnostics().iter().filter(|left| !left.code.is_unnecessary());
    let left = left.map(|left| std::format!("left: {} {}\n", left.code, left.message));
    (document.text() != text).then(|| std::format!("{}\n{}", document.text(), left.collect::<String>()))
}

fn snapshot(suite: &str) -> String {
    let library = Arc::new(weir_library::library());
    let mut out = String::new();
    for (name, text) in cases(suite) {
        let text = text.trim_end();
        let document = open(text, &library);
        let count = document.diagnostics().len();
        assert!(count <= DIAGNOSTICS_MAX, "{name} is answered with a flood:\n{}", drawn(&document));
        _ = writeln!(out, "=== {name}\n{}", drawn(&document));
        if let Some(mended) = mended(text, &library) {
            _ = write!(out, "--- mended\n{mended}");
        }
        out.push('\n');
    }
    out
}

macro_rules! suite {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let suite = include_str!(concat!("newcomers/", stringify!($name), ".weir"));
            insta::with_settings!({ snapshot_path => "newcomers/snapshots", prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(stringify!($name), snapshot(suite));
            });
        }
    )*};
}

suite! { types items statements expressions more }
