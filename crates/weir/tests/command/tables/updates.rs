//! Updates: the rows that they return, and what their functions write in other tables.

use super::statements::tested_and_served;
use super::{post, text};

const STORED_ROWS: &str = r#"use http

record Mass { id: Int, weight: Float, tare: Option(Float) }

table stored: Mass key id
table kept: Mass key id soft

fn zero(mass: Mass) -> Mass { Mass { ..mass, weight: -0.0, tare: Some(-0.0) } }

fn rows() -> Result(Bool) {
  let mass = Mass { id: 1, weight: 1.0, tare: None }
  stored.upsert(mass)?
  kept.upsert(mass)?
  let alone = "{stored.update(1, zero)?} {kept.update(1, zero)?}"
  let together = atomic stored, kept { "{stored.update(1, zero)?} {kept.update(1, zero)?}" }
  Ok(alone == "{stored[1]} {kept[1]}" && together == alone && !alone.contains("-0"))
}

service masses on http(port: 8080) {
  post "/" { http.text("{rows()?}") }
}

test "an update returns the row that a read finds" {
  expect rows()?
}
"#;

#[test]
fn an_update_returns_the_row_as_it_is_stored() {
    tested_and_served("masses", STORED_ROWS, |served| {
        assert_eq!(post(served, "/").map(|answer| text(&answer).trim().to_owned()).as_deref(), Some("true"));
    });
}

const FUNCTIONS: &str = r#"use http

record Count { id: Int, number: Int }

table stored: Count key id
table kept: Count key id soft
table beside: Count key id
table noted: Count key id soft

fn note(id: Int) -> Result(Int) {
  beside.upsert(Count { id, number: 1 })?
  let known = noted[id] else { Count { id, number: 0 } }
  noted.upsert(Count { ..known, number: known.number + 1 })
}

fn next(count: Count, fails: Bool) -> Result(Count) {
  for id in [1, 2, 1] { note(id)? }
  if fails { fail("refused") }
  Ok(Count { ..count, number: count.number + 1 })
}

fn one(fails: Bool, soft: Bool) -> Result(Bool) {
  if soft { kept.update(1, |count| next(count, fails)?)? } else { stored.update(1, |count| next(count, fails)?)? }
  Ok(true)
}

fn all(fails: Bool, soft: Bool) -> Result(Bool) {
  if soft {
    kept.update_all(|_| true, |count| next(count, fails && count.id == 2)?)?
  } else {
    stored.update_all(|_| true, |count| next(count, fails && count.id == 2)?)?
  }
  Ok(true)
}

fn numbers() -> List((Int, Int)) {
  [
    ((for count in stored { count.number }).sum(), (for count in kept { count.number }).sum()),
    ((for count in beside { count.number }).sum(), (for count in noted { count.number }).sum())
  ]
}

fn cleared() -> Result(Int) {
  for id in [1, 2] {
    stored.upsert(Count { id, number: 0 })?
    kept.upsert(Count { id, number: 0 })?
  }
  beside.delete_all(|_| true)?
  noted.delete_all(|_| true)
}

fn right() -> Result(Bool) {
  let results = for soft in [true, false] {
    cleared()?
    let refused = one(true, soft) else { all(true, soft) else { false } }
    let before = numbers()
    let done = one(false, soft)? && all(false, soft)?
    let (updated, other) = if soft { (0, 3) } else { (3, 0) }
    !refused && done && before == [(0, 0), (0, 0)] && numbers() == [(updated, other), (2, 9)]
  }
  Ok(results == [true, true])
}

service counts on http(port: 8080) {
  post "/" { http.text("{right()?}") }
}

test "a function that fails leaves nothing" {
  expect right()?
}
"#;

#[test]
fn a_function_of_an_update_that_fails_leaves_nothing_in_other_tables() {
    tested_and_served("counts", FUNCTIONS, |served| {
        assert_eq!(post(served, "/").map(|answer| text(&answer).trim().to_owned()).as_deref(), Some("true"));
    });
}

const PASSED: &str = r#"use http

record Count { id: Int, number: Int }
record Mark { id: Int, of: Int }

table stored: Count key id unique number
table kept: Count key id unique number soft
table marks: Mark key id references of: stored
table notes: Mark key id soft references of: kept
table beside: Count key id

fn added() -> Int { beside.upsert(Count { id: 1, number: 1 }) else { 0 } }

fn called(function: fn() -> Int) -> Int { function() }

fn twice(function: fn() -> Int) -> Int { called(function) + called(function) }

fn one(soft: Bool, function: fn() -> Int) -> Result(Option(Count)) {
  let change = |count: Count| Count { ..count, number: twice(function) }
  if soft { kept.update(1, change) } else { stored.update(1, change) }
}

fn all(soft: Bool) -> Result(Int) {
  if soft { kept.update_all(|count| count.id <= added(), |count| Count { ..count, number: 2 }) } else {
    stored.update_all(|count| count.id <= added(), |count| Count { ..count, number: 2 })
  }
}

fn none(soft: Bool) -> Result(Int) {
  if soft { kept.delete_all(|count| count.id <= added()) } else { stored.delete_all(|count| count.id <= added()) }
}

fn refused() -> Result(Text) {
  for id in [1, 2] {
    stored.upsert(Count { id, number: id })?
    kept.upsert(Count { id, number: id })?
  }
  marks.upsert(Mark { id: 1, of: 1 })?
  notes.upsert(Mark { id: 1, of: 1 })?
  let found = for soft in [true, false] {
    let each = [one(soft, added).map(|_| 0), one(soft, || added()).map(|_| 0), all(soft), none(soft)]
    for result in each {
      match result {
        Ok(_) => "done"
        Err(failure) => failure.kind()
      }
    }
  }
  Ok("{found} {beside.count()}")
}

fn expected() -> Text {
  let each = ["constraint", "constraint", "constraint", "constraint"]
  "{[each, each]} 0"
}

service counts on http(port: 8080) {
  post "/" { http.text("{refused()? == expected()} {refused()?}") }
}

test "a statement that fails leaves nothing of a function that it was given" {
  expect refused()? == expected()
}
"#;

#[test]
fn a_statement_that_fails_leaves_nothing_of_functions_that_are_passed_on_and_of_values_in_conditions() {
    tested_and_served("passed", PASSED, |served| {
        let answer = post(served, "/").map(|answer| text(&answer).trim().to_owned()).unwrap_or_default();
        assert!(answer.starts_with("true"), "{answer}");
    });
}
