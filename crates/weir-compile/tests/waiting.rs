//! Time in the language: `within`, `race` and `retry`.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::answer;
use test_support::fixture;
use weir::Value;

fn get(body: &str, name: &str) -> Result<String, String> {
    let text = format!(
        "use http, files, accounts\nshared book = accounts.new()\n\
         fn count() -> Int {{ atomic book {{\n let n = book.balance(\"n\") + 1\n book.set(\"n\", n)\n n\n}} }}\n\
         {body}\nservice s on http(port: 1) {{ get \"/{{name}}\" (name: Text) {{ http.text(main(name)) }} }}\n"
    );
    answer(&text, vec![Value::text(name)])
}

#[test]
fn within_keeps_a_failure_and_makes_a_value_one_that_may_fail() {
    let body = r#"
fn main(name: Text) -> Text {
  let data = files.read(name) within 1s else { return "failed" }
  let number = count() within 1s else { 0 }
  "{data.length()} {number}"
}"#;
    assert_eq!(get(body, "abc").unwrap(), "3 1");
    assert_eq!(get(body, "missing").unwrap(), "failed");
}

#[test]
fn race_gives_the_value_of_one_of_its_bodies() {
    let body = r#"
fn main(name: Text) -> Text { race { files.read(name)? , files.read(name)? }.length() |> shown }
fn shown(n: Int) -> Text { "{n}" }"#;
    assert_eq!(get(body, "abc").unwrap(), "3");
}

#[test]
fn retry_tries_until_it_succeeds() {
    let body = r#"
fn main(name: Text) -> Text {
  let tried = retry(3) {
    let n = count()
    files.read(if n < 3 { "missing" } else { name })?
  }
  match tried {
    Ok(data) => "{data.length()} after {book.balance("n")}"
    Err(_) => "given up after {book.balance("n")}"
  }
}"#;
    assert_eq!(get(body, "abc").unwrap(), "3 after 3");
    assert_eq!(get(&body.replace("retry(3)", "retry(2)"), "abc").unwrap(), "given up after 2");
}

#[test]
fn return_leaves_the_fn_through_a_retry() {
    let body = r#"
fn main(name: Text) -> Text {
  let tried = retry(5) {
    if count() == 2 { return "left" }
    files.read("missing")?
  }
  match tried { Ok(_) => "read"
    Err(_) => "failed" }
}"#;
    assert_eq!(get(body, "abc").unwrap(), "left");
}

#[test]
fn leaving_a_fn_through_within() {
    let body = r#"
fn load(name: Text) -> Result(Int) {
  let size = { files.read(name)?.length() } within 1s
  Ok(size? + 0)
}
fn main(name: Text) -> Text {
  let n = load(name) else { -1 }
  "{n}"
}"#;
    assert_eq!(get(body, "missing").unwrap(), "-1");
    assert_eq!(get(body, "abcd").unwrap(), "4");
}

/// Returns the waits that the flow asked for.
fn slept() -> Vec<u64> {
    let slept = fixture::time::SLEPT.with_borrow_mut(std::mem::take);
    slept.iter().map(|duration| u64::try_from(duration.as_millis()).unwrap()).collect()
}

#[test]
fn retry_waits_between_tries_and_twice_as_long_each_time() {
    let body = r#"
fn main(name: Text) -> Text {
  let data = retry(6, backoff: 10s) {
    let n = count()
    files.read(if n < 6 { "missing" } else { name })?
  } else { return "given up" }
  "{data.length()}"
}"#;
    assert_eq!((get(body, "abc").unwrap().as_str(), slept()), ("3", vec![10_000, 20_000, 40_000, 80_000, 80_000]));
    let fewer = body.replace("retry(6", "retry(2");
    assert_eq!((get(&fewer, "abc").unwrap().as_str(), slept()), ("given up", vec![10_000]));
    let at_once = body.replace("n < 6", "n < 1");
    assert_eq!((get(&at_once, "abc").unwrap().as_str(), slept()), ("3", vec![]));
}

#[test]
fn a_failure_of_the_last_try_is_the_failure() {
    let body = r#"
fn main(name: Text) -> Text {
  let tried = retry(2, backoff: 1ms) { files.read(name)? }
  match tried { Ok(data) => "{data.length()}"
    Err(failure) => "{failure}" }
}"#;
    assert!(get(body, "missing").unwrap().contains("there is no file missing"));
    assert_eq!(slept(), [1]);
}
