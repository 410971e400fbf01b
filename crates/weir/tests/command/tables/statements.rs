//! Statements of tables in programs: what they answer, as `weir test` runs them and as a service does.

use super::{post, request, text};
use crate::support::{Scratch, Served, TableStore, say};

/// Runs the tests of a program, and then serves it from an empty database of each kind. Its file is removed when it is dropped.
pub(super) fn tested_and_served(name: &str, text: &str, answers: impl Fn(&Served)) -> Scratch {
    let program = Scratch::new(&format!("{name}.weir"), text.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    for store in TableStore::each(name) {
        let served = Served::start(program.path(), &store.with(&[]));
        answers(&served);
        served.stop();
    }
    program
}

const STEPS: &str = r#"use http

record Account { owner: Text, balance: Int }

table accounts: Account key owner

fn refused() -> Result(Int) { fail("refused") }

fn write(how: Text) -> Result(Int) {
  let written = atomic accounts {
    accounts.upsert(Account { owner: how, balance: 1 })?
    if how == "returned err" { return refused() }
    if how == "returned ok" { return Ok(1) }
    if how == "tried" { refused()? }
    if how == "failed" { fail("refused") }
    if how == "value err" { refused() } else { Ok(1) }
  }
  written
}

fn kept(how: Text) -> Bool {
  let written = write(how) else { 0 }
  let row = atomic accounts { accounts[how] }
  accounts.exists(|a| a.owner == how) && row != None && written == 1
}

fn taken_back(how: Text) -> Bool {
  let written = write(how) else { 0 }
  !accounts.exists(|a| a.owner == how) && written == 0
}

fn right() -> Bool {
  kept("returned ok") && kept("value ok") && taken_back("returned err") && taken_back("tried") && taken_back("failed")
    && taken_back("value err")
}

service steps on http(port: 8080) {
  get "/" { http.text("{right()} {accounts.count()}") }
}

test "a step that ends with an err has written nothing" { expect right() }
"#;

#[test]
fn a_step_that_ends_with_an_err_takes_back_its_writes() {
    tested_and_served("steps", STEPS, |served| assert_eq!(text(&served.get("/")).trim(), "true 2"));
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

const READINGS: &str = r#"use http

record Reading { id: Int, mark: Text }

table readings: Reading key id default(mark: "a\0b")

service s on http(port: 80) {
  post "/{id}" (id: Int) { http.text("{readings.insert(Reading { id })?}") }
  get "/{id}" (id: Int) {
    let found = readings[id] else { return http.not_found() }
    http.text("{found.mark == "a\0b"} {found.mark.length()}")
  }
}
"#;

/// The writes of the function of an `update` in other tables take effect with it, in memory and in the database.
#[test]
fn an_update_and_the_writes_of_its_function_take_effect_together() {
    let text = r#"use http

record Account { owner: Text, balance: Int }

record Entry { id: Int, owner: Text, amount: Int }

table accounts: Account key owner
table entries: Entry key id auto

fn change(owner: Text, amount: Int) -> Result(Int) {
  let changed = accounts.update(owner, |a| {
    entries.insert(Entry { owner, amount })?
    let balance = a.balance + amount
    if balance < -99 { fail("{owner} has {a.balance}") }
    // The key cannot be changed, so that the statement is refused.
    Account { owner: if balance < 0 { "" } else { owner }, balance }
  })?
  let account = changed else { fail("no account") }
  Ok(account.balance)
}

service bank on http(port: 8080) {
  put "/{owner}" (owner: Text) { http.text(accounts.upsert(Account { owner, balance: 0 })?) }
  post "/{owner}/{amount}" (owner: Text, amount: Int) {
    let balance = change(owner, amount) else as failure { return http.bad_request("{failure}") }
    http.text("{balance}")
  }
  get "/" { http.text("{entries.count()} {(for e in entries { e.id }).max()}") }
}

test "an update that fails takes back the writes of its function" {
  accounts.upsert(Account { owner: "ada", balance: 0 })?
  change("ada", 5)?
  let refused = change("ada", -6) else { 100 }
  expect refused == 100
  expect entries.count() == 1
  change("ada", -5)?
  let last = entries[2] else { fail("the number is used") }
  expect last.amount == -5
}
"#;
    tested_and_served("bank", text, |served| {
        let status = |method, path| request(served, method, path).map(|answer| answer.status);
        assert_eq!(status("PUT", "/ada"), Some(200));
        let changes = ["/ada/5", "/ada/-6", "/ada/-500", "/ada/-5", "/eve/1"].map(|path| status("POST", path));
        assert_eq!(changes, [Some(200), Some(400), Some(400), Some(200), Some(400)]);
        assert_eq!(served.get("/").body, b"2 Some(2)");
    });
}

#[test]
fn a_default_may_contain_nul() {
    let (program, data) = (Scratch::new("nul.weir", READINGS.as_bytes()), Scratch::folder("nul"));
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(post(&served, "/1").map(|answer| answer.status), Some(200));
    assert_eq!(text(&served.get("/1")).trim(), "true 3");
    served.stop();
}

const TASKS: &str = r#"use http

record Task { id: Int, owner: Text, place: Int, done: Bool }

table tasks: Task key id unique (owner, place) index done default(done: false)

fn failed(place: Int, id: Int) -> Text {
  tasks.update_all(|t| t.owner == "ada", |t| Task { ..t, place, id: t.id + id }) else as failure { return "{failure}" }
  "none"
}

fn all() -> Result(Text) {
  for (id, owner, place) in [(1, "ada", 1), (2, "ada", 2), (3, "bob", 1)] { tasks.insert(Task { id, owner, place })? }
  let moved = tasks.update_all(|t| t.owner == "ada", |t| Task { ..t, place: 3 - t.place })?
  let shifted = tasks.update_all(|t| t.owner == "ada", |t| Task { ..t, place: t.place + 1 })?
  let found_here = tasks.update_all(|t| t.place * 2 > 4, |t| Task { ..t, done: true })?
  let none = atomic tasks { tasks.update_all(|t| t.place > 9, |t| Task { ..t, done: true })? }
  let places = for t in tasks { t.place }
  Ok("{moved} {shifted} {found_here} {none} {places} {tasks.count(|t| t.done)}\n{failed(9, 0)}\n{failed(1, 1)}\n{places == (for t in tasks { t.place })}")
}

service todo on http(port: 80) {
  get "/" { http.text(all()?) }
}

test "all" { expect all()? == "EXPECTED" }
"#;

#[test]
fn an_update_of_many_rows_takes_effect_as_a_whole() {
    let expected = "2 2 1 0 [3, 2, 1] 1\n\
                    a row of `tasks` with the owner \"ada\" and the place 9 exists already\n\
                    an update of `tasks` cannot change the key: delete the row, and insert another one\n\
                    true";
    let program = TASKS.replace("EXPECTED", &expected.replace('"', "\\\"").replace('\n', "\\n"));
    tested_and_served("todo", &program, |served| assert_eq!(text(&served.get("/")), expected));
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

const PAGES: &str = r#"use http

record Page { path: Text, text: Text }

table pages: Page key path soft(capacity: 4kb)

fn put(path: Text, text: Text) -> Text {
  match pages.upsert(Page { path, text }) {
    Ok(_) => "{for page in pages { page.path }}"
    Err(failure) => "{failure}"
  }
}

service s on http(port: 80) {
  get "/{path}" (path: Text) { http.text(put(path, "x".repeat(1_500)?)) }
  get "/large" () { http.text(put("large", "x".repeat(5_000)?)) }
}

test "bytes" {
  expect put("a", "x".repeat(1_500)?) == "[\"a\"]"
}
"#;

#[test]
fn a_soft_table_is_bounded_in_bytes() {
    _ = tested_and_served("bounded_pages", PAGES, |served| {
        let got = ["/a", "/b", "/a", "/c", "/large"].map(|path| text(&served.get(path)).trim().to_owned());
        assert_eq!(got[..4], [r#"["a"]"#, r#"["a", "b"]"#, r#"["a", "b"]"#, r#"["a", "c"]"#]);
        assert!(got[4].contains("is larger than `pages`, whose capacity is 4kb"), "{}", got[4]);
    });
}
