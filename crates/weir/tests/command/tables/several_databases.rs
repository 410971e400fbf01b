//! Programs with tables in several databases: each database has its own writer, so that a slow one holds up the flows that use it, and
//! no others.
//!
//! A gate keeps a transaction from going on until all other requests are answered. They would be answered later if they waited for the
//! transaction, and the test would wait for ever.

use std::process::{Child, Stdio};
use std::thread;

use test_support::postgres::PostgresServer;

use super::existing::Other;
use super::gate::{GATE, GATE_ROUTES, send, while_held};
use super::{post, text};
use crate::support::{Scratch, Served, TableStore, read_answer};

const PROGRAM: &str = r#"use client, http, random, time

record Row { id: Int, n: Int }
record Mark { id: Int, of: Int }

config shop: Text

table own: Row key id
table theirs: Row key id existing(database: shop, writable: true)
table marks: Mark key id references of: own soft
shared kept = 0
shared added = 0

constraint ledger

fn held(fails: Bool) -> Result(Text) {
  let came = atomic theirs {
    kept.add(1)
    theirs.upsert(Row { id: 1, n: 1 })?
    let came = passes()?
    theirs.upsert(Row { id: 2, n: 2 })?
    if fails { fail("{came} -1") }
    came
  }
  Ok("{came} {kept.read()}")
}

fn in_own(fails: Bool) -> Result(Int) {
  atomic own {
    added.add(1)
    own.upsert(Row { id: 1, n: 1 })?
    if fails { fail("no") }
  }
  Ok(added.read())
}

fn moved(to: Int) -> Result(Int) {
  theirs.update(0, |row| {
    marks.upsert(Mark { id: to, of: 0 })?
    Row { ..row, n: row.n + 1 }
  })?
  Ok(0)
}

service front on http(port: 8080) {
  put "/begin" {
    marks.delete_all(|_| true)?
    own.delete_all(|_| true)?
    theirs.delete_all(|_| true)?
    kept.set(0)
    added.set(0)
    own.upsert(Row { id: 0, n: 0 })?
    theirs.upsert(Row { id: 0, n: 0 })?
    http.text("begun")
  }
  post "/held/before" {
    let (came, id) = atomic theirs {
      let came = passes()?
      (came, theirs.upsert(Row { id: 9, n: 9 })?)
    }
    http.text("{came} {id}")
  }
  post "/held/within" (fails: Bool) {
    let count = held(fails) else as failure { failure.message() }
    http.text(count)
  }
  // The gate.

  post "/gate/theirs" { http.json(theirs.update(0, |row| Row { ..row, n: row.n + 1 })?) }
  post "/gate/both" { http.json((for row in own { (row.n, theirs[row.id].map(|their| their.n)) })) }

  get "/own/get" { http.json(own[0].map(|row| row.id)) }
  get "/own/query" { http.json((for row in own { row.id }).length() > 0) }
  post "/own/upsert" { http.json(own.upsert(Row { id: 5, n: 5 })?) }
  post "/own/update" { http.json(own.update(0, |row| Row { ..row, n: row.n + 1 })?.map(|row| row.id)) }
  post "/own/update_all" { http.json(own.update_all(|row| row.id == 0, |row| Row { ..row, n: row.n + 1 })?) }
  post "/own/delete" { http.json(own.delete(77)?) }
  post "/own/marks" { http.json(marks.upsert(Mark { id: 1, of: 0 })?) }
  post "/own/atomic" (fails: Bool = false) { http.text("{in_own(fails) else { -1 }} {added.read()}") }
  get "/theirs" { http.json(for row in theirs { (row.id, row.n) }) }
  get "/kept" { http.text("{kept.read()}") }
  get "/sums" { http.json((own[0], theirs[0])) }

  post "/order/0" {
    atomic ledger {
      own.update(0, |row| Row { ..row, n: row.n + 1 })?
      theirs.update(0, |row| Row { ..row, n: row.n + 1 })?
    }
    http.text("done")
  }
  post "/order/1" {
    atomic ledger {
      theirs.update(0, |row| Row { ..row, n: row.n + 1 })?
      own.update(0, |row| Row { ..row, n: row.n + 1 })?
    }
    http.text("done")
  }
  post "/order/2" {
    atomic theirs, marks {
      theirs.update(0, |row| Row { ..row, n: row.n + 1 })?
      marks.upsert(Mark { id: 2, of: 0 })?
    }
    own.update(0, |row| Row { ..row, n: row.n + 1 })?
    http.text("done")
  }
  post "/order/3" {
    atomic marks, own {
      marks.upsert(Mark { id: 3, of: 0 })?
      own.update(0, |row| Row { ..row, n: row.n + 1 })?
    }
    http.text("{moved(3)?}")
  }
  post "/order/4" {
    atomic own {
      let seen = theirs[0].map(|row| row.n) else { 0 }
      own.update(0, |row| if seen < 0 { row } else { Row { ..row, n: row.n + 1 } })?
    }
    atomic theirs {
      let seen = own[0].map(|row| row.n) else { 0 }
      theirs.update(0, |row| if seen < 0 { row } else { Row { ..row, n: row.n + 1 } })?
    }
    http.text("done")
  }
}
"#;

