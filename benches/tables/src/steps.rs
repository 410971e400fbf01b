//! The case `steps`: the time of 1,000 steps of SQLite's machine, by which Weir tells a long read from a short one.
//!
//! Weir counts the steps of a read instead of its time, because a clock also counts a thread that waits for its processor. So the bound is
//! a number of steps, and the case shows what time that is: in SQLite alone, and in Weir, which makes values of the rows. All pages are in
//! the cache.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::time::Instant;

use bench_harness::{BenchResult, Load, LoadOptions, results};
use rusqlite::{Connection, Statement, StatementStatus};
use serde_json::json;

use crate::servers::{Place, Setting, Store};
use crate::soft_read::quartiles;

const PROGRAM: &str = include_str!("../programs/steps.weir");

/// A query, the number of its executions in which SQLite alone is measured, and the route of the same query in Weir.
const QUERIES: [(&str, &str, usize, Option<&str>); 7] = [
    ("a row by its key", "SELECT id, owner, text, number FROM entries WHERE id = 4711", 20_000, None),
    (
        "a hundred rows by an index",
        "SELECT id, owner, text, number FROM entries WHERE owner = 'owner 47' ORDER BY id",
        2_000,
        Some("hundred"),
    ),
    (
        "the last fifty rows",
        "SELECT id, owner, text, number FROM entries WHERE id > 1 ORDER BY id DESC LIMIT 50",
        2_000,
        Some("fifty"),
    ),
    (
        "a sum of a hundred rows",
        "SELECT coalesce(sum(number >> 32), 0), coalesce(sum(number & 4294967295), 0) FROM entries WHERE id > 9900",
        2_000,
        Some("sum"),
    ),
    ("a scan that finds no row", "SELECT id, owner, text, number FROM entries WHERE number = -1", 200, None),
    ("groups of all rows", "SELECT number, count(*) FROM entries GROUP BY number", 100, None),
    ("all rows in an order that no index has", "SELECT id, owner, text, number FROM entries ORDER BY text", 100, None),
];
/// The number of rows, a hundred of each owner.
const ROWS: u32 = 10_000;
/// The number of executions in a flow.
const EXECUTIONS: u64 = 10_000;

/// Measures the queries on one table.
pub(crate) fn run(setting: &Setting, options: LoadOptions) -> BenchResult<()> {
    let engine = setting.engines.first().ok_or("an engine is given")?;
    let (place, load) = (setting.place("steps", Store::Sqlite)?.ok_or("SQLite needs nothing")?, Load::new(1)?);
    let start = || place.start_weir("steps", PROGRAM, engine);
    start()?.terminate()?;
    fill(&place)?;
    let (database, server) = (Connection::open(place.database())?, start()?);
    println!("steps of SQLite's machine; microseconds of 1,000 steps, lowest and median: in SQLite alone, in Weir");
    let mut all = Vec::new();
    for (name, sql, executions, route) in QUERIES {
        let mut statement = database.prepare(sql)?;
        let steps = f64::from(steps_of(&mut statement)?);
        let mut alone = Vec::with_capacity(executions);
        for _ in 0..executions {
            let begin = Instant::now();
            read(&mut statement)?;
            alone.push(begin.elapsed().as_secs_f64() * 1e9 / steps);
        }
        let mut in_weir = Vec::new();
        for _ in 0..route.map_or(0, |_| options.rounds) {
            let before = server.cpu_time();
            load.bodies(&server, &[format!("/{}/{EXECUTIONS}", route.unwrap_or_default())])?;
            in_weir.push((server.cpu_time() - before).as_secs_f64() * 1e9 / EXECUTIONS as f64 / steps);
        }
        let (alone, in_weir) = (quartiles(alone), route.map(|_| quartiles(in_weir)));
        let shown = in_weir.map_or(String::new(), |times| format!(", {times:.0?}"));
        println!("  {name}: {steps}; {alone:.0?}{shown}");
        all.push(json!({ "query": name, "steps": steps, "us_in_sqlite": alone, "us_in_weir": in_weir }));
    }
    results::publish("bench-tables-steps", &json!(all))
}

/// Fills the table of the program.
fn fill(place: &Place) -> BenchResult<()> {
    let database = Connection::open(place.database())?;
    database.execute(
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?1)
         INSERT INTO entries (id, owner, text, number)
         SELECT id, 'owner ' || (id / 100), 'the text of entry ' || id, id * 7919 % 100 FROM n",
        [ROWS],
    )?;
    Ok(())
}

/// Returns the steps of an execution.
fn steps_of(statement: &mut Statement<'_>) -> BenchResult<i32> {
    read(statement)?;
    statement.reset_status(StatementStatus::VmStep);
    read(statement)?;
    Ok(statement.get_status(StatementStatus::VmStep))
}

/// Reads all values of a query.
fn read(statement: &mut Statement<'_>) -> BenchResult<()> {
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for at in 0..columns {
            black_box(row.get_ref(at)?);
        }
    }
    Ok(())
}
