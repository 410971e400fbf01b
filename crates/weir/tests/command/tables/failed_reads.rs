//! Statements that read before they write deliver the failure of the read, like every other write.

use std::path::Path;
use std::process::Command;

use test_support::postgres::PostgresServer;

use super::{post, request, text};
use crate::support::{Scratch, Served};

const PROGRAM: &str = r#"use http

record Account { id: Int, balance: Float }

table accounts: Account key id

fn one() -> Result(Int) {
  atomic accounts {
    accounts.update(1, |account| Account { ..account, balance: 2.0 })? else { fail("there is none") }
  }
  Ok(1)
}

service bank on http(port: 8080) {
  put "/" { http.text("{accounts.upsert(Account { id: 1, balance: 1.0 })?}") }
  post "/upsert" {
    let done = accounts.upsert(Account { id: 1, balance: 2.0 }) else as failure { return http.status(409, "{failure.kind()}")? }
    http.text("{done}")
  }
  post "/update" {
    let done = accounts.update(1, |account| Account { ..account, balance: 2.0 }) else as failure {
      return http.status(409, "{failure.kind()}")?
    }
    http.text("{done}")
  }
  post "/matched" {
    match accounts.update(1, |account| Account { ..account, balance: 2.0 }) {
      Ok(done) => http.text("{done}")
      Err(failure) => http.status(409, "{failure.kind()}")?
    }
  }
  post "/update_all" {
    let done = accounts.update_all(|account| account.id == 1, |account| Account { ..account, balance: 2.0 }) else as failure {
      return http.status(409, "{failure.kind()}")?
    }
    http.text("{done}")
  }
  post "/delete_all" {
    let done = accounts.delete_all(|account| account.balance * 2.0 > 100.0) else as failure {
      return http.status(409, "{failure.kind()}")?
    }
    http.text("{done}")
  }
  post "/transaction" {
    let done = one() else as failure { return http.status(409, "{failure.kind()}")? }
    http.text("{done}")
  }
}
"#;

const WAYS: [&str; 6] = ["upsert", "update", "matched", "update_all", "delete_all", "transaction"];

#[test]
fn a_read_that_fails_is_the_failure_of_the_write_in_sqlite() {
    let (program, folder) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), Scratch::folder("failed-reads"));
    let served = Served::start(program.path(), &["--data", folder.path()]);
    let file = Path::new(program.path()).with_extension("db");
    let path = Path::new(folder.path()).join(file.file_name().expect("a name"));
    let rename = || {
        let sql = "ALTER TABLE accounts RENAME TO others";
        let renamed = Command::new("sqlite3").args(["-cmd", ".timeout 20000"]).arg(&path).arg(sql).output();
        let renamed = renamed.expect("sqlite3 is installed");
        assert!(renamed.status.success(), "{}", String::from_utf8_lossy(&renamed.stderr));
    };
    delivers(&served, rename);
    served.stop();
}

#[test]
fn a_read_that_fails_is_the_failure_of_the_write_in_postgres() {
    let Some(server) = PostgresServer::shared() else { return };
    let (program, address) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), server.schema("failed_reads"));
    let served = Served::start(program.path(), &["--tables", &address]);
    delivers(&served, || _ = server.execute("failed_reads", "ALTER TABLE accounts RENAME TO others"));
    served.stop();
}

/// Executes every statement, and again when the database fails all.
fn delivers(served: &Served, fail: impl FnOnce()) {
    assert_eq!(request(served, "PUT", "/").map(|answer| answer.status), Some(200));
    let answers = || WAYS.map(|way| (way, post(served, &format!("/{way}")).expect("an answer")));
    for (way, answer) in answers() {
        assert_eq!(answer.status, 200, "{way}: {}", text(&answer));
    }
    fail();
    for (way, answer) in answers() {
        assert_eq!((answer.status, text(&answer)), (409, "function"), "{way}");
    }
}
