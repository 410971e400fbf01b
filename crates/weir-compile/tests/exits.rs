//! Exits of `fn`s and flows: by `return`, `?` and `fail`, from branches, loops and steps, into handlers.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::{run, run_with, shown};
use weir::Value;

#[test]
fn an_early_return_leaves_only_its_fn() {
    let text = "
fn sign(n: Int) -> Text {
  if n < 0 { return \"negative\" }
  if n == 0 { return \"none\" }
  \"positive\"
}
fn main() -> Text { \"{sign(-1)} {sign(0)} {sign(1)}\" }";
    assert_eq!(shown(text), "negative none positive");
}

#[test]
fn a_step_of_which_every_way_leaves_its_fn_leaves_it() {
    let text = "
constraint ledger
fn parts(n: Int) -> Result(Int) { atomic ledger { if n > 1 { return Ok(n) } else { return Ok(0) } } }
fn dead(n: Int) -> Int {
  atomic ledger {
    { return n }
    n + 1
  }
}
fn main() -> Text { \"{parts(3) else 9} {parts(1) else 9} {dead(5)}\" }";
    assert_eq!(shown(text), "3 0 5");
}

#[test]
fn several_branches_fall_through_and_others_leave() {
    let text = "
fn pick(a: Int, b: Int) -> Int {
  let x = if a > 0 {
    if b > 0 { return 100 }
    a
  } else {
    if b < 0 { return 200 }
    b
  }
  x + 1
}
fn main() -> Text { \"{pick(5, 1)} {pick(5, 0)} {pick(0, -1)} {pick(0, 7)}\" }";
    assert_eq!(shown(text), "100 6 200 8");
}

#[test]
fn a_question_mark_in_a_fn_with_a_result_gives_the_failure_to_the_caller() {
    let text = "
fn sum(a: Text, b: Text) -> Result(Int) { Ok(a.parse_int()? + b.parse_int()?) }
fn main() -> Text {
  let bad = sum(\"1\", \"x\") else { -1 }
  let worse = sum(\"y\", \"2\") else as failure { return \"{failure}\" }
  \"{sum(\"1\", \"2\")?} {bad} {worse}\"
}";
    let said = shown(text);
    assert!(said.contains("is not a number"), "{said}");
}

#[test]
fn a_question_mark_elsewhere_ends_the_flow() {
    let text = "
fn number(a: Text) -> Int { a.parse_int()? }
fn main() -> Int { number(\"1\") + number(\"x\") }";
    let whole =
        format!("use http\n{text}\nservice web on http(port: 1) {{ get \"/\" {{ http.text(\"{{main()}}\") }} }}");
    assert_eq!(run(&whole).unwrap_err().message.as_str(), "\"x\" is not a number");
}

#[test]
fn leaving_a_fn_from_within_a_for_ends_the_for() {
    let text = "
fn numbers(parts: List(Text)) -> Result(List(Int)) { Ok(for part in parts { part.parse_int()? * 2 }) }
fn first_even(all: List(Int)) -> Int {
  for n in all { if n % 2 == 0 { return n } }
  -1
}
fn main() -> Text {
  let good = numbers([\"1\", \"2\"]) else { [] }
  let bad = numbers([\"1\", \"x\", \"3\"]) else { [-1] }
  \"{good} {bad} {first_even([3, 4, 6])} {first_even([1])}\"
}";
    assert_eq!(shown(text), "[2, 4] [-1] 4 -1");
}

#[test]
fn a_for_that_leaves_its_fn_collects_what_it_made_before() {
    let text = "
fn halves(list: List(Int)) -> Result(List(Int), Text) {
  Ok(for n in list { if n % 2 == 1 { return Err(\"{n} is odd\") } else { n / 2 } })
}

fn shown(list: List(Int)) -> Text {
  match halves(list) { Ok(halves) => \"{halves}\", Err(why) => why }
}

fn main() -> Text {
  \"{shown([2, 4, 6, 8, 10])}, {shown([2, 3, 4, 5])}, {shown([])}\"
}
";
    assert_eq!(shown(text), "[1, 2, 3, 4, 5], 3 is odd, []");
}

#[test]
fn a_program_fails_with_what_it_says() {
    let text = "
enum Refusal { TooMany(Int), Closed }

fn checked(n: Int) -> Result(Int) {
  if n < 0 { fail(\"{n} is below zero\") }
  if n == 7 { \"not seven\" |> fail }
  Ok(n)
}

fn taken(n: Int) -> Result(Int, Refusal) {
  match n { 0 => fail(Closed), 1 => Ok(1), many => fail(TooMany(many)) }
}

fn said(n: Int) -> Result(Int, Text) {
  if n > 0 { Ok(n) } else { fail(\"nothing\") }
}

fn made(n: Int) -> Result(Int) {
  if n == 1 { Err(Failure(\"by hand\")) } else { Ok(retry(2) { fail(\"tried\") }?) }
}

fn why(n: Int, result: Result(Int)) -> Text {
  match result { Ok(_) => \"{n} is right\", Err(failure) => \"{failure}\" }
}

fn main() -> Text {
  let numbers = for n in [-1, 7, 8] { why(n, checked(n)) }
  let refused = for n in [0, 1, 9] { match taken(n) { Ok(n) => \"{n}\", Err(refusal) => \"{refusal}\" } }
  let shown = for n in [1, 2] { why(n, made(n)) }
  let nothing = match said(0) { Ok(_) => \"\", Err(text) => text + \"!\" }
  \"{numbers} {refused} {shown} {nothing}\"
}
";
    let numbers = r#"["-1 is below zero", "not seven", "8 is right"]"#;
    assert_eq!(shown(text), format!(r#"{numbers} ["Closed", "1", "TooMany(9)"] ["by hand", "tried"] nothing!"#));
}

#[test]
fn a_flow_that_fails_by_itself_ends_with_its_kind_and_message() {
    let text = "
use http

fn refuse(n: Int) -> Int { if n > 1 { fail(\"{n} is too many\") } else { n } }

service web on http(port: 1) { get \"/\" (n: Int) { http.text(\"{refuse(n)}\") } }
";
    let failure = run_with(text, vec![Value::Int(3)]).unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (weir::FailureKind::Program, "3 is too many"));
    assert_eq!(run_with(text, vec![Value::Int(1)]).unwrap(), "1");
}

#[test]
fn a_handler_takes_the_failure_that_a_fn_makes() {
    let text = "
use http

fn refuse(n: Int) -> Int { if n > 1 { fail(\"{n} is too many\") } else { n } }

service web on http(port: 1) {
  on failure of refuse as failure { http.bad_request(\"no: {failure}\") }

  get \"/\" (n: Int) { http.text(\"{refuse(n)}\") }
}
";
    assert_eq!(run_with(text, vec![Value::Int(3)]).unwrap(), "no: 3 is too many");
}
