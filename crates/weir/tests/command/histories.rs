//! Random transactions of many clients on stored tables and tables in memory, under every engine: is there an order, which
//! agrees with the clock of the clients, in which they give the same answers one after the other?
//!
//! The method is that of Elle (Kingsbury and Alvaro, VLDB 2020). A transaction appends unique numbers to lists and reads
//! lists, so that each read shows the order of the appends before it. The answers give the dependencies between transactions:
//! who wrote first, who read what, and who wrote after a read. With the order of time they form a graph; a cycle means that no
//! order explains the answers. Other than there, the final lists are known. A read outside of a transaction is one of its own; it takes no
//! lock of a stored table.
//!
//! An `update_all` or a `delete_all` with a condition is an append to each list that fulfils it: those of an even length. The deletion
//! inserts the rows again. The query behind it in the transaction shows which lists these were: a longer one of an even length would have
//! been left out.
//!
//! Some reads are of several rows of one moment: joined rows, rows by the keys of a list, and rows of a table that a transaction does not
//! name.
//!
//! `WEIR_HISTORIES` sets the number of transactions of each client.

mod check;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use test_support::postgres::PostgresServer;
use test_support::random::Random;

use crate::support::{ENGINES, Scratch, Served, read_answer};
use check::{History, Operation, Transaction};

pub(crate) const PROGRAM: &str = r#"use http

record Cell { name: Int, next: Int, items: Text, even: Bool }

record Note { id: Int, text: Text }

record Step { key: Int, add: Int }

table stored: Cell key name index even
table kept: Cell key name soft(at_most: 1_000)
table notes: Note key id

fn cell(key: Int) -> Cell {
  let found = if key % 2 == 0 { stored[key] } else { kept[key] }
  found else { empty(key) }
}

fn empty(key: Int) -> Cell { Cell { name: key, next: (key + 2) % 6, items: "", even: true } }

fn longer(cell: Cell, add: Int) -> Cell { Cell { ..cell, items: "{cell.items} {add}", even: !cell.even } }

fn read(key: Int) -> Result(Text) { Ok(cell(key).items) }

fn rows() -> Result(List(Text)) { Ok(for cell in stored { "{cell.name}{cell.items}" }) }

/// Returns each stored cell, and the one that it names.
fn joined() -> Result(List(Text)) {
  let found = for c in stored {
    match stored[c.next] {
      Some(next) => "{c.name}{c.items};{next.name}{next.items}"
      None => "{c.name}{c.items};{c.next}"
    }
  }
  Ok(found)
}

fn listed() -> Result(List(Text)) {
  let found = for key in [0, 2, 4] {
    match stored[key] {
      Some(c) => "{c.name}{c.items}"
      None => "{key}"
    }
  }
  Ok(found)
}

/// Returns the stored cells in a transaction that names another table.
fn noted(id: Int) -> Result(List(Text)) {
  atomic notes {
    notes.upsert(Note { id, text: "before" })?
    let first = for cell in stored { "{cell.name}{cell.items}" }
    notes.upsert(Note { id, text: "between" })?
    let second = for key in [0, 2, 4] {
      match stored[key] {
        Some(c) => "{c.name}{c.items}"
        None => "{key}"
      }
    }
    Ok(first + second)
  }
}

fn step(key: Int, add: Int) -> Result(Text) {
  if key < 0 { fail("given up") }
  if add == 0 { return Ok(cell(key).items) }
  let cell = longer(cell(key), add)
  let name = if key % 2 == 0 { stored.upsert(cell)? } else { kept.upsert(cell)? }
  Ok("{name}")
}

fn transaction(steps: List(Step)) -> Result(List(Text)) {
  atomic stored, kept {
    let seen = for s in steps { step(s.key, s.add)? }
    Ok(seen)
  }
}

fn stored_step(key: Int, add: Int) -> Result(Text) {
  if key < 0 { fail("given up") }
  let cell = stored[key] else { empty(key) }
  if add == 0 { return Ok(cell.items) }
  let name = stored.upsert(longer(cell, add))?
  Ok("{name}")
}

fn stored_transaction(steps: List(Step)) -> Result(List(Text)) {
  atomic stored {
    let seen = for s in steps { stored_step(s.key, s.add)? }
    Ok(seen)
  }
}

/// Adds a number to each cell with an even number of items, and returns all cells.
fn sweep(add: Int, deletes: Bool, gives_up: Bool) -> Result(List(Text)) {
  atomic stored {
    if deletes {
      let found = for c in stored if c.even { c }
      let deleted = stored.delete_all(|c| c.even)?
      if deleted != found.length() { fail("{deleted} of {found.length()} rows are deleted") }
      for c in found { stored.insert(longer(c, add + c.name * 1_000_000_000))? }
      deleted
    } else {
      stored.update_all(|c| c.even, |c| longer(c, add + c.name * 1_000_000_000))?
    }
    if gives_up { fail("given up") }
    Ok(for cell in stored { "{cell.name}{cell.items}" })
  }
}