/// The requests that need only the tables of the program, and their answers.
const OWN: [(&str, &str, &str); 10] = [
    ("POST", "/own/update", "0"),
    ("POST", "/own/upsert", "5"),
    ("GET", "/own/get", "0"),
    ("POST", "/own/atomic", "1 1"),
    ("GET", "/own/query", "true"),
    ("POST", "/own/update_all", "1"),
    ("POST", "/own/delete", "false"),
    ("POST", "/own/marks", "1"),
    ("POST", "/own/atomic?fails=true", "-1 1"),
    ("GET", "/own/get", "0"),
];

fn answered(served: &Served, (method, path, expected): (&str, &str, &str)) {
    let answer = read_answer(send(served, method, path));
    assert_eq!((answer.status, text(&answer).trim()), (200, expected), "{method} {path}");
}

/// A running program, and the database of its table `theirs`.
struct Running<'p> {
    served: &'p Served,
    other: &'p Other,
    engine: &'p str,
}

/// Returns the program with its gate.
fn program() -> Scratch {
    let routes = PROGRAM.replace("// The gate.", GATE_ROUTES);
    Scratch::new("several.weir", format!("{routes}{GATE}").as_bytes())
}

/// Runs the program under an engine with each kind of database for its own tables and for the others. One process serves all that is
/// tested, because processes take most of the time.
fn run(engine: &str) {
    let program = program();
    let name = format!("several_{}", engine.replace('-', "_"));
    for (own, store) in TableStore::each(&format!("{name}_own")).iter().enumerate() {
        for other in Other::each(&format!("{name}_{own}"), |_| {
            "CREATE TABLE theirs (id bigint PRIMARY KEY NOT NULL, n bigint NOT NULL)".to_owned()
        }) {
            let option = other.option();
            let served = Served::start(program.path(), &store.with(&["--set", &option, "--engine", engine]));
            let running = Running { served: &served, other: &other, engine };
            running.a_transaction_holds_up_no_table_of_the_program();
            running.a_step_ends_nothing_in_other_databases();
            running.a_locked_row_holds_up_no_table_of_the_program();
            running.a_query_keeps_nobody_out_while_another_database_answers();
            running.flows_in_opposite_orders_do_not_wait_for_each_other_forever();
            assert_eq!(served.stop().0, Some(0));
        }
    }
}

#[test]
fn another_database_holds_up_no_table_of_the_program_under_event() {
    run("event");
}

#[test]
fn another_database_holds_up_no_table_of_the_program_under_pool() {
    run("pool");
}

#[test]
fn another_database_holds_up_no_table_of_the_program_under_staged() {
    run("staged");
}

#[test]
fn another_database_holds_up_no_table_of_the_program_under_thread_per_flow() {
    run("thread-per-flow");
}

impl Running<'_> {
    /// Makes the tables as they are at first.
    fn begin(&self) {
        assert_eq!(read_answer(send(self.served, "PUT", "/begin")).status, 200);
    }

    fn own_tables_go_on(&self) {
        OWN.iter().for_each(|request| answered(self.served, *request));
    }

    fn a_transaction_holds_up_no_table_of_the_program(&self) {
        assert_eq!(while_held(self.served, "/held/before", || self.begin(), || self.own_tables_go_on()), "9");
    }

    /// The end of a step takes back what is open in its own database, and restores its own shared values.
    fn a_step_ends_nothing_in_other_databases(&self) {
        // PostgreSQL takes back a transaction that executes nothing for 3 seconds.
        let fails: &[bool] = if self.other.is_sqlite() { &[false, true] } else { &[] };
        for fails in fails {
            let path = format!("/held/within?fails={fails}");
            let answer = while_held(self.served, &path, || self.begin(), || self.own_tables_go_on());
            let (count, kept, rows) = if *fails { ("-1", "0", "[[0,0]]") } else { ("1", "1", "[[0,0],[1,1],[2,2]]") };
            assert_eq!(answer, count);
            answered(self.served, ("GET", "/kept", kept));
            answered(self.served, ("GET", "/theirs", rows));
        }
    }

    fn a_locked_row_holds_up_no_table_of_the_program(&self) {
        let lock = "SELECT n FROM theirs WHERE id = 0 FOR UPDATE";
        self.own_tables_go_on_beside(lock, ("/gate/theirs", "{\"id\":0,\"n\":1}"));
    }

    /// A query that reads rows of another database by keys does not keep out who writes its table.
    fn a_query_keeps_nobody_out_while_another_database_answers(&self) {
        self.own_tables_go_on_beside("LOCK TABLE theirs IN ACCESS EXCLUSIVE MODE", ("/gate/both", "[[0,0]]"));
    }

    /// Sends a request that waits for a lock of another program in the other database, and has the answers of all others meanwhile.
    fn own_tables_go_on_beside(&self, lock: &str, (path, expected): (&str, &str)) {
        let Other::Postgres(server, schema) = self.other else { return };
        self.begin();
        let lock = OpenTransaction::begin(server, schema, lock);
        let held = send(self.served, "POST", path);
        lock.blocks();
        self.own_tables_go_on();
        lock.end();
        let answer = read_answer(held);
        assert_eq!((answer.status, text(&answer)), (200, expected));
    }

    /// Flows that need both databases, one after the other and together, come to an end.
    fn flows_in_opposite_orders_do_not_wait_for_each_other_forever(&self) {
        const EACH: usize = 4;
        self.begin();
        thread::scope(|scope| {
            for way in 0..5 {
                scope.spawn(move || {
                    for _ in 0..EACH {
                        let answer = post(self.served, &format!("/order/{way}")).expect("an answer");
                        assert_eq!(answer.status, 200, "{way} under {}: {}", self.engine, text(&answer));
                    }
                });
            }
        });
        let rows = |n: usize| format!("{{\"id\":0,\"n\":{n}}}");
        let sums = self.served.get("/sums");
        assert_eq!(text(&sums), format!("[{},{}]", rows(5 * EACH), rows(5 * EACH)), "{}", self.engine);
    }
}

