//! Transactions in PostgreSQL whose changes are placed, and whose rows are asked for beforehand: their answers and failures are what
//! they are in other stores, and at the same places.

use test_support::postgres::PostgresServer;

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

const TOGETHER: &str = r#"use http, list

enum Kind { Small, Large }
record Stock { item: Int, name: Text, left: Int }
record Line { order: Int, name: Text, kind: Kind, count: Option(Int) }
record Tag { line: Text, weight: Float, is_new: Bool, raw: Bytes }

table stocks: Stock key item
table lines: Line key (order, name) unique (kind, count)
table tags: Tag key line

service shop on http(port: 8080) {
  post "/fill" {
    atomic stocks {
      let none = stocks[1]
      for item in list.numbers(1, 13)? { stocks.insert(Stock { item, name: "it's \"{item}\" \\, NULL", left: 10 })? }
    }
    http.text("filled")
  }
  post "/order/{order}/{shift}/{a}/{b}" (order: Int, shift: Int, a: Int, b: Int) {
    let picked = [a, a + 1, b, a + 2]
    let said = atomic stocks, lines, tags {
      let known = for item in picked { stocks[item] }
      for (item, at) in picked.zip([0, 1, 2, 3]) {
        let stock = stocks.update(item, |s| Stock { ..s, left: s.left - 1 })? else { fail("no stock of {item}") }
        lines.insert(Line {
          order,
          name: if order == 8 { "same" } else { "{stock.name} ({at})" },
          kind: if at == 1 { Large } else { Small },
          count: if item == 9 { None } else { Some(shift + at) },
        })?
        tags.upsert(Tag { line: stock.name, weight: 0.1, is_new: at == 0, raw: "\\ {item}".to_bytes() })?
      }
      for item in picked { stocks[item] }
    }
    let left = for s in said { match s { Some(stock) => stock.left, None => 0 } }
    http.text("{left}")
  }
  get "/all" {
    let all = for s in stocks { "{s.item} {s.name} {s.left}" }
    let of_lines = for l in lines { "{l.order} {l.name} {l.kind} {l.count}" }
    let of_tags = for t in tags { "{t.line} {t.weight} {t.is_new} {t.raw.length()}" }
    http.text("{all} {of_lines} {of_tags}")
  }
}
"#;

/// Sends requests, and returns their answers with that of `/all`, and the lines of the log from the place of a failure on.
fn answers_and_failures(
    served: Served,
    program: &str,
    requests: impl Iterator<Item = String>,
) -> (Vec<String>, Vec<String>) {
    let answers = requests.map(|path| {
        let answer = post(&served, &path).expect("an answer");
        if answer.status == 200 { format!("200 {}", text(&answer)) } else { answer.status.to_string() }
    });
    let mut answers: Vec<String> = answers.collect();
    answers.push(text(&served.get("/all")).to_owned());
    let log = served.stop().1;
    let failures = log.lines().filter_map(|line| line.find(program).map(|at| line[at..].to_owned()));
    (answers, failures.collect())
}

/// In PostgreSQL, the changes of each table are one statement. Each kind of request comes twice, because the statement is prepared for
/// the second one.
#[test]
fn changes_of_a_loop_that_are_one_statement_write_and_fail_as_each_by_itself() {
    let program = Scratch::new("together.weir", TOGETHER.as_bytes());
    let mut known: Option<(Vec<String>, Vec<String>)> = None;
    for store in TableStore::each("together") {
        let served = Served::start(program.path(), &store.with(&[]));
        let orders =
            ["1/10/1/5", "2/20/1/5", "3/30/1/1", "1/40/1/5", "4/9/1/5", "5/19/4/7", "6/50/5/9", "7/52/6/9", "8/70/1/5"];
        let requests = ["/fill".to_owned()].into_iter().chain(orders.map(|order| format!("/order/{order}")));
        let found = answers_and_failures(served, "together.weir:", requests);
        assert!(found.1.len() >= 3 && found.0[2].starts_with("200"), "{found:#?}");
        let known = known.get_or_insert_with(|| found.clone());
        assert_eq!(*known, found);
    }
}

