//! Code actions.

use std::fmt::Write as _;

use weir_ide::apply;
use weir_syntax::Span;

use super::{document, open};

#[test]
fn hints_that_a_machine_can_follow_are_actions() {
    let cases = [
        "use http\nfn f() -> http.Response { http.not_fuond() }",
        "fn f() -> Int {\n  var a = 1\n  a\n}",
        "record post { id: Int }",
    ];
    let mut out = String::new();
    for case in cases {
        let document = document(case);
        let all = Span::new(weir_syntax::SourceId(0), 0, case.len() as u32);
        for action in document.actions(all) {
            writeln!(out, "{}: {}\n{}\n", action.code, action.title, apply(case, &action.edits)).unwrap();
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn a_comment_that_silences_a_warning_is_an_action_and_its_code_is_completed() {
    let text = "fn f(n: Int) -> Text {\n  match n {\n    1 => {\n      let _one = 1\n      let two =\n        \"\"\"\n        a{2}\n        \"\"\"\n                      \"\"\n    }\n    _ => \"\"\n  }\n}\n";
    let warned = document(text);
    let all = Span::new(weir_syntax::SourceId(0), 0, text.len() as u32);
    let allows: Vec<_> = warned.actions(all).into_iter().filter(|action| action.title.starts_with("allow ")).collect();
    let titles: Vec<&str> = allows.iter().map(|action| action.title.as_str()).collect();
    assert_eq!(titles, ["allow W0708 here: unused name", "allow W0720 here: number in braces"]);
    // A line within a text gets no comment.
    let mut allowed = text.to_owned();
    for action in &allows {
        allowed = apply(&allowed, &action.edits);
    }
    assert!(allowed.contains("      // allow W0720\n      // allow W0708\n      let two =\n"), "{allowed}");
    assert_eq!(document(&allowed).diagnostics(), []);
    let (commented, offset) = open("// allow W0703, W07<|>\nfn f() { }");
    let labels: Vec<String> = commented.completions(offset).into_iter().map(|completion| completion.label).collect();
    assert!(labels.contains(&"W0703".to_owned()) && !labels.contains(&"W0723".to_owned()), "{labels:?}");
    assert!(labels.iter().all(|label| label.starts_with('W')), "{labels:?}");
    let (reasoned, offset) = open("// allow W0703: W<|>\nfn f() { }");
    assert_eq!(reasoned.completions(offset), []);
}

#[test]
fn an_action_is_offered_only_at_its_place() {
    let document = document("record post { id: Int }\nfn f() { }");
    assert_eq!(document.actions(Span::new(weir_syntax::SourceId(0), 8, 8)).len(), 1);
    assert_eq!(document.actions(Span::new(weir_syntax::SourceId(0), 30, 30)).len(), 0);
}
