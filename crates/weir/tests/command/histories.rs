//! Random transactions of many clients on stored tables and tables in memory, under every engine: is there an order, which
//! agrees with the clock of the clients, in which they give the same answers one after the other?
//!
//! The method is that of Elle (Kingsbury and Alvaro, VLDB 2020). A transaction appends unique numbers to lists and reads
//! lists, so that each read shows the order of the appends before it. The answers give the dependencies between transactions:
//! who wrote first, who read what, and who wrote after a read. With the order of time they form a graph; a cycle means that no
//! order explains the answers. Other than there, the final lists are known. A read outside of a transaction is one of its own; it takes no
//! lock of a stored table.
//!
//! `WEIR_HISTORIES` sets the number of transactions of each client.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use test_support::postgres::PostgresServer;
use test_support::random::Random;

use crate::support::{Answer, Scratch, Served, read_answer};

const PROGRAM: &str = r#"use http

record Cell { name: Int, items: Text }

record Step { key: Int, add: Int }

table stored: Cell key name
table kept: Cell key name soft(at_most: 1_000)

fn items(key: Int) -> Text {
  let found = if key % 2 == 0 { stored[key] } else { kept[key] }
  let cell = found else { Cell { name: key, items: "" } }
  cell.items
}

fn step(key: Int, add: Int) -> Result(Text) {
  if key < 0 { fail("given up") }
  if add == 0 { return Ok(items(key)) }
  let cell = Cell { name: key, items: "{items(key)} {add}" }
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
  let cell = stored[key] else { Cell { name: key, items: "" } }
  if add == 0 { return Ok(cell.items) }
  let name = stored.upsert(Cell { ..cell, items: "{cell.items} {add}" })?
  Ok("{name}")
}

fn stored_transaction(steps: List(Step)) -> Result(List(Text)) {
  atomic stored {
    let seen = for s in steps { stored_step(s.key, s.add)? }
    Ok(seen)
  }
}

service cells on http(port: 8080) {
  post "/" (body steps: List(Step)) {
    let seen = transaction(steps) else as failure { return http.bad_request("{failure}") }
    http.json(seen)
  }
  post "/stored" (body steps: List(Step)) {
    let seen = stored_transaction(steps) else as failure { return http.bad_request("{failure}") }
    http.json(seen)
  }
  get "/key/{key}" (key: Int) { http.text(items(key)) }
  get "/stored" { http.json(for cell in stored { "{cell.name}{cell.items}" }) }
  get "/kept" { http.json(for cell in kept { "{cell.name}{cell.items}" }) }
}
"#;

const ENGINES: [&str; 6] = ["event", "pool", "staged", "elastic", "dedicated", "thread-per-flow"];
const CLIENTS: u64 = 6;
const KEYS: u64 = 6;