#[test]
fn the_changes_of_a_loop_are_one_statement_for_each_table() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("once.weir", TOGETHER.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("changes_together")]);
    let orders = (1..=6).map(|order| format!("/order/{order}/{}/1/5", 10 * order));
    for path in ["/fill".to_owned()].into_iter().chain(orders) {
        assert_eq!(post(&served, &path).expect("an answer").status, 200, "{path}");
    }
    served.stop();
    // A row tells which command of its transaction has written it.
    let commands = |table: &str, rows: &str| {
        let sql = format!("SELECT count(*) || ' ' || count(DISTINCT cmin::text) FROM {table} WHERE {rows}");
        server.execute("changes_together", &sql).trim().to_owned()
    };
    assert_eq!(commands("lines", "\"order\" = 6"), "4 1");
    assert_eq!(commands("stocks", "\"left\" = 4"), "4 1");
    assert_eq!(commands("tags", "true"), "4 4");
}

const NUMBERED: &str = r#"use http, list

record Line { id: Int, name: Text, count: Int }
record Tag { id: Int, name: Text }

table lines: Line key id auto unique name
table tags: Tag key id auto

fn line(name: Text, count: Int) -> Line { Line { id: 0, name, count } }

service numbering on http(port: 8080) {
  post "/add/{name}/{count}" (name: Text, count: Int) {
    let ids = atomic lines, tags {
      for at in list.numbers(0, count)? {
        let id = lines.insert(line("{name} {at}", at))?
        let tag = if at % 3 == 0 { tags.insert(Tag { name: "{id}" })? } else { 0 }
        (id, tag)
      }
    }
    let said = for (id, tag) in ids { "{id} {tag}" }
    http.text("{said}")
  }
  post "/many/{name}/{count}" (name: Text, count: Int) {
    atomic lines { for at in list.numbers(0, count)? { lines.insert(line("{name} {at}", at))? } }
    http.text("added")
  }
  post "/behind/{name}" (name: Text) {
    let said = atomic lines {
      let first = lines.insert(line(name, 1))?
      let second = lines.insert(line("{name} second", 2))?
      let at_second = lines[second]
      lines.delete(second)?
      let third = lines.insert(line("{name} third", 3))?
      lines.upsert(Line { id: third + 10, name: "{name} chosen", count: 4 })?
      let fourth = lines.insert(line("{name} fourth", 5))?
      let matched = match lines.insert(line(name, 6)) {
        Ok(id) => "inserted {id}"
        Err(failure) => failure.kind()
      }
      let fifth = lines.insert(line("{name} fifth", 7))?
      lines.update(fifth, |l| Line { ..l, count: l.count + 1 })?
      lines.upsert(Line { id: first, name: "{name} first", count: 8 })?
      let sixth = lines.insert(line("{name} sixth", 9))?
      "{first} {second} {at_second} {third} {fourth} {matched} {fifth} {sixth} {lines.count()}"
    }
    http.text(said)
  }
  post "/fails/{name}/{count}" (name: Text, count: Int) {
    atomic lines, tags {
      for at in list.numbers(0, count)? {
        tags.insert(Tag { name })?
        lines.insert(line(if at == count - 1 { name } else { "{name} failed {at}" }, at))?
      }
    }
    http.text("kept")
  }
  get "/all" {
    let all = for l in lines { "{l.id} {l.name} {l.count}" }
    let of_tags = for t in tags { "{t.id} {t.name}" }
    http.text("{all} {of_tags}")
  }
}
"#;

