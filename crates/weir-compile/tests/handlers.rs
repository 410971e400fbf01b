//! Failure handlers: the innermost matching handler takes a failure (Flux §2.4, and the faults of the original).
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::{answer, program};
use weir::Value;

fn get(text: &str, name: &str) -> Result<String, String> {
    answer(text, vec![Value::text(name)])
}

#[test]
fn a_handler_of_the_service_answers_for_every_route_and_every_fn_below() {
    let text = r#"
use http, files
fn load(name: Text) -> Bytes { files.read(name)? }
service web on http(port: 1) {
  on failure of files.read as failure { http.text("service: {name_of(failure)}") }
  get "/{name}" (name: Text) { http.ok(load(name)) }
}
fn name_of(failure: Failure) -> Text { "none" }
"#;
    assert_eq!(get(text, "missing").unwrap(), "service: none");
    assert_eq!(get(text, "there").unwrap(), "there");
}

#[test]
fn the_innermost_handler_wins() {
    let text = r#"
use http, files
on failure of files.read { http.text("file") }
fn load(name: Text) -> Text {
  on failure of files.read { "fn {name}" }
  let data = files.read(name)?
  "{data.length()}"
}
service web on http(port: 1) {
  on failure of files.read { http.text("service") }
  get "/{name}" (name: Text) {
    on failure of files.read { http.text("route {name}") }
    let first = load(name)
    let second = files.read("{name}2")?
    http.text(first)
  }
}
"#;
    assert_eq!(get(text, "a").unwrap(), "1");
    let swapped = text.replace("let second = files.read(\"{name}2\")?", "let second = 2");
    assert_eq!(get(&swapped, "missing").unwrap(), "fn missing");
    assert_eq!(get(&text.replace("{name}2", "missing"), "a").unwrap(), "route a");
}

#[test]
fn a_handler_of_a_fn_takes_what_leaves_it() {
    let text = r#"
use http, files
fn inner(name: Text) -> Bytes { files.read(name)? }
fn outer(name: Text) -> Bytes { inner(name) }
fn both(name: Text) -> Text {
  on failure of outer as failure { "handled" }
  let data = for part in [name, "x"] { outer(part) }
  "{data.length()}"
}
service web on http(port: 1) { get "/{name}" (name: Text) { http.text("{both(name)}!") } }
"#;
    assert_eq!(get(text, "missing").unwrap(), "handled!");
    assert_eq!(get(text, "a").unwrap(), "2!");
}

#[test]
fn a_fn_with_a_result_keeps_its_failure_for_its_caller() {
    let text = r#"
use http, files
fn load(name: Text) -> Result(Bytes) { Ok(files.read(name)?) }
service web on http(port: 1) {
  on failure of files.read { http.text("files") }
  on failure of load { http.text("load") }
  get "/{name}" (name: Text) {
    let held = load(name)
    http.ok(held?)
  }
}
"#;
    assert_eq!(get(text, "missing").unwrap(), "load");
}

#[test]
fn what_fails_in_a_handler_is_for_those_further_out() {
    let text = r#"
use http, files
service web on http(port: 1) {
  on failure of files.read { http.text("service") }
  get "/{name}" (name: Text) {
    on failure of files.read { http.ok(files.read("missing too")?) }
    http.ok(files.read(name)?)
  }
}
"#;
    assert_eq!(get(text, "missing").unwrap(), "service");
}

#[test]
fn without_a_handler_the_flow_ends() {
    let text = r#"
use http, files
fn load(name: Text) -> Bytes { files.read(name)? }
service web on http(port: 1) { get "/{name}" (name: Text) { http.ok(load(name)) } }
"#;
    assert_eq!(get(text, "missing").unwrap_err(), "there is no file missing");
}

#[test]
fn a_flow_without_an_answer_is_handled_too() {
    let text = r#"
use files, wire
on failure of files.read { wire.log("lost") }
for line in files.lines("log") {
  let data = files.read(line)?
  wire.log("{data.length()}")
}
"#;
    let (program, library) = program(text);
    let mut evaluator = weir_ir::evaluate::Evaluator::new(&program, &library).unwrap();
    assert_eq!(evaluator.run(0, 0, vec![Value::text("missing")]).unwrap(), Value::Unit);
}
