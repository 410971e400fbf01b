//! Reads of transactions that follow each other: in PostgreSQL they are sent together, in the order of the text, and their answers and
//! failures are what they are one after the other.

use std::thread;

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;

use super::unchanged::sends_together;
use super::{post, text};
use crate::support::{Scratch, Served, TableStore};

const PROGRAM: &str = r#"use http

record Entry { id: Int, of: Int }

table firsts: Entry key id index of
table seconds: Entry key id index of

service reading on http(port: 8080) {
  post "/{id}/{of}" (id: Int, of: Int) {
    atomic firsts, seconds {
      firsts.upsert(Entry { id, of })?
      seconds.upsert(Entry { id: id + 10, of })?
    }
    http.text("written")
  }
  get "/counts" {
    let found = atomic firsts, seconds { (firsts.count(), seconds.count()) }
    http.text("{found}")
  }
  get "/rows" {
    let found = atomic firsts, seconds {
      let first = firsts[1]
      let dear = for second in seconds if second.of > 7 { second.id }
      let of = match first {
        Some(entry) => entry.of
        None => 0
      }
      (of, dear, firsts.exists(|entry| entry.of == 8))
    }
    http.text("{found}")
  }
  get "/refuses" {
    let found = atomic firsts, seconds {
      let first = firsts[1] else { fail("none") }
      (first.of, seconds.count())
    }
    http.text("{found}")
  }
  get "/needs" {
    let found = atomic firsts, seconds {
      let count = firsts.count()
      let equal = for second in seconds if second.of == count + 5 { second.id }
      (count, equal, seconds.count())
    }
    http.text("{found}")
  }
  get "/branch" {
    let found = atomic firsts, seconds {
      let count = firsts.count()
      (count, if count > 5 { 0 } else { seconds.count() })
    }
    http.text("{found}")
  }
  get "/return" {
    let found = atomic firsts, seconds {
      let count = firsts.count()
      if count > 5 { return http.text("many") }
      (count, seconds.count())
    }
    http.text("{found}")
  }
  get "/rounds" {
    let found = atomic firsts, seconds {
      for of in [7, 8] { (firsts.count(|entry| entry.of == of), for entry in seconds if entry.of == of { entry.id }) }
    }
    http.text("{found}")
  }
  post "/own" {
    let found = atomic firsts, seconds {
      let before = (firsts.count(), seconds.count())
      firsts.upsert(Entry { id: 3, of: 9 })?
      let between = (firsts.count(), seconds.count())
      firsts.delete(3)?
      (before, between, firsts.count(), seconds.count())
    }
    http.text("{found}")
  }
  get "/fails" {
    let found = atomic firsts, seconds {
      let count = firsts.count()
      if count > 1 { fail("more than one") }
      (count, seconds.count())
    }
    http.text("{found}")
  }
  get "/soon" {
    let found = (atomic firsts, seconds { (firsts.count(), seconds.count()) }) within 100ms else { (0, 0) }
    http.text("{found}")
  }
}
"#;

const ENGINES: [&str; 5] = ["event", "pool", "thread-per-flow", "elastic", "staged"];

/// The routes, and the number of statements that are sent before the first answer.
const ROUTES: [(&str, usize, &str); 7] = [
    ("/counts", 2, "(2, 2)"),
    ("/rows", 3, "(7, [12], true)"),
    ("/refuses", 1, "(7, 2)"),
    ("/needs", 1, "(2, [11], 2)"),
    ("/branch", 1, "(2, 2)"),
    ("/return", 1, "(2, 2)"),
    ("/rounds", 2, "[(1, [11]), (1, [12])]"),
];

fn fill(served: &Served) {
    for path in ["/1/7", "/2/8"] {
        assert_eq!(post(served, path).expect("an answer").status, 200);
    }
}

#[test]
fn reads_of_a_transaction_are_sent_together() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("read_together");
    let proxy = PostgresProxy::start(server);
    let program = Scratch::new("together.weir", PROGRAM.as_bytes());
    for engine in ENGINES {
        let address = proxy.address("read_together");
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine, "--threads", "1"]);
        fill(&served);
        for route in ROUTES {
            sends_together(&proxy, &served, route);
        }
        served.stop();
    }
}

/// Each request comes several times, because statements are sent together once they are prepared.
#[test]
fn they_read_what_they_read_in_every_store() {
    let program = Scratch::new("together.weir", PROGRAM.as_bytes());
    for store in TableStore::each("read_together_stores") {
        let served = Served::start(program.path(), &store.with(&[]));
        fill(&served);
        for _ in 0..3 {
            for (path, _, answer) in ROUTES {
                assert_eq!(text(&served.get(path)), answer, "{path}");
            }
            let own = post(&served, "/own").expect("an answer");
            assert_eq!(text(&own), "((2, 2), (3, 2), 2, 2)");
            assert_eq!(served.get("/fails").status, 500);
        }
        served.stop();
    }
}

#[test]
fn the_failure_of_the_first_is_what_the_flow_fails_with() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("together.weir", PROGRAM.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("read_refused")]);
    fill(&served);
    let routes = ["/counts", "/rows", "/fails"];
    for path in routes.repeat(3) {
        served.get(path);
    }
    let rename =
        |from: &str, to: &str| _ = server.execute("read_refused", &format!("ALTER TABLE {from} RENAME TO {to}"));
    rename("seconds", "gone");
    for path in routes {
        assert_eq!(served.get(path).status, 500, "{path}");
    }
    rename("firsts", "gone_too");
    for path in routes {
        assert_eq!(served.get(path).status, 500, "{path}");
    }
    rename("gone", "seconds");
    rename("gone_too", "firsts");
    for (path, _, answer) in ROUTES {
        assert_eq!(text(&served.get(path)), answer, "{path}");
    }
    let (_, log) = served.stop();
    let failed: Vec<&str> = log.lines().filter(|line| line.contains("together.weir:")).collect();
    let failed = &failed[failed.len() - 6..];
    for (line, wanted) in failed.iter().zip(["seconds", "seconds", "more than one", "firsts", "firsts", "firsts"]) {
        assert!(line.contains(wanted) && !line.contains("aborted"), "{wanted}: {failed:#?}");
    }
}