service cells on http(port: 8080) {
  post "/" (body steps: List(Step)) {
    let seen = transaction(steps) else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.json(seen)
  }
  post "/stored" (body steps: List(Step)) {
    let seen = stored_transaction(steps) else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.json(seen)
  }
  post "/sweep/{add}" (add: Int, deletes: Bool, gives_up: Bool) {
    let seen = sweep(add, deletes, gives_up) else as failure {
      return http.bad_request("{failure.kind()}: {failure}")
    }
    http.json(seen)
  }
  get "/key/{key}" (key: Int) {
    let found = read(key) else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.text(found)
  }
  get "/stored" {
    let found = rows() else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.json(found)
  }
  get "/joined" {
    let found = joined() else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.json(found)
  }
  get "/listed" {
    let found = listed() else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.json(found)
  }
  get "/noted/{id}" (id: Int) {
    let found = noted(id) else as failure { return http.bad_request("{failure.kind()}: {failure}") }
    http.json(found)
  }
  get "/kept" { http.json(for cell in kept { "{cell.name}{cell.items}" }) }
}
"#;

const CLIENTS: u64 = 6;
const KEYS: u64 = 6;

/// Number of transactions of each client under each engine.
fn transactions() -> u64 {
    std::env::var("WEIR_HISTORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(30)
}

/// Sends a transaction until it is not refused for overload, nor because others were in its way. Returns what it has read, or `None` if it
/// was given up.
fn send(served: &Served, path: &str, body: &str) -> Option<String> {
    loop {
        let mut stream = served.connect();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            served.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the request is sent");
        let answer = read_answer(stream);
        let text = String::from_utf8(answer.body).expect("a text");
        match answer.status {
            503 => {}
            400 if text.starts_with("conflict: ") => {}
            400 if text.trim() == "program: given up" => return None,
            200 => return Some(text),
            _ => panic!("{path} {body} answers {text}"),
        }
    }
}

/// Reads outside of the own transactions; nothing if it is refused for overload, or because others were in its way.
fn read(served: &Served, path: &str) -> Option<String> {
    let answer = served.get(path);
    let text = String::from_utf8(answer.body).expect("a text");
    let is_refused = answer.status == 503 || text.starts_with("conflict: ");
    assert!(is_refused || answer.status == 200, "{path} answers {text}");
    (!is_refused).then_some(text)
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

/// Returns the lists of a JSON of texts, each of which begins with its key.
fn lists(text: &str) -> BTreeMap<u64, Vec<u64>> {
    let rows = text.split('"').map(numbers_in_json).filter(|row| !row.is_empty());
    rows.map(|row| (row[0], row[1..].to_vec())).collect()
}

/// Returns the numbers of a text between quotation marks; none for what stands between two texts.
fn numbers_in_json(text: &str) -> Vec<u64> {
    if text.starts_with(|first: char| first.is_ascii_digit()) { numbers(text) } else { Vec::new() }
}

/// A client, which appends numbers that no other one does.
struct Client<'s> {
    served: &'s Served,
    random: Random,
    /// The next number is greater by the number of clients.
    unique: u64,
}

impl Client<'_> {
    /// Executes a random transaction. Returns its operations, and whether it is committed.
    fn transaction(&mut self) -> (bool, Vec<Operation>) {
        match self.random.below(16) {
            0 => (true, self.query("stored", 0)),
            1 => (true, self.query("kept", 1)),
            2 | 3 => (true, self.key()),
            4 => (true, self.reads("/joined")),
            5 => (true, self.reads("/listed")),
            6 => {
                let path = format!("/noted/{}", self.random.below(2));
                (true, self.reads(&path))
            }
            7..=9 => self.sweep(),
            _ => self.steps(),
        }
    }

    /// Reads all keys of one table by a query, which is a transaction of its own.
    fn query(&self, table: &str, parity: u64) -> Vec<Operation> {
        let Some(text) = read(self.served, &format!("/{table}")) else { return Vec::new() };
        let known = lists(&text);
        let keys = (0..KEYS).filter(|key| key % 2 == parity);
        keys.map(|key| Operation::Read(key, known.get(&key).cloned().unwrap_or_default())).collect()
    }

    /// Reads rows of one moment, some of them twice.
    fn reads(&self, path: &str) -> Vec<Operation> {
        let text = read(self.served, path).unwrap_or_default();
        let rows = text.split(['"', ';']).map(numbers_in_json).filter(|row| !row.is_empty());
        rows.map(|row| Operation::Read(row[0], row[1..].to_vec())).collect()
    }

    /// Reads a key by itself, which is a transaction of its own.
    fn key(&mut self) -> Vec<Operation> {
        let key = self.random.below(KEYS);
        let text = read(self.served, &format!("/key/{key}"));
        text.into_iter().map(|text| Operation::Read(key, numbers(&text))).collect()
    }

    /// Appends a number to each stored list of an even length.
    fn sweep(&mut self) -> (bool, Vec<Operation>) {
        self.unique += CLIENTS;
        let (deletes, gives_up) = (self.random.below(2) == 0, self.random.below(6) == 0);
        let path = format!("/sweep/{}?deletes={deletes}&gives_up={gives_up}", self.unique);
        let Some(text) = send(self.served, &path, "") else { return (false, Vec::new()) };
        let known = lists(&text);
        let mut operations = Vec::new();
        for key in (0..KEYS).step_by(2) {
            let seen = known.get(&key).cloned().unwrap_or_default();
            let appended = self.unique + key * 1_000_000_000;
            if seen.last() == Some(&appended) {
                assert!(seen.len() % 2 == 1, "{path} has changed a list that did not fulfil the condition: {seen:?}");
                operations.push(Operation::Append(key, appended));
            } else {
                assert!(seen.is_empty() || seen.len() % 2 == 1, "{path} has left out {seen:?}");
            }
            operations.push(Operation::Read(key, seen));
        }
        (true, operations)
    }

    /// Appends to lists and reads lists by their keys.
    fn steps(&mut self) -> (bool, Vec<Operation>) {
        let (gives_up, only_stored) = (self.random.below(6) == 0, self.random.below(2) == 0);
        let mut operations: Vec<Operation> = (0..=self.random.below(4)).map(|_| self.operation(only_stored)).collect();
        let step = |operation: &Operation| match operation {
            Operation::Append(key, number) => format!("{{\"key\":{key},\"add\":{number}}}"),
            Operation::Read(key, _) => format!("{{\"key\":{key},\"add\":0}}"),
        };
        let last = gives_up.then(|| "{\"key\":-1,\"add\":0}".to_owned());
        let steps: Vec<String> = operations.iter().map(step).chain(last).collect();
        let path = if only_stored { "/stored" } else { "/" };
        let text = send(self.served, path, &format!("[{}]", steps.join(",")));
        assert_eq!(text.is_none(), gives_up, "{text:?}");
        let Some(text) = text else { return (false, operations) };
        let list = text.trim().trim_start_matches("[\"").trim_end_matches("\"]");
        for (operation, seen) in operations.iter_mut().zip(list.split("\",\"")) {
            if let Operation::Read(_, read) = operation {
                *read = numbers(seen);
            }
        }
        (true, operations)
    }

    fn operation(&mut self, only_stored: bool) -> Operation {
        let key = if only_stored { self.random.below(KEYS / 2) * 2 } else { self.random.below(KEYS) };
        self.unique += CLIENTS;
        if self.random.below(2) == 0 { Operation::Append(key, self.unique) } else { Operation::Read(key, Vec::new()) }
    }
}

