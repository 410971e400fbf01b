//! Generic `fn`s: what they compute, under every form of use.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::shown;

const FUNCTIONS: &str = r#"
record Post { id: Int, title: Text }

fn first_or(items: List(a), default: a) -> a {
  match items {
    [] => default
    [first, ..] => first
  }
}

fn any(items: List(a), test: fn(a) -> Bool) -> Bool {
  for item in items { if test(item) { return true } }
  false
}

fn map(items: List(a), f: fn(a) -> b) -> List(b) { for item in items { f(item) } }

fn swap(pair: (a, b)) -> (b, a) {
  let (one, other) = pair
  (other, one)
}

fn both_ways(pair: (a, a)) -> List((a, a)) { [pair, swap(pair)] }

fn text_of(value: a) -> Text { "<{value}>" }

fn identity(value: a) -> a { value }

fn checked(value: a, test: fn(a) -> Bool) -> Result(a) {
  if !test(value) { fail("refused {value}") }
  Ok(value)
}

fn by_key(items: List(a), key: fn(a) -> k, wanted: k) -> List(a) {
  fold found = [] for item in items { if key(item) == wanted { found + [item] } else { found } }
}
"#;

#[track_caller]
fn check(main: &str, expected: &str) {
    assert_eq!(shown(&format!("{FUNCTIONS}\n{main}")), expected, "{main}");
}

#[test]
fn each_call_has_its_own_types() {
    check(
        r#"fn main() -> Text { "{first_or([1, 2], 9)} {first_or([], "none")} {first_or([None], Some(1.5))}" }"#,
        "1 none None",
    );
    check(r#"fn main() -> Text { "{swap((1, "a"))} {swap(swap((true, 2s)))}" }"#, r#"("a", 1) (true, 2s)"#);
}

#[test]
fn a_generic_function_calls_another_with_its_own_parameters() {
    // `swap` has two parameters, both of which stand for the one of `both_ways`.
    check(r#"fn main() -> Text { "{both_ways((1, 2))}" }"#, "[(1, 2), (2, 1)]");
    check(r#"fn twice(x: b) -> List(b) { map([x, x], identity) }  fn main() -> Text { "{twice("x")}" }"#.replace("  fn", "\nfn").as_str(), r#"["x", "x"]"#);
}

#[test]
fn a_closure_keeps_the_types_of_the_place_where_it_stands() {
    // The closure shows a `List(a)` of `outer`, while `map` has an `a` of its own.
    check(
        r#"
fn outer(value: a) -> List(Text) { map([1, 2], |n| "{n} {first_or([value], value)}") }
fn main() -> Text { "{outer(true)}" }"#,
        r#"["1 true", "2 true"]"#,
    );
    check(
        r#"fn main() -> Text { "{map(map([3], identity), |n| text_of(Post { id: n, title: "t" }))}" }"#,
        r#"["<Post { id: 3, title: \"t\" }>"]"#,
    );
}

#[test]
fn a_closure_is_checked_after_the_other_arguments() {
    check(
        r#"
fn apply(f: fn(a) -> b, value: a) -> b { f(value) }
fn main() -> Text { apply(|post| post.title, Post { id: 1, title: "last" }) }"#,
        "last",
    );
}

#[test]
fn a_return_in_a_loop_leaves_the_function() {
    check(
        r#"fn main() -> Text { "{any([1, 5], |n| n > 3)} {any([1, 2], |n| n > 3)} {any([], |n: Int| n > 3)}" }"#,
        "true false false",
    );
}

#[test]
fn a_failure_has_the_type_of_the_call() {
    check(
        r#"
fn kept(value: a, found: Result(a, e)) -> Result((a, a), e) { Ok((value, found?)) }
fn main() -> Text {
  let why = checked(4, |n| n > 5) else as failure { return "{failure}" }
  "{why}"
}
fn other() -> Text { match kept(1, Err("text")) { Ok(pair) => "{pair}", Err(text) => text.trim() } }"#,
        "refused 4",
    );
}

#[test]
fn values_of_a_type_parameter_are_compared_as_those_of_the_type() {
    check(
        r#"fn main() -> Text { "{by_key(["a", "bb", "c"], |word| word.length(), 1)} {by_key([1.5], |x| (x, 0), (1.5, 0))}" }"#,
        r#"["a", "c"] [1.5]"#,
    );
}

#[test]
fn a_local_may_be_declared_with_a_type_parameter() {
    check(
        r#"
fn wrapped(value: a) -> List(Option(a)) {
  let empty: List(Option(a)) = []
  empty + [Some(value), None]
}
fn main() -> Text { "{map(wrapped(1), |n| "{n}")}" }"#,
        r#"["Some(1)", "None"]"#,
    );
}
