//! `weir fix`, and the suggestions that it applies.

use crate::support::{Scratch, say};

#[test]
fn certain_fixes_are_applied_and_the_rest_is_reported() {
    let text = "use files, text, time\n\nfn double(x: Int, extra: Int) -> Int {\n  let y = 1\n  x * 2\n}\n";
    let program = Scratch::new("fix.weir", text.as_bytes());
    assert_eq!(say(&["check", program.path()]).code, 0);
    assert_eq!(say(&["check", "--deny-warnings", program.path()]).code, 1);
    let said = say(&["fix", "--check", program.path()]);
    assert_eq!(said.code, 1, "{}", said.messages);
    assert_eq!(std::fs::read_to_string(program.path()).expect("the file is ours"), text, "--check changes nothing");
    let said = say(&["fix", program.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    assert!(said.messages.contains(":1:5: the module `files` is never used"), "{}", said.messages);
    assert!(said.messages.contains("warning[W0708]: the local name `y` is never used"), "{}", said.messages);
    assert!(said.messages.contains("warning[W0708]: the parameter `extra` is never used"), "{}", said.messages);
    let fixed = std::fs::read_to_string(program.path()).expect("the file is ours");
    assert_eq!(fixed, "\nfn double(x: Int, extra: Int) -> Int {\n  let y = 1\n  x * 2\n}\n");
    assert_eq!(say(&["fix", "--check", program.path()]).code, 0, "nothing is left to fix");
}

const UNUSED: &str = r#"use http, files

enum Level { High, Low, Never }

/// Nobody needs this.
record Lonely { level: Level }

fn _kept() -> Helper { Helper { id: 1 } }

record Helper { id: Int }

fn dropped(n: Int, extra: Int, other: Int) -> Int {
  n == 1
  let local = 2
  match (n, extra) {
    (1, x) | (x, 1) => 1
    _ => 0
  }
}

service shop on http(port: 8080) {
  get "/" (header agent: Text, limit: Int = 10) {
    let level = if dropped(1, 2, other: 3) > 0 { High } else { Low }
    match level {
      High => http.text("high")
      _ => http.text("low")
    }
  }
}
"#;

#[test]
fn suggestions_remove_and_rename_what_is_unused() {
    let program = Scratch::new("unused.weir", UNUSED.as_bytes());
    assert_eq!(say(&["fix", "--suggestions", "--check", program.path()]).code, 1);
    let said = say(&["fix", "--suggestions", program.path()]);
    let fixed = std::fs::read_to_string(program.path()).expect("the file is ours");
    let messages = said.messages.replace(program.path(), "unused.weir");
    insta::assert_snapshot!(format!("exit code {}\n{messages}--- fixed\n{fixed}", said.code));
}

const NEVER: &str = r#"use stdio, stream

fn word(number: Option(Int), names: List(Text)) -> Text {
  let always = if names.length() >= 0 { "some" } else { "none" }
  if 1 > 2 { stdio.print("never")? } // kept
  if 1 > 2 {
    stdio.print("never")?
  }
  let sizes = ["one": 1, "two": 2, "one": 3]
  match number {
    Some(n) if n == n => "{always} {n} {sizes}"
    Some(n) if n != n => "another {n}"
    Some(n) => "{n}"
    None => { return "none"; "nothing" }
    _ => "anything"
  }
}

for number in stream.range(0, 3) {
  stdio.print(word(Some(number), []))?
}
"#;

#[test]
fn suggestions_remove_what_never_happens() {
    let program = Scratch::new("never.weir", NEVER.as_bytes());
    let said = say(&["fix", "--suggestions", program.path()]);
    let fixed = std::fs::read_to_string(program.path()).expect("the file is ours");
    let messages = said.messages.replace(program.path(), "never.weir");
    insta::assert_snapshot!(format!("exit code {}\n{messages}--- fixed\n{fixed}", said.code));
}

/// Each warning has something in the way of an edit: an effect, a possible failure, the order of effects, or a comment.
const NOT_TO_BE_REMOVED: &str = r#"use http

shared n = 0

fn one_over(a: Int) -> Int { 1 / a }

fn sizes(a: Int) -> Int {
  let first = ["a": n.add(1), "b": 2, "a": n.add(10)]
  let second = ["a": 1 / a, "b": 2, "a": 3]
  let third = ["a": 1, "b": n.add(100), "a": n.add(1_000)]
  (first["a"] else { 0 }) + (second["b"] else { 0 }) + (third["b"] else { 0 })
}

fn conditions(a: Int) -> Int {
  if n.add(1) > 0 || true { n.add(10) }
  if one_over(a) > 0 || true { n.add(10) }
  match a {
    1 if n.add(1) > 0 || true => 3
    _ => a
  }
}

fn values(a: Int) -> Int {
  one_over(a)
  1 / a
  [1, 2][a]
  a |> one_over
  return a // always
  a + 1 // never
}

service s on http(port: 8080) {
  get "/" (a: Int) { http.text("{sizes(a)} {conditions(a)} {values(a)}") }
}

test "everything happens" {
  expect sizes(1) == 11 + 2 + 111
  expect conditions(1) == 3
  expect n == 1_133
  expect s.get("/?a=0").status() == 500
  expect s.get("/?a=1").status() == 200
  expect s.get("/?a=3").status() == 500
}

fn prices(n: Int, m: Int) -> Map(Int, Text) {
  [2: "a", n: "b", 2: "c", m: "d", n: "e"]
}

test "keys that may be equal when the program runs" {
  expect prices(2, 5)[2] == Some("e")
  expect prices(3, 2)[2] == Some("d")
  expect prices(4, 4)[4] == Some("e")
}
"#;

#[test]
fn suggestions_never_remove_what_has_an_effect_or_may_fail() {
    let program = Scratch::new("kept.weir", NOT_TO_BE_REMOVED.as_bytes());
    assert_eq!(say(&["test", program.path()]).code, 0, "{}", say(&["test", program.path()]).output);
    let said = say(&["fix", "--suggestions", program.path()]);
    for code in ["W0710", "W0711", "W0712", "W0717"] {
        assert!(said.messages.contains(&format!("warning[{code}]")), "{}", said.messages);
    }
    assert!(said.messages.contains("has no effect unless it fails"), "{}", said.messages);
    let fixed = std::fs::read_to_string(program.path()).expect("the file is ours");
    assert_eq!(fixed, NOT_TO_BE_REMOVED);
}

const IN_THE_WAY: &str = r#"fn last(n: Int) -> Int {
  return n // kept
  n + 1
}

fn pages() -> Map(Text, Int) {
  ["first": 1, "second": 2, "first": 3]
}

fn entries() -> List(Text) {
  for (name, number) in pages() { "{name}{number}" }
}

test "the first key stays first" { expect entries() == ["first3", "second2"] }

test "the last number" { expect last(2) == 2 }
"#;

#[test]
fn suggestions_keep_comments_and_the_order_of_keys() {
    let program = Scratch::new("order.weir", IN_THE_WAY.as_bytes());
    assert_eq!(say(&["test", program.path()]).code, 0);
    assert_eq!(say(&["fix", "--suggestions", program.path()]).code, 0);
    let fixed = std::fs::read_to_string(program.path()).expect("the file is ours");
    let wanted = IN_THE_WAY.replace("  n + 1\n", "").replace(r#"1, "second": 2, "first": 3]"#, r#"3, "second": 2]"#);
    assert_eq!(fixed, wanted);
    assert_eq!(say(&["test", program.path()]).code, 0);
}
