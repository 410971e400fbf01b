//! Kills of a program that writes its tables, under each engine in turns: what was acknowledged is there, once, and nothing is torn.

use std::sync::Mutex;
use std::thread;

use super::existing::Other;
use super::{post, text};
use crate::support::{ENGINES, Scratch, Served};

/// Without `unique`, a write that takes effect twice would be seen.
pub(super) const PROGRAM: &str = r#"use http

record Entry { id: Int, by: Int, number: Int }

record Total { name: Text, count: Int }

record Mark { by: Int, part: Int, number: Int }

table entries: Entry key id auto index (by, number)
table singles: Entry key id auto index (by, number)
table totals: Total key name
table marks: Mark key (by, part)
table recent: Entry key id auto soft(at_most: 5)

fn count() -> Result(Int) {
  let known = totals["all"] else { Total { name: "all", count: 0 } }
  totals.upsert(Total { ..known, count: known.count + 1 })?
  Ok(known.count)
}

service ledger on http(port: 8080) {
  post "/0/{number}" (number: Int) {
    atomic entries, totals {
      entries.insert(Entry { by: 0, number })?
      count()?
    }
    http.text("written")
  }
  post "/1/{number}" (number: Int) {
    atomic entries, totals, recent {
      entries.insert(Entry { by: 1, number })?
      recent.insert(Entry { by: 1, number })?
      count()?
    }
    http.text("written")
  }
  post "/2/{number}" (number: Int) {
    singles.insert(Entry { by: 2, number })?
    http.text("written")
  }
  post "/3/{number}" (number: Int) {
    marks.update_all(|mark| mark.by == 3, |mark| Mark { ..mark, number })?
    http.text("written")
  }
  post "/marks" {
    marks.upsert(Mark { by: 3, part: 1, number: 0 })?
    marks.upsert(Mark { by: 3, part: 2, number: 0 })?
    marks.upsert(Mark { by: 3, part: 3, number: 0 })?
    http.text("written")
  }
  get "/total" {
    let total = totals["all"] else { return http.text("0 {entries.count()}") }
    http.text("{total.count} {entries.count()}")
  }
  get "/all/{by}" (by: Int) {
    if by == 2 { return http.json(for entry in singles if entry.by == by order by entry.number { entry.number }) }
    http.json(for entry in entries if entry.by == by order by entry.number { entry.number })
  }
  get "/marks" { http.json(for mark in marks if mark.by == 3 { mark.number }) }
}
"#;

/// Transactions, some with soft rows, single insertions, and changes of several rows.
const CLIENTS: usize = 4;

/// The client whose writes change the same rows.
const CHANGES: usize = 3;

