//! Statements whose rows are more than their flow may hold: each fails alone, in every store, and the process does not grow with them.

use std::time::{Duration, Instant};

use super::{post, text};
use crate::support::{Scratch, Served, TableStore, read_answer, resident_max};

const ROWS: &str = r#"use http, list

record Part { id: Int, of: Int, text: Text }
record Whole { id: Int, text: Text }

table wholes: Whole key id
table parts: Part key id references of: wholes
table larges: Whole key id

fn joined(texts: List(Text)) -> Text { "{texts.length()} {texts[0].slice(0, 1)}" }
fn summed(numbers: List((Int, Int))) -> Text { "{numbers.length()} {numbers[0].1}" }
fn text_of(id: Int) -> Text { match larges[id] { Some(large) => large.text, None => "" } }
fn first(numbers: List(Int)) -> Text { "{numbers.length()} {numbers[0]}" }

service stock on http(port: 8080) {
  post "/fill/{from}" (from: Int) {
    let text = "0123456789abcdef".repeat(640)?
    wholes.upsert(Whole { id: 1, text })?
    atomic parts, wholes {
      for id in list.numbers(from, from + 50)? { parts.insert(Part { id, of: 1, text: "{text}{id}" })? }
    }
    http.text("filled")
  }
  post "/fill-larges/{from}" (from: Int) {
    let text = "0123456789abcdef".repeat(6400)?
    atomic larges { for id in list.numbers(from, from + 10)? { larges.insert(Whole { id, text })? } }
    http.text("filled")
  }
  get "/count" { http.text("{parts.count()}") }
  get "/one" { http.text(match parts[7] { Some(part) => "{part.text.length()}", None => "none" }) }
  get "/few" { let all = for part in parts limit 20 { part.text }
    http.text(joined(all))  }
  post "/texts" { let all = for part in parts { part.text }
    http.text(joined(all))  }
  post "/numbers" { let all = for part in parts { (part.id, part.of + part.id) }
    http.text(summed(all))  }
  post "/conditions" { let all = for part in parts if part.text.length() > part.id { part.id }
    http.text(first(all))  }
  post "/page" { let all = for part in parts limit 3000 { part.text }
    http.text(joined(all))  }
  post "/joined" {
    let all = for part in parts { match wholes[part.of] { Some(whole) => "{whole.text}{part.id}", None => "" } }
    http.text(joined(all))
  }
  post "/keys" {
    let all = for id in list.numbers(0, 2000)? { match parts[id] { Some(part) => part.text, None => "" } }
    http.text(joined(all))
  }
  post "/gathered" {
    let lengths = for id in list.numbers(0, 400)? { text_of(id).length() }
    http.text(first(lengths))
  }
  get "/large/{id}" (id: Int) {
    let lengths = for of in [id, id + 1] { text_of(of).length() }
    http.text("{lengths.sum()}")
  }
  post "/keys-at-one-moment" {
    let texts = atomic parts { for id in list.numbers(0, 2000)? { match parts[id] { Some(part) => part.text, None => "" } } }
    http.text(joined(texts))
  }
  post "/all-at-one-moment" {
    let texts = atomic parts { for part in parts { part.text } }
    http.text(joined(texts))
  }
  post "/delete" {
    let count = parts.delete_all(|part| part.text.length() > part.id) else { 0 }
    http.text("{count}")
  }
  post "/delete-handled" {
    let count = parts.delete_all(|part| part.text.length() < 0) else as failure {
      return http.status(409, "{failure.kind()}")?
    }
    http.text("{count}")
  }
  post "/update" {
    let count = parts.update_all(|part| part.id > 0, |part| Part { ..part, text: "{part.text}." }) else { 0 }
    http.text("{count}")
  }
}
"#;

const TOO_MANY: [&str; 12] = [
    "/texts",
    "/numbers",
    "/conditions",
    "/page",
    "/joined",
    "/keys",
    "/gathered",
    "/keys-at-one-moment",
    "/all-at-one-moment",
    "/delete",
    "/delete-handled",
    "/update",
];

/// The bytes by which the process may grow: some flows, buffers of connections and caches, but not the 20 MB of rows, nor the 40 MB of
/// large ones.
const GROWTH_MAX: u64 = 16 << 20;

