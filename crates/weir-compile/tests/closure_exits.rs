//! The exits of closures: `?` and `fail` in a closure leave what they would leave in a `for` in its place, whoever calls it.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::{compiled_with, library_of_lists, run_on_lists, served};

fn shown(declarations: &str) -> String {
    run_on_lists(&served(declarations)).unwrap()
}

/// A `fn` that fails for 2, and a constraint.
const CHECKED: &str = "
constraint ledger
fn checked(x: Int) -> Result(Int) { if x == 2 { fail(\"two\") }; Ok(x) }
";

/// Compares a body with a closure with one without, in a `fn` that returns a `Result`, for lists with and without a failure.
fn agrees(with_closure: &str, without: &str) {
    let text = format!(
        "{CHECKED}
fn with_closure(xs: List(Int)) -> Result(Int) {{ {with_closure} }}
fn without(xs: List(Int)) -> Result(Int) {{ {without} }}
fn said(result: Result(Int)) -> Text {{ match result {{ Ok(n) => \"{{n}}\", Err(failure) => \"{{failure}}\" }} }}
fn main() -> Text {{
  let all = for xs in [[], [1], [2], [1, 2, 3], [3, 1], [2, 2]] {{ \"{{said(with_closure(xs))}}/{{said(without(xs))}}\" }}
  \"{{all}}\"
}}"
    );
    let said = shown(&text);
    let pairs = said.trim_matches(['[', ']']).split(", ").map(|pair| pair.trim_matches('"').split_once('/').unwrap());
    pairs.for_each(|(one, other)| assert_eq!(one, other, "{with_closure}: {said}"));
    assert!(said.contains("two/two"), "{said}");
}

#[test]
fn a_question_mark_in_a_closure_gives_the_failure_to_the_caller_of_the_fn_around_its_text() {
    agrees("Ok(xs.map(|x| checked(x)?).sum())", "Ok((for x in xs { checked(x)? }).sum())");
    agrees(
        "Ok(xs.map(|x| { if x == 2 { fail(\"two\") }; x }).sum())",
        "Ok((for x in xs { if x == 2 { fail(\"two\") }; x }).sum())",
    );
    agrees("Ok(xs.filter(|x| checked(x)? > 1).sum())", "Ok((for x in xs if checked(x)? > 1 { x }).sum())");
    agrees(
        "Ok(xs.sort_by(|x| checked(x)?).first() else { 0 })",
        "Ok((for x in xs order by checked(x)? { x }).first() else { 0 })",
    );
    agrees(
        "Ok(xs.reduce(|a, b| a + checked(b)?) else { 0 })",
        "match xs { [] => Ok(0), [first, ..others] => Ok(fold sum = first for x in others { sum + checked(x)? }) }",
    );
    agrees(
        "Ok(if xs.any(|x| checked(x)? == 1) { 1 } else { 0 })",
        "for x in xs { if checked(x)? == 1 { return Ok(1) } }; Ok(0)",
    );
    agrees(
        "Ok(xs.find(|x| checked(x)? == 1) else { 0 })",
        "for x in xs { if checked(x)? == 1 { return Ok(x) } }; Ok(0)",
    );
    agrees(
        "Ok(xs.first().map(|x| checked(x)? + 1) else { 0 })",
        "match xs.first() { Some(x) => Ok(checked(x)? + 1), None => Ok(0) }",
    );
    agrees(
        "Ok([xs, xs].map(|of| of.map(|x| checked(x)?).sum()).sum())",
        "Ok((for of in [xs, xs] { (for x in of { checked(x)? }).sum() }).sum())",
    );
    agrees("let f = |x: Int| checked(x)?; Ok((for x in xs { f(x) }).sum())", "Ok((for x in xs { checked(x)? }).sum())");
}

#[test]
fn a_failure_in_a_closure_passes_the_fns_that_call_it() {
    let text = format!(
        "{CHECKED}
fn twice(x: Int, f: fn(Int) -> Int) -> Result(Int) {{
  let once = retry(3) {{ atomic ledger {{ checked(1)? + f(x) }} }}
  let again = f(once else {{ -7 }}) within 5s
  Ok(again else {{ -6 }})
}}
fn outer(x: Int, f: fn(Int) -> Int) -> Result(Int) {{ Ok((twice(x, |y| f(y)) else {{ -8 }}) + 1) }}
fn tried(x: Int) -> Result(Int) {{ Ok((outer(x, |y| checked(y)?) else {{ -9 }}) * 10) }}
fn main() -> Text {{ \"{{tried(3) else {{ -1 }}}} {{tried(2) else {{ -1 }}}} {{tried(1) else {{ -1 }}}}\" }}"
    );
    assert_eq!(shown(&text), "50 -1 -1");
}

#[test]
fn a_failure_in_a_closure_fails_the_try_around_its_text() {
    let text = format!(
        "{CHECKED}
fn tried(xs: List(Int)) -> Result(Int) {{ retry(2) {{ xs.map(|x| checked(x)?).sum() }} }}
fn before(xs: List(Int)) -> Result(Int) {{
  let f = |x: Int| checked(x)?
  Ok((retry(2) {{ checked(1)? + xs.map(|x| f(x)).sum() }} else {{ -5 }}) + 1)
}}
fn main() -> Text {{
  let inside = retry(3) {{ [2].map(|x| checked(x)?).sum() }} else {{ -2 }}
  \"{{tried([1, 3]) else {{ -1 }}}} {{tried([1, 2]) else {{ -1 }}}} {{inside}} {{before([3]) else {{ -1 }}}} {{before([2]) else {{ -1 }}}}\"
}}"
    );
    assert_eq!(shown(&text), "4 -1 -2 5 -1");
}

#[test]
fn a_failure_in_a_closure_leaves_within_and_atomic_like_one_in_a_for() {
    agrees(
        "let sum = { xs.map(|x| checked(x)?).sum() } within 5s; sum",
        "let sum = { (for x in xs { checked(x)? }).sum() } within 5s; sum",
    );
    agrees(
        "Ok(atomic ledger { xs.map(|x| checked(x)?).sum() })",
        "Ok(atomic ledger { (for x in xs { checked(x)? }).sum() })",
    );
    agrees(
        "Ok(race { xs.map(|x| checked(x)?).sum(), xs.map(|x| checked(x)?).sum() })",
        "Ok(race { (for x in xs { checked(x)? }).sum(), (for x in xs { checked(x)? }).sum() })",
    );
}

#[test]
fn a_failure_in_a_closure_of_a_fn_without_a_result_ends_the_flow() {
    let text = format!(
        "use http\n{CHECKED}
fn sum(xs: List(Int)) -> Int {{ xs.map(|x| checked(x)?).sum() }}
fn kept(xs: List(Int)) -> Result(Int) {{ Ok(sum(xs)) }}
service web on http(port: 1) {{ get \"/\" {{ http.text(\"{{kept([1, 2]) else {{ -1 }}}}\") }} }}"
    );
    assert_eq!(run_on_lists(&text).unwrap_err().message.as_str(), "two");
}

#[test]
fn the_failures_of_a_closure_have_the_type_of_the_fn_around_its_text() {
    let text = "
fn odd(x: Int) -> Result(Int, Text) { if x % 2 == 1 { fail(\"{x} is odd\") }; Ok(x) }
fn all(xs: List(Int)) -> Result(Int, Text) { Ok(xs.map(|x| if x > 9 { fail(\"{x} is too much\") } else { odd(x)? }).sum()) }
fn said(xs: List(Int)) -> Text { match all(xs) { Ok(sum) => \"{sum}\", Err(why) => why } }
fn main() -> Text { \"{said([2, 4])}, {said([2, 3])}, {said([10, 3])}\" }";
    assert_eq!(shown(text), "6, 3 is odd, 10 is too much");
}

#[test]
fn a_failure_in_the_closure_of_a_default_leaves_the_fn_with_the_default() {
    let text = format!(
        "use http\n{CHECKED}
fn with_default(x: Int, y: Int = 7, f: fn(Int) -> Int = |x| checked(x)?) -> Result(Int) {{ Ok(f(x) + y) }}
service web on http(port: 1) {{
  on failure of checked(x) {{ http.text(\"handled {{x}}\") }}
  get \"/\" {{ http.text(\"{{with_default(1) else {{ -1 }}}} {{with_default(2) else {{ -1 }}}} {{checked(2)?}}\") }}
}}"
    );
    assert_eq!(run_on_lists(&text).unwrap(), "handled 2");
    assert_eq!(run_on_lists(&text.replace(" {checked(2)?}", "")).unwrap(), "8 -1");
}

#[test]
fn the_advice_for_another_failure_type_can_be_followed_in_a_closure() {
    let text = format!("{CHECKED}\nfn sum(xs: List(Int)) -> Result(Int, Text) {{ Ok(xs.map(|x| checked(x)?).sum()) }}");
    let (_, _, said, wrong) = compiled_with(&text, library_of_lists());
    assert!(wrong && said.contains("`else as failure { fail(…) }`"), "{said}");
    let followed = text.replace("checked(x)?", "checked(x) else as failure { fail(\"{failure}\") }");
    assert_eq!(compiled_with(&followed, library_of_lists()).2, "");
}