/// In PostgreSQL, a transaction knows the numbers of its rows behind the first one.
#[test]
fn rows_of_a_transaction_have_the_next_numbers_whatever_stands_between_them() {
    let program = Scratch::new("numbered.weir", NUMBERED.as_bytes());
    let mut known: Option<(Vec<String>, Vec<String>)> = None;
    for store in TableStore::each("numbered_rows") {
        let served = Served::start(program.path(), &store.with(&[]));
        let requests = (1..=4).flat_map(|round| {
            [
                format!("/add/a{round}/{}", 3 * round),
                format!("/behind/b{round}"),
                format!("/fails/a{round}%201/{}", 5 * round),
                format!("/fails/b{round}%20third/2"),
                format!("/add/c{round}/70"),
            ]
        });
        let found = answers_and_failures(served, "numbered.weir:", requests);
        let first = "200 [\"1 1\", \"2 0\", \"3 0\"]";
        assert_eq!((found.0[0].as_str(), found.0[2].as_str()), (first, "500"), "{found:#?}");
        let known = known.get_or_insert_with(|| found.clone());
        assert_eq!(*known, found);
    }
}

#[test]
fn numbered_rows_of_a_loop_are_few_statements() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("numbered_once.weir", NUMBERED.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("numbered_together")]);
    for name in ["a", "b", "c"] {
        assert_eq!(post(&served, &format!("/many/{name}/200")).expect("an answer").status, 200);
    }
    served.stop();
    // A row tells which command of its transaction has written it.
    let sql = "SELECT count(*) || ' ' || (count(DISTINCT cmin::text) < 20) FROM lines WHERE name LIKE 'c %'";
    assert_eq!(server.execute("numbered_together", sql).trim(), "200 true");
    let last = "SELECT last FROM weir_numbers WHERE \"table\" = 'lines'";
    assert_eq!(server.execute("numbered_together", last).trim(), "600");
}

/// Inserts a tag behind each line, with the next number.
const TAGGING: &str = "CREATE FUNCTION tag() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO tags (id, name) SELECT coalesce(max(id), 0) + 1, 'by a trigger' FROM tags; RETURN NULL;
END $$; CREATE TRIGGER tag AFTER INSERT ON lines FOR EACH ROW EXECUTE FUNCTION tag()";

/// The program has not noticed the trigger, and notices it when it starts.
#[test]
fn a_number_that_a_trigger_takes_is_not_that_of_the_next_row() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("tagging.weir", NUMBERED.as_bytes());
    let tables = server.schema("numbers_of_triggers");
    for begin in [0, 40] {
        let served = Served::start(program.path(), &["--tables", &tables]);
        let added: Vec<u16> = (0..8)
            .map(|round| {
                if (begin, round) == (0, 4) {
                    server.execute("numbers_of_triggers", TAGGING);
                }
                post(&served, &format!("/add/{}/5", begin + round)).expect("an answer").status
            })
            .collect();
        assert_eq!(added, [200; 8]);
        served.stop();
    }
    // Sixteen requests have added five lines and two tags each, and the trigger a tag for each line of twelve of them.
    let counts =
        "SELECT (SELECT count(*) || ' ' || max(id) FROM lines) || ' ' || (SELECT count(*) || ' ' || max(id) FROM tags)";
    assert_eq!(server.execute("numbers_of_triggers", counts).trim(), "80 80 92 92");
}

const REFERENCING: &str = r#"use http, list

record Order { id: Int, name: Text }
record Item { id: Int, order: Int, parent: Option(Int), count: Int }

table orders: Order key id auto unique name
table items: Item key id auto references order: orders references parent: items cascade