/// Far more time than a program needs to release what flows have held.
const RELEASED_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn rows_that_are_more_than_a_flow_may_hold_fail_it_in_every_store() {
    let program = Scratch::new("rows.weir", ROWS.as_bytes());
    let plan = Scratch::new("rows.toml", b"memory_per_flow = \"2mb\"");
    for store in TableStore::each("row-memory") {
        let served = Served::start(program.path(), &store.with(&["--plan", plan.path()]));
        for from in (0..2_000).step_by(50) {
            assert_eq!(post(&served, &format!("/fill/{from}")).expect("it answers").status, 200);
        }
        for from in (0..400).step_by(10) {
            assert_eq!(post(&served, &format!("/fill-larges/{from}")).expect("it answers").status, 200);
        }
        // What is prepared for the second time needs no thread.
        for _ in 0..3 {
            let before = resident_max(&served);
            for path in TOO_MANY {
                let answer = post(&served, path).expect("it answers");
                assert_eq!((path, answer.status), (path, 500), "{}", text(&answer));
            }
            let grown = resident_max(&served) - before;
            assert!(grown < GROWTH_MAX, "{} MiB", grown >> 20);
            assert_eq!(
                ["/count", "/one", "/few"].map(|path| text(&served.get(path)).to_owned()),
                ["2000", "10241", "20 0"]
            );
        }
        let log = served.stop().1;
        let failed = log.matches("the flow needs more than 2.0 MiB of memory (`memory_per_flow`)").count();
        assert_eq!(failed, 3 * TOO_MANY.len(), "{log}");
    }
}

const JOINS: &str = r#"use http, list

record Doc { id: Int, text: Text }
record Ref { id: Int, doc: Int }

table docs: Doc key id
table few: Ref key id
table many: Ref key id
table soft_few: Ref key id soft()
table soft_many: Ref key id soft()

fn summed(lengths: List(Int)) -> Text { "{lengths.length()} {lengths.sum()}" }

service joins on http(port: 8080) {
  post "/fill-docs/{from}" (from: Int) {
    let text = "0123456789abcdef".repeat(6400)?
    for id in list.numbers(from, from + 10)? { docs.upsert(Doc { id, text })? }
    http.text("filled")
  }
  post "/fill" {
    for id in list.numbers(0, 1000)? {
      few.upsert(Ref { id, doc: id % 5 })?
      soft_few.upsert(Ref { id, doc: id % 5 })?
    }
    for id in list.numbers(0, 400)? {
      many.upsert(Ref { id, doc: id })?
      soft_many.upsert(Ref { id, doc: id })?
    }
    http.text("filled")
  }
  get "/few" { http.text(summed(for r in few { match docs[r.doc] { Some(d) => d.text.length(), None => 0 } })) }
  get "/few-found" {
    http.text(summed(for r in few if docs[r.doc].map(|d| d.id) == Some(1) { r.doc }))
  }
  get "/soft-few" { http.text(summed(for r in soft_few { match docs[r.doc] { Some(d) => d.text.length(), None => 0 } })) }
  get "/many" { http.text(summed(for r in many { match docs[r.doc] { Some(d) => d.text.length(), None => 0 } })) }
  get "/many-sum" { http.text("{(for r in many { match docs[r.doc] { Some(d) => d.id, None => 0 } }).sum()}") }
  get "/many-found" {
    http.text(summed(for r in many if docs[r.doc].map(|d| d.id) == Some(1) { r.doc }))
  }
  get "/soft-many" { http.text(summed(for r in soft_many { match docs[r.doc] { Some(d) => d.text.length(), None => 0 } })) }
}
"#;

/// Five documents of 100 kB, which a thousand rows name, are held once; four hundred ones are 40 MB.
#[test]
fn joined_rows_are_charged_as_they_come_and_held_once() {
    let program = Scratch::new("joins.weir", JOINS.as_bytes());
    let plan = Scratch::new("joins.toml", b"memory_per_flow = \"4mb\"");
    for store in TableStore::each("joined-memory") {
        let served = Served::start(program.path(), &store.with(&["--plan", plan.path()]));
        for from in (0..400).step_by(10) {
            assert_eq!(post(&served, &format!("/fill-docs/{from}")).expect("it answers").status, 200);
        }
        assert_eq!(post(&served, "/fill").expect("it answers").status, 200);
        let before = resident_max(&served);
        assert_eq!(text(&served.get("/soft-few")), "1000 102400000");
        // PostgreSQL sends a document with each row that names it.
        let few = if store.is_shared() { [500, 500] } else { [200, 200] };
        assert_eq!(["/few", "/few-found"].map(|path| served.get(path).status), few);
        for path in ["/many", "/many-sum", "/many-found", "/soft-many"] {
            assert_eq!((path, served.get(path).status), (path, 500));
        }
        let grown = resident_max(&served) - before;
        assert!(grown < GROWTH_MAX, "{} MiB", grown >> 20);
    }
}

