//! Faults of a PostgreSQL server under a program that writes, under each engine: nothing acknowledged is lost, doubled or half, and the
//! program recovers by itself.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use test_support::postgres::PostgresServer;

use super::kills::kills;
use super::{request, text};
use crate::support::{PATIENCE, Scratch, Served, SetOnDrop};

const WRITERS: u64 = 12;

/// The server keeps its log in memory as long as it may, so that a kill loses every commit that nobody has synced.
const LATE_LOG: [&str; 2] = ["wal_writer_delay=10s", "wal_writer_flush_after=1GB"];

/// A statement of its own, a transaction that waits for a number, and one whose changes are placed. No rule prevents that a row
/// is stored twice.
const PROGRAM: &str = r#"use http

record Entry { id: Int, by: Int, number: Int }

record Mark { by: Int, number: Int }

record Total { name: Text, count: Int }

table entries: Entry key id auto index (by, number)
table marks: Mark key (by, number)
table totals: Total key name

service ledger on http(port: 8080) {
  post "/{by}/{number}/alone" (by: Int, number: Int) {
    http.text("{entries.insert(Entry { by, number })?}")
  }
  post "/{by}/{number}/numbered" (by: Int, number: Int) {
    let id = atomic entries, totals {
      let id = entries.insert(Entry { by, number })?
      let known = totals["numbered"] else { Total { name: "numbered", count: 0 } }
      totals.upsert(Total { ..known, count: known.count + 1 })?
      id
    }
    http.text("{id}")
  }
  post "/{by}/{number}/placed" (by: Int, number: Int) {
    atomic marks, totals {
      let known = totals["placed"] else { Total { name: "placed", count: 0 } }
      marks.upsert(Mark { by, number })?
      totals.upsert(Total { ..known, count: known.count + 1 })?
      marks.upsert(Mark { by: 0 - by, number })?
    }
    http.text("placed")
  }
  get "/{by}/{number}" (by: Int, number: Int) {
    let found = for entry in entries if entry.by == by && entry.number == number { entry.id }
    let marked = marks.count(|m| m.by == by && m.number == number)
    http.text("{found.length() + marked}")
  }
}
"#;

const WAYS: [&str; 3] = ["alone", "numbered", "placed"];

/// A fault of the server.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Crash,
    Kill,
    Restart,
    KillConnection,
    Cut,
    Freeze,
}

const FAULTS: [Fault; 6] =
    [Fault::Kill, Fault::Cut, Fault::Restart, Fault::KillConnection, Fault::Freeze, Fault::Crash];

#[test]
fn what_was_acknowledged_survives_faults_of_the_database_under_engines_with_sections() {
    survive(&["staged", "manual", "dedicated"]);
}

#[test]
fn what_was_acknowledged_survives_faults_of_the_database_under_engines_without_sections() {
    survive(&["event", "pool", "elastic", "thread-per-flow"]);
}

#[allow(clippy::print_stderr, reason = "a test says what it has tried")]
fn survive(engines: &[&str]) {
    let Some(server) = PostgresServer::start_with(&LATE_LOG) else { return };
    for engine in engines {
        let schema = format!("faults_{}", engine.replace('-', "_"));
        let address = format!("{}&statement_timeout=1s", server.schema(&schema));
        let program = Scratch::new("ledger.weir", PROGRAM.as_bytes());
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        let ledger = Ledger::default();
        let faults = kills().div_ceil(3) as usize;
        ledger.written_under_faults(&served, &server, faults);
        let (code, said) = served.stop();
        assert_eq!(code, Some(0), "under `{engine}`: {said}");
        let counts = ledger.compare(&server, &schema);
        eprintln!("`{engine}`: {faults} faults, {counts}");
    }
}

/// The rows that clients know of.
#[derive(Default)]
struct Ledger {
    /// The writers and numbers of acknowledged rows.
    acknowledged: Mutex<BTreeSet<(u64, u64)>>,
    answered: AtomicUsize,
    refused: AtomicUsize,
}

