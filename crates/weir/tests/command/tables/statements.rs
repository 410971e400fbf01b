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
                    an update of `tasks` cannot change the key of a row, from the id 1 to the id 2: delete the row and insert the new one, in one \
                    `atomic tasks`\n\
                    true";
    let program = TASKS.replace("EXPECTED", &expected.replace('"', "\\\"").replace('\n', "\\n"));
    tested_and_served("todo", &program, |served| assert_eq!(text(&served.get("/")), expected));
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