const SCANS: &str = r#"use http, list

record Doc { id: Int, text: Text }
table docs: Doc key id

service scans on http(port: 8080) {
  post "/fill/{from}" (from: Int) {
    let text = "0123456789abcdef".repeat(25_600)?
    for id in list.numbers(from, from + 10)? { docs.upsert(Doc { id, text })? }
    http.text("filled")
  }
  get "/count" { http.text("{docs.count()}") }
  get "/lengths" { http.text("{(for d in docs { d.text.length() }).sum()}") }
  get "/ends" { http.text("{(for d in docs if d.text.slice(0, 2) == "01" { d.id }).sum()}") }
  get "/keys" {
    http.text("{(for id in list.numbers(0, 100)? { match docs[id] { Some(d) => d.text.length(), None => 0 } }).sum()}")
  }
}
"#;

/// A hundred rows are 40 MB, of which a flow may hold 16, and the program holds 64 MB.
#[test]
fn queries_of_many_clients_hold_no_more_together_than_the_program_may() {
    let program = Scratch::new("scans.weir", SCANS.as_bytes());
    for store in TableStore::each("scans") {
        for engine in ["event", "pool"] {
            let limited = store.with(&["--engine", engine, "--memory", "64mb"]);
            let served = Served::start(program.path(), &limited);
            for from in (0..100).step_by(10) {
                assert_eq!(post(&served, &format!("/fill/{from}")).expect("it answers").status, 200);
            }
            for path in ["/lengths", "/ends", "/keys"] {
                let clients: Vec<_> = (0..24).map(|_| served.ask(path)).collect();
                let statuses: Vec<u16> = clients.into_iter().map(|client| read_answer(client).status).collect();
                assert!(statuses.iter().all(|status| [500, 503].contains(status)), "{engine} {path}: {statuses:?}");
            }
            assert_eq!(text(&served.get("/count")), "100");
            let resident = resident_max(&served) >> 20;
            assert!(resident < 64 * 13 / 10, "{engine}: {resident} MiB");
        }
    }
}

const LARGE_ROWS: &str = r#"use http, text

record Doc { id: Int, t: Text }
table docs: Doc key id

service large on http(port: 8080) {
  post "/fill/{id}" (id: Int) { http.text("{docs.upsert(Doc { id, t: text.repeat("x", 3_000_000)? })?}") }
  get "/page" { http.text("{(for d in docs limit 3 { d.t.length() }).sum()}") }
  get "/ping" { http.text("pong") }
}
"#;

/// Each connection has received or sent some megabytes; all together more than the program may hold.
#[test]
fn connections_without_a_statement_leave_the_memory_of_the_program_to_others() {
    let program = Scratch::new("large.weir", LARGE_ROWS.as_bytes());
    for store in TableStore::each("idle-connections") {
        let served = Served::start(program.path(), &store.with(&["--memory", "64mb"]));
        for id in 0..3 {
            assert_eq!(post(&served, &format!("/fill/{id}")).expect("it answers").status, 200);
        }
        assert_eq!(text(&served.get("/page")), "9000000");
        for _ in 0..4 {
            let clients: Vec<_> = (0..24).map(|_| served.ask("/page")).collect();
            let statuses: Vec<u16> = clients.into_iter().map(|client| read_answer(client).status).collect();
            assert!(statuses.iter().all(|status| [200, 500, 503].contains(status)), "{statuses:?}");
        }
        // What the last flows held is released a moment later.
        let begin = Instant::now();
        while served.get("/page").status != 200 {
            assert!(begin.elapsed() < RELEASED_WITHIN, "nothing is in progress, and requests fail");
        }
        assert_eq!(text(&served.get("/ping")), "pong");
    }
}

const IMPORT: &str = r#"use http, list, time

record Order { id: Int, title: Text }
record Tag { name: Text, id: Int }
record Line { id: Int, of: Int }

table orders: Order key id
table tags: Tag key name
table lines: Line key id references of: orders

