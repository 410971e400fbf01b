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
  get "/direct/{name}" (name: Text) { http.ok(files.read(name)?) }
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
fn a_handler_uses_the_arguments_of_the_call_that_failed() {
    let text = r#"
use http, files
fn load(name: Text, times: Int = 2) -> Bytes { files.read(if times == 2 { name } else { "there" })? }
service web on http(port: 1) {
  on failure of files.read(path) as failure { http.text("service: {path}") }
  get "/{name}" (name: Text) {
    on failure of load(name, times) { http.text("route: {name} {times}") }
    let first = files.read(name)
    let second = load("missing")
    http.ok(first?)
  }
}
"#;
    assert_eq!(get(text, "a").unwrap(), "route: missing 2", "with the default of the `fn`");
    let direct = text.replace("    let second = load(\"missing\")\n", "");
    assert_eq!(get(&direct, "missing").unwrap(), "service: missing", "through a name");
    let piped = direct.replace("let first = files.read(name)", "let first = name |> files.read");
    assert_eq!(get(&piped, "missing").unwrap(), "service: missing", "with `|>`");
}

/// The `fn` that calls a closure has nothing to do with the failures of the text in it; a function that is passed by its name
/// fails where it is called.
#[test]
fn failures_in_a_closure_go_to_the_handlers_around_its_text() {
    let text = r#"
use http, files
fn load(name: Text) -> Result(Bytes) { Ok(files.read(name)?) }
fn applied(f: fn(Text) -> Result(Bytes), name: Text) -> Bytes {
  on failure of load(_) { files.read("there")? }
  f(name)?
}
service web on http(port: 1) {
  on failure of load(name) { http.text("outside {name}") }
  get "/{name}" (name: Text) { http.ok(applied(|name| Ok(load(name)?), name)) }
}
"#;
    assert_eq!(get(text, "missing").unwrap(), "outside missing");
    let named = text.replace("|name| Ok(load(name)?)", "load");
    assert_eq!(get(&named, "missing").unwrap(), "there");
}

#[test]
fn a_failure_of_a_type_of_the_program_is_shown_with_its_names() {
    let text = r#"
use http
enum Refused { No, Many(count: Int) }
fn refused(name: Text) -> Result(Text, Refused) { if name == "x" { Err(No) } else { Err(Many(name.length())) } }
service web on http(port: 1) { get "/{name}" (name: Text) { http.text(refused(name)?) } }
"#;
    assert_eq!(get(text, "x").unwrap_err(), "No");
    assert_eq!(get(text, "abc").unwrap_err(), "Many(count: 3)");
}

/// A handler runs after the step, where the values of the step do not exist any more.
#[test]
fn arguments_leave_a_step_together_with_the_failure() {
    let text = r#"
use accounts, http, files
shared book = accounts.new()
service web on http(port: 1) {
  on failure of files.read(path) as failure { http.text("not {path}") }
  get "/{name}" (name: Text) {
    atomic book {
      let path = "{name}/{name}"
      book.set(path, 1)
      http.ok(files.read(path)?)
    }
  }
}
"#;
    assert_eq!(get(text, "missing").unwrap(), "not missing/missing");
}

/// The handler would be a part of the step otherwise, and the call of `counter.count`, which waits for earlier flows, an
/// error.
#[test]
fn a_failure_in_a_step_is_handled_after_the_step() {
    let text = r#"
use accounts, counter, files, wire
shared book = accounts.new()
fn checked(name: Text) -> Bytes {
  on failure of files.read as failure { files.read("{failure} in checked")? }
  atomic book {
    book.set(name, 1)
    for part in [name] { files.read(part)? }
    files.read(name)?
  }
}
on failure of files.read as failure { wire.log("{counter.count()} {failure}") }
for line in files.lines("log") {
  atomic book {
    let data = files.read(line)?
    book.set(line, data.length())
    if line == "deep" { atomic book { files.read("missing")? } }
  }
  checked(line)
}
"#;
    let (program, library) = program(text);
    assert!(handlers_inside(&program.entries[0].flows[0].body, false).is_empty());
    let mut evaluator = weir_ir::evaluate::Evaluator::new(&program, &library).unwrap();
    for line in ["missing", "deep", "there"] {
        assert_eq!(evaluator.run(0, 0, vec![Value::text(line)]).unwrap(), Value::Unit, "{line}");
    }
}

/// Returns the calls of the handlers' functions inside of steps and races.
fn handlers_inside(block: &weir_ir::expr::Block, inside: bool) -> Vec<String> {
    use weir_ir::expr::Op;
    let of_binding = |binding: &weir_ir::expr::Let| {
        let here = match &binding.op {
            Op::Call(call) if inside && ["wire.log", "counter.count"].contains(&call.function.as_str()) => {
                vec![call.function.to_string()]
            }
            _ => Vec::new(),
        };
        let inside = inside || matches!(binding.op, Op::Atomic { .. } | Op::Race { .. });
        let below = binding.op.blocks().flat_map(|inner| handlers_inside(inner, inside)).collect::<Vec<_>>();
        [here, below].concat()
    };
    block.lets.iter().flat_map(of_binding).collect()
}

/// Another body could win while the handler waits otherwise.
#[test]
fn a_failure_in_a_race_is_handled_after_the_race() {
    let text = r#"
use accounts, counter, files, wire
shared book = accounts.new()
fn checked(name: Text) -> Int {
  on failure of files.read as failure { wire.log("{counter.count()} {failure} in checked") 
    3 }
  race { files.read(name)?.length(), 2 }
}
on failure of files.read as failure { wire.log("{counter.count()} {failure}") }
for line in files.lines("log") {
  let first = race {
    { for part in [line] { files.read(part)? }
      1 }
    atomic book { race { files.read(line)?.length(), 2 } }
  }
  checked(line)
}
"#;
    let (program, library) = program(text);
    assert_eq!(handlers_inside(&program.entries[0].flows[0].body, false), Vec::<String>::new());
    let mut evaluator = weir_ir::evaluate::Evaluator::new(&program, &library).unwrap();
    for line in ["missing", "there"] {
        assert_eq!(evaluator.run(0, 0, vec![Value::text(line)]).unwrap(), Value::Unit, "{line}");
    }
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
