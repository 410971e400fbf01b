//! The case `large`: what a table of many rows costs beside one of a thousand.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::{Duration, Instant};

use bench_harness::{BenchResult, Load, LoadOptions, ServerProcess, results};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::servers::{Place, Setting, Store};
use crate::soft_read::quartiles;

const PROGRAM: &str = include_str!("../programs/large.weir");
/// The number of rows of the small table.
const FEW: u64 = 1_000;
/// The number of reads in a flow.
const READS: u64 = 20_000;
/// The number of pages in a measurement, and of reads over HTTP.
const PAGES: usize = 200;
const REQUESTS: u64 = 4_000;

/// Measures a table of `rows` rows beside one of a thousand.
pub(crate) fn run(setting: &Setting, rows: u64, options: LoadOptions) -> BenchResult<()> {
    let load = Load::new(1)?;
    let engine = setting.engines.first().ok_or("an engine is given")?;
    let few = filled(setting, &load, ("few", FEW), engine)?;
    let many = filled(setting, &load, ("many", rows), engine)?;
    let (mut starts, mut reads, mut page_ratios, mut firsts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut each = [Vec::new(), Vec::new()];
    let mut by_hand = [Vec::new(), Vec::new()];
    let (mut requests, mut few_requests, mut request_ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let begin = Instant::now();
        let server = many.start_weir("many", PROGRAM, engine)?;
        load.bodies(&server, &["/entries/1".to_owned()])?;
        starts.push(begin.elapsed().as_secs_f64() * 1e3);
        let small_server = few.start_weir("few", PROGRAM, engine)?;
        // The first flow opens the connection that reads, and warms its cache.
        let read = |server: &ServerProcess, rows| -> BenchResult<f64> {
            read_ns(&load, server, rows)?;
            read_ns(&load, server, rows)
        };
        let (large, small) = (read(&server, rows)?, read(&small_server, FEW)?);
        reads.push(large / small);
        each[0].push(large);
        each[1].push(small);
        let requested = |server: &ServerProcess, rows| -> BenchResult<f64> {
            requests_us(&load, server, rows)?;
            requests_us(&load, server, rows)
        };
        let (large, small) = (requested(&server, rows)?, requested(&small_server, FEW)?);
        request_ratios.push(large / small);
        requests.push(large);
        few_requests.push(small);
        by_hand[0].push(by_hand_ns(&many, rows)?);
        by_hand[1].push(by_hand_ns(&few, FEW)?);
        let cursor = cursor(&load, &server, rows)?;
        let first = pages_us(&load, &server, "/pages")?;
        page_ratios.push(pages_us(&load, &server, &format!("/pages?after={cursor}"))? / first);
        firsts.push(first);
    }
    let [large, small] = each.map(quartiles);
    let [starts, reads, pages, firsts] = [starts, reads, page_ratios, firsts].map(quartiles);
    let [hand_large, hand_small] = by_hand.map(quartiles);
    let [requests, few_requests, request_ratios] = [requests, few_requests, request_ratios].map(quartiles);
    println!(
        "large, {rows} rows: lowest, median\n  start until the first answer, ms {starts:.0?}\n  read, ns {large:.0?}; of {FEW} \
         rows {small:.0?}; ratio {reads:.2?}\n  by hand, in one transaction, ns {hand_large:.0?}; of {FEW} rows {hand_small:.0?}\n  read over HTTP, us \
         {requests:.1?}; of {FEW} rows {few_requests:.1?}; ratio {request_ratios:.2?}\n  first page over HTTP, us {firsts:.0?}; the last relative to it {pages:.2?}"
    );
    let all = json!({
        "rows": rows, "by_hand_ns": hand_large, "by_hand_of_few_ns": hand_small, "request_us": requests,
        "request_of_few_us": few_requests, "request_ratio": request_ratios, "start_ms": starts, "read_ns": large, "read_of_few_ns": small, "read_ratio": reads,
        "first_page_us": firsts, "page_ratio": pages,
    });
    results::publish("bench-tables-large", &all)
}

/// Creates a database as a program does, and fills it.
fn filled(setting: &Setting, load: &Load, (name, rows): (&str, u64), engine: &str) -> BenchResult<Place> {
    let place = setting.place(name, Store::Sqlite)?.ok_or("SQLite needs nothing")?;
    let server = place.start_weir(name, PROGRAM, engine)?;
    load.bodies(&server, &["/pages".to_owned()])?;
    server.terminate()?;
    let database = Connection::open(place.database())?;
    database.busy_timeout(Duration::from_secs(10))?;
    database.execute_batch("PRAGMA synchronous=OFF; PRAGMA cache_size=-200000")?;
    database.execute(
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ?1)
         INSERT INTO entries (id, owner, text) SELECT id, 'owner ' || (id / 100), 'the text of entry ' || id FROM n",
        [rows as i64],
    )?;
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(place)
}

/// Returns the time of a read by key, of many in one flow.
fn read_ns(load: &Load, server: &ServerProcess, rows: u64) -> BenchResult<f64> {
    let timed = |count: u64| -> BenchResult<f64> {
        let begin = Instant::now();
        load.bodies(server, &[format!("/reads/{count}?rows={rows}")])?;
        Ok(begin.elapsed().as_nanos() as f64)
    };
    Ok((timed(READS)? - timed(1)?) / READS as f64)
}

/// Returns the time of the same reads by SQLite alone, in one transaction, with the same size of the cache.
fn by_hand_ns(place: &Place, rows: u64) -> BenchResult<f64> {
    let database = Connection::open(place.database())?;
    database.execute_batch("PRAGMA cache_size=-16384; BEGIN")?;
    let mut entry = database.prepare("SELECT id, owner, text FROM entries WHERE id = ?1")?;
    let mut id = 1;
    let mut reads = || -> BenchResult<f64> {
        let begin = Instant::now();
        for n in 0..READS {
            let (found, _, _): (u64, String, String) =
                entry.query_row([id as i64], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?)))?;
            id = (found * 7_919 + n) % rows + 1;
        }
        Ok(begin.elapsed().as_nanos() as f64 / READS as f64)
    };
    reads()?;
    reads()
}

/// Returns the time of a request for a row by its key.
fn requests_us(load: &Load, server: &ServerProcess, rows: u64) -> BenchResult<f64> {
    let paths: Vec<String> = (0..REQUESTS).map(|n| format!("/entries/{}", n * 7_919_777 % rows + 1)).collect();
    let begin = Instant::now();
    load.bodies(server, &paths)?;
    Ok(begin.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64)
}

/// Returns the cursor before the last page.
fn cursor(load: &Load, server: &ServerProcess, rows: u64) -> BenchResult<String> {
    let bodies = load.bodies(server, &[format!("/pages?from={}", rows - 99)])?;
    let page: Value = serde_json::from_slice(&bodies[0])?;
    let cursor = page["next"].as_str().ok_or("the page before the last one has a next one")?.to_owned();
    let bodies = load.bodies(server, &[format!("/pages?after={cursor}")])?;
    let last: Value = serde_json::from_slice(&bodies[0])?;
    let ids = last["ids"].as_array().map(Vec::len);
    if ids != Some(50) || !last["next"].is_null() || last["ids"][49] != json!(rows) {
        return Err(format!("{last} is not the last page").into());
    }
    Ok(cursor)
}

fn pages_us(load: &Load, server: &ServerProcess, path: &str) -> BenchResult<f64> {
    let asked = vec![path.to_owned(); PAGES];
    let begin = Instant::now();
    load.bodies(server, &asked)?;
    Ok(begin.elapsed().as_secs_f64() * 1e6 / PAGES as f64)
}
