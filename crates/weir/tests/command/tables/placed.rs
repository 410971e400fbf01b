//! Transactions in PostgreSQL whose changes are placed, and whose rows are asked for beforehand: their answers and failures are what
//! they are in other stores, and at the same places.

use super::{post, text};
use crate::support::{Scratch, Served, TableStore, say};

const PLACED: &str = r#"use http

record Note { id: Int, name: Text, count: Int }

table notes: Note key id unique name
table others: Note key id auto

shared asked = 0

fn note(id: Int, name: Text) -> Note { Note { id, name, count: 0 } }

fn add(id: Int) { notes.insert(note(id, "in fn"))? }

fn add_twice(id: Int) { add(id) }

fn tried(id: Int) -> Result(Int) {
  atomic notes {
    let known = notes[1]
    notes.insert(note(10, "ten"))?
    notes.insert(note(id, "tried"))?
    notes.insert(note(11, "eleven"))?
  }
  Ok(id)
}

service placing on http(port: 8080) {
  post "/fill" {
    atomic notes {
      let none = notes[1]
      for id in [1, 2, 3] { notes.insert(note(id, "{id}"))? }
    }
    http.text("filled")
  }
  post "/last/{id}" (id: Int) {
    atomic notes {
      let known = notes[1]
      notes.insert(note(id, "last"))?
    }
    http.text("kept")
  }
  post "/read/{id}" (id: Int) {
    let found = atomic notes {
      let known = notes[1]
      notes.insert(note(id, "read"))?
      notes[2]
    }
    http.text("{found}")
  }
  post "/divides/{id}" (id: Int) {
    let found = atomic notes {
      let known = notes[1]
      notes.insert(note(id, "divides"))?
      10 / (id - id)
    }
    http.text("{found}")
  }
  post "/fails/{id}" (id: Int) {
    atomic notes {
      let known = notes[1]
      notes.insert(note(id, "fails"))?
      if id != 9 { fail("later") }
    }
    http.text("kept")
  }
  post "/loop/{id}" (id: Int) {
    atomic notes {
      let known = notes[1]
      for at in [20, 21, id, 22] {
        notes.upsert(note(at, if at == id { "1" } else { "loop {at}" }))?
      }
    }
    http.text("kept")
  }
  post "/updates/{id}" (id: Int) {
    let updated = atomic notes {
      let updated = notes.update(id, |n| Note { ..n, name: "1" })? else { fail("no note") }
      notes.insert(note(30, "updates"))?
      updated.count
    }
    http.text("{updated}")
  }
  post "/alone/{id}" (id: Int) {
    let updated = notes.update(id, |n| Note { ..n, name: "1", count: n.count + 1 }) else as failure {
      return http.text("{failure.kind()}")
    }
    http.text(if updated == None { "none" } else { "updated" })
  }
  post "/fn/{id}" (id: Int) {
    atomic notes {
      let known = notes[1]
      add_twice(id)
      notes.insert(note(40, "fn"))?
    }
    http.text("kept")
  }
  post "/tried/{id}" (id: Int) {
    let said = tried(id) else as failure { return http.text("{failure.kind()}") }
    http.text("{said}")
  }
  post "/matched/{id}" (id: Int) {
    let said = atomic notes {
      let known = notes[1]
      let said = match notes.insert(note(id, "matched")) {
        Ok(key) => "inserted {key}"
        Err(failure) => failure.kind()
      }
      notes.insert(note(50 + id, "behind {id}"))?
      said
    }
    http.text(said)
  }
  post "/numbered/{id}" (id: Int) {
    let number = atomic notes, others {
      notes.insert(note(60, "numbered"))?
      let number = others.insert(Note { name: "numbered", count: 0 })?
      notes.insert(note(id, "number {number}"))?
      number
    }
    http.text("{number}")
  }
  post "/counted/{id}" (id: Int) {
    atomic notes, asked {
      let known = notes[1]
      notes.insert(note(id, "counted"))?
      asked.add(1)
    }
    http.text("kept")
  }
  post "/reads-its-own/{id}" (id: Int) {
    let seen = atomic notes {
      let before = notes[id]
      notes.upsert(note(id, "own {id}"))?
      let after = notes[id] else { fail("it is not there") }
      notes.update(id, |n| Note { ..n, count: n.count + 1 })?
      let last = notes[id] else { fail("it is not there") }
      "{before == None} {after.name} {last.count}"
    }
    http.text(seen)
  }
  get "/all" {
    let all = for n in notes { "{n.id} {n.name} {n.count}" }
    http.text("{all} {others.count()} {asked}")
  }
}
"#;