/// Number of transactions of each client under each engine.
fn transactions() -> u64 {
    std::env::var("WEIR_HISTORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(30)
}

/// One operation: an append, or a read with what it has seen.
#[derive(Clone, Debug)]
enum Operation {
    Append(u64, u64),
    Read(u64, Vec<u64>),
}

/// A transaction as its client has seen it.
#[derive(Debug)]
struct Transaction {
    began: u64,
    ended: u64,
    /// False if the program gave it up: then nobody may see its appends.
    committed: bool,
    operations: Vec<Operation>,
}

/// Sends a transaction until it is not refused for overload.
fn send(served: &Served, path: &str, body: &str) -> Answer {
    loop {
        let mut stream = served.connect();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            served.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the request is sent");
        let answer = read_answer(stream);
        if answer.status != 503 {
            return answer;
        }
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

/// Reads all keys of one table by a query, which is a transaction of its own.
fn query(served: &Served, table: &str, parity: u64) -> Vec<Operation> {
    let answer = served.get(&format!("/{table}"));
    if answer.status == 503 {
        return Vec::new();
    }
    let text = String::from_utf8(answer.body).expect("a text");
    let rows = text.split('"').map(numbers_in_json).filter(|row| !row.is_empty());
    let known: BTreeMap<u64, Vec<u64>> = rows.map(|row| (row[0], row[1..].to_vec())).collect();
    let keys = (0..KEYS).filter(|key| key % 2 == parity);
    keys.map(|key| Operation::Read(key, known.get(&key).cloned().unwrap_or_default())).collect()
}

/// Reads a key by itself, which is a transaction of its own.
fn key(served: &Served, key: u64) -> Vec<Operation> {
    let answer = served.get(&format!("/key/{key}"));
    if answer.status == 503 {
        return Vec::new();
    }
    vec![Operation::Read(key, numbers(&String::from_utf8(answer.body).expect("a text")))]
}

/// Returns the numbers of a text between quotation marks; none for what stands between two texts.
fn numbers_in_json(text: &str) -> Vec<u64> {
    if text.starts_with(|first: char| first.is_ascii_digit()) { numbers(text) } else { Vec::new() }
}

/// Runs one client, which appends numbers that no other one does.
fn client(served: &Served, clock: &AtomicU64, client: u64, seed: u64) -> Vec<Transaction> {
    let mut random = Random::new(seed * 1_000_003 + client);
    let mut unique = client + 1;
    let transaction = |_| {
        let (kind, began) = (random.below(8), clock.fetch_add(1, Ordering::SeqCst));
        if kind < 4 {
            let operations = match kind {
                0 | 1 => query(served, ["stored", "kept"][kind as usize], kind),
                _ => key(served, random.below(KEYS)),
            };
            return Transaction { began, ended: clock.fetch_add(1, Ordering::SeqCst), committed: true, operations };
        }
        let (gives_up, only_stored) = (random.below(6) == 0, random.below(2) == 0);
        let mut operations: Vec<Operation> = (0..=random.below(4))
            .map(|_| {
                let key = if only_stored { random.below(KEYS / 2) * 2 } else { random.below(KEYS) };
                unique += CLIENTS;
                if random.below(2) == 0 { Operation::Append(key, unique) } else { Operation::Read(key, Vec::new()) }
            })
            .collect();
        let step = |operation: &Operation| match operation {
            Operation::Append(key, number) => format!("{{\"key\":{key},\"add\":{number}}}"),
            Operation::Read(key, _) => format!("{{\"key\":{key},\"add\":0}}"),
        };
        let last = gives_up.then(|| "{\"key\":-1,\"add\":0}".to_owned());
        let steps: Vec<String> = operations.iter().map(step).chain(last).collect();
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let path = if only_stored { "/stored" } else { "/" };
        let answer = send(served, path, &format!("[{}]", steps.join(",")));
        let ended = clock.fetch_add(1, Ordering::SeqCst);
        let text = String::from_utf8(answer.body).expect("a text");
        assert_eq!(answer.status, if gives_up { 400 } else { 200 }, "{text}");
        let list = text.trim().trim_start_matches("[\"").trim_end_matches("\"]");
        if !gives_up {
            for (operation, seen) in operations.iter_mut().zip(list.split("\",\"")) {
                if let Operation::Read(_, read) = operation {
                    *read = numbers(seen);
                }
            }
        }
        Transaction { began, ended, committed: !gives_up, operations }
    };
    (0..transactions()).map(transaction).collect()
}

/// The history of a run: the transactions, and the final list of each key.
struct History {
    transactions: Vec<Transaction>,
    lists: Vec<Vec<u64>>,
}

impl History {
    /// Fails with a description of the first anomaly.
    fn check(&self) -> Result<(), String> {
        let writers = self.writers()?;
        let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.transactions.len()];
        let mut follows = |first: usize, second: usize| {
            if first != second {
                after[first].insert(second);
            }
        };
        for list in &self.lists {
            list.windows(2).for_each(|two| follows(writers[&two[0]], writers[&two[1]]));
        }
        for (at, transaction) in self.transactions.iter().enumerate().filter(|(_, of)| of.committed) {
            self.check_reads(transaction)?;
            for operation in &transaction.operations {
                let Operation::Read(key, seen) = operation else { continue };
                let list = &self.lists[*key as usize];
                seen.last().into_iter().for_each(|last| follows(writers[last], at));
                list.get(seen.len()).into_iter().for_each(|next| follows(at, writers[next]));
            }
            for (other, later) in self.transactions.iter().enumerate() {
                if later.committed && transaction.ended < later.began {
                    follows(at, other);
                }
            }
        }
        self.no_cycle(&after)
    }

    /// Returns the transaction that appended each number of the final lists. Fails if one is there twice, is missing, or was
    /// appended by a transaction that was given up.
    fn writers(&self) -> Result<BTreeMap<u64, usize>, String> {
        let mut appended = BTreeMap::new();
        for (at, transaction) in self.transactions.iter().enumerate() {
            for operation in &transaction.operations {
                if let Operation::Append(key, number) = operation {
                    appended.insert(*number, (at, *key, transaction.committed));
                }
            }
        }
        let mut writers = BTreeMap::new();
        for (key, list) in self.lists.iter().enumerate() {
            for number in list {
                match appended.get(number) {
                    Some((at, of, true)) if *of == key as u64 => {
                        if writers.insert(*number, *at).is_some() {
                            return Err(format!("{number} is there twice"));
                        }
                    }
                    _ => return Err(format!("{number} was taken back, and is there")),
                }
            }
        }
        match appended.iter().find(|(number, (_, _, committed))| *committed && !writers.contains_key(number)) {
            Some((number, _)) => Err(format!("{number} is lost")),
            None => Ok(writers),
        }
    }

    /// Fails if a read is no beginning of the final list, does not end with the own appends before it, or ends between two
    /// appends of another transaction.
    fn check_reads(&self, transaction: &Transaction) -> Result<(), String> {
        let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for operation in &transaction.operations {
            match operation {
                Operation::Append(key, number) => own.entry(*key).or_default().push(*number),
                Operation::Read(key, seen) => {
                    let own = own.get(key).map_or(&[][..], Vec::as_slice);
                    if !self.lists[*key as usize].starts_with(seen) || !seen.ends_with(own) {
                        return Err(format!("{transaction:?} has read {seen:?}"));
                    }
                    self.is_between(&seen[..seen.len() - own.len()], *key)?;
                }
            }
        }
        Ok(())
    }

    /// Fails if what was read of a key ends with an append that is not the last one of its transaction.
    fn is_between(&self, seen: &[u64], key: u64) -> Result<(), String> {
        let Some(last) = seen.last() else { return Ok(()) };
        let of_key = |of: &Transaction| -> Vec<u64> {
            let numbers = of.operations.iter().filter_map(|operation| match operation {
                Operation::Append(of, number) if *of == key => Some(*number),
                _ => None,
            });
            numbers.collect()
        };
        let torn = self.transactions.iter().map(of_key).any(|of| of.contains(last) && of.last() != Some(last));
        if torn { Err(format!("a read of {key} ends inside a transaction, with {last}")) } else { Ok(()) }
    }

    /// Fails with the transactions that remain after all that can come first are removed (Kahn's algorithm).
    fn no_cycle(&self, after: &[BTreeSet<usize>]) -> Result<(), String> {
        let mut before = vec![0; after.len()];
        after.iter().flatten().for_each(|next| before[*next] += 1);
        let mut ready: Vec<usize> = (0..after.len()).filter(|at| before[*at] == 0).collect();
        let mut ordered = 0;
        while let Some(at) = ready.pop() {
            ordered += 1;
            for next in &after[at] {
                before[*next] -= 1;
                if before[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
        if ordered == after.len() {
            return Ok(());
        }
        let stuck = self.transactions.iter().zip(before).filter(|(_, before)| *before > 0);
        let stuck: Vec<String> = stuck.take(6).map(|(transaction, _)| format!("{transaction:?}")).collect();
        Err(format!("no order explains {}", stuck.join("\n")))
    }
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
    for (seed, engine) in (1..).zip(["event", "pool"]) {
        let address = server.schema(&format!("several_{seed}"));
        have_an_order(&stored, 3, &["--tables", &address, "--engine", engine], seed);
    }
}

/// Runs random transactions of clients of some processes of a program, and checks their history.
fn have_an_order(text: &str, processes: usize, arguments: &[&str], seed: u64) {
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

/// Returns a committed transaction.
fn committed(began: u64, ended: u64, operations: &[Operation]) -> Transaction {
    Transaction { began, ended, committed: true, operations: operations.to_vec() }
}

#[test]
fn the_check_finds_each_anomaly() {
    use Operation::{Append, Read};
    let found = |transactions: Vec<Transaction>, lists: &[&[u64]]| {
        let lists = lists.iter().map(|list| list.to_vec()).collect();
        History { transactions, lists }.check().err().unwrap_or_default()
    };
    let write_skew =
        vec![committed(0, 5, &[Read(0, vec![]), Append(1, 1)]), committed(1, 4, &[Read(1, vec![]), Append(0, 2)])];
    assert!(found(write_skew, &[&[2], &[1]]).contains("no order"));
    let stale = vec![committed(0, 1, &[Append(0, 1)]), committed(2, 3, &[Read(0, vec![])])];
    assert!(found(stale, &[&[1]]).contains("no order"));
    let lost = vec![committed(0, 1, &[Append(0, 1)]), committed(2, 3, &[Append(0, 2)])];
    assert!(found(lost, &[&[2]]).contains("1 is lost"));
    let torn = vec![committed(0, 9, &[Append(0, 1), Append(0, 2)]), committed(1, 8, &[Read(0, vec![1])])];
    assert!(found(torn, &[&[1, 2]]).contains("inside a transaction"));
    let given_up = Transaction { committed: false, ..committed(0, 1, &[Append(0, 1)]) };
    assert!(found(vec![given_up], &[&[1]]).contains("taken back"));
    let right =
        vec![committed(0, 5, &[Append(0, 1), Append(1, 2)]), committed(1, 4, &[Read(0, vec![1]), Append(1, 3)])];
    assert_eq!(found(right, &[&[1], &[2, 3]]), "");
}
