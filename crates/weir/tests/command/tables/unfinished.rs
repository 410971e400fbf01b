//! Writes that fail leave nothing open in the database, so that other programs use it at once although the program writes nothing more.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use test_support::postgres::PostgresServer;

use super::{post, request, text};
use crate::support::{Scratch, Served};

/// The ways in which a write fails, and the status of the answer: a failure that is handled, or one that ends the flow.
const WAYS: [(&str, u16); 11] = [
    ("reference", 200),
    ("deletion", 200),
    ("deletions", 200),
    ("key", 200),
    ("unique", 200),
    ("rule", 200),
    ("tried", 200),
    ("read", 200),
    ("arithmetic", 500),
    ("function", 500),
    ("absent", 200),
];

const PROGRAM: &str = r#"use http

record Account { id: Int, balance: Int }
record Transfer { id: Int, account: Int }

table accounts: Account key id unique balance
table transfers: Transfer key id references account: accounts

fn rule() -> Result(Int) {
  atomic accounts {
    accounts.upsert(Account { id: 9, balance: 9 })?
    if accounts.count() > 1 { fail("no") }
  }
  Ok(1)
}

fn tried() -> Result(Int) {
  atomic accounts {
    accounts.upsert(Account { id: 9, balance: 9 })?
    accounts.insert(Account { id: 1, balance: 10 })?
  }
  Ok(1)
}

fn read() -> Result(Int) {
  let count = atomic accounts {
    if accounts.count() > 0 { fail("no") }
    1
  }
  Ok(count)
}

service bank on http(port: 8080) {
  put "/" {
    accounts.upsert(Account { id: 1, balance: 1 })?
    http.text("{transfers.upsert(Transfer { id: 1, account: 1 })?}")
  }
  post "/reference" {
    let failed = transfers.upsert(Transfer { id: 2, account: 77 }) else { 0 }
    http.text("{failed}")
  }
  post "/deletion" {
    let failed = accounts.delete(1) else { false }
    http.text("{failed}")
  }
  post "/deletions" {
    let failed = accounts.delete_all(|account| account.balance == 1) else { 0 }
    http.text("{failed}")
  }
  post "/key" {
    let failed = accounts.update(1, |account| Account { ..account, id: 5 }) else { None }
    http.text("{failed}")
  }
  post "/unique" {
    let failed = accounts.upsert(Account { id: 2, balance: 1 }) else { 0 }
    http.text("{failed}")
  }
  post "/rule" { http.text("{rule() else { 0 }}") }
  post "/tried" { http.text("{tried() else { 0 }}") }
  post "/read" { http.text("{read() else { 0 }}") }
  post "/arithmetic" {
    atomic accounts {
      accounts.upsert(Account { id: 9, balance: 9 })?
      let none = accounts.count() - accounts.count()
      accounts.upsert(Account { id: 10, balance: 10 / none })?
    }
    http.text("done")
  }
  post "/function" {
    let done = accounts.update(1, |account| Account { ..account, balance: 5 / (account.balance - 1) })?
    http.text("{done}")
  }
  post "/absent" {
    let none = accounts.update(100, |account| Account { ..account, balance: 5 })?
    http.text("{none}")
  }
  get "/" { http.text("{accounts.count()} {transfers.count()}") }
}
"#;

/// The same without references, on a table of another program.
fn existing() -> (String, Vec<(&'static str, u16)>) {
    let is_of_references = |way: &str| ["reference", "deletion", "deletions"].contains(&way);
    let program = PROGRAM
        .replace("table accounts: Account key id unique balance", "config bank_of: Text\n\ntable accounts: Account key id unique balance existing(database: bank_of, writable: true)")
        .replace(" references account: accounts", "");
    (program, WAYS.into_iter().filter(|(way, _)| !is_of_references(way)).collect())
}

#[test]
fn a_failed_write_leaves_no_transaction_open_in_sqlite() {
    let (program, folder) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), Scratch::folder("unfinished"));
    let served = Served::start(program.path(), &["--data", folder.path()]);
    let file = Path::new(program.path()).with_extension("db");
    let file = file.file_name().and_then(OsStr::to_str).expect("a text");
    begin(&served);
    for way in WAYS {
        fail(&served, way);
        write(&folder, file, "UPDATE transfers SET id = id");
    }
    end(served);
}

