//! Stored tables of a real process: restarts, kills, other databases.

mod backups;
mod beside_writes;
mod changed_columns;
mod database_faults;
mod database_kills;
mod deferred_rules;
mod disk_faults;
mod existing;
mod existing_histories;
mod failed_reads;
mod few_connections;
mod gate;
mod generated_columns;
mod groups;
mod keyed_reads;
mod kills;
mod large_answers;
mod large_row_kills;
mod limited_writes;
mod long_reads;
mod lost_commits;
mod migrations;
mod nul_in_texts;
mod of_modules;
mod other_schemas;
mod pages;
mod placed;
mod placed_faults;
mod placed_loops;
mod postgres;
mod query_plans;
mod reads_of_one_table;
mod reads_of_transactions;
mod refused_reads;
mod refused_starts;
mod refused_statements;
mod repeated;
mod replaced_rows;
mod restored;
mod row_memory;
mod scratch_schemas;
mod several_databases;
mod soft;
mod statements;
mod unchanged;
mod unfinished;
mod unreadable_rows;
mod updates;
mod versions;

use std::io::Write;
use std::thread;

use crate::support::{Answer, Scratch, Served, read_answer, say, weir};

const COUNTER: &str = r#"use http

record Entry { id: Int, by: Int, number: Int }

record Total { name: Text, count: Int }

table entries: Entry key id auto unique (by, number)
table totals: Total key name

service ledger on http(port: 8080) {
  post "/{by}/{number}" (by: Int, number: Int) {
    atomic entries, totals {
      entries.insert(Entry { by, number })?
      let known = totals["all"] else { Total { name: "all", count: 0 } }
      totals.upsert(Total { ..known, count: known.count + 1 })?
    }
    http.text("written")
  }
  get "/total" {
    let total = totals["all"] else { return http.text("0 {entries.count()}") }
    http.text("{total.count} {entries.count()}")
  }
  get "/all/{by}" (by: Int) {
    http.json(for entry in entries if entry.by == by order by entry.number { entry.number })
  }
  get "/alive" { http.text("alive") }
}
"#;

fn post(served: &Served, path: &str) -> Option<Answer> {
    request(served, "POST", path)
}

fn request(served: &Served, method: &str, path: &str) -> Option<Answer> {
    request_with(served, method, path, "")
}

fn request_with(served: &Served, method: &str, path: &str, body: &str) -> Option<Answer> {
    let mut stream = std::net::TcpStream::connect(&served.address).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        served.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut head = [0; 15];
    let read = stream.peek(&mut head).ok()?;
    if read == 0 { None } else { std::panic::catch_unwind(|| read_answer(stream)).ok() }
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).expect("a text")
}

#[test]
fn tables_are_there_after_a_restart_and_are_shown() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
    let arguments = ["--data", data.path()];
    let shown = say(&["tables", program.path(), "--data", data.path()]);
    assert!(shown.output.contains("a start runs: CREATE TABLE \"entries\""), "{}", shown.output);
    let served = Served::start(program.path(), &arguments);
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(500));
    let second = weir(&["run", program.path(), "--port", "0", "--data", data.path()]).output().unwrap();
    let messages = String::from_utf8(second.stderr).unwrap();
    assert!(messages.contains("another Weir program uses the database"), "{messages}");
    served.stop();
    // After a clean stop, the file alone holds all rows.
    let copy = Scratch::folder("ledger-copy");
    let files: Vec<_> = std::fs::read_dir(data.path()).unwrap().map(|file| file.unwrap()).collect();
    let log = files.iter().filter(|file| file.file_name().to_string_lossy().ends_with("-wal"));
    assert_eq!(log.map(|log| log.metadata().unwrap().len()).sum::<u64>(), 0, "the log is empty");
    for database in files.iter().filter(|file| file.file_name().to_string_lossy().ends_with(".db")) {
        std::fs::copy(database.path(), std::path::Path::new(copy.path()).join(database.file_name())).unwrap();
    }
    let served = Served::start(program.path(), &["--data", copy.path()]);
    assert_eq!(text(&served.get("/total")).trim(), "1 1");
    served.stop();
    let shown = say(&["tables", program.path(), "--data", data.path()]);
    assert!(shown.output.contains("the database has it like this"), "{}", shown.output);
}