/// A transaction of `psql` that stays open until the test ends it.
pub(super) struct OpenTransaction<'s> {
    server: &'s PostgresServer,
    shell: Child,
    /// The number of its connection.
    process: String,
}

impl<'s> OpenTransaction<'s> {
    /// Executes a statement in a schema, and waits until its locks are held.
    pub(super) fn begin(server: &'s PostgresServer, schema: &str, statement: &str) -> OpenTransaction<'s> {
        let script = format!("BEGIN; {statement}; SELECT 'in {schema}', pg_sleep(600)");
        let shell = server.psql(schema, &script).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let sleeping =
            format!("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%in {schema}''%'");
        let mut process = String::new();
        while process.is_empty() {
            process = server.execute("public", &sleeping).trim().to_owned();
        }
        OpenTransaction { server, shell: shell.expect("psql is there"), process }
    }

    /// Waits until a statement of another connection waits for the transaction.
    pub(super) fn blocks(&self) {
        let blocked =
            format!("SELECT count(*) > 0 FROM pg_stat_activity WHERE {} = ANY(pg_blocking_pids(pid))", self.process);
        while self.server.execute("public", &blocked).trim() != "t" {}
    }

    pub(super) fn end(mut self) {
        self.server.execute("public", &format!("SELECT pg_terminate_backend({})", self.process));
        self.shell.wait().expect("the shell ends");
    }
}

/// Two names of one database are one database, whatever the names are.
#[test]
fn two_configs_with_one_address_take_turns() {
    let program = r#"use http

record Row { id: Int, n: Int }

config shop: Text
config store: Text

table ours: Row key id existing(database: shop, writable: true)
table theirs: Row key id existing(database: store, writable: true)

service front on http(port: 8080) {
  post "/0" { http.json(ours.update(0, |row| Row { ..row, n: row.n + 1 })?) }
  post "/1" { http.json(theirs.update(0, |row| Row { ..row, n: row.n + 1 })?) }
  get "/" { http.json((ours[0], theirs[0])) }
}
"#;
    const EACH: usize = 10;
    let program = Scratch::new("aliases.weir", program.as_bytes());
    for other in Other::each("aliases", |_| {
        "CREATE TABLE ours (id bigint PRIMARY KEY NOT NULL, n bigint NOT NULL);
         CREATE TABLE theirs (id bigint PRIMARY KEY NOT NULL, n bigint NOT NULL);
         INSERT INTO ours VALUES (0, 0); INSERT INTO theirs VALUES (0, 0);"
            .to_owned()
    }) {
        let (shop, folder) = (other.option(), Scratch::folder("aliases-own"));
        let store = shop.replacen("shop", "store", 1);
        let served = Served::start(program.path(), &["--data", folder.path(), "--set", &shop, "--set", &store]);
        thread::scope(|scope| {
            for client in 0..4 {
                let served = &served;
                scope.spawn(move || {
                    for _ in 0..EACH {
                        let answer = post(served, &format!("/{}", client % 2)).expect("an answer");
                        assert_eq!(answer.status, 200, "{}", text(&answer));
                    }
                });
            }
        });
        let n = 2 * EACH;
        assert_eq!(text(&served.get("/")), format!("[{{\"id\":0,\"n\":{n}}},{{\"id\":0,\"n\":{n}}}]"));
        assert_eq!(served.stop().0, Some(0));
    }
}
