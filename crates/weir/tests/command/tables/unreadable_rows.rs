//! Rows that cannot be read: a request fails only if it comes to them, and nothing happens that stands behind.

use super::existing::Other;
use super::text;
use crate::support::{Scratch, Served, say};

/// Reads of rows of which one cannot be read.
const BROKEN: &str = r#"use http

record User { id: Int, n: Int }

config shop: Text

table users: User key id existing(database: shop)

fn early(ids: List(Int)) -> Text {
  let found = for id in ids {
    if id == 1 { return "stranger" }
    users[id] != None
  }
  "{found}"
}

fn first(ids: List(Int)) -> Text {
  let found = for id in ids {
    let user = users[id] else { return "stopped at {id}" }
    user.n
  }
  "{found}"
}

fn handled(found: Result(List(Int))) -> Text {
  match found { Ok(numbers) => "{numbers}", Err(failure) => "{failure}" }
}

fn failed(ids: List(Int)) -> Result(List(Int)) {
  Ok(for id in ids {
    let user = users[id] else { fail("stopped at {id}") }
    user.n
  })
}

fn user_of(id: Int) -> Option(User) { users[id] }

fn failed_in_fn(ids: List(Int)) -> Result(List(Int)) {
  Ok(for id in ids {
    let user = user_of(id) else { fail("stopped at {id}") }
    user.n
  })
}

service front on http(port: 8080) {
  get "/failed" { http.text(handled(failed([1, 99, 2]))) }
  get "/failed-in-fn" { http.text(handled(failed_in_fn([1, 99, 2]))) }
  get "/unreadable" { http.text(handled(failed([1, 2, 99]))) }
  get "/if" { http.text("{for id in [1, 2] { if id == 2 { false } else { users[id] != None } }}") }
  get "/or" { http.text("{for id in [1, 2] { id == 2 || users[id] != None }}") }
  get "/match" { http.text("{for id in [1, 2] { match id { 2 => 0, _ => match users[id] { Some(u) => u.n, None => 0 } } }}") }
  get "/inner" {
    let lists = [(1, [7]), (2, [])]
    http.text("{for (id, ones) in lists { (for one in ones { users[id] != None && one == 7 }).length() }}")
  }
  get "/atomic" {
    let found = atomic users { for id in [1, 2] { if id == 2 { 0 } else { match users[id] { Some(u) => u.n, None => 0 } } } }
    http.text("{found}")
  }
  get "/return" { http.text(early([1, 2])) }
  get "/first" { http.text(first([1, 99, 2])) }
  get "/route" {
    let found = for id in [1, 99, 2] {
      let user = users[id] else { return http.text("stopped at {id}") }
      user.n
    }
    http.text("{found}")
  }
  get "/all" { http.text("{for id in [1, 2] { users[id] != None }}") }
}
"#;

/// A row that cannot be read is not read for a round that does not come to it.
const IGNORES_CASE: &str = r#"use http

config shop: Text

record Row { id: Int, name: Text, pet: Text }
record Pet { name: Text, age: Int }

table rows: Row key id unique name existing(database: shop)
table pets: Pet key name existing(database: shop)

service s on http(port: 8080) {
  get "/{name}" (name: Text) {
    let found = for r in rows if r.name == name { (r.id, pets[r.pet]) }
    http.json((found, pets[name], rows.count(|r| r.name < name)))
  }
}
"#;