/// The requests, each with its answer; none if the flow fails.
const REQUESTS: [(&str, Option<&str>); 26] = [
    ("/fill", Some("filled")),
    ("/last/1", None),
    ("/read/1", None),
    ("/divides/1", None),
    ("/divides/7", None),
    ("/fails/1", None),
    ("/fails/7", None),
    ("/loop/3", None),
    ("/updates/2", None),
    ("/updates/7", None),
    ("/alone/2", Some("constraint")),
    ("/alone/1", Some("updated")),
    ("/alone/7", Some("none")),
    ("/fn/2", None),
    ("/tried/2", Some("constraint")),
    ("/tried/12", Some("12")),
    ("/matched/3", Some("constraint")),
    ("/matched/4", Some("inserted 4")),
    ("/numbered/3", None),
    ("/numbered/5", Some("1")),
    ("/counted/3", None),
    ("/counted/6", Some("kept")),
    ("/reads-its-own/8", Some("true own 8 1")),
    ("/fn/70", Some("kept")),
    ("/last/71", Some("kept")),
    ("/last/71", None),
];

/// Returns the failures of the log, without their times.
fn failures(log: &str) -> Vec<String> {
    let failures = log.lines().filter_map(|line| line.find("placed.weir:").map(|at| line[at..].to_owned()));
    failures.collect()
}

#[test]
fn a_placed_change_fails_where_it_stands_in_every_store_and_nothing_behind_it_is_kept() {
    let program = Scratch::new("placed.weir", PLACED.as_bytes());
    let mut known: Option<(String, Vec<String>)> = None;
    for store in TableStore::each("placed") {
        let served = Served::start(program.path(), &store.with(&[]));
        for (path, wanted) in REQUESTS {
            let answer = post(&served, path).expect("an answer");
            match wanted {
                Some(wanted) => assert_eq!((answer.status, text(&answer)), (200, wanted), "{path}"),
                None => assert_eq!(answer.status, 500, "{path}"),
            }
        }
        let all = text(&served.get("/all")).to_owned();
        let (_, log) = served.stop();
        let failed = failures(&log);
        assert_eq!(failed.len(), 15, "{failed:#?}");
        let found = (all, failed);
        let known = known.get_or_insert_with(|| found.clone());
        assert_eq!(*known, found);
    }
}

const EXPECTED: &str = r#"use http, list

record Stock { item: Int, left: Int }
record Sold { shop: Int, item: Int, count: Int }

table stocks: Stock key item
table sold: Sold key (shop, item)

service shop on http(port: 8080) {
  post "/fill" {
    atomic stocks, sold {
      for item in list.numbers(1, 9)? {
        stocks.upsert(Stock { item, left: 10 })?
        sold.upsert(Sold { shop: 1, item, count: 0 })?
      }
    }
    http.text("filled")
  }
  post "/sell/{shop}/{a}/{b}" (shop: Int, a: Int, b: Int) {
    let said = atomic stocks, sold {
      let first = stocks[a] else { fail("no first") }
      let picked = [(a, 1), (b, 2), (a, 3)]
      let names = for (item, _) in picked { stocks[item] }
      let each = for ((item, count), known) in picked.zip(names) {
        let stock = stocks.update(item, |s| Stock { ..s, left: s.left - count })? else { fail("no stock of {item}") }
        let before = known else { fail("nothing known of {item}") }
        let so_far = sold[(shop, item)] else { Sold { shop, item, count: 0 } }
        sold.upsert(Sold { ..so_far, count: so_far.count + count })?
        "{before.left} {stock.left}"
      }
      let last = stocks[a] else { fail("no last") }
      let total = sold[(shop, a)] else { fail("nothing sold") }
      if b == 8 { stocks.delete(b)? }
      "{first.left} {each} {last.left} {total.count} {stocks[b] == None}"
    }
    http.text(said)
  }
  get "/all" {
    let all = for s in stocks { "{s.item} {s.left}" }
    let counts = for s in sold if s.count > 0 { "{s.shop} {s.item} {s.count}" }
    http.text("{all} {counts}")
  }
}
"#;

