//! Values that are read from JSON, forms and rows as the type that their place expects.

use crate::support::{Scratch, say};

const TESTS: &str = r#"
use client, csv, html, http, json

enum Kind { Plain as "plain", Tagged(Text), Sized(width: Int, height: Int) }
record Item { name: Text, price: Float, kind: Kind = Plain }
record Order {
  id: Int as "order-id"
  items: List(Item)
  note: Option(Text)
  at: Time
  wait: Duration = 2s
  by_day: Map(Int, Bool) as "by-day"
}

fn order(text: Text) -> Result(Order) { json.decode(text) }

fn said(result: Result(a)) -> Text {
  match result {
    Ok(_) => "no failure"
    Err(failure) => "{failure}"
  }
}

const text = """
  \{"order-id": 7, "unknown": [], "items": [\{"name": "a", "price": 1}, \{"name": "b", "price": 2.5,
  "kind": \{"Sized": \{"width": 1, "height": 2}}}], "at": "2026-11-22T20:15:00Z", "by-day": \{"-3": true}}
  """

test "JSON is read, and written as it is read" {
  let read = order(text)?
  expect read.id == 7 && read.wait == 2s && read.note == None && read.by_day[-3] == Some(true)
  expect read.items[0].kind == Plain && read.items[1].kind == Sized(width: 1, height: 2)
  let again: Order = json.decode(json.encode(read))?
  expect again == read
  let from_value: Order = json.parse(text)?.decode_value()?
  expect from_value == read
  let as_map: Map(Text, json.Value) = json.decode(text)?
  expect as_map.length() == 5
}

test "a failure says where, what was expected and what was found" {
  expect said(order("[]")) == "expected an object, found a list of 0"
  expect said(order("{text} x")) == "not JSON: expected the end, found more at line 2 column 103"
  let cases = [
    ("\{}", "order-id: missing, expected a whole number"),
    ("\{\"order-id\": 1.5}", "order-id: expected a whole number, found `1.5`"),
    ("\{\"order-id\": 1, \"items\": [1]}", "items[0]: expected an object, found `1`"),
    ("\{\"order-id\": 1, \"items\": [\{\"name\": \"a\", \"price\": \"x\"}]}",
      "items[0].price: expected a number, found \"x\""),
    ("\{\"order-id\": 1, \"items\": [\{\"name\": \"a\", \"price\": 1, \"kind\": \"Plain\"}]}",
      "items[0].kind: expected one of `plain`, `Tagged`, `Sized`, found \"Plain\""),
    ("\{\"order-id\": 1, \"items\": [], \"at\": \"today\"}",
      "at: expected a time such as `2026-11-22T20:15:00Z`, found \"today\""),
    ("\{\"order-id\": 1, \"items\": [], \"at\": \"2026-11-22T20:15:00Z\", \"by-day\": \{\"x\": true}}",
      "by-day.x: a key: expected a whole number, found \"x\""),
    ("\{\"order-id\": 1, \"order-id\": 2}", "the key \"order-id\" is repeated at line 1 column 26")
  ]
  for (json, wanted) in cases { expect said(order(json)) == wanted }
}

record Cells { kind: Kind, all: List(Text), perhaps: Option(List(Int)), any: json.Value, nothing: () = () }
record Sale { shop: Text, amount: Float as "Amount", note: Option(Int), tags: List(Text) = [], paid: Bool = false }

test "rows are read, and written as they are read" {
  let sales: List(Sale) = csv.decode("other;Amount;shop;note\n1;1.5;\"a;b\";\n2;2;c;7\n", separator: ";")?
  expect sales == [
    Sale { shop: "a;b", amount: 1.5, note: None },
    Sale { shop: "c", amount: 2.0, note: Some(7) }
  ]
  let written = csv.encode(sales)?
  expect written == "shop,Amount,note,tags,paid\na;b,1.5,,[],false\nc,2.0,7,[],false\n"
  let wrong: Result(List(Sale)) = csv.decode("shop,Amount\na,1\nb,x\n")
  expect said(wrong) == "`Amount` in line 3: expected a number, found \"x\""
  let without: Result(List(Sale)) = csv.decode("shop\na\n")
  expect said(without) == "`Amount` in line 2: missing, expected a number"
  let sale: Sale = csv.decode_row(["shop": "d", "Amount": "3"])?
  expect sale.shop == "d"
  let cells = [
    Cells { kind: Plain, all: ["x", ""], perhaps: Some([1]), any: json.parse("\"text\"")? },
    Cells { kind: Tagged("a, b"), all: [], perhaps: None, any: json.parse("null")? }
  ]
  let again: List(Cells) = csv.decode(csv.encode(cells)?)?
  expect again.map(|cell| (cell.kind, cell.all, cell.perhaps)) == cells.map(|cell| (cell.kind, cell.all, cell.perhaps))
  expect csv.encode(again)? == csv.encode(cells)?
  let plain: List(Cells) = csv.decode("kind,any\nplain,1\n")?
  expect plain[0].kind == Plain && plain[0].all == []
  let maps: List(Map(Text, Int)) = csv.decode("a,b\n1,2\n")?
  expect maps == [["a": 1, "b": 2]]
}

