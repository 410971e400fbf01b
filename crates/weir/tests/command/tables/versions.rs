//! Versions of a program beside each other on the tables of a database: in PostgreSQL they may run, and in SQLite one at a time.

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
    let promised = || say(&["tables", new.path(), "--tables", &address]);
    let shown = promised();
    assert!(shown.code == 1 && shown.output.contains(&format!("a start fails: {wanted}")), "{}", shown.output);
    // Also behind a connection that was lost.
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1466263924 AND pid <> \
               pg_backend_pid() AND objid = (hashtext('versions_migrate users')::bigint & 4294967295)::oid";
    server.execute("versions_migrate", cut);
    while status(&served, "/2/Ulm") == Some(500) {}
    let refused = say(&["run", new.path(), "--port", "0", "--tables", &address]);
    assert!(refused.messages.contains(wanted), "{}", refused.messages);
    assert_eq!(text(&served.get("/count")), "2");
    served.stop();
    let shown = promised();
    assert!(shown.code == 0 && shown.output.contains("a start converts 2 rows"), "{}", shown.output);
    let both = [(); 2].map(|()| Served::start(new.path(), &tables));
    assert_eq!(status(&both[1], "/3/Ulm"), Some(200));
    for served in both {
        assert_eq!(text(&served.get("/count")), "3");
        served.stop();
    }
}

/// Starts a program with this text, and returns the changes of tables that its log names.
fn changes_of_start(program: &Scratch, text: &str, place: &[&str]) -> Vec<String> {
    std::fs::write(program.path(), text).expect("the program is written");
    let served = Served::start(program.path(), place);
    assert_eq!(super::text(&served.get("/count")), "0");
    let greeting = served.greeting.clone();
    let said = (greeting + &served.stop().1).replace('\\', "");
    let changed = said.lines().filter_map(|line| line.split("the start has changed the database: ").nth(1));
    changed.map(str::to_owned).collect()
}

#[test]
fn the_log_of_a_start_names_what_it_has_changed() {
    let text = |record: &str, index: &str, value: &str| {
        let text = PROGRAM.replace("RECORD", record).replace("TABLE", &format!("table users: User key id{index}"));
        text.replace("COLUMN: place", value)
    };
    let with_index = text(OLD_RECORD, " index place", "place");
    let without = text("record User { id: Int, place: Text, city: Option(Text) }", "", "place, city: None");
    let (program, folder) = (Scratch::new("directory.weir", b""), Scratch::folder("versions-log"));
    let address = PostgresServer::shared().map(|server| server.schema("versions_log"));
    let sqlite = Some(["--data", folder.path()]);
    for place in sqlite.into_iter().chain(address.as_ref().map(|address| ["--tables", address])) {
        let changes = |text| changes_of_start(&program, text, &place);
        assert_eq!(changes(&with_index), [""; 0], "a new table is no change");
        let changed = changes(&without);
        let [added, dropped] = &changed[..] else { panic!("{changed:?}") };
        assert!(added.starts_with("ALTER TABLE \"users\" ADD COLUMN \"city\""), "{added}");
        assert!(dropped.starts_with("DROP INDEX"), "{dropped}");
        assert_eq!(changes(&without), [""; 0], "nothing is left to change");
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
    let said = older.stop().1;
    let why = "a row of `users` with the place \"Ulm\" exists already, and another version of the program declares `unique (place)`";
    assert!(said.contains(why), "{said}");
    let alone = Served::start(old.path(), &tables);
    assert_eq!(status(&alone, "/2/Ulm"), Some(200));
    alone.stop();
}

/// Otherwise its writes would be lost.
#[test]
fn a_program_ends_if_another_version_has_converted_its_rows_while_it_had_no_connection() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("versions_lost");
    let old = version(OLD_RECORD, "table users: User key id", "place");
    let tables = ["--tables", &address];
    let served = Served::start(old.path(), &tables);
    assert_eq!(status(&served, "/1/Ulm"), Some(200));
    // As another version does that is faster than the program.
    let converted = "BEGIN; LOCK TABLE weir_database IN EXCLUSIVE MODE;
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'weir';
        CREATE TABLE weir_migrations (\"table\" TEXT NOT NULL, \"old\" TEXT NOT NULL, \"new\" TEXT NOT NULL, \"last\" TEXT,
                                      \"done\" INTEGER NOT NULL, PRIMARY KEY (\"table\", \"old\"));
        INSERT INTO weir_migrations VALUES ('users', 'id: Int, place: Text', 'id: Int, city: Text', NULL, 1); COMMIT";
    server.execute("versions_lost", converted);
    let (code, said) = served.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("has changed `users`: a newer version of the program has converted the rows"), "{said}");
}

/// The old version would delete rows that others reference, and the new one relies on them.
#[test]
fn versions_with_other_references_do_not_run_beside_each_other() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("versions_references");
    let cities = "record City { name: Text }\ntable cities: City key name";
    let table = "table users: User key id index place";
    let old = version(&format!("{OLD_RECORD}\n{cities}"), table, "place");
    let new = version(&format!("{OLD_RECORD}\n{cities}"), &format!("{table} references place: cities"), "place");
    let tables = ["--tables", &address];
    for (first, second) in [(&old, &new), (&new, &old)] {
        let both = [(); 2].map(|()| Served::start(first.path(), &tables));
        let refused = say(&["run", second.path(), "--port", "0", "--tables", &address]);
        let wanted = "another program that is running declares other `references` of ";
        assert!(refused.code != 0 && refused.messages.contains(wanted), "{} {}", refused.code, refused.messages);
        both.into_iter().for_each(|served| _ = served.stop());
    }
}

/// No version drops or converts what another one relies on, because it does not start.
#[test]
fn in_sqlite_no_version_starts_while_another_one_runs() {
    let unique = version(OLD_RECORD, "table users: User key id unique place", "place");
    let plain = version(OLD_RECORD, "table users: User key id", "place");
    let renaming = version(NEW_RECORD, "table users: User key id migrate OldUser: renamed", "city");
    // The database has the name of the program.
    let (program, data) = (Scratch::new("directory.weir", b""), Scratch::folder("versions"));
    let tables = ["--data", data.path()];
    let put = |version: &Scratch| _ = std::fs::copy(version.path(), program.path()).unwrap();
    for (at, (running, other)) in [(&unique, &plain), (&plain, &renaming), (&renaming, &unique)].into_iter().enumerate()
    {
        put(running);
        let served = Served::start(program.path(), &tables);
        put(other);
        let refused = say(&["run", program.path(), "--port", "0", "--data", data.path()]);
        let wanted = "another Weir program uses the database";
        assert!(refused.code != 0 && refused.messages.contains(wanted), "{} {}", refused.code, refused.messages);
        let inserted = ["1", "2"].map(|id| status(&served, &format!("/{at}{id}/Ulm{at}")));
        assert_eq!(inserted, [Some(200), Some(if at == 0 { 500 } else { 200 })], "{at}");
        served.stop();
    }
}