/// Runs a client, and returns its transactions.
fn client(served: &Served, clock: &AtomicU64, client: u64, seed: u64) -> Vec<Transaction> {
    let mut client = Client { served, random: Random::new(seed * 1_000_003 + client), unique: client + 1 };
    let transaction = |_| {
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let (committed, operations) = client.transaction();
        Transaction { began, ended: clock.fetch_add(1, Ordering::SeqCst), committed, operations }
    };
    (0..transactions()).map(transaction).collect()
}

#[test]
fn transactions_have_an_order_under_every_engine() {
    for (seed, engine) in (1..).zip(ENGINES) {
        let data = Scratch::folder("cells");
        have_an_order(PROGRAM, 1, &["--data", data.path(), "--engine", engine], seed);
    }
}

#[test]
fn transactions_have_an_order_in_postgres_under_every_engine() {
    let Some(server) = PostgresServer::shared() else { return };
    for (seed, engine) in (1..).zip(ENGINES) {
        let address = server.schema(&format!("cells_{seed}"));
        have_an_order(PROGRAM, 1, &["--tables", &address, "--engine", engine], seed);
    }
}

/// Three programs share the tables.
#[test]
fn transactions_of_several_programs_have_an_order() {
    let Some(server) = PostgresServer::shared() else { return };
    let stored = PROGRAM.replace(" soft(at_most: 1_000)", "");
    for (seed, engine) in (1..).zip(ENGINES) {
        let address = server.schema(&format!("several_{seed}"));
        have_an_order(&stored, 3, &["--tables", &address, "--engine", engine], seed);
    }
}

/// Runs random transactions of clients of some processes of a program, and checks their history.
pub(crate) fn have_an_order(text: &str, processes: usize, arguments: &[&str], seed: u64) {
    let program = Scratch::new("cells.weir", text.as_bytes());
    let served: Vec<Served> = (0..processes).map(|_| Served::start(program.path(), arguments)).collect();
    let clock = AtomicU64::new(0);
    let transactions = thread::scope(|scope| {
        let (served, clock) = (&served, &clock);
        let of = |at: u64| &served[at as usize % processes];
        let clients: Vec<_> = (0..CLIENTS).map(|at| scope.spawn(move || client(of(at), clock, at, seed))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client fails")).collect()
    });
    let list = |key| numbers(&String::from_utf8(served[0].get(&format!("/key/{key}")).body).expect("a text"));
    let history = History { transactions, lists: (0..KEYS).map(list).collect() };
    history.check().unwrap_or_else(|anomaly| panic!("{arguments:?}: {anomaly}"));
    served.into_iter().for_each(|served| _ = served.stop());
}
