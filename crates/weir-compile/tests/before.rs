//! Bodies that run before those of the routes of a service.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::{answer, compiled};
use weir::Value;

const SERVICE: &str = r#"
use http, text
shared asked = 0
service web on http(port: 1) {
  before (header key: Text, page: Int = 7) {
    asked.add(1)
    if key == "" { return http.text("who is it?") }
    let number = text.parse_int(key) else { return http.text("no number") }
  }
  before { let twice = number * 2 }
  get "/{name}" (name: Text) { http.text("{name} {key} {page} {number} {twice} {asked}") }
}
"#;

fn get(key: &str) -> String {
    answer(SERVICE, vec![Value::text(key), Value::Int(7), Value::text("ada")]).unwrap()
}

#[test]
fn routes_see_the_parameters_and_names_of_the_bodies_before_them() {
    assert_eq!(get("21"), "ada 21 7 21 42 1");
}

#[test]
fn a_body_before_the_routes_answers_in_their_place() {
    assert_eq!(get(""), "who is it?");
    assert_eq!(get("x"), "no number");
}

#[test]
fn handlers_of_the_route_see_the_names_and_do_not_apply_before() {
    let text = r#"
use http, text, files
service web on http(port: 1) {
  on failure of text.parse_int { http.text("of the service") }
  before (a: Text, b: Text) {
    on failure of files.read { http.text("of the body before") }
    let number = text.parse_int(a)?
    let size = files.read(b)?
    if size.length() == 0 { return http.text("empty") }
  }
  get "/" (c: Text) {
    on failure of text.parse_int { http.text("of the route, {number}") }
    http.text("{text.parse_int(c)?}")
  }
}
"#;
    let get = |words: [&str; 3]| answer(text, words.map(Value::text).to_vec()).unwrap();
    assert_eq!(get(["1", "there", "3"]), "3");
    assert_eq!(get(["1", "there", "x"]), "of the route, 1");
    assert_eq!(get(["x", "there", "3"]), "of the service");
    assert_eq!(get(["1", "missing", "3"]), "of the body before");
}

#[test]
fn the_session_is_known_before() {
    let text = r#"
use http
shared visits = 0 per session
service web on http(port: 1) {
  session = visitor
  before (cookie visitor: Text) { let visit = visits.add(1) }
  get "/" { http.text("{visitor} {visit} {visits}") }
}
"#;
    assert_eq!(answer(text, vec![Value::text("ada")]).unwrap(), "ada 1 1");
}

#[test]
fn mistakes_are_reported_where_they_are() {
    for (before, route, expected) in [
        ("(body text: Text) { http.text(text) }", "{ http.text(\"\") }", "`before` cannot take the body of a request"),
        ("(key: Text) { }", "(key: Text) { http.text(key) }", "the parameter `key` is declared twice"),
        ("{ return 5 }", "{ http.text(\"\") }", "expected `http.Response`"),
        ("{ if true { let hidden = 5 } }", "{ http.text(\"{hidden}\") }", "there is no `hidden`"),
        ("{ text.parse_int(\"7\") }", "{ http.text(\"\") }", "this failure is not handled"),
    ] {
        let text =
            format!("use http, text\nservice web on http(port: 1) {{\n  before {before}\n  get \"/\" {route}\n}}\n");
        let (_, _, said, _) = compiled(&text);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn names_that_no_route_reads_are_unused() {
    let text = "use http\nservice web on http(port: 1) {\n  before (a: Text, b: Text = \"\", required: Text) {\n    let c = 1\n    let d = 2\n  }\n  \
                get \"/\" { http.text(\"{a} {c}\") }\n}\n";
    let library = test_support::fixture::library();
    let mut sources = weir_syntax::Sources::new();
    let file = weir_syntax::SourceFile::new("case.weir", text);
    let compiled = weir_compile::compile(sources.add(file.clone()), &file, &library);
    let said: Vec<&str> = compiled.diagnostics.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(said, ["the parameter `b` is never used", "the local name `d` is never used"]);
}