service shop on http(port: 8080) {
  post "/read-again" {
    for id in list.numbers(0, 500)? {
      orders.upsert(Order { id, title: "{id}" })?
      orders[id]
    }
    http.text("{orders.count()}")
  }
  post "/referenced" {
    for id in list.numbers(0, 500)? {
      orders.upsert(Order { id, title: "{id}" })?
      lines.upsert(Line { id, of: id })?
    }
    http.text("{lines.count()}")
  }
  post "/large-upserts" {
    let text = "0123456789abcdef".repeat(640)?
    for id in list.numbers(0, 250)? {
      orders.upsert(Order { id: 1000, title: "{text}{id}" })?
      time.sleep(1ns)
    }
    http.text("{orders.count()}")
  }
  post "/large-inserts" {
    let text = "0123456789abcdef".repeat(640)?
    for id in list.numbers(2000, 2250)? {
      orders.insert(Order { id, title: "{text}{id}" })?
      time.sleep(1ns)
    }
    http.text("{orders.count()}")
  }
  post "/large-replaced" {
    let text = "0123456789abcdef".repeat(640)?
    for id in list.numbers(0, 250)? {
      orders.update(1000, |order| Order { ..order, title: "{text}{id}" })?
      time.sleep(1ns)
    }
    http.text("{orders.count()}")
  }
  post "/large-steps" {
    let text = "0123456789abcdef".repeat(640)?
    for id in list.numbers(0, 125)? {
      atomic orders {
        orders.delete(2000 + id)?
        orders.insert(Order { id: 2000 + id, title: "{text}{id}!" })?
        orders.upsert(Order { id: 1000, title: "{text}{id}" })?
      }
      time.sleep(1ns)
    }
    http.text("{orders.count()}")
  }
  post "/large-keys" {
    let text = "0123456789abcdef".repeat(128)?
    for id in list.numbers(0, 650)? {
      tags.upsert(Tag { name: "{text}{id % 7}", id })?
      time.sleep(1ns)
    }
    http.text("{tags.count()}")
  }
  post "/large-all" {
    let text = "0123456789abcdef".repeat(640)?
    for id in list.numbers(0, 40)? {
      orders.update_all(|order| order.id < 2006 && order.id >= 2000, |order| Order { ..order, title: "{text}{id}" })?
      time.sleep(1ns)
    }
    http.text("{orders.count()}")
  }
  post "/large-reads" {
    let title = "0123456789abcdef".repeat(12800)?
    orders.upsert(Order { id: 3000, title })?
    let read = fold characters = 0 for id in list.numbers(0, 40)? {
      let found = (for order in orders if order.id == 3000 { order.title.length() }).sum()
      time.sleep(1ns)
      characters + found
    }
    http.text("{read / 204800}")
  }
  post "/deleted" {
    for id in list.numbers(0, 500)? { lines.delete(id)?
      orders.delete(id)? }
    http.text("{lines.count()}")
  }
}
"#;

/// Each of these writes is a group of its own, whose task is no memory of the flow.
#[test]
fn a_flow_that_writes_and_reads_in_turns_holds_no_memory_for_it() {
    let program = Scratch::new("import.weir", IMPORT.as_bytes());
    let plan = Scratch::new("import.toml", b"memory_per_flow = \"2mb\"");
    for store in TableStore::each("import") {
        let served = Served::start(program.path(), &store.with(&["--plan", plan.path()]));
        for (path, answer) in [("/read-again", "500"), ("/referenced", "500"), ("/deleted", "0")] {
            assert_eq!(text(&post(&served, path).expect("it answers")), answer, "{path}");
        }
    }
}

/// Each of these requests writes 1.3 to 2.5 MB, and holds some ten kB of them at a time.
#[test]
fn a_flow_is_not_charged_for_what_it_has_written_and_read() {
    let program = Scratch::new("import.weir", IMPORT.as_bytes());
    let plan = Scratch::new("import.toml", b"memory_per_flow = \"1mb\"");
    let written = [
        ("/large-upserts", "1"),
        ("/large-inserts", "251"),
        ("/large-replaced", "251"),
        ("/large-steps", "251"),
        ("/large-keys", "7"),
        ("/large-all", "251"),
        ("/large-reads", "40"),
    ];
    for store in TableStore::each("written") {
        let served = Served::start(program.path(), &store.with(&["--plan", plan.path()]));
        for (path, answer) in written {
            assert_eq!(text(&post(&served, path).expect("it answers")), answer, "{path}");
        }
    }
}
