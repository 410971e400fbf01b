//! Reads of rows by their keys: which are one statement, and what they see.

use super::statements::tested_and_served;
use super::{post, text};
use crate::support::{Scratch, say};

const JOINS: &str = r#"use http

record User { name: Text, city: Text }

record Message { id: Int, from: Text, to: Text }

record Place { city: Text, number: Int, street: Text }

table users: User key name
table messages: Message key id auto
table places: Place key (city, number)

fn written() -> Result(Bool) {
  users.upsert(User { name: "ada", city: "Rom" })?
  users.upsert(User { name: "bob", city: "Ulm" })?
  places.upsert(Place { city: "Rom", number: 2, street: "Via" })?
  for (from, to) in [("ada", "bob"), ("bob", "eve"), ("eve", "ada"), ("ada", "ada")] {
    messages.insert(Message { from, to })?
  }
  Ok(true)
}

fn shown(user: Option(User)) -> Text {
  let user = user else { User { name: "?", city: "?" } }
  "{user.name} of {user.city}"
}

fn cities() -> List((Int, Option(User), Option(User))) {
  for m in messages order by m.id desc { (m.id, users[m.from], users[m.to]) }
}

/// Reads two tables in one transaction: the message that it writes, with the place of its sender.
fn sent(from: Text, to: Text) -> Result(Text) {
  atomic messages, users {
    users.update(from, |user| User { ..user, city: "Oslo" })?
    let id = messages.insert(Message { from, to })?
    let seen = for m in messages if m.id == id { "{m.to}: {shown(users[m.from])}" }
    messages.delete(id)?
    users.update(from, |user| User { ..user, city: "Rom" })?
    Ok(seen[0])
  }
}

fn streets(names: List(Text), number: Int) -> List(Text) {
  for name in names {
    let user = users[name] else { return ["{name} is unknown"] }
    let place = places[(user.city, number)] else { Place { city: user.city, number, street: "none" } }
    place.street
  }
}

fn known(names: List(Text)) -> List(Bool) {
  for name in names { users[name] != None }
}

fn moved() -> Result(List(Text)) {
  let seen = for name in ["ada", "ada"] {
    let user = users[name] else { User { name, city: "" } }
    users.upsert(User { ..user, city: "{user.city}!" })?
    user.city
  }
  Ok(seen)
}

fn nested() -> List(Text) {
  for user in users {
    let twice = for n in [1, 2] {
      let same = users[user.name] else { return [] }
      if users[user.name] == Some(user) { "{same.city}{n}" } else { "" }
    }
    "{twice}"
  }
}

fn all() -> Text {
  let cities = for (id, from, to) in cities() { "{id} {shown(from)} {shown(to)}" }
  "{cities} {streets(["ada", "bob"], 2)} {streets(["bob", "eve"], 2)} {known(["ada", "eve"])} {nested()}"
}

service board on http(port: 8080) {
  post "/" { http.text("{written()?}") }
  post "/move" { http.text("{moved()?}") }
  post "/sent" { http.text(sent("ada", "bob")?) }
  get "/" { http.text(all()) }
}

test "rows by keys" {
  written()?
  expect all() == JOINED
  expect sent("ada", "bob")? == "bob: ada of Oslo"
  expect moved()? == ["Rom", "Rom!"]
}
"#;

const JOINED: &str = r#"["4 ada of Rom ada of Rom", "3 ? of ? ada of Rom", "2 bob of Ulm ? of ?", "1 ada of Rom bob of Ulm"] ["Via", "none"] ["eve is unknown"] [true, false] ["[\"Rom1\", \"Rom2\"]", "[\"Ulm1\", \"Ulm2\"]"]"#;

#[test]
fn keyed_reads_of_a_for_are_one_statement_unless_it_writes() {
    let joins = JOINS.replace("JOINED", &format!("{JOINED:?}"));
    let program = tested_and_served("joins", &joins, |served| {
        let posted = |path| post(served, path).expect("an answer");
        assert_eq!(text(&posted("/")).trim(), "true");
        assert_eq!(text(&served.get("/")).trim(), JOINED);
        assert_eq!(text(&posted("/sent")).trim(), "bob: ada of Oslo");
        assert_eq!(text(&posted("/move")).trim(), "[\"Rom\", \"Rom!\"]");
    });
    let graph = say(&["graph", program.path(), "--all"]).output;
    let reads = |function: &str| {
        graph.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).filter(|word| *word == function).count()
    };
    assert!(reads("tables.get_all") > 0 && reads("tables.get") > 0, "{graph}");
}