/// Number of kills; `WEIR_KILLS` sets another one.
pub(super) fn kills() -> u64 {
    std::env::var("WEIR_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20)
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_no_transaction_is_torn() {
    eprintln!("{}", survives_kills(PROGRAM, &["--data", Scratch::folder("ledger").path()]));
}

#[test]
fn what_was_acknowledged_in_an_existing_database_survives_a_kill() {
    let clause = " existing(database: shop, writable: true)";
    let text = PROGRAM
        .replace("index (by, number)\n", &format!("index (by, number){clause}\n"))
        .replace("table totals: Total key name\n", &format!("table totals: Total key name{clause}\n"))
        .replace("table marks: Mark key (by, part)\n", &format!("table marks: Mark key (by, part){clause}\n"))
        .replace("table entries", "config shop: Text\n\ntable entries");
    assert_eq!(text.matches(clause).count(), 4);
    for other in Other::each("existing_ledger", existing_tables) {
        eprintln!("{}", survives_kills(&text, &["--set", &other.option()]));
    }
}

fn existing_tables(number: &str) -> String {
    let entries = |name: &str| {
        format!(
            "CREATE TABLE {name} (id {number}, \"by\" bigint NOT NULL, number bigint NOT NULL);
             CREATE INDEX of_{name} ON {name} (\"by\", number);"
        )
    };
    format!(
        "{} {} CREATE TABLE totals (name text PRIMARY KEY NOT NULL, count bigint NOT NULL);
         CREATE TABLE marks (\"by\" bigint NOT NULL, part bigint NOT NULL, number bigint NOT NULL, PRIMARY KEY (\"by\", part));",
        entries("entries"),
        entries("singles")
    )
}

/// Kills a program under load, and looks for what it has acknowledged. Returns the numbers of both.
pub(super) fn survives_kills(text: &str, arguments: &[&str]) -> String {
    let program = Scratch::new("ledger.weir", text.as_bytes());
    let acknowledged = Mutex::new(vec![Vec::new(); CLIENTS]);
    for round in 0..kills() {
        let engine = ENGINES[round as usize % ENGINES.len()];
        let served = Served::start(program.path(), &[arguments, &["--engine", engine]].concat());
        if round == 0 {
            assert_eq!(post(&served, "/marks").map(|answer| answer.status), Some(200));
        }
        kill_under_load(served, round, &acknowledged);
    }
    let served = Served::start(program.path(), arguments);
    let acknowledged = acknowledged.into_inner().expect("no client fails");
    let said = check(&served, &acknowledged);
    served.stop();
    format!("{} kills, {said}", kills())
}

/// Writes ascending numbers, notes those that were acknowledged, and kills the program meanwhile.
fn kill_under_load(served: Served, round: u64, acknowledged: &Mutex<Vec<Vec<u64>>>) {
    thread::scope(|scope| {
        for by in 0..CLIENTS {
            let served = &served;
            scope.spawn(move || {
                for number in round * 1_000 + 1.. {
                    match post(served, &format!("/{by}/{number}")) {
                        Some(answer) if answer.status == 200 => {
                            acknowledged.lock().expect("no client fails")[by].push(number);
                        }
                        _ => return,
                    }
                }
            });
        }
        let count = || acknowledged.lock().expect("no client fails").iter().map(Vec::len).sum::<usize>();
        let writes = |numbers: &Vec<u64>| numbers.last().is_some_and(|last| *last > round * 1_000);
        let all_write = || acknowledged.lock().expect("no client fails").iter().all(writes);
        let before_kill = count() + 5 + (round % 7) as usize * 4;
        while count() < before_kill || !all_write() {
            thread::yield_now();
        }
        served.signal("-KILL");
    });
    served.kill();
}

/// Fails if a write was lost, doubled or torn. Returns the numbers of what was acknowledged and of what is stored.
fn check(served: &Served, acknowledged: &[Vec<u64>]) -> String {
    let total = served.get("/total");
    let (total, rows) = text(&total).split_once(' ').expect("two numbers");
    assert_eq!(total, rows, "a transaction is torn");
    for (by, numbers) in acknowledged.iter().enumerate() {
        if by == CHANGES {
            continue;
        }
        let stored = numbers_of(served, &format!("/all/{by}"));
        let lost: Vec<&u64> = numbers.iter().filter(|number| stored.binary_search(number).is_err()).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        let doubled: Vec<u64> = stored.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(doubled.is_empty(), "sent once, and stored twice: {doubled:?}");
    }
    let marks = numbers_of(served, "/marks");
    assert!(marks.len() == 3 && marks.iter().all(|mark| *mark == marks[0]), "a change is torn: {marks:?}");
    assert!(acknowledged[CHANGES].last() <= Some(&marks[0]), "a change is lost: {marks:?}");
    let count = acknowledged.iter().map(Vec::len).sum::<usize>();
    format!("{count} acknowledged, {rows} transactions stored")
}

fn numbers_of(served: &Served, path: &str) -> Vec<u64> {
    let answer = served.get(path);
    text(&answer).trim_matches(['[', ']', '\n']).split(',').filter_map(|number| number.parse().ok()).collect()
}
