//! Placed changes in PostgreSQL that are not answered when the time of their flow is over, its client leaves, or the connection is
//! lost: a transaction is whole or not there, and nobody is told that it is if it is not.

use std::io::Write;
use std::thread;

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Answer, Scratch, Served};

const PROGRAM: &str = r#"use http

record Entry { id: Int, by: Int }

table entries: Entry key id
table others: Entry key id

fn write(by: Int) -> Text {
  atomic entries, others {
    let known = others[by]
    for number in [1, 2, 3, 4, 5] { entries.insert(Entry { id: by * 10 + number, by })? }
  }
  "written"
}

service writing on http(port: 8080) {
  post "/write/{by}" (by: Int) { http.text(write(by)) }
  post "/one/{by}" (by: Int) {
    entries.insert(Entry { id: by * 10, by })?
    http.text("written")
  }
  post "/soon/{by}" (by: Int) {
    let done = write(by) within 100ms else { "late" }
    http.text(done)
  }
  get "/other/{by}" (by: Int) {
    let found = others[by]
    http.text("{found == None}")
  }
  get "/count/{by}" (by: Int) {
    let found = for entry in entries if entry.by == by { entry.id }
    http.text("{found.length()}")
  }
}
"#;

/// The number of changes of a transaction.
const CHANGES: &str = "5";
/// Keeps every insertion from being executed until it is released. Statements that read go on.
const HOLD: &str = "DO $$ BEGIN LOCK TABLE entries IN SHARE MODE;
    WHILE NOT EXISTS (SELECT 1 FROM released) LOOP PERFORM pg_sleep(0.005); END LOOP; END $$";
/// The processes of the server whose insertions wait.
const WAITING: &str = "FROM pg_locks WHERE NOT granted AND relation = 'entries'::regclass";

/// Calls `act` while a request waits for its placed changes, and then lets them go on. Returns what `request` does.
fn while_placed<T: Send>(
    (server, schema): (&PostgresServer, &str),
    request: impl FnOnce() -> T + Send,
    act: impl FnOnce(),
) -> T {
    let count = |query: &str| server.execute(schema, query).trim().to_owned();
    let until = |query: &str, wanted: &str| while count(query) != wanted {};
    server.execute(schema, "CREATE TABLE IF NOT EXISTS released (id int); TRUNCATE released");
    thread::scope(|scope| {
        let held = scope.spawn(|| server.execute(schema, HOLD));
        until(
            "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'entries'::regclass AND mode = 'ShareLock'",
            "1",
        );
        let asked = scope.spawn(request);
        until(&format!("SELECT count(*) {WAITING}"), "1");
        act();
        server.execute(schema, "INSERT INTO released VALUES (1)");
        held.join().expect("it is released");
        asked.join().expect("the client ends")
    })
}

fn status(answer: Option<Answer>) -> (u16, String) {
    let answer = answer.expect("the program answers");
    (answer.status, text(&answer).trim().to_owned())
}

fn count(served: &Served, by: u64) -> String {
    text(&served.get(&format!("/count/{by}"))).to_owned()
}

/// Starts the program, and has it prepare its statements.
fn start(server: &PostgresServer, schema: &str, engine: &str) -> (Scratch, Served) {
    let (program, address) = (Scratch::new("writing.weir", PROGRAM.as_bytes()), server.schema(schema));
    let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
    for by in 1..4 {
        assert_eq!(status(post(&served, &format!("/write/{by}"))), (200, "written".to_owned()));
    }
    (program, served)
}

#[test]
fn the_tables_of_a_transaction_are_free_when_its_commit_is_sent() {
    let Some(server) = PostgresServer::shared() else { return };
    let (_program, served) = start(server, "placed_free", "event");
    let read = || assert_eq!(text(&served.get("/other/7")), "true", "its step has ended, although it has no answer");
    let written = while_placed((server, "placed_free"), || post(&served, "/write/7"), read);
    assert_eq!((status(written), &*count(&served, 7)), ((200, "written".to_owned()), CHANGES));
    served.stop();
}

/// The commit is sent behind them, but the database says that it has ended the connection before it executes that.
#[test]
fn what_waits_when_the_database_ends_the_connection_is_executed_again() {
    let Some(server) = PostgresServer::shared() else { return };
    for engine in ["event", "pool"] {
        let schema = format!("placed_lost_{engine}");
        let (_program, served) = start(server, &schema, engine);
        let cut = || _ = server.execute(&schema, &format!("SELECT pg_terminate_backend(pid) {WAITING}"));
        // A change that is a transaction of its own, and the placed changes of one.
        for (by, path, written) in [(10, "one", "1"), (20, "write", CHANGES)] {
            // Each connection prepares its statements, for which it would wait as well.
            for before in by - 5..by {
                assert_eq!(status(post(&served, &format!("/{path}/{before}"))).0, 200);
            }
            let answer = while_placed((server, &schema), || post(&served, &format!("/{path}/{by}")), cut);
            assert_eq!((status(answer).0, &*count(&served, by)), (200, written), "{path} under `{engine}`");
        }
        served.stop();
    }
}

#[test]
fn a_transaction_that_takes_longer_than_its_limit_is_whole_and_answers_or_not_there() {
    let Some(server) = PostgresServer::shared() else { return };
    for engine in ["event", "pool"] {
        let schema = format!("placed_late_{engine}");
        let (_program, served) = start(server, &schema, engine);
        let sleep = || _ = server.execute(&schema, "SELECT pg_sleep(0.2)");
        let (code, said) = status(while_placed((server, &schema), || post(&served, "/soon/7"), sleep));
        assert_eq!(code, 200, "{said}");
        // The next transaction finds the end of this one.
        assert_eq!(status(post(&served, "/write/8")), (200, "written".to_owned()));
        let expected = if said == "written" { CHANGES } else { "0" };
        assert_eq!(count(&served, 7), expected, "{said}");
        assert_eq!(count(&served, 8), CHANGES);
        served.stop();
    }
}

#[test]
fn the_transaction_of_a_client_that_leaves_is_whole_or_not_there() {
    let Some(server) = PostgresServer::shared() else { return };
    for engine in ["event", "pool"] {
        let schema = format!("placed_left_{engine}");
        let (_program, served) = start(server, &schema, engine);
        let mut client = served.connect();
        let asking = client.try_clone().expect("a second handle");
        let request = move || {
            let mut asking = asking;
            asking.write_all(b"POST /write/7 HTTP/1.1\r\nHost: writing\r\nContent-Length: 0\r\n\r\n")
        };
        let leave = || client.shutdown(std::net::Shutdown::Both).expect("it is connected");
        while_placed((server, &schema), request, leave).expect("the program reads");
        assert_eq!(status(post(&served, "/write/8")), (200, "written".to_owned()));
        assert!(["0", CHANGES].contains(&&*count(&served, 7)), "{}", count(&served, 7));
        assert_eq!(count(&served, 8), CHANGES);
        _ = client.flush();
        served.stop();
    }
}