service ordering on http(port: 8080) {
  post "/order/{name}/{count}" (name: Text, count: Int) {
    let said = atomic orders, items {
      let order = orders.insert(Order { name })?
      let ids = for at in list.numbers(0, count)? { items.insert(Item { order, parent: None, count: at })? }
      "{order} {ids}"
    }
    http.text(said)
  }
  post "/more/{order}/{count}" (order: Int, count: Int) {
    atomic items { for at in list.numbers(0, count)? { items.insert(Item { order, parent: None, count: at })? } }
    http.text("added")
  }
  post "/tree/{order}/{parent}" (order: Int, parent: Int) {
    let said = atomic orders, items {
      let found = orders[order] else { fail("no order") }
      let first = items.insert(Item { order: found.id, parent: Some(parent), count: 1 })?
      let second = items.insert(Item { order, parent: Some(first), count: 2 })?
      items.update(first, |i| Item { ..i, parent: Some(second) })?
      let third = items.insert(Item { order, parent: Some(second), count: 3 })?
      "{first} {second} {third}"
    }
    http.text(said)
  }
  post "/deleted/{name}" (name: Text) {
    let said = atomic orders, items {
      let order = orders.insert(Order { name })?
      let first = items.insert(Item { order, parent: None, count: 1 })?
      let second = items.insert(Item { order, parent: Some(first), count: 2 })?
      items.delete(first)?
      let third = items.insert(Item { order, parent: None, count: 3 })?
      let behind = match items.insert(Item { order, parent: Some(second), count: 4 }) {
        Ok(id) => "inserted {id}"
        Err(failure) => failure.kind()
      }
      "{order} {first} {second} {third} {behind}"
    }
    http.text(said)
  }
  post "/dangling/{name}" (name: Text) {
    atomic orders, items {
      let order = orders.insert(Order { name })?
      let first = items.insert(Item { order, parent: None, count: 1 })?
      items.insert(Item { order, parent: Some(first), count: 2 })?
      items.delete_all(|i| i.order == order)?
      items.insert(Item { order, parent: Some(first), count: 3 })?
    }
    http.text("kept")
  }
  get "/all" {
    let all = for i in items { "{i.id} {i.order} {i.parent} {i.count}" }
    let of_orders = for o in orders { "{o.id} {o.name}" }
    http.text("{all} {of_orders}")
  }
}
"#;

/// In PostgreSQL, a transaction does not look for rows that it knows before it writes others that reference them.
#[test]
fn rows_that_reference_those_of_the_same_transaction_are_written_and_refused_as_in_every_store() {
    let program = Scratch::new("referencing.weir", REFERENCING.as_bytes());
    let mut known: Option<(Vec<String>, Vec<String>)> = None;
    for store in TableStore::each("referencing_rows") {
        let served = Served::start(program.path(), &store.with(&[]));
        let requests = (1..=4).flat_map(|round| {
            [
                format!("/order/a{round}/{}", 2 * round),
                format!("/more/{round}/3"),
                format!("/more/{}/3", 100 + round),
                format!("/tree/{round}/1"),
                format!("/tree/{round}/1000"),
                format!("/deleted/b{round}"),
                format!("/dangling/c{round}"),
                format!("/order/a{round}/2"),
            ]
        });
        let found = answers_and_failures(served, "referencing.weir:", requests);
        let refused = [2, 4, 6, 7].map(|at: usize| found.0[at].as_str());
        assert_eq!((found.0[5].as_str(), refused), ("200 2 9 10 11 constraint", ["500"; 4]), "{found:#?}");
        let known = known.get_or_insert_with(|| found.clone());
        assert_eq!(*known, found);
    }
}

#[test]
fn rows_that_reference_known_ones_are_few_statements() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("referencing_once.weir", REFERENCING.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("referencing_together")]);
    let paths = ["/order/a/200", "/order/b/200", "/order/c/200", "/more/1/200"];
    assert!(paths.iter().all(|path| post(&served, path).expect("an answer").status == 200));
    served.stop();
    for (rows, number) in [("id > 400 AND \"order\" = 3", "200 true"), ("id > 600 AND \"order\" = 1", "200 true")] {
        let sql = format!("SELECT count(*) || ' ' || (count(DISTINCT cmin::text) < 20) FROM items WHERE {rows}");
        assert_eq!(server.execute("referencing_together", &sql).trim(), number, "{rows}");
    }
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