impl Ledger {
    /// Writes until the server has had this many faults, and until each writer has written once more.
    fn written_under_faults(&self, served: &Served, server: &PostgresServer, faults: usize) {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let _done = SetOnDrop(&done);
            for by in 1..=WRITERS {
                let done = &done;
                scope.spawn(move || {
                    for number in (0..).take_while(|_| !done.load(Ordering::Relaxed)) {
                        self.write(served, by, number);
                    }
                });
            }
            for number in 0..faults {
                self.wait_for_answers(20 + number % 7 * 10);
                self.suffer(server, FAULTS[number % FAULTS.len()]);
            }
            self.wait_for_answers(5 * WRITERS as usize);
        });
    }

    fn wait_for_answers(&self, count: usize) {
        let (wanted, begin) = (self.answered.load(Ordering::Relaxed) + count, Instant::now());
        while self.answered.load(Ordering::Relaxed) < wanted {
            assert!(begin.elapsed() < PATIENCE, "the program does not recover");
            thread::yield_now();
        }
    }

    /// Writes once, and looks for what was acknowledged.
    fn write(&self, served: &Served, by: u64, number: u64) {
        let way = WAYS[(by + number) as usize % WAYS.len()];
        let answer = request(served, "POST", &format!("/{by}/{number}/{way}"));
        if answer.is_none_or(|answer| answer.status != 200) {
            // Nobody knows whether it is stored; it is not sent again.
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.acknowledged.lock().expect("no writer fails").insert((by, number));
        self.answered.fetch_add(1, Ordering::Relaxed);
        if let Some(found) = request(served, "GET", &format!("/{by}/{number}")).filter(|found| found.status == 200) {
            assert_eq!(text(&found).trim(), "1", "{number} of {by} was acknowledged ({way})");
        }
    }

    fn suffer(&self, server: &PostgresServer, fault: Fault) {
        match fault {
            Fault::Crash => server.crash(),
            Fault::Kill => server.kill(),
            Fault::Restart => server.stop(),
            Fault::KillConnection => return server.kill_connection(),
            Fault::Cut => return server.cut(),
            Fault::Freeze => {
                let refused = self.refused.load(Ordering::Relaxed);
                server.freeze();
                while self.refused.load(Ordering::Relaxed) == refused {
                    thread::yield_now();
                }
                return server.thaw();
            }
        }
        server.run();
    }

    /// Compares what was acknowledged with what is stored. Returns the numbers of both.
    fn compare(&self, server: &PostgresServer, schema: &str) -> String {
        let rows = "SELECT by, number FROM entries UNION ALL SELECT by, number FROM marks WHERE by > 0";
        let (mut stored, mut counted) = (BTreeSet::new(), [0; WAYS.len()]);
        for row in server.execute(schema, rows).lines() {
            let (by, number) = row.split_once('|').expect("two numbers");
            let (by, number): (u64, u64) = (by.parse().expect("a number"), number.parse().expect("a number"));
            assert!(stored.insert((by, number)), "sent once, and stored twice: {number} of {by}");
            counted[(by + number) as usize % WAYS.len()] += 1;
        }
        let count = |sql: &str| -> u64 { server.execute(schema, sql).trim().parse().expect("a number") };
        for (way, counted) in WAYS.iter().zip(counted).skip(1) {
            let total = count(&format!("SELECT coalesce(sum(count), 0) FROM totals WHERE name = '{way}'"));
            assert_eq!(counted, total, "a transaction is torn ({way})");
        }
        assert_eq!(counted[2], count("SELECT count(*) FROM marks WHERE by < 0"), "a transaction is torn");
        let acknowledged = self.acknowledged.lock().expect("no writer fails");
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        let refused = self.refused.load(Ordering::Relaxed);
        format!("{} acknowledged, {refused} refused, {} stored", acknowledged.len(), stored.len())
    }
}

/// Takes the lock of a table until another one has a row, which others may write.
const LOCKED: &str = "DO $$ BEGIN
    LOCK TABLE totals;
    WHILE NOT EXISTS (SELECT 1 FROM done) LOOP PERFORM pg_sleep(0.01); END LOOP;
END $$";
/// The number of programs that wait for a lock.
const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir' AND wait_event_type = 'Lock'";

#[test]
fn a_program_that_ends_while_a_write_waits_says_which_one_and_where() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("ended_waiting");
    let program = Scratch::new("ledger.weir", PROGRAM.as_bytes());
    let plan = Scratch::new("ledger.toml", b"drain_timeout = \"1s\"\n");
    let served = Served::start(program.path(), &["--tables", &address, "--plan", plan.path()]);
    server.execute("ended_waiting", "CREATE TABLE done (id bigint)");
    let found = |query| server.execute("ended_waiting", query).trim().to_owned();
    thread::scope(|scope| {
        scope.spawn(|| server.execute("ended_waiting", LOCKED));
        while found(
            "SELECT count(*) FROM pg_locks WHERE relation = 'totals'::regclass AND mode = 'AccessExclusiveLock'",
        ) != "1"
        {
            thread::yield_now();
        }
        let mut asked = served.connect();
        let request = "POST /1/1/numbered HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        asked.write_all(request.as_bytes()).expect("the request is sent");
        while found(WAITING) == "0" {
            thread::yield_now();
        }
        let (code, said) = served.stop();
        server.execute("ended_waiting", "INSERT INTO done VALUES (1)");
        assert_eq!(code, Some(3), "{said}");
        let begin = "the database postgres://weir@";
        let named = said
            .lines()
            .find(|line| line.contains(begin) && line.contains("has not answered a statement"))
            .unwrap_or(&said);
        assert!(named.contains("\"totals\"") && named.contains("pg_blocking_pids"), "{said}");
    });
}
