//! Tests in the language: `test`, `expect` and `with`.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use test_support::fixture;
use weir_ir::evaluate::Evaluator;
use weir_syntax::{SourceFile, SourceId};

const TEXT: &str = r#"
use files, accounts
shared book = accounts.new()

fn size(path: Text) -> Int { files.read(path)?.length() }
fn twice(n: Int) -> Int { n * 2 }
fn four() -> Int { twice(2) }
fn scaled(n: Int, by: Int = 10, up: Bool = true) -> Int { if up { n * by } else { n / by } }

test "arithmetic holds" { expect twice(2) == 4 }
test "a difference is shown" { expect twice(3) == 7 }
test "a condition is shown" { expect twice(3) < 0 || false }
test "a host function is replaced" {
  with files.read = |path| files.read("missing") {
    let failed = match files.read("x") {
      Ok(_) => false
      Err(_) => true
    }
    expect failed
  }
  expect size("abc") == 3
}
test "a fn is replaced, and is itself within its replacement" {
  with twice = |n| twice(n) + 1 { expect four() == 5 }
}
test "a replacement may leave out parameters with defaults at the end, and receives the defaults of others" {
  with scaled = |n| n + 100 { expect scaled(1, by: 5) == 101 }
  with scaled = |n, by| n + by { expect scaled(1) == 11 }
  with scaled = |n, by, up| if up { by } else { n } { expect scaled(1) == 10 }
}
test "a failure ends the test" { expect size("missing") == 0 }
test "shared values are there" {
  book.set("a", 2)
  expect book.balance("a") == 2
}
"#;

#[test]
fn tests_run_as_flows_and_show_what_differs() {
    let library = fixture::library();
    let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("case.weir", TEXT), &library);
    assert!(compiled.diagnostics.iter().all(|found| found.code.is_unnecessary()), "{:?}", compiled.diagnostics);
    let tests = compiled.tests.unwrap();
    let mut shown = String::new();
    for (at, flow) in tests.entries[0].flows.iter().enumerate() {
        let mut evaluator = Evaluator::new(&tests, &library).unwrap();
        let outcome = match evaluator.run(0, at, Vec::new()) {
            Ok(_) => "holds".to_owned(),
            Err(failure) => failure.to_string(),
        };
        shown.push_str(&format!("{}: {outcome}\n", flow.name));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn tests_lower_to_programs_that_the_verifier_accepts() {
    let library = fixture::library();
    let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("case.weir", TEXT), &library);
    let tests = compiled.tests.unwrap();
    assert_eq!(weir_ir::verify::expr(&tests, &library), []);
    assert_eq!(weir_ir::verify::graph(&weir_ir::lower(&tests, &library), &library), []);
}
