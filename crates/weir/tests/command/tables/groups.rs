//! Groups of queries and their aggregates: those that the table computes are those of the list of its rows.

use super::statements::tested_and_served;
use super::{post, text};
use crate::support::say;

const GROUPS: &str = r#"use http
use json

enum Kind { Retail, Export }

record Sale { shop: Text, number: Int, kind: Kind, price: Int, weight: Float, buyer: Option(Text), paid: Bool }

record Visit { id: Int, page: Text, user: Int }

// The columns have names of functions of SQL.
record Word { count: Int, max: Int, min: Int, coalesce: Int }

table sales: Sale key (shop, number) index price
table visits: Visit key id auto
table words: Word key (count, max)

fn add(shop: Text, number: Int, kind: Kind, price: Int, buyer: Option(Text)) -> Result((Text, Int)) {
  sales.insert(Sale { shop, number, kind, price, weight: -1.5, buyer, paid: price > 3 })
}

fn written() -> Result(Bool) {
  add("b", 1, Export, 5, Some("ada"))?
  add("b", 2, Retail, -7, None)?
  add("a", 9, Export, 9_223_372_036_854_775_807, Some("ada"))?
  add("a", 10, Export, -9_223_372_036_854_775_807, Some("bob"))?
  add("c\0d", 0, Retail, 5, None)?
  add("ä", 0, Retail, 5, None)?
  for (page, user) in [("/z", 1), ("/a", 2), ("/z", 2), ("/a", 2), ("/m", 1)] {
    visits.insert(Visit { page, user })?
    words.upsert(Word { count: user, max: user + 1, min: -user, coalesce: 7 })?
  }
  Ok(true)
}

// Each query twice: as the table computes it, and from the list of all rows.
fn both() -> List((Text, Text)) {
  let all = for s in sales { s }
  let seen = for v in visits { v }
  let by_kind = for (kind, theirs) in (for s in sales { s }).group_by(|s| s.kind) {
    (
      kind,
      theirs.length(),
      theirs.map(|s| s.price).max(),
      (for s in theirs { s.shop }).min(),
      theirs.map(|s| s.buyer).unique().length(),
      theirs.map(|s| s.price).sum(),
      theirs.map(|s| s.price).average()
    )
  }
  let by_kind_here = for (kind, theirs) in all.group_by(|s| s.kind) {
    (
      kind,
      theirs.length(),
      theirs.map(|s| s.price).max(),
      (for s in theirs { s.shop }).min(),
      theirs.map(|s| s.buyer).unique().length(),
      theirs.map(|s| s.price).sum(),
      theirs.map(|s| s.price).average()
    )
  }
  let pages = for (page, theirs) in (for v in visits if v.user < 3 { v }).group_by(|v| v.page)
    if theirs.length() > 1
    order by (theirs.map(|v| v.user).max() else { 0 }) desc, page
    limit 2 {
    "{page}: {theirs.map(|v| v.user).unique().length()} of {theirs.length()}"
  }
  let pages_here = for (page, theirs) in seen.group_by(|v| v.page)
    if theirs.length() > 1
    order by (theirs.map(|v| v.user).max() else { 0 }) desc, page
    limit 2 {
    "{page}: {theirs.map(|v| v.user).unique().length()} of {theirs.length()}"
  }
  let pairs = for (key, theirs) in (for s in sales if s.price != 0 { s }).group_by(|s| (s.buyer, s.paid)) {
    "{key.0} {key.1} {theirs.map(|s| s.weight).min()}"
  }
  let pairs_here = for (key, theirs) in all.group_by(|s| (s.buyer, s.paid)) {
    "{key.0} {key.1} {theirs.map(|s| s.weight).min()}"
  }
  let shops = for (shop, theirs) in (for s in sales { s }).group_by(|s| s.shop) { (shop, theirs.length()) }
  let shops_here = for (shop, theirs) in all.group_by(|s| s.shop) { (shop, theirs.length()) }
  let kinds = for (kind, theirs) in (for s in sales { s }).group_by(|s| s.kind) order by kind limit 1 {
    "{kind} {theirs.length()}"
  }
  let kinds_here = for (kind, theirs) in all.group_by(|s| s.kind) order by kind limit 1 { "{kind} {theirs.length()}" }
  let paid = for ((paid, kind), theirs) in (for s in sales { s }).group_by(|s| (s.paid, s.kind))
    order by paid desc, kind desc {
    "{paid} {kind} {theirs.length()}"
  }
  let paid_here = for ((paid, kind), theirs) in all.group_by(|s| (s.paid, s.kind)) order by paid desc, kind desc {
    "{paid} {kind} {theirs.length()}"
  }
  let keys = for (key, _) in (for v in visits { v }).group_by(|v| v.page) { key }
  let keys_here = for (key, _) in seen.group_by(|v| v.page) { key }
  let said = for w in words { w }
  let named = for ((count, max, min, coalesce), theirs) in
    (for w in words { w }).group_by(|w| (w.count, w.max, w.min, w.coalesce))
    order by count desc, max, min, coalesce {
    (count, theirs.length(), theirs.map(|w| w.max).max(), theirs.map(|w| w.min).min(), theirs.map(|w| w.max).sum())
  }
  let named_here = for ((count, max, min, coalesce), theirs) in
    said.group_by(|w| (w.count, w.max, w.min, w.coalesce))
    order by count desc, max, min, coalesce {
    (count, theirs.length(), theirs.map(|w| w.max).max(), theirs.map(|w| w.min).min(), theirs.map(|w| w.max).sum())
  }
  let first = for (_, theirs) in (for v in visits { v }).group_by(|v| v.page) { (theirs.first(), theirs.length()) }
  let first_here = for (_, theirs) in seen.group_by(|v| v.page) { (theirs.first(), theirs.length()) }
  [
    (json.encode(by_kind), json.encode(by_kind_here)),
    ("{pages}", "{pages_here}"),
    ("{pairs}", "{pairs_here}"),
    ("{shops}", "{shops_here}"),
    ("{kinds}", "{kinds_here}"),
    ("{paid}", "{paid_here}"),
    ("{keys}", "{keys_here}"),
    (json.encode(named), json.encode(named_here)),
    (json.encode(first), json.encode(first_here)),
    ("{(for s in sales if s.price > 0 { s.price }).average()}", "{(all.filter(|s| s.price > 0)).map(|s| s.price).average()}"),
    ("{(for s in sales if s.price > 99 { s.number }).average()}", "{all.filter(|s| s.price > 99).map(|s| s.number).average()}"),
    ("{(for s in sales if s.number > 99 { s.price }).average()}", "None"),
    ("{(for s in sales { s.buyer }).unique().length()}", "{all.map(|s| s.buyer).unique().length()}"),
    ("{(for s in sales if s.number != 2 { s.shop }).unique().length()}", "4"),
    ("{(for s in sales if s.number > 0 { s }).length()} {(for s in sales { s.buyer }).length()}", "4 6")
  ]
}