test "a form is read" {
  let sale: Sale = html.decode_form("shop=a+b&tags=x&Amount=2&paid=on&tags=y&note=")?
  expect sale == Sale { shop: "a b", amount: 2.0, note: None, tags: ["x", "y"], paid: true }
  let wrong: Result(Sale) = html.decode_form("shop=&Amount=")
  expect said(wrong) == "`Amount` in the form: missing, expected a number"
}

record Filters { kind: Kind, tags: Option(List(Text)), exact: Bool }

test "a form names variants, repeats the texts of a list, and leaves out what is not checked" {
  let some: Filters = html.decode_form("kind=plain&tags=a&tags=b&exact=on")?
  expect some == Filters { kind: Plain, tags: Some(["a", "b"]), exact: true }
  let none: Filters = html.decode_form("kind=%7B%22Tagged%22%3A%22x%22%7D")?
  expect none == Filters { kind: Tagged("x"), tags: None, exact: false }
}

record Short { name: Text, price: Int }
record Draft { name: Text, price: Int, kind: Option(Text) }

service orders on http(port: 0) {
  post "/" (body order: Item) { http.json(order) }
  post "/by-number" (body days: Map(Int, Time)) { http.json(days) }
}

test "the body of a request has the keys that `json.decode` reads" {
  let days: Map(Int, Text) = orders.post("/by-number", ["7": "2026-11-22T20:15:00Z"]).decode_json()?
  expect days == [7: "2026-11-22T20:15:00Z"]
}

enum Shape { Round as "round", Square }

service shelves on http(port: 0) {
  get "/" (tag: List(Text), size: List(Int) = [7], shape: List(Shape)) {
    http.text("{tag} {size} {shape == [Round, Square]}")
  }
}

test "a list takes all values of a name in the query" {
  expect shelves.get("/?tag=a&size=1&tag=b+c&size=-2&tag").text()? == "[\"a\", \"b c\", \"\"] [1, -2] false"
  expect shelves.get("/?shape=round&shape=Square").text()? == "[] [7] true"
  expect shelves.get("/?size=1&size=many").status() == 400
}

service diary on http(port: 0) {
  get "/{on}" (on: Time, since: Option(Time)) { http.text("{on} {since}") }
}

test "times stand in paths and queries" {
  let least = "1677-09-21T00:12:43.145224192Z"
  expect diary.get("/{least}?since=2026-11-22T21:15:00%2B01:00").text()? == "{least} Some(2026-11-22T20:15:00Z)"
  expect diary.get("/now").status() == 400
}

const rounds = 8
fn doubled(n: Int) -> Int { loop state = n { state * 2 } until state > 100 at most rounds }
test "the bound of a loop may be a constant" { expect doubled(1) == 128 }

test "bodies of requests and responses are read in the same way" {
  let item: Item = orders.post("/", Short { name: "n", price: 1 }).decode_json()?
  expect item == Item { name: "n", price: 1.0, kind: Plain }
  let refused = orders.post("/", Draft { name: "n", price: 1, kind: Some("Tagged") })
  expect refused.status() == 400
  let wrong: Result(Item) = orders.post("/", item).decode_json()
  expect said(wrong) == "no failure"
  let bare: Result(Int) = client.response(body: "\{}").decode_json()
  expect said(bare) == "expected a whole number, found an object"
}
"#;

#[test]
fn values_of_all_types_are_read_and_failures_say_where() {
    let program = Scratch::new("decoding.weir", TESTS.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

#[test]
fn rows_are_written_from_lists_of_records_only() {
    let text = r#"
use csv

record Sale { shop: Text }

fn table(rows: a) -> Result(Text) { csv.encode(rows) }

test "these have no columns" {
  let number = csv.encode(5)?
  let sale = csv.encode(Sale { shop: "a" })?
  let maps = csv.encode([["shop": "a"]])?
  let generic = table([1])?
}

test "these have columns" {
  expect table([Sale { shop: "a" }])? == csv.encode([Sale { shop: "a" }])?
  expect "{table([Sale { shop: "a" }])?}{number()?}" != ""
}

fn number() -> Result(Text) {
  let number: Int = csv.decode("shop")?[0]
  Ok("{number}")
}
"#;
    let program = Scratch::new("columns.weir", text.as_bytes());
    insta::assert_snapshot!(say(&["check", program.path()]).messages.replace(program.path(), "columns.weir"));
}
