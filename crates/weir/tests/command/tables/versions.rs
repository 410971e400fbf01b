//! Versions of a program that run beside each other on the tables of a PostgreSQL database.

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Scratch, Served, say};

/// A program. `RECORD` and `TABLE` differ in its versions.
const PROGRAM: &str = r#"use http

RECORD
TABLE

service directory on http(port: 8080) {
  post "/{id}/{place}" (id: Int, place: Text) {
    users.insert(User { id, COLUMN: place })?
    http.text("inserted")
  }
  get "/count" { http.text("{users.count()}") }
}
"#;

fn version(record: &str, table: &str, column: &str) -> Scratch {
    let text = PROGRAM.replace("RECORD", record).replace("TABLE", table).replace("COLUMN", column);
    Scratch::new("directory.weir", text.as_bytes())
}

const OLD_RECORD: &str = "record User { id: Int, place: Text }";
const NEW_RECORD: &str = "record OldUser { id: Int, place: Text }
record User { id: Int, city: Text }
fn renamed(old: OldUser) -> User { User { id: old.id, city: old.place } }";

fn status(served: &Served, path: &str) -> Option<u16> {
    post(served, path).map(|answer| answer.status)
}

/// Rows that a program writes into old columns would not be converted.
#[test]
fn rows_are_not_converted_while_a_program_of_the_old_version_runs() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("versions_migrate");
    let old = version(OLD_RECORD, "table users: User key id", "place");
    let new = version(NEW_RECORD, "table users: User key id migrate OldUser: renamed", "city");
    let tables = ["--tables", &address];
    let served = Served::start(old.path(), &tables);
    assert_eq!(status(&served, "/1/Ulm"), Some(200));
    let refused = say(&["run", new.path(), "--port", "0", "--tables", &address]);
    let wanted = "another program that is running has other columns of `users`";
    assert!(refused.code != 0 && refused.messages.contains(wanted), "{} {}", refused.code, refused.messages);
    // Also behind a connection that was lost.
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1466263924 AND pid <> \
               pg_backend_pid() AND objid = (hashtext('versions_migrate users')::bigint & 4294967295)::oid";
    server.execute("versions_migrate", cut);
    while status(&served, "/2/Ulm") == Some(500) {}
    let refused = say(&["run", new.path(), "--port", "0", "--tables", &address]);
    assert!(refused.messages.contains(wanted), "{}", refused.messages);
    assert_eq!(text(&served.get("/count")), "2");
    served.stop();
    let both = [(); 2].map(|()| Served::start(new.path(), &tables));
    assert_eq!(status(&both[1], "/3/Ulm"), Some(200));
    for served in both {
        assert_eq!(text(&served.get("/count")), "3");
        served.stop();
    }
}

/// The rows would no longer keep the rule on which the program that declares it relies.
#[test]
fn a_program_does_not_drop_what_another_one_that_is_running_declares_unique() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("versions_unique");
    let old = version(OLD_RECORD, "table users: User key id", "place");
    let new = version(OLD_RECORD, "table users: User key id unique place", "place");
    let tables = ["--tables", &address];
    let newer = Served::start(new.path(), &tables);
    assert_eq!(status(&newer, "/1/Ulm"), Some(200));
    let older = Served::start(old.path(), &tables);
    for served in [&newer, &older] {
        assert_eq!(status(served, "/2/Ulm"), Some(500));
    }
    newer.stop();
    older.stop();
    let alone = Served::start(old.path(), &tables);
    assert_eq!(status(&alone, "/2/Ulm"), Some(200));
    alone.stop();
}