const GATHERED: &str = r#"use http

record User { id: Int, name: Text, team: Int }

record Team { id: Int, name: Text }

table users: User key id
table teams: Team key id

fn may(viewer: Int, id: Int) -> Bool {
  if id == 0 { return false }
  let user = users[id] else { return false }
  user.team != viewer && teams[user.team] != None
}

fn label(id: Int) -> Text {
  let user = users[id] else { return "nobody" }
  let team = teams[user.team] else { return user.name }
  "{user.name} of {team.name}"
}

fn fill() -> Result(Int) {
  for id in [1, 2, 3, 4] { teams.insert(Team { id, name: "t{id}" })? }
  Ok((for id in [1, 2, 3, 4] { users.insert(User { id, name: "u{id}", team: id + id % 2 })? }).length())
}

fn shown(viewer: Int) -> Text {
  let names = for id in [0, 1, 2, 3, 4, 5] if may(viewer, id) { if id == 4 { label(1) } else { label(id) } }
  let total = fold total = 0 for id in [1, 2, 9] { total + (match users[id] { Some(user) => user.team, None => 10 }) }
  "{names} {total}"
}

service s on http(port: 80) {
  post "/" { http.text("{fill()?}") }
  get "/{viewer}" (viewer: Int) { http.text(shown(viewer)) }
  post "/rename" {
    let before = for id in [1, 2] {
      let old = label(id)
      users.update(id, |user| User { ..user, name: label(1) })?
      old
    }
    http.text("{before} {label(2)}")
  }
}

test "shown" {
  expect fill()? == 4
  expect shown(2) == "SHOWN"
}
"#;

/// Reads in conditions, in arms, in `fn`s and in a `fold` gather; those of a `for` that writes the table keep the order of the text.
#[test]
fn reads_by_keys_gather_wherever_they_stand_in_a_for() {
    const SHOWN: &str = "[\"u3 of t4\", \"u1 of t2\"] 14";
    let text_of = GATHERED.replace("SHOWN", &SHOWN.replace('"', "\\\""));
    let program = tested_and_served("gathered", &text_of, |served| {
        assert_eq!(text(&post(served, "/").expect("an answer")).trim(), "4");
        assert_eq!(text(&served.get("/2")).trim(), SHOWN);
        let renamed = text(&post(served, "/rename").expect("an answer")).trim().to_owned();
        assert_eq!(renamed, "[\"u1 of t2\", \"u2 of t2\"] u1 of t2 of t2 of t2");
    });
    let explained = say(&["check", program.path(), "--explain", "io"]).output;
    let route = |name: &str| {
        let from = explained.find(name).unwrap_or_else(|| panic!("no `{name}` in {explained}"));
        explained[from..].split("\n\n").next().unwrap_or_default()
    };
    let shown = route("get /{viewer}");
    assert!(
        shown.contains("in batches of at most 1,000") && shown.contains("if the condition at line 28 holds"),
        "{shown}"
    );
    assert!(!shown.contains("one after the other"), "{shown}");
    let renamed = route("post /rename");
    assert!(renamed.contains("because the `for` changes the table `users`"), "{renamed}");
    let graph = say(&["graph", program.path(), "--all"]).output;
    assert!(graph.contains("tables.row(users") && graph.contains("tables.get(users"), "{graph}");
}

const SALES: &str = r#"use http

record Item { id: Int, price: Int }

record Sale { id: Int, price: Int }

table items: Item key id

table sales: Sale key id auto

table offers: Item key id soft(at_most: 10)

service s on http(port: 80) {
  post "/{id}" (id: Int) {
    let sale = atomic sales {
      let item = items[id] else { fail("no item") }
      let offer = offers[id] else { item }
      sales.insert(Sale { price: offer.price })?
    }
    http.text("{sale}")
  }
}
"#;

/// Reads of other tables of its database belong to the snapshot of a transaction.
#[test]
fn a_transaction_reads_tables_that_it_does_not_name() {
    let program = Scratch::new("sales.weir", SALES.as_bytes());
    let graph = say(&["graph", program.path(), "--all"]).output;
    let reads = ["tables.get(items, tables.begin, id)", "tables.get(offers, 0, id)"];
    assert!(reads.iter().all(|read| graph.contains(read)), "{graph}");
}
