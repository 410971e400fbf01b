//! Transactions whose connection is lost when their commit is sent: one that has only read is executed again.

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;

use super::{post, text};
use crate::support::{Scratch, Served};

const PROGRAM: &str = r#"use http

record Account { owner: Text, balance: Int }
record Seen { number: Int, balance: Int }

table accounts: Account key owner
table seen: Seen key number auto soft(at_most: 1000)
shared counted = 0

fn balance(owner: Text) -> Result(Int) {
  atomic accounts {
    if !accounts.exists(|account| account.balance > 0) { fail("no account") }
    let found = accounts[owner] else { fail("no account") }
    return Ok(found.balance)
  }
}

service bank on http(port: 8080) {
  post "/open" {
    accounts.upsert(Account { owner: "ada", balance: 5 })?
    http.text("5")
  }
  post "/read" {
    let found = atomic accounts { accounts["ada"] else { fail("no account") } }
    http.text("{found.balance}")
  }
  post "/returned" { http.text("{balance("ada")?}") }
  post "/restored" {
    let found = atomic accounts, seen, counted {
      counted.add(1)
      let found = accounts["ada"] else { fail("no account") }
      seen.insert(Seen { balance: found.balance })?
      found.balance
    }
    http.text("{found}")
  }
  post "/written" {
    let changed = accounts.update("ada", |a| Account { ..a, balance: 5 })?
    http.text("{changed}")
  }
  get "/changes" { http.text("{counted} {seen.count()}") }
}
"#;

const ENGINES: [&str; 7] = ["event", "pool", "elastic", "staged", "manual", "dedicated", "thread-per-flow"];

#[test]
fn a_transaction_that_has_only_read_is_executed_again_if_its_commit_is_lost() {
    let Some(server) = PostgresServer::shared() else { return };
    let (program, proxy) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), PostgresProxy::start(server));
    for engine in ENGINES {
        let schema = format!("only_read_{}", engine.replace('-', "_"));
        server.schema(&schema);
        let mut served = Served::start(program.path(), &["--tables", &proxy.address(&schema), "--engine", engine]);
        let answer = |served: &Served, path: &str| {
            let answer = post(served, path).expect("it answers");
            (answer.status, text(&answer).trim().to_owned())
        };
        for path in ["/open", "/read", "/returned", "/restored"] {
            assert_eq!(answer(&served, path), (200, "5".to_owned()), "{path} under `{engine}`");
        }
        for path in ["/read", "/returned", "/restored"] {
            proxy.lose_commits(2);
            assert_eq!(answer(&served, path), (200, "5".to_owned()), "{path} under `{engine}`");
            assert_eq!(proxy.commits_left(), 0, "{path} under `{engine}`: the test shows nothing");
        }
        assert_eq!(text(&served.get("/changes")), "2 2", "under `{engine}`");
        // Nobody knows the end of one that has written.
        proxy.lose_commits(1);
        assert_eq!(answer(&served, "/written").0, 500, "under `{engine}`");
        assert_eq!(proxy.commits_left(), 0, "under `{engine}`: the test shows nothing");
        served.wait_for("nobody knows whether it has taken effect");
        assert_eq!(served.stop().0, Some(0));
    }
}