fn wrong() -> List((Text, Text)) { for (table, list) in both() if table != list { (table, list) } }

fn totals() -> List(Int) {
  for (kind, theirs) in (for s in sales { s }).group_by(|s| s.kind) if kind == Export || theirs.length() > 9 {
    theirs.map(|s| s.price).sum()
  }
}

service shops on http(port: 8080) {
  post "/" { http.text("{written()?}") }
  post "/more" { http.text("{add("a", 12, Retail, 9_223_372_036_854_775_807, None)?}") }
  post "/most" { http.text("{add("a", 13, Export, 9_223_372_036_854_775_807, None)?}") }
  get "/" { http.text("{wrong()}") }
  get "/totals" { http.text("{totals()}") }
}

fn ranked(items: List(a), key: fn(a) -> k) -> List(a) { for item in items order by key(item) { item } }

test "groups of the table are those of the list" {
  expect wrong().length() == 2
  written()?
  expect wrong() == []
}

test "a list is ordered by truth values and variants as a table is" {
  written()?
  let all = for s in sales { s }
  let rows = for s in sales order by s.paid, s.kind desc, s.price { s.price }
  expect rows == (for s in all order by s.paid, s.kind desc, s.price { s.price })
  expect all.length() == 6
  expect ranked([3, 1, 2], |n| n == 1) == [3, 2, 1]
  expect ranked([3, 1, 2], |n| if n == 3 { Export } else { Retail }) == [1, 2, 3]
}
"#;

#[test]
fn groups_of_a_table_are_those_of_the_list_of_its_rows() {
    let program = tested_and_served("groups", GROUPS, |served| {
        assert_eq!(post(served, "/").map(|answer| answer.status), Some(200));
        assert_eq!(text(&served.get("/")).trim(), "[]");
        assert_eq!(text(&served.get("/totals")).trim(), "[5]");
        assert_eq!(post(served, "/more").map(|answer| answer.status), Some(200));
        assert_eq!(text(&served.get("/totals")).trim(), "[5]");
        assert_eq!(post(served, "/most").map(|answer| answer.status), Some(200));
        assert_eq!(served.get("/totals").status, 500, "the sum does not fit into an `Int`");
    });
    let graph = say(&["graph", program.path(), "--format", "text", "--all"]).output;
    let calls = |function: &str| graph.matches(function).count();
    assert!(calls("tables.group") > 0 && calls("tables.average") > 0 && calls("tables.distinct") > 0, "{graph}");
}

const LISTS: &str = r#"record Item { name: Text, price: Int, weight: Float }

fn items() -> List(Item) {
  for (name, price, weight) in [("c", 2, 0.5), ("a", 1, -1.0), ("b", 2, 2.5), ("d", 1, 0.0)] {
    Item { name, price, weight }
  }
}

fn least(numbers: List(a), most: Int) -> List(a) { for n in numbers order by n limit most { n } }