/// The comparison by all bytes tells what the index finds apart.
#[test]
fn an_index_that_ignores_case_finds_texts_and_they_are_compared_by_their_bytes() {
    let program = Scratch::new("case.weir", IGNORES_CASE.as_bytes());
    let other = Other::Sqlite(Scratch::folder("ignores-case"));
    other.execute(
        "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE UNIQUE, pet TEXT NOT NULL);
         CREATE TABLE pets (name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE, age INTEGER NOT NULL);
         INSERT INTO rows VALUES (1, 'Ada', 'rex'), (2, 'Bob', 'Rex'); INSERT INTO pets VALUES ('rex', 3)",
    );
    let served = Served::start(program.path(), &["--set", &other.option()]);
    let asked = |path: &str| text(&served.get(path)).trim().to_owned();
    assert_eq!(asked("/Ada"), r#"[[[1,{"name":"rex","age":3}]],null,0]"#);
    assert_eq!(asked("/ada"), "[[],null,2]");
    assert_eq!(asked("/Bob"), "[[[2,null]],null,1]");
    assert_eq!(asked("/rex"), r#"[[],{"name":"rex","age":3},2]"#);
    let shown = say(&["tables", program.path(), "--set", &other.option()]).output;
    assert_eq!(shown.matches("SEARCH rows USING INDEX").count(), 1, "{shown}");
    assert_eq!(shown.matches("SEARCH joined 1 USING INDEX").count(), 1, "{shown}");
}

#[test]
fn rows_of_branches_that_are_not_taken_are_not_read() {
    let program = Scratch::new("broken.weir", BROKEN.as_bytes());
    let other = Other::Sqlite(Scratch::folder("broken-rows"));
    other.execute(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, n INTEGER NOT NULL); INSERT INTO users VALUES (1, 10), (2, 'x')",
    );
    let served = Served::start(program.path(), &["--set", &other.option()]);
    let asked = |path: &str| text(&served.get(path)).trim().to_owned();
    assert_eq!(asked("/if"), "[true, false]");
    assert_eq!(asked("/or"), "[true, true]");
    assert_eq!(asked("/match"), "[10, 0]");
    assert_eq!(asked("/inner"), "[1, 0]");
    assert_eq!(asked("/atomic"), "[10, 0]");
    assert_eq!(asked("/return"), "stranger");
    assert_eq!(asked("/first"), "stopped at 99");
    assert_eq!(asked("/route"), "stopped at 99");
    assert_eq!(asked("/failed"), "stopped at 99");
    assert_eq!(asked("/failed-in-fn"), "stopped at 99");
    assert!(!asked("/unreadable").contains("stopped"), "the read of the second row fails before");
    assert!(!asked("/all").contains("true"), "the second row cannot be read");
}

/// Effects behind reads of rows of which one cannot be read.
const EFFECTS_BEHIND_READS: &str = r#"use http

record User { id: Int, n: Int }

record Note { id: Int, n: Int }

config shop: Text

table users: User key id existing(database: shop)

table notes: Note key id auto

shared seen: List(Int) = []

fn number(id: Int) -> Int { users[id].map(|user| user.n) else { 0 } }

service front on http(port: 8080) {
  get "/before" { http.text("{for id in [1, 2, 3] { seen.push(id); number(id) }}") }
  get "/behind" { http.text("{for id in [1, 2, 3] { let n = number(id); seen.push(id); n }}") }
  get "/behind-all" { let all = for id in [1, 2] { number(id) }; seen.push(9); http.text("{all}") }
  get "/closure" { let all = [1, 2].map(|id| number(id)); seen.push(9); http.text("{all}") }
  get "/one" { let n = number(2); seen.push(9); http.text("{n}") }
  get "/atomic" { let n = atomic users { number(2) }; seen.push(9); http.text("{n}") }
  get "/query" { let all = for user in users { user.n }; seen.push(9); http.text("{all}") }
  get "/fold" { let sum = fold sum = 0 for id in [1, 2, 3] { seen.push(id); sum + number(id) }; http.text("{sum}") }
  get "/stored" { http.text("{for id in [1, 2, 3] { notes.insert(Note { n: id })?; number(id) }}") }
  get "/notes" { http.text("{for note in notes { note.n }}") }
  get "/seen" { let found = seen; seen.set([]); http.text("{found}") }
}
"#;

/// Nothing happens that stands behind a read which fails.
#[test]
fn effects_wait_for_reads_that_may_fail() {
    let program = Scratch::new("effects.weir", EFFECTS_BEHIND_READS.as_bytes());
    let other = Other::Sqlite(Scratch::folder("broken-rows-with-effects"));
    other.execute(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, n INTEGER NOT NULL); \
         INSERT INTO users VALUES (1, 10), (2, 'x'), (3, 30)",
    );
    for engine in ["event", "elastic", "pool", "staged", "dedicated"] {
        let data = Scratch::folder("data");
        let arguments = ["--set", &other.option(), "--engine", engine, "--data", data.path()];
        let served = Served::start(program.path(), &arguments);
        let asked = |path: &str| text(&served.get(path)).trim().to_owned();
        let expected = [
            ("/before", "[1, 2]"),
            ("/behind", "[1]"),
            ("/behind-all", "[]"),
            ("/closure", "[]"),
            ("/one", "[]"),
            ("/atomic", "[]"),
            ("/query", "[]"),
            ("/fold", "[1, 2]"),
        ];
        for (path, seen) in expected {
            assert_eq!(served.get(path).status, 500, "{engine} {path}");
            assert_eq!(asked("/seen"), seen, "{engine} {path}");
        }
        assert_eq!(served.get("/stored").status, 500, "{engine}");
        assert_eq!(asked("/notes"), "[1, 2]", "{engine}");
    }
}