#[test]
fn writes_of_many_clients_take_effect_once() {
    const CLIENTS: u64 = 48;
    for engine in ["event", "pool", "staged", "elastic"] {
        let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
        let served = Served::start(program.path(), &["--data", data.path(), "--engine", engine]);
        // A debug build may be overloaded: what is refused is sent again.
        let written = &|by: u64, number: u64| loop {
            match post(&served, &format!("/{by}/{number}")).map(|answer| answer.status) {
                Some(503) => {}
                status => return status,
            }
        };
        let write = &|by: u64| (0..10).map(|number| written(by, number)).collect::<Vec<_>>();
        let answers: Vec<Option<u16>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|by| scope.spawn(move || write(by))).collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        let failed: Vec<_> = answers.iter().filter(|status| **status != Some(200)).collect();
        assert!(failed.is_empty(), "of {} writes under `{engine}`: {failed:?}", answers.len());
        assert_eq!(text(&served.get("/total")).trim(), "480 480");
        served.stop();
    }
}

#[test]
fn a_start_that_a_table_prevents_says_which() {
    let before = "use http\nrecord Row { id: Int }\ntable rows: Row key id\nservice s on http(port: 80) { get \"/\" { http.json(for r in rows { r }) } }\n";
    let after = before.replace("id: Int }", "id: Text }");
    let (program, data) = (Scratch::new("rows.weir", before.as_bytes()), Scratch::folder("rows"));
    Served::start(program.path(), &["--data", data.path()]).stop();
    program.write(after.as_bytes());
    let said = say(&["run", program.path(), "--port", "0", "--data", data.path()]);
    let expected =
        "cannot be opened: the column `id` is `Int` in the database and `Text` in the program; a key keeps its type";
    let expected = format!(":3:7: the table `rows` {expected}");
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains(&expected), "{}", said.messages);
    let absent = format!("{}/absent", data.path());
    let said = say(&["run", program.path(), "--port", "0", "--data", &absent]);
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains(&format!("there is no folder {absent}; create it")), "{}", said.messages);
}

#[test]
fn a_flow_that_waits_for_the_disk_leaves_its_thread() {
    let program = Scratch::new("ledger.weir", COUNTER.as_bytes());
    let plan = say(&["plan", program.path(), "--engine", "pool"]);
    assert!(plan.output.contains("settle"), "the plan shows the calls: {}", plan.output);
    assert!(!plan.output.contains("hold their thread"), "{}", plan.output);
}

/// Messages name what a program writes: tables and the database, no functions, types or locks of the implementation.
#[test]
fn messages_about_tables_have_no_internal_names() {
    let text = r#"use http

record User { name: Text, age: Int }

table users: User key name

shared total = 0

service web on http(port: 8080) {
  post "/{name}" (name: Text) {
    atomic users {
      total.add(1)
      users.delete(name)?
    }
    users.update(name, |user| { total.add(1); User { ..user, age: 2 } })?
    retry(3) { atomic users { users.insert(User { name, age: 4 })? } }?
    http.text("ok")
  }
}
"#;
    let file = Scratch::new("names.weir", text.as_bytes());
    let said = say(&["check", file.path()]);
    insta::assert_snapshot!(said.messages.replace(file.path(), "FILE"));
    let fixed = Scratch::new("value.weir", text.replace("\"ok\"", "\"{users}\"").as_bytes());
    let said = say(&["check", fixed.path()]);
    assert!(said.messages.contains("`users` is a table, and no value"), "{}", said.messages);
    assert!(!said.messages.contains("tables.Table"), "{}", said.messages);
}