#[test]
fn a_transaction_that_asks_for_rows_beforehand_reads_what_it_has_written_itself() {
    let program = Scratch::new("expected.weir", EXPECTED.as_bytes());
    let mut known: Option<Vec<String>> = None;
    for store in TableStore::each("expected") {
        let served = Served::start(program.path(), &store.with(&[]));
        let requests =
            ["/fill", "/sell/1/1/2", "/sell/1/2/1", "/sell/2/3/3", "/sell/1/99/1", "/sell/1/4/99", "/sell/1/4/8"];
        let answers = requests.iter().map(|path| {
            let answer = post(&served, path).expect("an answer");
            format!("{} {}", answer.status, text(&answer))
        });
        let mut found: Vec<String> = answers.collect();
        found.push(text(&served.get("/all")).to_owned());
        served.stop();
        assert_eq!(found[1], "200 10 [\"10 9\", \"10 8\", \"10 6\"] 6 4 false");
        let known = known.get_or_insert_with(|| found.clone());
        assert_eq!(*known, found);
    }
}

#[test]
fn placed_changes_are_explained_as_the_program_writes_them() {
    let program = Scratch::new("placed.weir", PLACED.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!(said.code, 0, "{}", said.messages);
    assert!(said.output.contains("notes.insert") && said.output.contains("notes.update"), "{}", said.output);
    assert!(!said.output.contains("place_") && !said.output.contains(".expect"), "{}", said.output);
}

/// Returns the outline of the graph of a program.
fn outline(name: &str, text: &str) -> String {
    let program = Scratch::new(name, text.as_bytes());
    let said = say(&["graph", program.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    said.output
}

#[test]
fn changes_that_end_the_flow_if_they_fail_are_placed_and_others_are_not() {
    let graph = outline("placed.weir", PLACED);
    let of = |path: &str| {
        let route = graph.split(path).nth(1).unwrap_or_else(|| panic!("no {path}\n{graph}"));
        route.split("  post /").next().expect("a part")
    };
    for path in ["/last/", "/divides/", "/fn/"] {
        let route = of(path);
        assert!(route.contains(" tables.place_insert(") && !route.contains(" tables.insert("), "{path}: {route}");
    }
    assert!(of("/updates/").contains(" tables.place_replace("), "{graph}");
    // The failure of the commit is that of the `update`, too.
    assert!(of("/alone/").contains(" tables.place_replace("), "{graph}");
    // One that is matched, those of a `fn` that returns them, and those beside a shared value.
    for path in ["/matched/", "/tried/", "/counted/"] {
        assert!(of(path).contains(" tables.insert("), "{path}: {graph}");
    }
}

#[test]
fn a_transaction_asks_for_the_rows_of_a_loop_before_it_waits_for_others() {
    let graph = outline("expected.weir", EXPECTED);
    let transaction = graph.split("/sell/").nth(1).expect("the route");
    let at = |part: &str| transaction.find(part).unwrap_or_else(|| panic!("no {part}\n{graph}"));
    assert!(at("tables.expect_each(stocks") < at("tables.get_all(stocks"), "{graph}");
    assert!(at("tables.expect_each(sold") < at("tables.get_all(stocks"), "{graph}");
}

/// Inserts rows of 200 kB each, which together are more than a flow may hold.
const LARGE: &str = r#"use http, list

record Page { id: Int, content: Text }

table pages: Page key id

service book on http(port: 8080) {
  post "/fill" {
    let content = "0123456789abcdef".repeat(12500)?
    atomic pages {
      for id in list.numbers(0, 200)? { pages.insert(Page { id, content })? }
    }
    http.text("{pages.count()}")
  }
}
"#;

#[test]
fn a_transaction_writes_more_than_its_flow_may_hold() {
    let program = Scratch::new("large.weir", LARGE.as_bytes());
    let plan = Scratch::new("large.toml", b"memory_per_flow = \"2mb\"");
    for store in TableStore::each("large-rows") {
        let served = Served::start(program.path(), &store.with(&["--plan", plan.path()]));
        let answer = post(&served, "/fill").expect("it answers");
        let said = served.stop().1;
        assert_eq!((answer.status, text(&answer)), (200, "200"), "{said}");
    }
}