#[test]
fn a_failed_write_leaves_no_transaction_open_in_an_existing_sqlite_database() {
    let (text, ways) = existing();
    let (program, folder) = (Scratch::new("bank.weir", text.as_bytes()), Scratch::folder("unfinished-existing"));
    write(
        &folder,
        "other.db",
        "CREATE TABLE accounts(id INTEGER PRIMARY KEY NOT NULL, balance INTEGER NOT NULL UNIQUE)",
    );
    let option = format!("bank_of={}/other.db", folder.path());
    let served = Served::start(program.path(), &["--data", folder.path(), "--set", &option]);
    begin(&served);
    for way in ways {
        fail(&served, way);
        write(&folder, "other.db", "UPDATE accounts SET id = id");
    }
    end(served);
}

#[test]
fn a_failed_write_leaves_no_transaction_open_in_postgres() {
    let Some(server) = PostgresServer::start() else { return };
    let (program, address) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), server.schema("bank"));
    free_after_each(&Served::start(program.path(), &["--tables", &address]), &server, &WAYS);
}

#[test]
fn a_failed_write_leaves_no_transaction_open_in_an_existing_postgres_database() {
    let Some(server) = PostgresServer::start() else { return };
    let (text, ways) = existing();
    let (program, address) = (Scratch::new("bank.weir", text.as_bytes()), server.schema("other"));
    server.execute("other", "CREATE TABLE accounts(id bigint PRIMARY KEY, balance bigint NOT NULL UNIQUE)");
    let folder = Scratch::folder("unfinished-postgres");
    let option = format!("bank_of={address}");
    let served = Served::start(program.path(), &["--data", folder.path(), "--set", &option]);
    free_after_each(&served, &server, &ways);
}

/// Fails in each way, and waits until no transaction is open: because the program has taken it back, and not because the database has
/// ended its connection.
fn free_after_each(served: &Served, server: &PostgresServer, ways: &[(&str, u16)]) {
    let connections = |condition: &str| {
        // A connection of `psql` may still be there when the next one asks.
        let of_program = "backend_type = 'client backend' AND application_name <> 'psql'";
        let sql = format!("SELECT pid FROM pg_stat_activity WHERE {of_program} AND {condition}");
        let found = server.execute("public", &sql);
        found.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    begin(served);
    // Now the program has all connections that it needs.
    ways.iter().for_each(|way| fail(served, *way));
    for way in ways {
        let before = connections("true");
        fail(served, *way);
        while !connections("state LIKE 'idle in transaction%'").is_empty() {}
        let after = connections("true");
        assert!(before.iter().all(|pid| after.contains(pid)), "{way:?}: {before:?}, and then {after:?}");
    }
    assert_eq!(text(&served.get("/")), "1 1");
}

fn begin(served: &Served) {
    assert_eq!(request(served, "PUT", "/").map(|answer| answer.status), Some(200));
}

fn fail(served: &Served, (way, status): (&str, u16)) {
    let answer = post(served, &format!("/{way}")).expect("an answer");
    assert_eq!(answer.status, status, "{way}: {}", text(&answer));
}

fn end(served: Served) {
    assert_eq!(text(&served.get("/")), "1 1");
    assert_eq!(served.stop().0, Some(0));
}

/// Writes a database as another program, which waits for its turn.
fn write(folder: &Scratch, file: &str, sql: &str) {
    let path = format!("{}/{file}", folder.path());
    let written = Command::new("sqlite3").args(["-cmd", ".timeout 20000", &path, sql]).output();
    let written = written.expect("sqlite3 is installed");
    assert!(written.status.success(), "{sql}: {}", String::from_utf8_lossy(&written.stderr));
}
