//! Transactions whose connection is lost when their commit is sent: one is executed again unless it has taken effect.

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;

use super::{post, text};
use crate::support::{ENGINES, Scratch, Served};

const PROGRAM: &str = r#"use http

record Account { owner: Text, balance: Int }
record Seen { number: Int, balance: Int }
record Note { id: Int, text: Text }

table accounts: Account key owner
table seen: Seen key number auto soft(at_most: 1000)
table notes: Note key id auto
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
  post "/noted" {
    let noted = retry(3) { notes.insert(Note { text: "once" })? }
    match noted {
      Ok(id) => http.text("{id}")
      Err(failure) => http.text("{failure.kind()}")
    }
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
  post "/updated" {
    let changed = accounts.update("ada", |a| Account { ..a, balance: a.balance + 1 })? else { fail("no account") }
    http.text("{changed.balance}")
  }
  post "/placed" {
    let balance = atomic accounts {
      let found = accounts["ada"] else { fail("no account") }
      accounts.upsert(Account { ..found, balance: found.balance + 1 })?
      found.balance + 1
    }
    http.text("{balance}")
  }
  post "/changed" {
    let balance = atomic accounts, seen, counted {
      counted.add(1)
      let found = accounts["ada"] else { fail("no account") }
      accounts.upsert(Account { ..found, balance: found.balance + 1 })?
      seen.insert(Seen { balance: found.balance + 1 })?
      found.balance + 1
    }
    http.text("{balance}")
  }
  get "/changes" { http.text("{counted} {seen.count()}") }
}
"#;

/// Returns the status and the text of an answer.
fn answered(served: &Served, path: &str) -> (u16, String) {
    let answer = post(served, path).expect("it answers");
    (answer.status, text(&answer).trim().to_owned())
}

#[test]
fn a_transaction_that_has_only_read_is_executed_again_if_its_commit_is_lost() {
    let Some(server) = PostgresServer::shared() else { return };
    let (program, proxy) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), PostgresProxy::start(server));
    for engine in ENGINES {
        let schema = format!("only_read_{}", engine.replace('-', "_"));
        server.schema(&schema);
        let served = Served::start(program.path(), &["--tables", &proxy.address(&schema), "--engine", engine]);
        for path in ["/open", "/read", "/returned", "/restored"] {
            assert_eq!(answered(&served, path), (200, "5".to_owned()), "{path} under `{engine}`");
        }
        for path in ["/read", "/returned", "/restored"] {
            proxy.lose_commits(2);
            assert_eq!(answered(&served, path), (200, "5".to_owned()), "{path} under `{engine}`");
            assert_eq!(proxy.commits_left(), 0, "{path} under `{engine}`: the test shows nothing");
        }
        assert_eq!(text(&served.get("/changes")), "2 2", "under `{engine}`");
        assert_eq!(served.stop().0, Some(0));
    }
}

/// Its changes of shared values and soft tables are there as often as its stored rows.
#[test]
fn a_transaction_that_has_written_takes_effect_once_if_its_commit_or_the_answer_to_that_is_lost() {
    let Some(server) = PostgresServer::shared() else { return };
    let (program, proxy) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), PostgresProxy::start(server));
    for (engine, is_alone) in ENGINES.map(|engine| (engine, true)).into_iter().chain([("event", false)]) {
        let schema = format!("written_{}_{is_alone}", engine.replace('-', "_"));
        server.schema(&schema);
        let served = Served::start(program.path(), &["--tables", &proxy.address(&schema), "--engine", engine]);
        let other = (!is_alone).then(|| Served::start(program.path(), &["--tables", &server.address(&schema)]));
        assert_eq!(answered(&served, "/open"), (200, "5".to_owned()), "under `{engine}`");
        let mut balance = 5;
        for path in ["/updated", "/placed", "/changed"] {
            // Later transactions need no thread, because their statements are prepared.
            for (commits, answers) in [(0, 0), (1, 0), (0, 1)] {
                proxy.lose_commits(commits);
                proxy.lose_commit_answers(answers);
                balance += 1;
                let why = format!("{path} under `{engine}`, alone: {is_alone}");
                assert_eq!(answered(&served, path), (200, balance.to_string()), "{why}");
                assert_eq!(proxy.commits_left(), 0, "{why}: the test shows nothing");
                assert_eq!(answered(&served, "/read"), (200, balance.to_string()), "{why}");
            }
        }
        assert_eq!(text(&served.get("/changes")), "3 3", "under `{engine}`");
        assert_eq!(served.stop().0, Some(0));
        if let Some(other) = other {
            assert_eq!(other.stop().0, Some(0));
        }
    }
}

#[test]
fn nobody_knows_the_end_of_a_single_change_whose_connection_is_lost() {
    let Some(server) = PostgresServer::shared() else { return };
    let (program, proxy) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), PostgresProxy::start(server));
    server.schema("single_change");
    let mut served = Served::start(program.path(), &["--tables", &proxy.address("single_change")]);
    assert_eq!(answered(&served, "/open"), (200, "5".to_owned()));
    proxy.lose_commits(1);
    assert_eq!(answered(&served, "/open").0, 500);
    assert_eq!(proxy.commits_left(), 0, "the test shows nothing");
    served.wait_for("nobody knows whether it has taken effect");
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_retry_repeats_no_change_of_which_nobody_knows_whether_it_has_taken_effect() {
    let Some(server) = PostgresServer::shared() else { return };
    let (program, proxy) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), PostgresProxy::start(server));
    server.schema("retried_change");
    let served = Served::start(program.path(), &["--tables", &proxy.address("retried_change")]);
    assert_eq!(answered(&served, "/noted"), (200, "1".to_owned()));
    proxy.lose_commit_answers(1);
    assert_eq!(answered(&served, "/noted"), (200, "uncertain".to_owned()));
    assert_eq!(proxy.commits_left(), 0, "the test shows nothing");
    // The server may execute the commit later than the program learns of the cut.
    let count = || server.execute("retried_change", "SELECT count(*) FROM notes").trim().to_owned();
    while count() == "1" {
        std::thread::yield_now();
    }
    assert_eq!(served.stop().0, Some(0));
    assert_eq!(count(), "2");
}