fn checked(n: Int) -> Result(Int) { if n < 0 { fail("below zero") } else { Ok(n) } }

fn all_checked(numbers: List(Int)) -> Result(List(Int)) {
  let found = for n in numbers order by checked(n)? desc { n }
  Ok(found)
}

test "lists and maps are ordered and limited" {
  expect (for i in items() order by i.price { i.name }) == ["a", "d", "c", "b"]
  expect (for i in items() order by i.price desc { i.name }) == ["c", "b", "a", "d"]
  expect (for i in items() order by i.price desc, i.name desc limit 3 { i.name }) == ["c", "b", "d"]
  expect (for i in items() order by i.price * 2, i.weight desc { i.name }) == ["d", "a", "b", "c"]
  expect (for i in items() if i.weight > -1.0 order by i.name limit 2 { i.name }) == ["b", "c"]
  expect (for i in items() limit 0 { i.name }) == []
  expect (for i in items() limit -1 { i.name }) == []
  expect (for i in items() limit 9 { i.name }).length() == 4
  expect (for (name, count) in items().count_by(|i| i.price) order by count, name desc { name }) == [2, 1]
  expect least([3, 1, 2], 2) == [1, 2]
  expect least(["b", "a"], 1) == ["a"]
  expect all_checked([1, 3, 2]) == Ok([3, 2, 1])
  let failed = all_checked([1, -3, 2]) else { [] }
  expect failed == []
}

test "averages of lists" {
  expect [1, 2].average() == Some(1.5)
  expect [9_223_372_036_854_775_807, 9_223_372_036_854_775_807].average() == Some(9_223_372_036_854_775_807.0)
  expect (for i in items() if i.price > 9 { i.price }).average() == None
}
"#;

#[test]
fn clauses_of_a_for_over_a_list() {
    let program = crate::support::Scratch::new("lists.weir", LISTS.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

const AGGREGATES: &str = r#"use http

record Sale { id: Int, shop: Text, price: Int, weight: Float, at: Option(Int) }

table sales: Sale key id auto index (shop, price)

fn add(shop: Text, price: Int, weight: Float) -> Result(Int) {
  sales.insert(Sale { shop, price, weight, at: None })
}

// Each aggregate, as the table computes it and as the list of the rows has it.
fn both(shop: Text) -> List((Text, Text)) {
  let prices = for s in sales if s.shop == shop { s.price }
  let weights = for s in sales if s.shop == shop { s.weight }
  [
    ("{(for s in sales if s.shop == shop { s.price }).max()}", "{prices.max()}"),
    ("{(for s in sales if s.shop == shop { s.price }).min()}", "{prices.min()}"),
    ("{(for s in sales if s.shop == shop { s.price }).sum()}", "{prices.sum()}"),
    ("{(for s in sales if s.shop == shop { s.price }).length()}", "{prices.length()}"),
    ("{(for s in sales if s.shop == shop { s.weight }).max()}", "{weights.max()}"),
    ("{(for s in sales if s.shop == shop { s.weight }).min()}", "{weights.min()}"),
    ("{(for s in sales if s.shop == shop && s.weight > 0.0 { s.price }).sum()}", "{(for s in sales if s.shop == shop { s }).map(|s| if s.weight > 0.0 { s.price } else { 0 }).sum()}"),
    ("{(for s in sales if s.shop == shop order by s.price limit 1 { s.price }).sum()}", "{prices.min() else { 0 }}")
  ]
}

fn written() -> Result(Bool) {
  add("a", 3, 0.5)?
  add("a", 9_223_372_036_854_775_807, -1.5)?
  add("a", -9_223_372_036_854_775_807, 2.25)?
  add("a", -5, -0.0)?
  add("b", 7, 1.0)?
  Ok(true)
}

fn right() -> Bool {
  let wrong = for shop in ["a", "b", "none"] { (for (table, list) in both(shop) if table != list { table }).length() }
  wrong.sum() == 0
}

fn total() -> Int { (for s in sales { s.price }).sum() }

service shops on http(port: 8080) {
  post "/" { http.text("{written()?}") }
  post "/more" { http.text("{add("a", 9_223_372_036_854_775_807, 0.0)?}") }
  get "/" { http.text("{right()} {total()}") }
}

test "aggregates of the table are those of the list" {
  written()?
  expect right()
  expect total() == 5
}
"#;

#[test]
fn aggregates_of_a_table_are_those_of_the_list_of_its_rows() {
    let program = tested_and_served("shops", AGGREGATES, |served| {
        assert_eq!(post(served, "/").map(|answer| answer.status), Some(200));
        assert_eq!(text(&served.get("/")).trim(), "true 5");
        assert_eq!(post(served, "/more").map(|answer| answer.status), Some(200));
        assert_eq!(served.get("/").status, 500, "the sum does not fit into an `Int`");
    });
    let graph = say(&["graph", program.path(), "--format", "text"]);
    assert!(graph.output.contains("tables.sum"), "{}{}", graph.output, graph.messages);
}