/// Holds a table until somebody waits for it, and `act` has been called. Returns what `request` does.
fn while_waiting<T: Send>(
    (server, schema, table): (&PostgresServer, &str, &str),
    request: impl FnOnce() -> T + Send,
    act: impl FnOnce(),
) -> T {
    let until = |query: &str| while server.execute(schema, query).trim() != "1" {};
    let locks = format!("FROM pg_locks WHERE relation = '{table}'::regclass AND");
    server.execute(schema, "CREATE TABLE IF NOT EXISTS released (id int); TRUNCATE released");
    let hold = format!(
        "DO $$ BEGIN LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;
        WHILE NOT EXISTS (SELECT 1 FROM released) LOOP PERFORM pg_sleep(0.005); END LOOP; END $$"
    );
    thread::scope(|scope| {
        let held = scope.spawn(|| server.execute(schema, &hold));
        until(&format!("SELECT count(*) {locks} granted AND mode = 'AccessExclusiveLock'"));
        let asked = scope.spawn(request);
        until(&format!("SELECT count(*) {locks} NOT granted"));
        act();
        server.execute(schema, "INSERT INTO released VALUES (1)");
        held.join().expect("it is released");
        asked.join().expect("it is answered")
    })
}

#[test]
fn a_transaction_whose_connection_is_lost_during_them_is_executed_again() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("together.weir", PROGRAM.as_bytes());
    for engine in ["event", "pool"] {
        let schema = format!("read_lost_{engine}");
        let served = Served::start(program.path(), &["--tables", &server.schema(&schema), "--engine", engine]);
        fill(&served);
        for table in ["firsts", "seconds"] {
            // Each connection prepares its statements.
            for _ in 0..5 {
                assert_eq!(text(&served.get("/counts")), "(2, 2)");
            }
            let waiting = format!("FROM pg_locks WHERE NOT granted AND relation = '{table}'::regclass");
            let cut = || _ = server.execute(&schema, &format!("SELECT pg_terminate_backend(pid) {waiting}"));
            let answer = while_waiting((server, &schema, table), || served.get("/counts"), cut);
            assert_eq!(text(&answer), "(2, 2)", "{table}, {engine}");
        }
        served.stop();
    }
}

#[test]
fn a_flow_whose_time_is_up_during_them_leaves_the_connection_to_others() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("together.weir", PROGRAM.as_bytes());
    for engine in ["event", "pool"] {
        let schema = format!("read_late_{engine}");
        let served = Served::start(program.path(), &["--tables", &server.schema(&schema), "--engine", engine]);
        fill(&served);
        for table in ["firsts", "seconds"] {
            for _ in 0..5 {
                served.get("/soon");
            }
            let sleep = || _ = server.execute(&schema, "SELECT pg_sleep(0.2)");
            let answer = while_waiting((server, &schema, table), || served.get("/soon"), sleep);
            // A step that has begun goes on to its end.
            assert!(["(0, 0)", "(2, 2)"].contains(&text(&answer)), "{table}, {engine}: {answer:?}");
            assert_eq!(text(&served.get("/counts")), "(2, 2)", "{table}, {engine}");
        }
        served.stop();
    }
}

/// Rows of 100 kB each, which together are more than a flow may hold.
const LARGE: &str = r#"use http, list

record Page { id: Int, content: Text }

table pages: Page key id

service book on http(port: 8080) {
  post "/fill" {
    let content = "0123456789abcdef".repeat(6250)?
    for id in list.numbers(0, 60)? { pages.upsert(Page { id, content })? }
    http.text("{pages.count()}")
  }
  get "/small" {
    let found = atomic pages { (pages.count(), for page in pages if page.id < 2 { page.id }) }
    http.text("{found}")
  }
  get "/large" {
    let found = atomic pages { (pages.count(), for page in pages { page.content }) }
    http.text("{found}")
  }
  get "/each" {
    let found = atomic pages {
      for from in [0, 10, 20, 30, 40, 50] {
        let first = for page in pages if page.id >= from && page.id < from + 5 { page.content.length() }
        let second = for page in pages if page.id >= from + 5 && page.id < from + 10 { page.content.length() }
        first.sum() + second.sum()
      }
    }
    http.text("{found.sum()}")
  }
}
"#;

#[test]
fn their_answers_count_for_the_flow_until_it_has_read_them() {
    let program = Scratch::new("large.weir", LARGE.as_bytes());
    let plan = Scratch::new("large.toml", b"memory_per_flow = \"3mb\"");
    for store in TableStore::each("read_large") {
        let served = Served::start(program.path(), &store.with(&["--plan", plan.path()]));
        assert_eq!(text(&post(&served, "/fill").expect("an answer")), "60");
        for _ in 0..3 {
            assert_eq!(text(&served.get("/small")), "(60, [0, 1])");
            assert_eq!(text(&served.get("/each")), "6000000");
            assert_eq!(served.get("/large").status, 500);
        }
        served.stop();
    }
}
